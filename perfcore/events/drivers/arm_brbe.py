"""The driver of Arm's branch records (BRBE). As drivers/perf/arm_brbe.c, of Linux 6.17: 6.12 has none.

The unit records what any of the CPU's events wants, and from that each event is given what it wants. Records are
dropped whenever the PMU is enabled anew: behind each of its interrupts, and as events and tasks come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from emulator.cpu import Cpu
from emulator.linux.errors import EOPNOTSUPP, LinuxError
from perfcore.abi.constants import (
    BRANCH_CYCLES_SHIFT,
    BRANCH_NEW_TYPE_SHIFT,
    BRANCH_PRIV_SHIFT,
    BRANCH_TYPE_SHIFT,
    BranchFlag,
    BranchPrivilege,
    BranchSampleType,
    BranchType,
    NewBranchType,
)
from perfcore.abi.sample import BranchEntry, BranchStack
from perfcore.events.drivers.branch_stacks import BranchStacks, EventBranches, Kept
from perfcore.events.event import PerfEvent
from pmu.arm.brbe_registers import (
    BANK_RECORDS,
    BRB_IALL,
    BRBCR_EL1,
    BRBFCR_EL1,
    BRBIDR0_EL1,
    BRBINFn_EL1,
    BRBSRCn_EL1,
    BRBTGTn_EL1,
    Valid,
    cycles_of,
)
from pmu.arm.brbe_registers import BranchType as Brbe
from pmu.device import Pmu

_REFUSED = (  # BRBE_EXCLUDE_BRANCH_FILTERS
    BranchSampleType.ABORT_TX
    | BranchSampleType.IN_TX
    | BranchSampleType.NO_TX
    | BranchSampleType.CALL_STACK
    | BranchSampleType.COUNTERS
)
_FILTERS = BRBFCR_EL1.declared & ~(BRBFCR_EL1.PAUSED.mask | BRBFCR_EL1.EnI.mask | BRBFCR_EL1.BANK.mask)
_SELECTED_BY = {  # branch_type_to_brbfcr()
    BranchSampleType.ANY: _FILTERS,
    BranchSampleType.ANY_CALL: BRBFCR_EL1.INDCALL.mask | BRBFCR_EL1.DIRCALL.mask,
    BranchSampleType.ANY_RETURN: BRBFCR_EL1.RTN.mask,
    BranchSampleType.IND_CALL: BRBFCR_EL1.INDCALL.mask,
    BranchSampleType.COND: BRBFCR_EL1.CONDDIR.mask,
    BranchSampleType.IND_JUMP: BRBFCR_EL1.INDIRECT.mask,
    BranchSampleType.CALL: BRBFCR_EL1.DIRCALL.mask,
}
_TYPES = sum(_SELECTED_BY)  # BRBE_ALLOWED_BRANCH_TYPES
_VIRTUAL_COUNTER = 0b01  # BRBCR_EL1.TS
_EXCEPTIONS = {BranchSampleType.ANY_CALL: BRBCR_EL1.EXCEPTION.mask, BranchSampleType.ANY_RETURN: BRBCR_EL1.ERTN.mask}
_CONTROL_BITS = 32  # of EventBranches.selected: BRBCR_EL1; above, BRBFCR_EL1

_EXTENDED = BranchType.EXTEND_ABI << BRANCH_TYPE_SHIFT
_TYPE_OF = {  # brbe_type_to_perf_type_map; the others are unknown
    Brbe.DIRECT_UNCOND: BranchType.UNCOND << BRANCH_TYPE_SHIFT,
    Brbe.INDIRECT: BranchType.IND << BRANCH_TYPE_SHIFT,
    Brbe.DIRECT_LINK: BranchType.CALL << BRANCH_TYPE_SHIFT,
    Brbe.INDIRECT_LINK: BranchType.IND_CALL << BRANCH_TYPE_SHIFT,
    Brbe.RET: BranchType.RET << BRANCH_TYPE_SHIFT,
    Brbe.DIRECT_COND: BranchType.COND << BRANCH_TYPE_SHIFT,
    Brbe.CALL: BranchType.SYSCALL << BRANCH_TYPE_SHIFT,
    Brbe.ERET: BranchType.ERET << BRANCH_TYPE_SHIFT,
    Brbe.IRQ: BranchType.IRQ << BRANCH_TYPE_SHIFT,
    Brbe.TRAP: BranchType.IRQ << BRANCH_TYPE_SHIFT,
    Brbe.SERROR: BranchType.SERROR << BRANCH_TYPE_SHIFT,
    Brbe.ALIGN_FAULT: _EXTENDED | NewBranchType.FAULT_ALGN << BRANCH_NEW_TYPE_SHIFT,
    Brbe.INSN_FAULT: _EXTENDED | NewBranchType.FAULT_INST << BRANCH_NEW_TYPE_SHIFT,
    Brbe.DATA_FAULT: _EXTENDED | NewBranchType.FAULT_DATA << BRANCH_NEW_TYPE_SHIFT,
}
_CALLS = frozenset((Brbe.DIRECT_LINK, Brbe.INDIRECT_LINK))
_USERS = _CALLS | {Brbe.DIRECT_UNCOND, Brbe.INDIRECT, Brbe.RET, Brbe.DIRECT_COND}  # PERF_BR_ARM64_ALL
_KERNELS = frozenset(  # PERF_BR_ARM64_ALL_KERNEL
    (Brbe.CALL, Brbe.IRQ, Brbe.TRAP, Brbe.SERROR, Brbe.ALIGN_FAULT, Brbe.INSN_FAULT, Brbe.DATA_FAULT)
)
_RETURNS = frozenset((Brbe.ERET,))
_NOTHING: frozenset[Brbe] = frozenset()
_WANTED = {  # prepare_event_branch_type_mask(): by what the event names, and what besides with the kernel's
    BranchSampleType.ANY: (_USERS, _KERNELS | _RETURNS),
    BranchSampleType.ANY_CALL: (_CALLS, _KERNELS),
    BranchSampleType.IND_JUMP: (frozenset((Brbe.INDIRECT,)), _NOTHING),
    BranchSampleType.COND: (frozenset((Brbe.DIRECT_COND,)), _NOTHING),
    BranchSampleType.CALL: (frozenset((Brbe.DIRECT_LINK,)), _NOTHING),
    BranchSampleType.IND_CALL: (frozenset((Brbe.INDIRECT_LINK,)), _NOTHING),
    BranchSampleType.ANY_RETURN: (frozenset((Brbe.RET,)), _RETURNS),
}
_PRIVILEGES = {0: BranchPrivilege.USER, 1: BranchPrivilege.KERNEL, 2: BranchPrivilege.HV}  # by BRBINF<n>_EL1.EL
_MOST_CYCLES = (1 << 16) - 1
_PAUSED = BRBFCR_EL1.PAUSED.mask
_VALID = BRBINFn_EL1.VALID.mask


def branch_types(wanted: int) -> int:
    """Those that an event is given, as a mask by `Brbe`."""
    found: frozenset[Brbe] = frozenset()
    for bit, (types, with_kernel) in _WANTED.items():
        if wanted & bit:
            found |= types | with_kernel if wanted & BranchSampleType.KERNEL else types
    return sum(1 << type for type in found)


def _control(wanted: int) -> int:
    """branch_type_to_brbcr(), of a kernel that is not the hypervisor's."""
    control = BRBCR_EL1.make(
        FZP=1,
        TS=_VIRTUAL_COUNTER,
        E0BRE=bool(wanted & BranchSampleType.USER),
        E1BRE=bool(wanted & BranchSampleType.KERNEL),
        CC=not wanted & BranchSampleType.NO_CYCLES,
        MPRED=not wanted & BranchSampleType.NO_FLAGS,
    )
    if wanted & BranchSampleType.KERNEL:
        for bit, exceptions in _EXCEPTIONS.items():
            if wanted & (bit | BranchSampleType.ANY):
                control |= exceptions
    return control


