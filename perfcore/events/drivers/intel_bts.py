"""The driver of Intel's branch trace store. As arch/x86/events/intel/bts.c, with the debug store of ds.c.

The AUX area is the BTS buffer: each stretch of it that may be written is given to the hardware by the DS area. A record
is never torn: what is left behind the last one at the area's end is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EACCES, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from perfcore.abi.constants import AuxFlag
from perfcore.events.aux_output import AuxOutput
from perfcore.events.drivers.intel_units import IntelUnit, IntelUnits
from perfcore.events.drivers.unit import UnitDriver
from perfcore.events.event import PerfEvent
from perfcore.events.permission import may_watch_kernel
from perfcore.events.pmu_driver import AuxUnit
from pmu.intel.bts import IA32_DEBUGCTL_TRACE, RECORD, BranchTraceStore
from pmu.intel.debug_store import BTS, BTS_AT, IA32_DS_AREA, AllocatedStore
from pmu.unit_pmu import UnitPmu

_SAFETY_MARGIN = 4080  # BTS_SAFETY_MARGIN: bytes between the threshold and the end, for what is on its way
_STOP = 0
_NO_ACCESS = "it tells where the kernel is"


class _Buffer:
    """struct bts_buffer: an AUX area, of which whole records are used."""

    def __init__(self, memory: memoryview, address: int, *, snapshot: bool) -> None:
        self.address = address
        self.snapshot = snapshot
        self.size = len(memory) // RECORD.size * RECORD.size  # real_size


class _CpuStore:
    """struct bts_ctx: what a CPU's unit writes at the moment."""

    def __init__(self, unit: BranchTraceStore, area: memoryview) -> None:
        self.unit = unit
        self.area = area
        self.event: PerfEvent | None = None
        self.output: AuxOutput | None = None
        self.begun = 0  # where in the area this stretch begins


def _buffer(output: AuxOutput) -> _Buffer:
    private = output.area.private
    assert isinstance(private, _Buffer), "setup_aux made it"
    return private


class IntelBts(UnitDriver):
    """intel_bts, on all CPUs that have it. Its AUX half is itself; events are in the context of software events."""

    is_software = True
    exclusive = True
    itrace = True
    pausable = False
    takes_snapshots = False
    branch_units: IntelUnits | None = None  # where it shares the core's with others

    def __init__(self, source: UnitPmu, type: int, cpus: Sequence[Cpu], stores: Sequence[AllocatedStore]) -> None:
        """`stores`: of each CPU, in one memory, with its area."""
        super().__init__(source, type)
        self.aux: AuxUnit[PerfEvent] = self
        self._memory = stores[0].memory
        self._cpus: dict[int, _CpuStore] = {}
        for cpu, debug_store in zip(cpus, stores, strict=True):
            unit = BranchTraceStore(cpu, debug_store)
            store = _CpuStore(unit, debug_store.reached(unit.read(IA32_DS_AREA), BTS.size))
            self._cpus[cpu.number] = store
            cpu.connect_interrupt(unit, partial(self._handle_interrupt, store))

    def event_init(self, event: PerfEvent) -> None:
        """bts_event_init()"""
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        if attr.config:
            raise LinuxError(EINVAL, f"{self.name}: config {attr.config:#x}: it has none")
        if not event.counts_at(Level.USER):
            raise LinuxError(EOPNOTSUPP, f"{self.name}: of a kernel that is modelled there are no branches")
        if attr.exclude_kernel and not may_watch_kernel(event.owner, event.settings):
            raise LinuxError(EACCES, f"{self.name}: {_NO_ACCESS}")
        if self.branch_units is not None:
            self.branch_units.take(IntelUnit.BTS, event)

    # the AUX area

    def setup_aux(self, event: PerfEvent, memory: memoryview, overwrite: bool) -> _Buffer | None:
        return _Buffer(memory, self._memory.map(memory), snapshot=overwrite)

    def free_aux(self, private: object) -> None:
        assert isinstance(private, _Buffer), "setup_aux made it"
        self._memory.unmap(private.address)

    def pause(self, event: PerfEvent) -> None:
        """It cannot."""

    def resume(self, event: PerfEvent) -> None:
        """It cannot."""

    def snapshot_aux(self, event: PerfEvent, size: int) -> bytes:
        raise NotImplementedError(f"{self.name} takes no snapshots")

    def aux_output_match(self, event: PerfEvent) -> bool:
        return False

    # events

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        if self._cpus[cpu.number].event is not None:
            return False
        self.start(event)
        return not event.hw.stopped

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        """bts_event_start()"""
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        store = self._cpus[event.on_cpu.number]
        event.hw.stopped = True
        output = AuxOutput.begin(event)
        if output is None:
            return
        (event.parent or event).aux.itrace_started = True
        store.event, store.output = event, output
        if not self._place(store, output):
            output.end(0)
            store.event = store.output = None
            return
        event.hw.stopped = False
        self._enable(store, output)

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        """bts_event_stop()"""
        if event.hw.stopped:
            return
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        store = self._cpus[event.on_cpu.number]
        event.hw.stopped = True
        store.unit.write(IA32_DEBUGCTL_TRACE, _STOP)
        self._finish(store)
        store.event = None

    def read(self, event: PerfEvent) -> None:
        """It counts nothing."""

    # what the hardware may write

    def _enable(self, store: _CpuStore, output: AuxOutput) -> None:
        """intel_pmu_enable_bts()"""
        control = IA32_DEBUGCTL_TRACE.make(TR=1, BTS=1, BTS_OFF_OS=1, BTINT=int(not _buffer(output).snapshot))
        store.unit.write(IA32_DEBUGCTL_TRACE, control)

    def _place(self, store: _CpuStore, output: AuxOutput) -> bool:
        """bts_buffer_reset() and bts_config_buffer(): the next stretch; False: there is no room for a record."""
        buffer = _buffer(output)
        at = output.head % output.area.size
        if buffer.snapshot:
            at = at // RECORD.size * RECORD.size % buffer.size
            end, threshold = buffer.size, buffer.size + RECORD.size
        else:
            if at + RECORD.size > buffer.size:
                if not output.skip(output.area.size - at):
                    return False
                at = 0
            end = min(at + output.size // RECORD.size * RECORD.size, buffer.size)
            if output.wakeup > output.head:  # the reader wants to be woken there
                end = min(end, at + max((output.wakeup - output.head) // RECORD.size, 1) * RECORD.size)
            if end <= at:
                return False
            threshold = max(end - _SAFETY_MARGIN // RECORD.size * RECORD.size, at + RECORD.size)
        address = buffer.address
        first = address if buffer.snapshot else address + at
        BTS.pack_into(store.area, BTS_AT, first, address + at, address + end, address + threshold)
        store.begun = at
        return True

    def _finish(self, store: _CpuStore) -> None:
        """bts_update(), and the end of the stretch."""
        output = store.output
        assert output is not None, "it writes"
        buffer = _buffer(output)
        _, index, maximum, _ = BTS.unpack_from(store.area, BTS_AT)
        at = index - buffer.address
        written = at - store.begun
        if buffer.snapshot:
            if written < 0:
                written += buffer.size
            output.head = at
        elif index + RECORD.size > maximum and not output.size - written >= RECORD.size:
            output.flags |= AuxFlag.TRUNCATED
        output.end(written)
        store.output = None

    def _handle_interrupt(self, store: _CpuStore) -> None:
        """intel_bts_interrupt(): what has been written is the reader's; on with the next stretch."""
        event = store.event
        if event is None or store.output is None:
            return
        self.stop(event)
        if event.pending_disable:
            event.run_pending()
            return
        self.start(event)
