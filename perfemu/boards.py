"""Boards: one run of an image that is no program of Linux's: a bare-metal program, or a whole kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, TextIO

from emulator.board.disk import Disk, NoDisk
from emulator.board.gic import GICV2, GICV3
from emulator.board.gicv2 import MOST_CPUS as MOST_GICV2_CPUS
from emulator.board.image import NotBootable, read_image
from emulator.board.observers import Observers
from emulator.board.trace import Trace, Traced
from emulator.board.virt import Boot, Ended, Outside, Virt
from emulator.board.virt_tree import RAM_BASE
from emulator.linux.configuration import MOST_OUTPUT_BYTES
from emulator.linux.process.task import Task
from emulator.machine import Hardware, Machine
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfcore.events.drivers import arm_pmuv3
from perfcore.events.event import PerfEvent
from perfcore.events.subsystem import PerfEvents
from perfcore.perfdata.features import Features, JitFile
from perfemu.board_events import AddressSpaces, measuring_events
from perfemu.board_input import board_input
from perfemu.board_processes import BoardProcesses
from perfemu.board_shares import shares
from perfemu.board_sideband import BoardSideband
from perfemu.booted_image import BootedImage
from perfemu.cores import core_for, pmu_of
from perfemu.ending import STOPPED, Ending
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from perfemu.events.parser import parse_events
from perfemu.events.spec import EventSpec
from perfemu.guest import Guest
from perfemu.guest_linux.system import GuestLinux
from perfemu.host_limits import check_address_space
from perfemu.interruption import Interruption
from perfemu.kernel_symbols import symbols_of_file
from perfemu.machine_features import board_features
from perfemu.quantities import size_bytes
from perfemu.run_times import RunTimes
from perfemu.scope import Region
from perfemu.symbols.finder import VDSO
from perfemu.symbols.kallsyms import KALLSYMS_FILE
from pmu.arm.pmuv3 import PmuV3
from pmu.model import PmuModel

BOARDS = {"virt": "aarch64"}  # name -> ISA
CONSOLES = {"pl011": False, "virtio": True}  # name -> whether it is the virtio console that receives
KEEPS = ",rw"  # behind a disk's file: what is written is kept there
MOST_DEVICES = 28  # disks and directories; there are slots for the board's own besides
MOST_IMAGE_BYTES = 1 << 30
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
class BoardRequest:
    """What the options of a board say."""

    board: str
    initrd: str | None = None
    command_line: str = ""
    disks: Sequence[str] = ()  # FILE, or FILE,rw
    console: str = "pl011"
    test_device: bool = False
    semihosting: bool = False
    gic: int = GICV3
    trace: Collection[Traced] = ()
    guest_linux: bool = False
    guest_root: str | None = None  # a directory of the host's with the guest's files


class BoardSession:
    """One run of an image on a board: make it, `open` events, `run`; then read what was counted."""

    def __init__(self, guest: Guest, request: BoardRequest, output: BinaryIO, tell: Callable[[str], None]) -> None:
        """`output`: what the serial port says; `tell`: lines for the user."""
        self.isa = isa = _check(guest, request)
        if len(guest.argv) > 1:
            raise UsageError(f"--board {request.board} boots one image; {guest.command[1]!r} is one more argument")
        self.core = core_for(guest.core_name, isa, guest.core_changes, untimed=guest.untimed)
        self.pmu_model = replace(pmu_of(self.core, isa), executes_kernel=True)
        self.title = f"{self.core.title}, board {request.board}"
        self.partly_modelled = False
        self.times = RunTimes(0, 0)
        self.guest = guest
        self.space = replace(guest, binds=[]).space()  # of the files that records name: the host's
        self._request, self._output = request, output
        self._line, self._tell = tell, _once(tell)
        self._config = guest.machine(isa, self.core)
        self._hardware: Hardware | None = None
        self._events: PerfEvents | None = None
        self._observers = Observers(self._config.cpus)
        self._sideband = BoardSideband(guest.command[0])
        self._linux = GuestLinux(self._tell) if request.guest_linux else None
        self._processes = (
            None if self._linux is None else BoardProcesses(self._linux, self._sideband, request.guest_root)
        )

    @property
    def hardware(self) -> Hardware:
        """Built when it is first wanted."""
        if self._hardware is None:
            check_address_space(self._config.memory_bytes, self._config.cpus)
            self._hardware = Hardware(self._config)
        return self._hardware

    def parse(self, events: Iterable[str]) -> list[EventSpec]:
        """The events of ``-e`` strings on this core. Raises EventSyntaxError."""
        return parse_events(events, self.pmu_model, arm_pmuv3.TYPE)

    def open(
        self, attr: PerfEventAttr, cpu: int = -1, leader: PerfEvent | None = None, *, system_wide: bool = False
    ) -> PerfEvent:
        """Open an event on all that `cpu` does, on PMUs that the guest does not see. Raises LinuxError."""
        assert system_wide, "of tasks a board knows nothing"
        if self._events is None:
            threads = self._processes or AddressSpaces(self._sideband.seen_space)
            self._events = measuring_events(self.hardware, self.pmu_model, self._observers, threads)
        event = self._events.open(attr, None, cpu, leader)
        self._sideband.add(event)
        return event

    def opened_as(self, spec: EventSpec) -> EventSpec:
        """The event that is recorded for `spec`: at both levels, for both are executed."""
        return spec

    def use_kallsyms(self, path: str) -> None:
        """Symbols of the guest's kernel, whatever its image and its memory say. Raises PerfemuError."""
        self._sideband.kallsyms = symbols_of_file(path)

    def features(self, command_line: tuple[str, ...]) -> Features:
        """What a recording says of the machine."""
        types = ((PerfType.SOFTWARE, "software"), (arm_pmuv3.TYPE, self.pmu_model.sysfs_name))
        return board_features(self.hardware, self._request.board, command_line, types)

    def symbol_files(self, pids: Iterable[int], mapped_files: Iterable[str]) -> tuple[JitFile, ...]:
        """After the run: the kernel's symbols, if samples asked for them, and what it maps into each process."""
        vdso = b"" if self._processes is None else self._processes.vdso
        found = ((KALLSYMS_FILE, self._sideband.kallsyms), (VDSO, vdso))
        return tuple(JitFile(name, contents) for name, contents in found if contents)

    def build_id(self, path: str) -> bytes | None:
        return None if self._processes is None else self._processes.build_id(path)

    @property
    def program_task(self) -> Task:
        raise UsageError("a board has no threads that perfemu knows")

    def count_within(self, region: Region) -> None:
        raise UsageError("--from-symbol, --to-symbol: are for programs of Linux's; a board counts as a whole")

    def check_region(self) -> None:
        """There is none."""

    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]:
        """The serial port shows how far it is."""
        return nullcontext()

    def let_cpus_come_to_the_end(self) -> None:
        """All have the machine's time, as far as anything is due."""

    def run(self, interruption: Interruption | None = None) -> Ending:
        """To its end, with the status that a shell would see."""
        guest, request, output = self.guest, self._request, self._output
        path = guest.command[0]
        hardware = self.hardware
        written = MOST_OUTPUT_BYTES if guest.max_output is None else size_bytes(str(guest.max_output))
        try:
            image = read_image(_contents(path), RAM_BASE)
            booted = BootedImage(image, hardware)
            self._sideband.booted(booted)
            if self._linux is not None:
                self._linux.booted(booted, path)
            initrd = b"" if request.initrd is None else _contents(request.initrd)
            with board_input(guest.stdin, guest.stdout, output.flush) as source, interruption or Interruption():
                outside = Outside(
                    _Console(output),
                    self._tell,
                    source,
                    disks=[_disk(text) for text in request.disks],
                    shares=shares(guest.binds, written),
                    virtio_console=CONSOLES[request.console],
                    test_device=request.test_device,
                    semihosting=request.semihosting,
                    gic=request.gic,
                    observers=self._observers,
                    trace=Trace(request.trace, self._line) if request.trace else None,
                )
                board = _board(hardware, self.pmu_model, Boot(image, initrd, request.command_line), outside)
                Machine(hardware, board).run_to_the_end()
        except (NotBootable, RuntimeError) as problem:  # of the core: what it does not model of a guest's own tables
            raise PerfemuError(f"{path}: {problem}") from None
        finally:
            self.times = RunTimes(hardware.clock.at(max(cpu.core.cycles for cpu in hardware.cpus)), 0)
        output.flush()
        return self._ending(board)

    def _ending(self, board: Virt) -> Ending:
        ended = board.ended
        assert ended is not None, "it has come to its end"
        if ended not in (Ended.OFF, Ended.STATUS):
            self._tell(ended.value)
        status = {Ended.OFF: 0, Ended.STATUS: board.exit_status}.get(ended, FAILURE_STATUS)
        return Ending(status << 8, "a limit" if ended is Ended.LIMIT else None)