def _record_readers(pmu: Pmu, number: int) -> tuple[Callable[[], int], ...]:
    """Of the record's registers, whichever bank is shown."""
    return tuple(pmu.reader(register, number) for register in (BRBINFn_EL1, BRBSRCn_EL1, BRBTGTn_EL1))


class BranchRecordBuffers(BranchStacks):
    """Of the CPUs."""

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        super().__init__(cpus)
        self._pmus = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}
        self.entries = BRBIDR0_EL1(pmus[0].read(BRBIDR0_EL1)).NUMREC
        self._readers = {
            number: [_record_readers(pmu, n) for n in range(BANK_RECORDS)] for number, pmu in self._pmus.items()
        }

    def configured(self, event: PerfEvent) -> EventBranches:
        """brbe_branch_attr_valid()"""
        attr = event.attr
        wanted = attr.branch_sample_type
        if wanted & _REFUSED:
            raise LinuxError(EOPNOTSUPP, f"branch_sample_type: bits {wanted & _REFUSED:#x} are not for BRBE")
        if not wanted & _TYPES:
            raise LinuxError(EOPNOTSUPP, f"branch_sample_type: {wanted:#x} names no branches that BRBE tells apart")
        if attr.exclude_host or (attr.exclude_user and attr.exclude_kernel):
            raise LinuxError(EOPNOTSUPP, "of a hypervisor's or of guests' branches BRBE records none")
        filters = 0
        for bit, selected in _SELECTED_BY.items():
            if wanted & bit:
                filters |= selected
        return EventBranches(self, event, filters << _CONTROL_BITS | _control(wanted), branch_types(wanted))

    def add(self, branches: EventBranches, cpu: Cpu) -> bool:
        self._users[cpu.number].append(branches)
        self.hear_of_switches(branches)
        self.go_on(cpu)
        return True

    def remove(self, branches: EventBranches, cpu: Cpu) -> None:
        users = self._users[cpu.number]
        users.remove(branches)
        if not users:
            self.stop(cpu)

    def start(self, cpu: Cpu, branches: EventBranches) -> None:
        pmu = self._pmus[cpu.number]
        pmu.write(BRB_IALL, 0)
        selected = branches.selected
        for user in self._users[cpu.number]:
            selected |= user.selected
        pmu.write(BRBCR_EL1, selected & (1 << _CONTROL_BITS) - 1)
        pmu.write(BRBFCR_EL1, selected >> _CONTROL_BITS)

    def stop(self, cpu: Cpu) -> None:
        """brbe_disable()"""
        pmu = self._pmus[cpu.number]
        pmu.write(BRBFCR_EL1, _PAUSED)
        pmu.write(BRBCR_EL1, 0)

    def reset(self, cpu: Cpu) -> None:
        """brbe_invalidate()"""
        self._pmus[cpu.number].write(BRB_IALL, 0)

    def keep(self, cpu: Cpu) -> Kept:
        raise AssertionError("nothing is kept for a task")

    def bring_back(self, cpu: Cpu, kept: Kept) -> None:
        raise AssertionError("nothing has been kept")

    def go_on(self, cpu: Cpu) -> None:
        """brbe_enable(), for all events that are there."""
        users = self._users[cpu.number]
        if users:
            self.start(cpu, users[0])

    def read(self, branches: EventBranches, cpu: Cpu) -> BranchStack:
        """brbe_read_filtered_entries()"""
        pmu, readers = self._pmus[cpu.number], self._readers[cpu.number]
        classes, wanted = branches.classes, branches.wanted
        found: list[BranchEntry] = []
        for bank in range(-(-self.entries // BANK_RECORDS)):
            pmu.write(BRBFCR_EL1, _PAUSED | BRBFCR_EL1.make(BANK=bank))
            for read_information, read_source, read_target in readers[: self.entries - bank * BANK_RECORDS]:
                information = read_information()
                if not information & _VALID:
                    return BranchStack(0, found)
                told = _told(information, classes, wanted)
                if told is None:
                    continue
                source, target = read_source(), read_target()
                if told.within_user and not (source | target) >> 63 and source and target:
                    found.append(BranchEntry(source, target, told.flags))
                    continue
                valid = information & _VALID
                entry = BranchEntry(
                    source if valid & Valid.SOURCE else 0, target if valid & Valid.TARGET else 0, told.flags
                )
                permitted = _permitted(entry, told.privilege, wanted)
                if permitted is not None:
                    found.append(permitted)
        return BranchStack(0, found)


class _Told(NamedTuple):
    """What a sample is told of a record besides addresses."""

    flags: int
    privilege: BranchPrivilege
    within_user: bool  # ... if both addresses are: the event wants it


@lru_cache(maxsize=1 << 14)
def _told(value: int, classes: int, wanted: int) -> _Told | None:
    """perf_entry_from_brbe_regset(), filter_branch_type(): of BRBINF<n>_EL1. None: the event wants another kind."""
    information = BRBINFn_EL1(value)
    if not classes >> information.TYPE & 1:
        return None
    valid = information.VALID
    flags = _TYPE_OF[Brbe(information.TYPE)]
    if not wanted & BranchSampleType.NO_CYCLES and not information.CCU:
        flags |= min(cycles_of(information.CC), _MOST_CYCLES) << BRANCH_CYCLES_SHIFT
    if not wanted & BranchSampleType.NO_FLAGS and valid != Valid.TARGET:
        flags |= BranchFlag.MISPRED if information.MPRED else BranchFlag.PREDICTED
    privilege = BranchPrivilege.UNKNOWN
    if valid != Valid.SOURCE:
        privilege = _PRIVILEGES.get(information.EL, privilege)
        flags |= privilege << BRANCH_PRIV_SHIFT
    of_user = privilege == BranchPrivilege.USER and bool(wanted & BranchSampleType.USER)
    return _Told(int(flags), privilege, of_user and valid == Valid.FULL)


def _permitted(entry: BranchEntry, privilege: BranchPrivilege, wanted: int) -> BranchEntry | None:
    """filter_branch_privilege(): what of it is of levels that the event wants."""
    if not entry.from_ip or not entry.to_ip:
        return entry
    user, kernel = wanted & BranchSampleType.USER, wanted & BranchSampleType.KERNEL
    leaves, arrives = _is_user(entry.from_ip), _is_user(entry.to_ip)
    if leaves == arrives:
        permitted = {BranchPrivilege.USER: user, BranchPrivilege.KERNEL: kernel}.get(privilege)
        return entry if permitted else None
    source = entry.from_ip if (user if leaves else kernel) else 0
    target = entry.to_ip if (user if arrives else kernel) else 0
    return entry._replace(from_ip=source, to_ip=target)


def _is_user(address: int) -> bool:
    return not address >> 63
