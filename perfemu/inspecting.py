"""inspecting: what `pmu show` does: a PMU's registers where a run stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from emulator.cpu import Cpu
from emulator.instruction_stop import InstructionStops
from emulator.probes import Probe
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import SampleType
from perfcore.events.drivers.hardware import HardwareDriver
from perfemu.boards import BoardSession
from perfemu.counters import enable_groups
from perfemu.events.attributes import stat_attr
from perfemu.recorder import RecordedRun, open_sampling
from perfemu.regions import SymbolRegion
from perfemu.session import Session
from pmu.model import PmuModel
from pmu.register_view import RegisterFile, Registers, RegisterView, views


@dataclass(frozen=True, slots=True)
class Where:
    """Where a CPU has executed so many instructions, numbers that ascend; where the program first enters a function."""

    instructions: Sequence[int] = ()
    symbol: str | None = None

    @property
    def is_anywhere(self) -> bool:
        return bool(self.instructions or self.symbol)


@dataclass(frozen=True, slots=True)
class Programmed:
    """An event that a driver has put on a counter."""

    event: str
    counter: str  # the register
    count: int


@dataclass(frozen=True, slots=True)
class CpuState:
    number: int
    cycle: int
    instructions: int
    pc: int
    level: str  # user or kernel
    interrupt: bool  # whether the PMU's is asserted
    programmed: tuple[Programmed, ...]
    registers: tuple[RegisterView, ...]


@dataclass(frozen=True, slots=True)
class PmuState:
    """All CPUs' PMUs, where the run stopped. `events`: those that were asked for."""

    model: PmuModel
    title: str  # of the core
    events: tuple[str, ...]
    ended: bool  # the run, before it came there
    cpus: tuple[CpuState, ...]


class _Asked:
    """The events that a run is to be looked at with, as they are opened: as stat does, or with a period."""

    def __init__(self, session: RecordedRun, events: Iterable[str], period: int | None, *, system_wide: bool) -> None:
        self.specs = session.parse(events)
        self.attrs = [stat_attr(spec, system_wide=system_wide) for spec in self.specs]
        if period is not None:
            sampled = {"sample_period": period, "sample_type": SampleType.IP, "read_format": 0}
            self.attrs = [attr.copy(**sampled) for attr in self.attrs]
        self.names = tuple(spec.name for spec in self.specs)
        self._names = {_key(attr): spec.name for attr, spec in zip(self.attrs, self.specs, strict=True)}

    def programmed(self, driver: HardwareDriver | None, cpu: int) -> Iterator[Programmed]:
        """What a driver has on a CPU's counters; of events that a guest has opened itself, their configs."""
        if driver is None:
            return
        for index, event in sorted(driver.events_on(cpu).items()):
            attr = event.attr
            name = self._names.get(_key(attr), f"type {attr.type}, config {attr.config:#x}")
            register, number = driver.counter_register(index)
            yield Programmed(name, register.name_of(number), event.count())


def _key(attr: PerfEventAttr) -> tuple[int, ...]:
    return attr.type, attr.config, attr.config1, attr.config2, attr.exclude_user, attr.exclude_kernel


def inspect_program(session: Session, events: Iterable[str], period: int | None, where: Where) -> list[PmuState]:
    """Run the program, and look wherever it is said; or at its end, if it is nowhere else, or comes before.

    Without `events` it is its own PMU that is looked at, else the one that counts them. The run ends where it has been
    looked at last. Raises PerfemuError, also if the function is never entered.
    """
    machine = session.machine
    asked = _Asked(session, events, period, system_wide=False)
    open_sampling(session, asked.specs, asked.attrs, -1)
    attached = session.measuring if asked.specs else session.guests
    assert attached is not None, "the machine has been built"

    def look(*, ended: bool = False) -> PmuState:
        cpus = _cpu_states(machine.cpus, attached.pmus, attached.driver, asked)
        return PmuState(session.pmu_model, session.title, asked.names, ended, cpus)

    looks = _Looks(where, look, machine.pause)
    looks.watch(machine.cpus)
    region = None
    if where.symbol is not None:
        region = SymbolRegion(where.symbol).watched(machine.kernel, session.isa, session.space)
        region.within.on_moved(lambda task: looks.enter())
    session.run_to_a_pause()
    if region is not None:
        region.check()
    return looks.all()


def inspect_board(session: BoardSession, events: Iterable[str], period: int | None, where: Where) -> list[PmuState]:
    """The same of an image on a board; the events are of all that its CPUs do."""
    cpus = session.hardware.cpus
    asked = _Asked(session, events, period, system_wide=True)
    for cpu in cpus:
        enable_groups(open_sampling(session, asked.specs, asked.attrs, cpu.number, system_wide=True))
    measuring = session.measuring

    def look(*, ended: bool = False) -> PmuState:
        if measuring is None:
            states = _cpu_states(cpus, session.guest_pmus, None, asked, session.guest_monitors)
        else:
            states = _cpu_states(cpus, measuring.pmus, measuring.driver, asked)
        return PmuState(session.pmu_model, session.title, asked.names, ended, states)

    looks = _Looks(where, look, session.pause)
    looks.watch(cpus)
    session.run()
    return looks.all()


class Look(Protocol):
    def __call__(self, *, ended: bool = False) -> PmuState: ...


class _Looks:
    """What has been seen so far, and what there is still to see."""

    def __init__(self, where: Where, look: Look, pause: Callable[[], None]) -> None:
        """`pause` ends the run: called when there is nothing left."""
        self._look, self._pause = look, pause
        self._stops = where.instructions
        self._left = len(where.instructions) + (where.symbol is not None)
        self._seen: list[PmuState] = []
        self._has_entered = False

    def watch(self, cpus: Sequence[Cpu]) -> None:
        """Before the run."""
        if self._stops:
            InstructionStops(cpus, self._stops, lambda cpu: self._see())

    def enter(self) -> None:
        """The function has been entered, or left."""
        if not self._has_entered:
            self._has_entered = True
            self._see()

    def _see(self) -> None:
        if not self._left:
            return  # the run is about to end
        self._seen.append(self._look())
        self._left -= 1
        if not self._left:
            self._pause()

    def all(self) -> list[PmuState]:
        """After the run: with its end, if that came first."""
        return [*self._seen, *([self._look(ended=True)] if self._left or not self._seen else [])]


def _cpu_states(
    cpus: Sequence[Cpu],
    pmus: Sequence[RegisterFile],
    driver: HardwareDriver | None,
    asked: _Asked,
    others: Sequence[Registers] = (),
) -> tuple[CpuState, ...]:
    return tuple(
        CpuState(
            cpu.number,
            cpu.core.cycles,
            cpu.core.total(Probe.INST_RETIRED),
            cpu.core.pc,
            cpu.level.name.lower(),
            pmu.interrupt_asserted(),
            tuple(asked.programmed(driver, cpu.number)),
            tuple(view for device in (pmu, *others[cpu.number : cpu.number + 1]) for view in views(device)),
        )
        for cpu, pmu in zip(cpus, pmus, strict=bool(pmus))
    )
