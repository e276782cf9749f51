"""Variants: calls whose arguments depend on each other: how many there are, and what each means.

A variant makes of a call's usual arguments those that this one has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfemu.tracing import constants, structures
from perfemu.tracing.values import (
    ADDRESS,
    HEX,
    HEX32,
    INT,
    OPEN_FLAGS,
    SIGNAL,
    TEXT,
    UNSIGNED,
    Shape,
    View,
    bits_of,
    choice,
    flags,
    signal_name,
    signal_set,
    structure,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands at one place of a line: the register's number, and `label` before the value."""

    register: int
    shape: Shape
    label: str = ""


Arguments = tuple[Argument, ...]
Variant = Callable[[View, Arguments], Arguments]


def _open_variant(flags_index: int) -> Variant:
    def variant(view: View, usual: Arguments) -> Arguments:
        return usual if view.arguments[flags_index] & 0o20000100 else usual[:-1]

    return variant


def _mremap_variant(view: View, usual: Arguments) -> Arguments:
    return usual if view.arguments[3] & 6 else usual[:4]


_DUPFD, _GETFD, _SETFD, _GETFL, _SETFL = range(5)
_NO_ARGUMENT = (_GETFD, _GETFL, 9, 11, 1025, 1032, 1034)
_FCNTL_ARGUMENTS: Mapping[int, Shape] = {
    _SETFD: bits_of(constants.DESCRIPTOR_FLAGS),
    _SETFL: OPEN_FLAGS,
    **dict.fromkeys((5, 6, 7, 36, 37, 38), structures.FLOCK),
    1033: bits_of(constants.SEALS),
    **dict.fromkeys((_DUPFD, 1030, 8, 1031), INT),
}


def _fcntl_variant(view: View, usual: Arguments) -> Arguments:
    command = view.arguments[1] & 0xFFFFFFFF
    if command in _NO_ARGUMENT:
        return usual[:2]
    return (*usual[:2], Argument(2, _FCNTL_ARGUMENTS.get(command, HEX)))


_WINDOW_SIZE = structure(
    8,
    lambda view, data: (
        f"{{ws_row={int.from_bytes(data[:2], 'little')}, ws_col={int.from_bytes(data[2:4], 'little')}, "
        f"ws_xpixel={int.from_bytes(data[4:6], 'little')}, ws_ypixel={int.from_bytes(data[6:], 'little')}}}"
    ),
    out=True,
)
_INT_OUT = structure(4, lambda view, data: f"[{int.from_bytes(data, 'little', signed=True)}]", out=True)
_INT_IN = structure(4, lambda view, data: f"[{int.from_bytes(data, 'little', signed=True)}]")
_IOCTL_ARGUMENTS: Mapping[int, Shape | None] = {
    0x5413: _WINDOW_SIZE, 0x541B: _INT_OUT, 0x540F: _INT_OUT, 0x5429: _INT_OUT, 0x80045430: _INT_OUT,
    0x5421: _INT_IN, 0x5410: _INT_IN, 0x40045431: _INT_IN, 0x5450: None, 0x5451: None, 0x5422: None,
}  # fmt: skip


def _ioctl_variant(view: View, usual: Arguments) -> Arguments:
    request = view.arguments[1] & 0xFFFFFFFF
    if request not in _IOCTL_ARGUMENTS:
        return (*usual[:2], Argument(2, HEX))
    shape = _IOCTL_ARGUMENTS[request]
    return usual[:2] if shape is None else (*usual[:2], Argument(2, shape))


_PR_SET_NAME, _PR_GET_NAME, _PR_SET_PDEATHSIG, _PR_SET_VMA = 15, 16, 1, 0x53564D41


