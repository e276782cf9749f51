"""BoardRequest: what a user asks of a board besides a Guest, and what of both together a board has not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from emulator.board.disk import Disk, NoDisk
from emulator.board.gic import GICV2
from emulator.board.gicv2 import MOST_CPUS as MOST_GICV2_CPUS
from emulator.board.trace import Traced
from emulator.machine import MachineConfig
from perfemu.board_kinds import BOARDS, BoardKind
from perfemu.checkpoints import Checkpoints
from perfemu.errors import PerfemuError, UsageError
from perfemu.guest import Guest

KEEPS = ",rw"  # behind a disk's file: what is written is kept there
MOST_DEVICES = 28  # disks and directories; there are slots for the board's own besides
# What a board has not: fields of Guest, with their flags
_OF_PROGRAMS = {
    "sysroot": "--sysroot",
    "isolate": "--isolate",
    "writable_paths": "--rw",
    "user": "--user",
    "max_tasks": "--max-tasks",
    "fast_forward": "--fast-forward",
    "warmup": "--warmup",
}


@dataclass(frozen=True, slots=True)
class Orders:
    """A guest that has booted asks a share what to do. Before that nothing of outside matters, and so what is there
    then can be kept for other runs, which begin behind the boot and say the same."""

    tag: str
    checkpoints: Checkpoints | None  # where; None: this run neither has nor makes any
    facts: Sequence[object]  # all that the boot depends on, besides the machine,
    files: Sequence[Path]  # ... and these


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """What the options of a board say."""

    board: str
    initrd: str | Callable[[], bytes] | None = None
    command_line: str = ""
    disks: Sequence[str] = ()  # FILE, or FILE,rw
    console: str | None = None  # None: the serial port
    test_device: bool = False
    semihosting: bool = False
    gic: int | None = None  # None: GICv3, on boards that have one
    trace: Collection[Traced] = ()
    guest_linux: bool = False
    guest_root: str | None = None  # a directory of the host's with the guest's files
    orders: Orders | None = None
    gdb: str | None = None  # where a debugger connects: a port, or a path


def kind_of(guest: Guest, request: BoardRequest) -> BoardKind:
    """The board that is asked for. Raises UsageError where it has not what is asked of it."""
    kind = BOARDS.get(request.board)
    if kind is None:
        raise UsageError(f"--board {request.board}: there is {', '.join(BOARDS)}")
    for name, flag in kind.without.items():
        if getattr(request, name):
            raise UsageError(f"{flag}: --board {request.board} has no such thing")
    if request.console is not None and request.console not in kind.consoles:
        raise UsageError(f"--console {request.console}: --board {request.board} has {', '.join(kind.consoles)}")
    for traced in request.trace:
        if traced not in kind.traced:
            raise UsageError(f"--trace {traced}: of --board {request.board} there are {', '.join(kind.traced)}")
    for name, flag in _OF_PROGRAMS.items():
        if getattr(guest, name):
            raise UsageError(f"{flag}: is for programs of Linux's; a board runs an image, which has no such thing")
    if request.gic == GICV2 and guest.cpus is not None and int(guest.cpus) > MOST_GICV2_CPUS:
        raise UsageError(f"--gic 2 --cpus {guest.cpus}: GICv2 reaches {MOST_GICV2_CPUS} CPUs")
    if len(request.disks) + len(guest.binds) > MOST_DEVICES:
        raise UsageError(f"--disk, --bind: a board has room for {MOST_DEVICES} of them")
    return kind


def within_room(guest: Guest, request: BoardRequest, kind: BoardKind, config: MachineConfig) -> MachineConfig:
    """With no more RAM than the board has room for, unless told."""
    if kind.most_ram_bytes is None or config.memory_bytes <= kind.most_ram_bytes:
        return config
    if guest.memory is not None:
        raise UsageError(
            f"--memory {guest.memory}: --board {request.board} has room for {kind.most_ram_bytes >> 30} GiB"
        )
    return replace(config, memory_bytes=kind.most_ram_bytes)


def disk_of(text: str) -> Disk:
    """FILE, or FILE,rw. Raises PerfemuError."""
    path = text.removesuffix(KEEPS)
    try:
        return Disk(path, keeps=text != path)
    except NoDisk as problem:
        raise PerfemuError(f"--disk {path}: {problem}") from None
