"""SpeUnit: Arm's Statistical Profiling Extension of one CPU, as registers. Arm ARM DDI 0487.

What it counts and samples are instructions that retire. An interval of N is one operation of N, or with PMSIRR_EL1.RND
one of N to N + 255, by a shift register that begins the same each time. Records are of 64 bytes, aligned so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import ClassVar, Protocol

from emulator._native import SpeSampler
from emulator.cpu import Cpu, Level
from emulator.sysregs import SysReg
from pmu.arm.spe_pmu import LEAST_INTERVAL
from pmu.arm.spe_registers import (
    BUFFER_FILLED,
    BUFFER_MANAGEMENT,
    EVENTS,
    INTERVALS,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
    STAGE_1_FAULT,
    TOLD_EVENTS,
    TRANSLATION_FAULT,
    SpeVersion,
)
from pmu.register import Register
from pmu.register_device import RegisterDevice

ID_AA64DFR0_EL1, CONTEXTIDR_EL1 = SysReg(3, 0, 0, 5, 0), SysReg(3, 0, 13, 0, 1)
RECORD_BYTES = 64
_RECORD_BITS = RECORD_BYTES.bit_length() - 1
_TWELVE_BITS = 2  # PMSIDR_EL1.CountSize: counters of cycles saturate there
_TIMESTAMP = struct.Struct("<Q")  # a packet's payload
_END = 0x01  # ... a packet
_COUNT = (1 << 32) - 1


class KernelMemory(Protocol):
    """What lies at the addresses that the kernel gives its units."""

    def room(self, address: int, wanted: int) -> int:
        """How many bytes from there on can be written, of so many that are wanted."""

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Where there is room."""


