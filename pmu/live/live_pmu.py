"""LivePmu: a PMU without a machine, whose registers a test reads and writes by name and field."""

from __future__ import annotations

import difflib

from emulator.probes import Probe
from pmu.live.access import ARCHITECTURES, Architecture, Named
from pmu.model import model
from pmu.register import Field, Register
from pmu.register_view import RegisterFile

_MOST = 1 << 64
_NEAR = 3  # names suggested
_AN_INSTRUCTION = 1 << Probe.INST_RETIRED | 1 << Probe.CYCLES


class RegisterValue(int):
    """What a register held when it was read, with the register's fields as attributes.

    A field that is assigned is written to the register, with the others as they were read: one read and one write, as
    software has it. ValueError if it does not fit, AttributeError if there is no such field.
    """

    _pmu: LivePmu
    _named: Named

    @classmethod
    def of(cls, pmu: LivePmu, named: Named, value: int) -> RegisterValue:
        made = cls(value)
        object.__setattr__(made, "_pmu", pmu)
        object.__setattr__(made, "_named", named)
        return made

    def __getattr__(self, name: str) -> int:
        field = self._field(name)
        return (int(self) & field.mask) >> field.lo

    def __setattr__(self, name: str, value: int) -> None:
        field = self._field(name)
        register = self._named.register
        self._pmu.write(self._named.name, int(self) & ~field.mask | register.make(**{name: value}))

    def _field(self, name: str) -> Field:
        register = self._named.register
        field = register.fields.get(name)
        if field is None:
            there = ", ".join(register.fields) or "none"
            raise AttributeError(f"{self._named.name} has no field {name}; it has {there}")
        return field

    def __repr__(self) -> str:
        return _text(self._named, int(self))


class LivePmu:
    """One PMU as software at one privilege level has it: see `open_pmu`.

    Its registers are attributes, by the names of the manual, numbered where there are several: ``pmu.PMCR_EL0``,
    ``pmu.PMEVCNTR0_EL0``, ``pmu.IA32_PERFEVTSEL0``; `read` and `write` take names as texts.
    """

    _architecture: Architecture
    _level: str

    def __init__(self, architecture: Architecture, level: str) -> None:
        object.__setattr__(self, "_architecture", architecture)
        object.__setattr__(self, "_level", level)

    # registers

    def __getattr__(self, name: str) -> RegisterValue:
        return self.read(name)

    def __setattr__(self, name: str, value: int) -> None:
        self.write(name, value)

    def read(self, register: str) -> RegisterValue:
        """What software reads there. AccessError if that is an exception; AttributeError: there is no such register."""
        named = self._named(register)
        return RegisterValue.of(self, named, self._architecture.read(self._level, named))

    def write(self, register: str, value: int) -> None:
        """Raises as `read` does; ValueError if the value is not one of 64 bits."""
        named = self._named(register)
        if not 0 <= value < _MOST:
            raise ValueError(f"{register}: {value:#x} is not a number of 64 bits")
        self._architecture.write(self._level, named, value)

    def rdpmc(self, ecx: int) -> int:
        """x86's RDPMC. Raises AccessError."""
        return self._architecture.rdpmc(self._level, ecx)

    @property
    def registers(self) -> list[str]:
        """The names of all, whether or not this level reaches them."""
        return list(self._architecture.registers)

    def _named(self, name: str) -> Named:
        named = self._architecture.registers.get(name)
        if named is None:
            near = difflib.get_close_matches(name, self.registers, n=_NEAR)
            hint = f"; near are {', '.join(near)}" if near else ""
            raise AttributeError(f"PMU {self.model_name} has no register {name}{hint}")
        return named

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.registers]

    def __str__(self) -> str:
        """Every register that is not zero, a line each, as the kernel's level reads it."""
        architecture = self._architecture
        device = architecture.device
        lines = []
        for register in device.registers():
            for named in architecture.registers.values():
                if named.register is register and architecture.is_there(named) and device.can_read(register):
                    value = device.read(register, named.index)
                    lines += [_text(named, value)] if value else []
        return "\n".join(lines)

    # privilege

    @property
    def level(self) -> str:
        """At which registers are accessed and instructions run: ``EL1``, ``ring 0``, ``PLV0``, ..."""
        return self._level

    @property
    def levels(self) -> tuple[str, ...]:
        """Those that there are, the least privileged first."""
        return self._architecture.levels

    def at(self, level: str) -> LivePmu:
        """The same PMU from another privilege level. ValueError if there is none of that name."""
        if level not in self.levels:
            raise ValueError(f"PMU {self.model_name} has no level {level!r}; it has {', '.join(self.levels)}")
        return LivePmu(self._architecture, level)

    # what happens

    def run(self, instructions: int, *, until_interrupt: bool = False) -> int:
        """So many instructions retire at this level, each in a cycle of its own. Returns how many did.

        `until_interrupt`: no more once the interrupt is asserted, which it is right behind the instruction that
        overflows a counter.
        """
        done = 0
        while done < instructions and not (until_interrupt and self.interrupt):
            done += self._happen(_AN_INSTRUCTION, instructions - done)
        return done

    def fire(self, name: str, times: int = 1) -> None:
        """An event happens so often at this level, and nothing else: one of the PMU's by the vendor's name, where that
        counts several occurrences the first of them; or a probe of the core by its own name (``emulator/probes.py``).

        UnknownEvent names what is near; ValueError: nothing fires it.
        """
        probe = self._probe(name)
        while times > 0:
            times -= self._happen(1 << probe, times)

    def _probe(self, name: str) -> Probe:
        events = self._architecture.device.model.events
        if events.by_name(name) is None and name in Probe.__members__:
            return Probe[name]
        event = events.find(name)
        if not event.probes:
            raise ValueError(f"{event.name} is fired by nothing: {event.note}")
        return event.probes[0]

    def _happen(self, probes: int, times: int) -> int:
        """At most so often, up to an overflow that the PMU has to see."""
        bank = self._architecture.bank
        counts = self._architecture.counts(self._level)
        step = min(times, bank.until_overflow(probes, counts) or times)
        bank.happen(probes, step, counts)
        self._architecture.device.interrupt_asserted()
        return step

    # the interrupt

    @property
    def interrupt(self) -> bool:
        """Whether the interrupt line is asserted."""
        return self._architecture.device.interrupt_asserted()

    def take_interrupt(self) -> None:
        """What the hardware does as it delivers the interrupt: of Intel's, it masks the local APIC's entry, say."""
        self._architecture.device.take_interrupt()

    # events

    @property
    def device(self) -> RegisterFile:
        """The register model itself, which knows no privilege."""
        return self._architecture.device

    @property
    def model_name(self) -> str:
        return self._architecture.device.model.name

    def code(self, event: str) -> int:
        """What selects an event of the vendor's name, in place in the selecting register. UnknownEvent names those
        that are near."""
        return self._architecture.device.model.events.find(event).code


def open_pmu(name: str, counters: int | None = None) -> LivePmu:
    """A PMU of `pmu/models/` as it is after a reset, seen by the kernel: at EL1, ring 0 or PLV0.

    `counters`: event counters, if not the part's own number. ValueError: no such PMU, or it cannot have so many.
    """
    found = model(name)
    architecture = ARCHITECTURES[found.driver](found, found.counters if counters is None else counters)
    return LivePmu(architecture, architecture.kernel)


def _text(named: Named, value: int) -> str:
    register: Register = named.register(value)
    return repr(register).replace(named.register.__name__, named.name, 1)