def _check(guest: Guest, request: BoardRequest) -> str:
    if request.board not in BOARDS:
        raise UsageError(f"--board {request.board}: there is {', '.join(BOARDS)}")
    for name, flag in _OF_PROGRAMS.items():
        if getattr(guest, name):
            raise UsageError(f"{flag}: is for programs of Linux's; a board runs an image, which has no such thing")
    if request.gic == GICV2 and guest.cpus is not None and int(guest.cpus) > MOST_GICV2_CPUS:
        raise UsageError(f"--gic 2 --cpus {guest.cpus}: GICv2 reaches {MOST_GICV2_CPUS} CPUs")
    if len(request.disks) + len(guest.binds) > MOST_DEVICES:
        raise UsageError(f"--disk, --bind: a board has room for {MOST_DEVICES} of them")
    return BOARDS[request.board]


def _disk(text: str) -> Disk:
    path = text.removesuffix(KEEPS)
    try:
        return Disk(path, keeps=text != path)
    except NoDisk as problem:
        raise PerfemuError(f"--disk {path}: {problem}") from None


def _board(hardware: Hardware, model: PmuModel, boot: Boot, outside: Outside) -> Virt:
    pmus = [PmuV3(cpu.core.add_bank(model.bank_size(model.counters)), model) for cpu in hardware.cpus]
    return Virt(hardware, boot, outside, pmus)


class _Console:
    """The serial port's bytes on a stream: whole lines, and no more of them than a guest may write."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._left = MOST_OUTPUT_BYTES

    def __call__(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise PerfemuError(f"the guest has written {MOST_OUTPUT_BYTES >> 30} GiB, and may write no more", STOPPED)
        self._output.write(data)
        if data == b"\n":
            self._output.flush()


def _once(tell: Callable[[str], None]) -> Callable[[str], None]:
    said: set[str] = set()

    def message(text: str) -> None:
        if text not in said and len(said) < 100:
            said.add(text)
            tell(text)

    return message


def _contents(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_IMAGE_BYTES + 1)
    except OSError as problem:
        raise PerfemuError(f"{path}: {os.strerror(problem.errno or 0)}") from None
    if len(data) > MOST_IMAGE_BYTES:
        raise PerfemuError(f"{path}: more than {MOST_IMAGE_BYTES >> 30} GiB")
    return data


def standard_output() -> BinaryIO:
    return sys.stdout.buffer
