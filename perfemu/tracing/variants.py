"""Variants: calls whose arguments depend on each other: how many there are, and what each means.

A variant makes of a call's usual arguments those that this one has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emulator.linux.fs.file import O_CREAT
from emulator.linux.fs.openable_tree import O_TMPFILE_BIT
from emulator.linux.process import cloning
from emulator.linux.syscalls.futex import FUTEX_CLOCK_REALTIME, FUTEX_PRIVATE
from emulator.linux.syscalls.memory import MREMAP_DONTUNMAP, MREMAP_FIXED
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
        return usual if view.arguments[flags_index] & (O_CREAT | O_TMPFILE_BIT) else usual[:-1]

    return variant


def _mremap_variant(view: View, usual: Arguments) -> Arguments:
    return usual if view.arguments[3] & (MREMAP_FIXED | MREMAP_DONTUNMAP) else usual[:4]


_FCNTL_ARGUMENTS: Mapping[str, Shape | None] = {  # None: there is none
    **dict.fromkeys(["F_GETFD", "F_GETFL", "F_GETOWN", "F_GETSIG", "F_GETLEASE", "F_GETPIPE_SZ", "F_GET_SEALS"]),
    **dict.fromkeys(["F_GETLK", "F_SETLK", "F_SETLKW", "F_OFD_GETLK", "F_OFD_SETLK", "F_OFD_SETLKW"], structures.FLOCK),
    **dict.fromkeys(["F_DUPFD", "F_DUPFD_CLOEXEC", "F_SETOWN", "F_SETPIPE_SZ"], INT),
    "F_SETFD": bits_of(constants.DESCRIPTOR_FLAGS),
    "F_SETFL": OPEN_FLAGS,
    "F_ADD_SEALS": bits_of(constants.SEALS),
}


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
_IOCTL_ARGUMENTS: Mapping[str, Shape | None] = {
    "TIOCGWINSZ": _WINDOW_SIZE,
    **dict.fromkeys(["FIONREAD", "TIOCGPGRP", "TIOCGSID", "TIOCGPTN"], _INT_OUT),
    **dict.fromkeys(["FIONBIO", "TIOCSPGRP", "TIOCSPTLCK"], _INT_IN),
    **dict.fromkeys(["FIONCLEX", "FIOCLEX", "TIOCNOTTY"]),
}


def _by_command(commands: constants.Names, arguments: Mapping[str, Shape | None]) -> Variant:
    """What the third argument is, the second says."""

    def variant(view: View, usual: Arguments) -> Arguments:
        shape = arguments.get(commands.get(view.arguments[1] & 0xFFFFFFFF, ""), HEX)
        return usual[:2] if shape is None else (*usual[:2], Argument(2, shape))

    return variant


_PRCTL_ARGUMENTS: Mapping[str, Arguments] = {  # behind the option
    "PR_SET_NAME": (Argument(1, TEXT),),
    "PR_GET_NAME": (Argument(1, Shape(TEXT.show, out=True)),),
    "PR_SET_PDEATHSIG": (Argument(1, SIGNAL),),
    "PR_SET_VMA": (*(Argument(index, HEX) for index in (1, 2, 3)), Argument(4, TEXT)),
}
_ANY_PRCTL = tuple(Argument(index, HEX) for index in range(1, 5))


def _prctl_variant(view: View, usual: Arguments) -> Arguments:
    option = constants.PRCTL.get(view.arguments[0] & 0xFFFFFFFF, "")
    return usual[0], *_PRCTL_ARGUMENTS.get(option, _ANY_PRCTL)


_FUTEX_FLAGS = FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME
_BITSET = Shape(lambda view, raw: "FUTEX_BITSET_MATCH_ANY" if raw & 0xFFFFFFFF == 0xFFFFFFFF else f"{raw:#x}")
_VALUE = Argument(2, UNSIGNED)
_TIMEOUT = Argument(3, structures.TIMESPEC)
_FUTEX_ARGUMENTS: Mapping[str, Arguments] = {  # behind address and operation
    "FUTEX_WAIT": (_VALUE, _TIMEOUT),
    "FUTEX_WAKE": (_VALUE,),
    "FUTEX_REQUEUE": (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS)),
    "FUTEX_CMP_REQUEUE": (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS), Argument(5, UNSIGNED)),
    "FUTEX_WAKE_OP": (_VALUE, Argument(3, UNSIGNED), Argument(4, ADDRESS), Argument(5, HEX32)),
    "FUTEX_LOCK_PI": (_TIMEOUT,),
    "FUTEX_UNLOCK_PI": (),
    "FUTEX_TRYLOCK_PI": (),
    "FUTEX_WAIT_BITSET": (_VALUE, _TIMEOUT, Argument(5, _BITSET)),
    "FUTEX_WAKE_BITSET": (_VALUE, Argument(5, _BITSET)),
    "FUTEX_LOCK_PI2": (_TIMEOUT,),
}


def _futex_operation(view: View, raw: int) -> str:
    number = raw & 0xFFFFFFFF & ~_FUTEX_FLAGS
    name = choice(constants.FUTEX, number, "FUTEX")
    private = "_PRIVATE" if raw & FUTEX_PRIVATE and number in constants.FUTEX else ""
    return name + private + ("|FUTEX_CLOCK_REALTIME" if raw & FUTEX_CLOCK_REALTIME else "")


def _futex_variant(view: View, usual: Arguments) -> Arguments:
    number = view.arguments[1] & 0xFFFFFFFF & ~_FUTEX_FLAGS
    rest = _FUTEX_ARGUMENTS.get(constants.FUTEX.get(number, ""), usual[2:])
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
    if bits & (cloning.CLONE_PIDFD | cloning.CLONE_PARENT_SETTID):
        tid = structure(4, lambda view, data: f"[{int.from_bytes(data, 'little')}]", out=True)
        chosen.append(Argument(2, tid, "parent_tid="))
    if bits & cloning.CLONE_SETTLS:
        chosen.append(Argument(tls, ADDRESS, "tls="))
    if bits & (cloning.CLONE_CHILD_CLEARTID | cloning.CLONE_CHILD_SETTID):
        chosen.append(Argument(child, ADDRESS, "child_tidptr="))
    return tuple(chosen)


_MASK = Shape(lambda view, raw: f"{{mask={signal_set(view.task.signals.blocked)}}}", out=True)


def _sigreturn_variant(view: View, usual: Arguments) -> Arguments:
    return (Argument(0, _MASK),)


VARIANTS: Mapping[str, Variant] = {
    "open": _open_variant(1),
    "openat": _open_variant(2),
    "mremap": _mremap_variant,
    "fcntl": _by_command(constants.FCNTL, _FCNTL_ARGUMENTS),
    "ioctl": _by_command(constants.IOCTL, _IOCTL_ARGUMENTS),
    "prctl": _prctl_variant,
    "futex": _futex_variant,
    "clone": _clone_variant,
    "rt_sigreturn": _sigreturn_variant,
}