class SpeUnit(RegisterDevice):
    """It writes records into memory when software looks: at its pointer, its status, or when it has been stopped."""

    kept = "storage", "_left", "_faults", "sequence"
    kept_ranges: ClassVar = {"_left": range(1 << 32), "sequence": range(1, 1 << 31)}

    def __init__(
        self,
        cpu: Cpu,
        version: SpeVersion,
        memory: KernelMemory,
        timestamp: Callable[[int], int],
        *,
        ram_base: int = 0,
        executes_kernel: bool = False,
    ) -> None:
        """`timestamp`: what the virtual counter (CNTVCT_EL0) shows at a cycle of `cpu`.

        `ram_base`: the physical address at which RAM begins. `executes_kernel`: EL1 is the guest's own, with its
        CONTEXTIDR_EL1.
        """
        super().__init__()
        self.version = version
        self._sampler = SpeSampler(cpu.core)
        self._memory = memory
        self._timestamp = timestamp
        self._ram_base = ram_base
        self._context_register = CONTEXTIDR_EL1.encoding if executes_kernel else 0
        self._runs = False
        self._timed = False  # PMSCR_EL1.TS, as it was when that began
        self._faults = False  # where the present buffer ends, no page is
        self._left = 0  # PMSICR_EL1.COUNT while it stands
        self._declare()

    def _declare(self) -> None:
        later = self.version >= SpeVersion.V1P2
        for register in (PMSCR_EL1, PMSIRR_EL1, PMSLATFR_EL1, PMBLIMITR_EL1):
            self._store(register, self._order)
        self._store(PMSFCR_EL1, self._order, implemented=-1 if later else ~PMSFCR_EL1.FnE.mask)
        self._store(PMSEVFR_EL1, self._order, implemented=EVENTS[self.version])
        self.storage["PMSNEVFR_EL1"] = 0
        if later:
            self._store(PMSNEVFR_EL1, self._order, implemented=EVENTS[self.version])
        self.storage["PMBPTR_EL1"] = self.storage["PMBSR_EL1"] = 0
        self._compute(PMSICR_EL1, self._read_count, self._write_count)
        self._compute(PMBPTR_EL1, self._read_pointer, self._write_pointer)
        self._compute(PMBSR_EL1, self._read_status, self._write_status)
        self._fix(
            PMSIDR_EL1,
            PMSIDR_EL1.make(
                FE=1, FT=1, FL=1, ArchInst=1, LDS=1, FnE=later, Interval=INTERVALS[LEAST_INTERVAL],
                MaxSize=_RECORD_BITS, CountSize=_TWELVE_BITS,
            ),
        )  # fmt: skip
        self._fix(PMBIDR_EL1, PMBIDR_EL1.make(Align=_RECORD_BITS))

    def _fix(self, register: type[Register], value: int) -> None:
        self._compute(register, lambda index: value)

    @property
    def identification(self) -> dict[SysReg, int]:
        """The fields of ID registers that tell of it: register -> its bits."""
        return self.identification_of(self.version)

    @staticmethod
    def identification_of(version: SpeVersion) -> dict[SysReg, int]:
        """Of any such unit."""
        return {ID_AA64DFR0_EL1: version << 32}

    @property
    def samples(self) -> int:
        """Operations that were chosen, recorded or not."""
        return self._sampler.samples

    @property
    def sequence(self) -> int:
        """Where the sequence of pseudo-random numbers is."""
        return self._sampler.sequence

    @sequence.setter
    def sequence(self, value: int) -> None:
        self._sampler.sequence = value

    def set_context(self, context: int) -> None:
        """CONTEXTIDR_EL1 has been written."""
        self._sampler.context = context & (1 << 32) - 1

    # the interrupt line, PMBIRQ

    def interrupt_asserted(self) -> bool:
        self._synchronize()
        return bool(self.storage["PMBSR_EL1"] & PMBSR_EL1.S.mask)

    def take_interrupt(self) -> None:
        """A level: it is asserted as long as PMBSR_EL1.S is set."""

    # registers that are the sampler's

    def _read_count(self, index: int) -> int:
        if self._runs:
            self._stop()
            self._start()
        return self._left & _COUNT

    def _write_count(self, value: int, index: int) -> None:
        self._stop()
        self._left = value & _COUNT
        self._start()

    def _read_pointer(self, index: int) -> int:
        self._synchronize()
        return self.storage["PMBPTR_EL1"]

    def _write_pointer(self, value: int, index: int) -> None:
        self._stop()
        self.storage["PMBPTR_EL1"] = PMBPTR_EL1.write(0, value)
        self._start()

    def _read_status(self, index: int) -> int:
        self._synchronize()
        return self.storage["PMBSR_EL1"]

    def _write_status(self, value: int, index: int) -> None:
        self._stop()
        self.storage["PMBSR_EL1"] = PMBSR_EL1.write(0, value)
        self._start()

    def _order(self) -> None:
        """A register has been written that says what is to be done."""
        self._stop()
        self._start()

    # sampling

    @property
    def _levels(self) -> int:
        """At which instructions are operations: a mask by Level."""
        control = PMSCR_EL1(self.storage["PMSCR_EL1"])
        return control.E0SPE << Level.USER | control.E1SPE << Level.KERNEL

    @property
    def _enabled(self) -> bool:
        storage = self.storage
        waits = storage["PMBSR_EL1"] & PMBSR_EL1.S.mask
        return bool(self._levels and storage["PMBLIMITR_EL1"] & PMBLIMITR_EL1.E.mask and not waits)

    def _start(self) -> None:
        if not self._enabled:
            return
        storage = self.storage
        control = PMSCR_EL1(storage["PMSCR_EL1"])
        filters = PMSFCR_EL1(storage["PMSFCR_EL1"])
        reload = PMSIRR_EL1(storage["PMSIRR_EL1"])
        interval = max(reload.INTERVAL, 1) << PMSIRR_EL1.INTERVAL.lo
        self._sampler.start(
            distance=self._left or interval,
            interval=interval,
            jitter=bool(reload.RND),
            room=self._room(),
            wanted=TOLD_EVENTS[self.version],
            packets=control.PA | control.CX << 1,
            types=filters.B | filters.LD << 1 | filters.ST << 2,
            events=storage["PMSEVFR_EL1"],
            no_events=storage["PMSNEVFR_EL1"],
            min_latency=PMSLATFR_EL1(storage["PMSLATFR_EL1"]).MINLAT,
            filters=filters.FT | filters.FE << 1 | filters.FL << 2 | filters.FnE << 3,
            levels=self._levels,
            ram_base=self._ram_base,
            context_register=self._context_register,
        )
        self._runs = True
        self._timed = bool(control.TS)

    def _room(self) -> int:
        """Bytes between the pointer and the limit, as far as there is memory."""
        pointer = self.storage["PMBPTR_EL1"]
        limit = self.storage["PMBLIMITR_EL1"] & PMBLIMITR_EL1.LIMIT.mask
        wanted = max(limit - pointer, 0)
        there = self._memory.room(pointer, wanted)
        self._faults = there < wanted
        return there

    def pause(self) -> None:
        """It has stopped, as if its registers said so, until `resume`."""
        self._stop()

    def resume(self) -> None:
        self._start()

    def _stop(self) -> None:
        self._synchronize()
        if self._runs:
            self._left = self._sampler.stop()
            self._runs = False

    def _synchronize(self) -> None:
        """What the sampler has made comes to memory and to the registers."""
        if not self._runs:
            return
        sampler, storage = self._sampler, self.storage
        made, cycles = sampler.take()
        if cycles:
            pointer = storage["PMBPTR_EL1"]
            self._memory.write(pointer, self._stamped(made, cycles))
            storage["PMBPTR_EL1"] = pointer + len(made)
        status = 0
        if sampler.collided:
            sampler.collided = False
            status |= PMBSR_EL1.make(COLL=1)
        if sampler.full:
            why = (STAGE_1_FAULT, TRANSLATION_FAULT) if self._faults else (BUFFER_MANAGEMENT, BUFFER_FILLED)
            status |= PMBSR_EL1.make(S=1, EC=why[0], MSS=why[1], DL=int(sampler.lost))
            self._left = sampler.stop()
            self._runs = False
        storage["PMBSR_EL1"] |= status

    def _stamped(self, made: bytes, cycles: list[int]) -> bytearray:
        """The records with their times, or without."""
        records = bytearray(made)
        for start, cycle in zip(range(0, len(records), RECORD_BYTES), cycles, strict=True):
            last = start + RECORD_BYTES - 1
            at = start + records[last]
            records[last] = 0
            if self._timed:
                _TIMESTAMP.pack_into(records, at + 1, self._timestamp(cycle))
            else:
                records[at] = _END
        return records