def _prctl_variant(view: View, usual: Arguments) -> Arguments:
    option = view.arguments[0] & 0xFFFFFFFF
    if option == _PR_SET_NAME:
        return usual[0], Argument(1, TEXT)
    if option == _PR_GET_NAME:
        return usual[0], Argument(1, Shape(TEXT.show, out=True))
    if option == _PR_SET_PDEATHSIG:
        return usual[0], Argument(1, SIGNAL)
    if option == _PR_SET_VMA:
        return usual[0], *(Argument(index, HEX) for index in (1, 2, 3)), Argument(4, TEXT)
    return usual[0], *(Argument(index, HEX) for index in range(1, 5))


_FUTEX_PRIVATE, _FUTEX_CLOCK = 128, 256
_BITSET = Shape(lambda view, raw: "FUTEX_BITSET_MATCH_ANY" if raw & 0xFFFFFFFF == 0xFFFFFFFF else f"{raw:#x}")
_VALUE = Argument(2, UNSIGNED)
_TIMEOUT = Argument(3, structures.TIMESPEC)
_FUTEX_ARGUMENTS: Mapping[int, Arguments] = {  # behind address and operation
    0: (_VALUE, _TIMEOUT),
    1: (_VALUE,),
    3: (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS)),
    4: (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS), Argument(5, UNSIGNED)),
    5: (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS), Argument(5, HEX32)),
    6: (_TIMEOUT,),
    7: (),
    8: (),
    9: (_VALUE, _TIMEOUT, Argument(5, _BITSET)),
    10: (_VALUE, Argument(5, _BITSET)),
    13: (_TIMEOUT,),
}


def _futex_operation(view: View, raw: int) -> str:
    number = raw & 0xFFFFFFFF & ~(_FUTEX_PRIVATE | _FUTEX_CLOCK)
    name = choice(constants.FUTEX, number, "FUTEX")
    private = "_PRIVATE" if raw & _FUTEX_PRIVATE and number in constants.FUTEX else ""
    return name + private + ("|FUTEX_CLOCK_REALTIME" if raw & _FUTEX_CLOCK else "")


def _futex_variant(view: View, usual: Arguments) -> Arguments:
    number = view.arguments[1] & 0xFFFFFFFF & ~(_FUTEX_PRIVATE | _FUTEX_CLOCK)
    rest = _FUTEX_ARGUMENTS.get(number, usual[2:])
    return (usual[0], Argument(1, Shape(_futex_operation)), *rest)


def _clone_flags(view: View, raw: int) -> str:
    """The lowest byte is the signal that the child's end sends."""
    names = flags(constants.CLONE, raw & ~0xFF, nothing="")
    signal = signal_name(raw & 0xFF) if raw & 0xFF else ""
    return "|".join(part for part in (names, signal) if part) or "0"


def _clone_variant(view: View, usual: Arguments) -> Arguments:
    """Labelled as strace does, since the order of the registers depends on the ISA (CONFIG_CLONE_BACKWARDS)."""
    tls, child = (3, 4) if view.isa == "aarch64" else (4, 3)
    bits = view.arguments[0]
    chosen = [Argument(1, ADDRESS, "child_stack="), Argument(0, Shape(_clone_flags), "flags=")]
    if bits & 0x00101000:
        tid = structure(4, lambda view, data: f"[{int.from_bytes(data, 'little')}]", out=True)
        chosen.append(Argument(2, tid, "parent_tid="))
    if bits & 0x00080000:
        chosen.append(Argument(tls, ADDRESS, "tls="))
    if bits & 0x01200000:
        chosen.append(Argument(child, ADDRESS, "child_tidptr="))
    return tuple(chosen)


_MASK = Shape(lambda view, raw: f"{{mask={signal_set(view.task.signals.blocked)}}}", out=True)


def _sigreturn_variant(view: View, usual: Arguments) -> Arguments:
    return (Argument(0, _MASK),)


VARIANTS: Mapping[str, Variant] = {
    "open": _open_variant(1),
    "openat": _open_variant(2),
    "mremap": _mremap_variant,
    "fcntl": _fcntl_variant,
    "ioctl": _ioctl_variant,
    "prctl": _prctl_variant,
    "futex": _futex_variant,
    "clone": _clone_variant,
    "rt_sigreturn": _sigreturn_variant,
}
