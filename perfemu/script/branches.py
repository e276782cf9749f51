"""branches: a sample's branch stack as perf script 6.12 prints it: brstack, brstacksym."""

from __future__ import annotations

from collections.abc import Callable

from perfcore.abi.constants import (
    BRANCH_CYCLES_SHIFT,
    BRANCH_NEW_TYPE_SHIFT,
    BRANCH_SPEC_SHIFT,
    BRANCH_TYPE_SHIFT,
    BranchFlag,
    BranchType,
)
from perfcore.abi.sample import Sample
from perfemu.profile.places import UNKNOWN, Place
from perfemu.script.frames import Frames, file_of

_TYPES = (  # branch_type_name(), by `BranchType`
    *("", "COND", "UNCOND", "IND", "CALL", "IND_CALL", "RET", "SYSCALL", "SYSRET", "COND_CALL", "COND_RET", "ERET"),
    *("IRQ", "SERROR", "NO_TX", ""),
)
_NEW_TYPES = (  # branch_new_type_name(), by new_type
    *("FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "FIQ", "DEBUG_HALT", "DEBUG_EXIT", "DEBUG_INST", "DEBUG_DATA"),
)
_SPECULATION = ("-", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH")  # branch_spec_desc()


def branch_text(fields: frozenset[str], frames: Frames) -> Callable[[Sample], str] | None:
    """What makes it; None: nobody wants it."""

    def files(sample: Sample, address: int) -> str:
        return f" ({file_of(frames.branch(sample, address))})" if "dso" in fields else ""

    def named(sample: Sample, address: int) -> str:
        return _name(frames.branch(sample, address)) + files(sample, address)

    if "brstack" in fields:
        return lambda sample: _stack(sample, lambda address: f"{address:#x}{files(sample, address)}", " ")
    if "brstacksym" in fields:
        return lambda sample: _stack(sample, lambda address: named(sample, address), "")
    return None


def _stack(sample: Sample, show: Callable[[int], str], before: str) -> str:
    entries = sample.branches
    return "".join([f"{before}{show(entry.from_ip)}/{show(entry.to_ip)}{_flags(entry.flags)} " for entry in entries])


def _name(place: Place) -> str:
    symbol = place.symbol
    return f"{symbol.shown}+{place.offset - symbol.start:#x}" if symbol else UNKNOWN


def _flags(flags: int) -> str:
    """print_bstack_flags()"""
    predicted = "M" if flags & BranchFlag.MISPRED else "P" if flags & BranchFlag.PREDICTED else "-"
    in_transaction = "X" if flags & BranchFlag.IN_TX else "-"
    aborted = "A" if flags & BranchFlag.ABORT else "-"
    cycles = flags >> BRANCH_CYCLES_SHIFT & 0xFFFF
    speculation = _SPECULATION[flags >> BRANCH_SPEC_SHIFT & 3]
    return f"/{predicted}/{in_transaction}/{aborted}/{cycles}/{_type(flags)}/{speculation}"


def _type(flags: int) -> str:
    """get_branch_type()"""
    kind = flags >> BRANCH_TYPE_SHIFT & 15
    if kind != BranchType.EXTEND_ABI:
        return _TYPES[kind]
    new = flags >> BRANCH_NEW_TYPE_SHIFT & 15
    return _NEW_TYPES[new] if new < len(_NEW_TYPES) else ""
