"""Branches of x86 by their instruction, as the drivers of branch records tell them apart: arch/x86/events/utils.c."""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache

from emulator.cpu import Cpu
from perfcore.abi.constants import BRANCH_TYPE_SHIFT, BranchSampleType, BranchType
from perfcore.abi.sample import BranchEntry
from perfcore.events.drivers.branch_stacks import EventBranches

_LONGEST = 15  # bytes of an instruction


class X86Branch(IntFlag):
    """X86_BR_*: what an instruction is, or an event wants; of the latter also the levels."""

    USER = 1 << 0
    KERNEL = 1 << 1
    CALL = 1 << 2
    RET = 1 << 3
    SYSCALL = 1 << 4
    SYSRET = 1 << 5
    INT = 1 << 6
    IRET = 1 << 7
    JCC = 1 << 8
    JMP = 1 << 9
    IRQ = 1 << 10  # or an exception: whatever else leads from user mode to the kernel
    IND_CALL = 1 << 14
    ZERO_CALL = 1 << 16  # to the next instruction: it finds out where it is
    IND_JMP = 1 << 18

    ANY_CALL = CALL | IND_CALL | ZERO_CALL | SYSCALL | INT | IRQ
    ANY_RETURN = RET | IRET | SYSRET
    ANY = ANY_CALL | ANY_RETURN | JCC | JMP | IND_JMP


_WANTED = {  # intel_pmu_setup_sw_lbr_filter, amd_pmu_lbr_setup_filter
    BranchSampleType.USER: X86Branch.USER,
    BranchSampleType.KERNEL: X86Branch.KERNEL,
    BranchSampleType.ANY: X86Branch.ANY,
    BranchSampleType.ANY_CALL: X86Branch.ANY_CALL,
    BranchSampleType.ANY_RETURN: X86Branch.ANY_RETURN,
    BranchSampleType.IND_CALL: X86Branch.IND_CALL,
    BranchSampleType.COND: X86Branch.JCC,
    BranchSampleType.CALL_STACK: X86Branch.CALL | X86Branch.IND_CALL | X86Branch.RET,
    BranchSampleType.IND_JUMP: X86Branch.IND_JMP,
    BranchSampleType.CALL: X86Branch.CALL | X86Branch.ZERO_CALL,
}
_TYPES = {  # branch_map of common_branch_type
    X86Branch.CALL: BranchType.CALL,
    X86Branch.RET: BranchType.RET,
    X86Branch.SYSCALL: BranchType.SYSCALL,
    X86Branch.SYSRET: BranchType.SYSRET,
    X86Branch.IRET: BranchType.ERET,
    X86Branch.JCC: BranchType.COND,
    X86Branch.JMP: BranchType.UNCOND,
    X86Branch.IRQ: BranchType.IRQ,
    X86Branch.IND_CALL: BranchType.IND_CALL,
    X86Branch.ZERO_CALL: BranchType.CALL,
    X86Branch.IND_JMP: BranchType.IND,
}
_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)))
_OPCODES = {
    **dict.fromkeys((0xC2, 0xC3, 0xCA, 0xCB), X86Branch.RET),
    **dict.fromkeys((0xCC, 0xCD, 0xCE), X86Branch.INT),
    0xCF: X86Branch.IRET,
    0xE8: X86Branch.CALL,
    0x9A: X86Branch.CALL,
    **dict.fromkeys((*range(0x70, 0x80), 0xE0, 0xE1, 0xE2, 0xE3), X86Branch.JCC),
    **dict.fromkeys((0xE9, 0xEA, 0xEB), X86Branch.JMP),
}
_TWO_BYTE_OPCODES = {  # behind 0FH
    **dict.fromkeys((0x05, 0x34), X86Branch.SYSCALL),
    **dict.fromkeys((0x07, 0x35), X86Branch.SYSRET),
    **dict.fromkeys(range(0x80, 0x90), X86Branch.JCC),
}
_BY_REGISTER_FIELD = {  # of FFH's ModRM
    2: X86Branch.IND_CALL,
    3: X86Branch.IND_CALL,
    4: X86Branch.IND_JMP,
    5: X86Branch.IND_JMP,
}
_NONE = X86Branch(0)
_KERNEL_BEGINS = 1 << 63  # as kernel_ip has it


def wanted_branches(branch_sample_type: int) -> X86Branch:
    """Of an event."""
    wanted = _NONE
    for bit, branches in _WANTED.items():
        if branch_sample_type & bit:
            wanted |= branches
    return wanted


@lru_cache(maxsize=1 << 12)
def branch_of(code: bytes) -> X86Branch:
    """What the instruction is whose bytes `code` begins with; nothing, of one that is no branch."""
    body = code.lstrip(bytes(_PREFIXES))
    if not body:
        return _NONE
    opcode, rest = body[0], body[1:]
    if opcode == 0x0F:
        return _TWO_BYTE_OPCODES.get(rest[0], _NONE) if rest else _NONE
    if opcode == 0xFF:
        return _BY_REGISTER_FIELD.get(rest[0] >> 3 & 7, _NONE) if rest else _NONE
    if opcode == 0xE8 and rest[:4] == bytes(4):
        return X86Branch.ZERO_CALL
    return _OPCODES.get(opcode, _NONE)


def branch_at(cpu: Cpu, address: int) -> X86Branch:
    """Of the task that runs there; nothing where it has no code any more."""
    if cpu.space is None:
        return _NONE
    code = cpu.space.read(address, _LONGEST)
    if isinstance(code, int):  # the first byte that is missing
        code = cpu.space.read(address, code - address) if code > address else b""
    return branch_of(code) if isinstance(code, bytes) else _NONE


def branch_between(cpu: Cpu, source: int, target: int) -> X86Branch:
    """branch_type: what leads from user mode to the kernel can be anywhere."""
    branch = branch_at(cpu, source)
    enters = source < _KERNEL_BEGINS <= target
    return X86Branch.IRQ if enters and branch not in (X86Branch.SYSCALL, X86Branch.INT) else branch


def type_of(branch: X86Branch) -> BranchType:
    """What a sample says of it: common_branch_type."""
    return _TYPES.get(branch, BranchType.UNKNOWN)


def wants_only_transactions(branches: EventBranches) -> bool:
    """There are none."""
    return branches.wanted & (BranchSampleType.IN_TX | BranchSampleType.NO_TX) == BranchSampleType.IN_TX


def filtered(branches: EventBranches, cpu: Cpu, found: list[BranchEntry]) -> list[BranchEntry]:
    """Those that are wanted, by what their instructions are; with their types, if these are."""
    saves_type = branches.wanted & BranchSampleType.TYPE_SAVE
    classes = branches.classes
    if wants_only_transactions(branches):
        return []
    if classes & X86Branch.ANY == X86Branch.ANY and not saves_type:
        return found
    kept = []
    for entry in found:
        branch = branch_between(cpu, entry.from_ip, entry.to_ip)
        if branch & classes:
            kept.append(
                entry._replace(flags=entry.flags | type_of(branch) << BRANCH_TYPE_SHIFT) if saves_type else entry
            )
    return kept
