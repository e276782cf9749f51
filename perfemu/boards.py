"""Boards: one run of an image that is no program of Linux's: a bare-metal program, or a whole kernel."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from emulator.board.board import Boot, Ended, Held, Outside
from emulator.board.calls import CallWatcher
from emulator.board.debugging import Debugged
from emulator.board.gic import GICV3
from emulator.board.image import NotBootable
from emulator.board.kept import NotKept, WrongState
from emulator.board.observers import Observers
from emulator.board.saved_board import resume, saved
from emulator.board.serial_input import Source
from emulator.board.trace import Trace
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE
from emulator.linux.configuration import MOST_OUTPUT_BYTES
from emulator.linux.errors import ENOENT, LinuxError
from emulator.linux.fs.nodes import OutputBudget
from emulator.linux.process.task import Task
from emulator.machine import Hardware, Machine, Software
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SoftwareId
from perfcore.events.clocks import clock_of
from perfcore.events.event import PerfEvent
from perfcore.events.subsystem import PerfEvents
from perfcore.perfdata.features import Features, JitFile
from perfemu.board_console import Console
from perfemu.board_events import AddressSpaces, measuring_events
from perfemu.board_input import board_input
from perfemu.board_kinds import AnyBoard
from perfemu.board_processes import BoardProcesses
from perfemu.board_request import BoardRequest, Orders, disk_of, kind_of, within_room
from perfemu.board_shares import shares
from perfemu.board_sideband import BoardSideband
from perfemu.booted_image import BootedImage
from perfemu.checkpoint_file import Broken, read_checkpoint, write_checkpoint
from perfemu.checkpoints import Checkpoints, key_of
from perfemu.cores import core_for, pmu_of
from perfemu.ending import Ending
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from perfemu.events.parser import parse_events
from perfemu.events.spec import EventSpec
from perfemu.gdb.server import GdbServer
from perfemu.guest import Guest
from perfemu.guest_linux.system import GuestLinux
from perfemu.host_limits import check_address_space
from perfemu.interruption import Interruption
from perfemu.kernel_symbols import symbols_of_file
from perfemu.machine_features import board_features
from perfemu.moments import Span
from perfemu.pmu_kinds import PMU_KINDS, Attached, measuring_counters, pmu_mappings
from perfemu.quantities import size_bytes
from perfemu.run_times import RunTimes
from perfemu.scope import Scope
from perfemu.symbols.finder import VDSO
from perfemu.symbols.kallsyms import KALLSYMS_FILE
from perfemu.told import Told
from pmu.register_view import RegisterFile, Registers

if TYPE_CHECKING:
    from perfemu.control import Control, Snapshot, Switch

MOST_IMAGE_BYTES = 1 << 30
MOST_WHEREABOUTS = 8  # CPUs of which a line is said at a limit


class BoardSession:
    """One run of an image on a board: make it, `open` events, `run`; then read what was counted."""

    def __init__(self, guest: Guest, request: BoardRequest, output: BinaryIO, tell: Callable[[str], None]) -> None:
        """`output`: what the serial port says; `tell`: lines for the user."""
        self._kind = kind = kind_of(guest, request)
        self.isa = isa = kind.isa
        if len(guest.argv) > 1:
            raise UsageError(f"--board {request.board} boots one image; {guest.command[1]!r} is one more argument")
        self.core = core_for(guest.core_name, isa, guest.changes(isa), units=guest.units, untimed=guest.untimed)
        self.pmu_model = replace(pmu_of(self.core, isa, on_a_board=True), executes_kernel=True)
        self.title = f"{self.core.title}{guest.changed_clock}, board {request.board}"
        self.partly_modelled = False
        self.times = RunTimes(0, 0)
        self.guest = guest
        self.space = replace(guest, binds=[]).space()  # of the files that records name: the host's
        self._request, self._output = request, output
        self._line, self._tell = tell, _once(tell)
        self._config = within_room(guest, request, kind, guest.machine(isa, self.core))
        self._board: AnyBoard | None = None
        self._hardware: Hardware | None = None
        self._machine: Machine | None = None
        self._events: PerfEvents | None = None
        self._observers = Observers(self._config.cpus)
        self._sideband = BoardSideband(guest.command[0], kind, self._tell)
        self.linux = GuestLinux(kind.isa, self._tell) if request.guest_linux else None
        self.call_watcher: CallWatcher | None = None  # set before the run
        self.measuring: Attached | None = None  # what counts from outside, once an event is open
        self.guest_pmus: Sequence[RegisterFile] = ()  # that its guest programs, once it runs
        self.guest_monitors: Sequence[Registers] = ()  # ... and its Activity Monitors
        self._processes = None if self.linux is None else BoardProcesses(self.linux, self._sideband, request.guest_root)

    @property
    def hardware(self) -> Hardware:
        """Built when it is first wanted."""
        if self._hardware is None:
            check_address_space(self._config.memory_bytes, self._config.cpus)
            self._hardware = Hardware(self._config)
        return self._hardware

    def parse(self, events: Iterable[str]) -> list[EventSpec]:
        """The events of ``-e`` strings on this core. Raises EventSyntaxError."""
        return parse_events(events, self.pmu_model, PMU_KINDS[self.pmu_model.driver].type)

    def open(
        self,
        attr: PerfEventAttr,
        cpu: int = -1,
        leader: PerfEvent | None = None,
        *,
        system_wide: bool = False,
        cgroup: str | None = None,
    ) -> PerfEvent:
        """Open an event on all that `cpu` does, on PMUs that the guest does not see. Raises LinuxError."""
        assert system_wide, "of tasks a board knows nothing"
        assert not cgroup, "... nor of their groups"
        if attr.type == PerfType.SOFTWARE and attr.config not in (SoftwareId.CPU_CLOCK, SoftwareId.TASK_CLOCK):
            raise LinuxError(ENOENT, "Linux counts it itself, and a board's is its guest's: its own perf counts it")
        if self._events is None:
            threads = self._processes or AddressSpaces(self._kind.tables, self._sideband.seen_space)
            self._events, self.measuring = measuring_events(
                self.hardware,
                self.pmu_model,
                measuring_counters(self.pmu_model, self.guest.counters),
                self._observers,
                threads,
                self._sideband.frames_are_kept,
            )
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
        mappings = pmu_mappings(self.pmu_model)
        return board_features(self.hardware, self._request.board, command_line, mappings)

    def symbol_files(self, pids: Iterable[int], mapped_files: Iterable[str]) -> tuple[JitFile, ...]:
        """After the run: the kernel's symbols, if samples asked for them, and what it maps into each process."""
        vdso = b"" if self._processes is None else self._processes.vdso
        found = ((KALLSYMS_FILE, self._sideband.all_kallsyms()), (VDSO, vdso))
        return tuple(JitFile(name, contents) for name, contents in found if contents)

    def build_id(self, path: str) -> bytes | None:
        return None if self._processes is None else self._processes.build_id(path)

    @property
    def program_task(self) -> Task:
        raise UsageError("a board has no threads that perfemu knows")

    def keep_calls(self) -> None:
        raise UsageError("exact callchains are of programs; a board's are by frame pointers")

    def count_within(self, scope: Scope, *, inherit: bool) -> None:
        if scope.region is not None or scope.ids is not None:
            raise UsageError("regions, -p and -t are of programs of Linux's; a board counts as a whole")

    def check_reached(self) -> None:
        """All of it was."""

    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]:
        """The serial port shows how far it is."""
        return nullcontext()

    def elapsed_ns(self) -> int:
        """Simulated time since the power-up, of the first CPU."""
        return self.hardware.clock.at(self.hardware.cpus[0].core.cycles)

    def every(self, span: Span, call: Callable[[], bool]) -> None:
        """Call it whenever so much has passed since now, until it returns False; where the first CPU idles, when it
        goes on."""
        if not span.ns:
            raise UsageError("--board: -I and -D are in simulated time, not in instructions")
        clock, start_ns = self.hardware.clock, self.elapsed_ns()

        def due() -> None:
            if call():
                set_timer()

        def set_timer() -> None:
            passed = (self.elapsed_ns() - start_ns) // span.ns + 1
            self._observers.at_cycle(0, clock.cycle_at(start_ns + passed * span.ns), due)

        set_timer()

    def realtime_ns(self) -> int:
        """Of a board's own clock: none is set."""
        return self.hardware.clock.realtime_ns()

    def clock_ns(self, clockid: int) -> int:
        """Of one of its clocks, by clockid_t."""
        return clock_of(clockid, self.hardware.clock, any_clock=True)()

    def stop(self, why: str) -> None:
        self._line(f"stopped: {why}")
        self.pause()

    def obey(self, control: Control, switch: Switch, snapshot: Snapshot | None) -> None:
        raise UsageError("--control: is of programs; a board's Linux has its own perf")

    def on_signal(self, call: Callable[[], object]) -> None:
        raise UsageError("record --switch-output, -S: of programs: a board's Linux has processes of its own to ask")

    def living(self, event: PerfEvent) -> bytes:
        raise UsageError("record --switch-output: is of programs: what a board maps is told once")

    def let_cpus_come_to_the_end(self) -> None:
        """All have the machine's time, as far as anything is due."""

    def run(self, interruption: Interruption | None = None) -> Ending:
        """To its end, with the status that a shell would see."""
        guest, request, output = self.guest, self._request, self._output
        written = MOST_OUTPUT_BYTES if guest.max_output is None else size_bytes(str(guest.max_output))
        told = Told(Console(output, OutputBudget(written, self._tell), self._output_is_full), self._tell)
        orders = request.orders
        try:
            with (
                interruption or Interruption(),
                nullcontext() if request.gdb is None else GdbServer(request.gdb, self._line) as debugger,
                board_input(guest.stdin, guest.stdout, output.flush, debugger) as source,
            ):
                outside = Outside(
                    told.send,
                    told.message,
                    None if orders else source,
                    disks=[disk_of(text) for text in request.disks],
                    shares=shares(guest.binds, written),
                    virtio_console=request.console is not None and self._kind.consoles[request.console],
                    test_device=request.test_device,
                    semihosting=request.semihosting,
                    gic=request.gic or GICV3,
                    observers=self._observers,
                    trace=Trace(request.trace, self._line) if request.trace else None,
                    calls=self.call_watcher,
                )
                if orders is None:
                    self._board = board = self._booted(outside)
                    self._machine = Machine(self.hardware, _debugged(board, self.hardware, debugger))
                    self._machine.run_to_the_end()
                else:
                    board = self._run_by_orders(orders, outside, told, source, debugger)
                ending = Ending(0, None) if self.paused else self._ending(board)
                if debugger is not None:
                    debugger.ended(ending.exit_status)
        except (NotBootable, RuntimeError) as problem:  # of the core: what it does not model of a guest's own tables
            raise PerfemuError(f"{guest.command[0]}: {problem}") from None
        finally:
            self.times = RunTimes(self.hardware.clock.at(max(cpu.core.cycles for cpu in self.hardware.cpus)), 0)
        output.flush()
        return ending

    def pause(self) -> None:
        """End the run before anything else executes: it returns as if all was well. Called while it runs."""
        assert self._machine is not None, "it runs"
        self._machine.pause()

    @property
    def paused(self) -> bool:
        """Whether that is how it ended."""
        return self._machine is not None and self._machine.paused

    def _booted(self, outside: Outside) -> AnyBoard:
        """At its power-up."""
        request = self._request
        image = self._kind.read_image(_contents(self.guest.command[0]))
        booted = BootedImage(image, self.hardware, self._kind.ram_base)
        self._sideband.booted(booted)
        if self.linux is not None:
            self.linux.booted(booted, self.guest.command[0])
        initrd = (
            request.initrd()
            if callable(request.initrd)
            else _contents(request.initrd)
            if request.initrd is not None
            else b""
        )
        boot = Boot(image, initrd, request.command_line, self.guest.command[0])
        return self._built(boot, outside)

    def _built(self, boot: Boot | None, outside: Outside) -> AnyBoard:
        board, self.guest_pmus, self.guest_monitors = self._kind.build(self.hardware, self.pmu_model, boot, outside)
        return board

    def _run_by_orders(
        self, orders: Orders, outside: Outside, told: Told, source: Source | None, debugger: GdbServer | None
    ) -> AnyBoard:
        """From a checkpoint, or through the boot to where it is made; then to the end, as from a checkpoint."""
        key = "" if orders.checkpoints is None else self._key(orders)
        outside = replace(outside, held=Held(orders.tag, lambda: machine.pause()))
        board = None if orders.checkpoints is None else self._resumed(orders.checkpoints, key, outside, told)
        if board is None:
            self._board = board = self._booted(outside)
            machine = Machine(self.hardware, _debugged(board, self.hardware, debugger))
            machine.run_to_the_end()
            if not machine.paused:  # it has ended, and never asked
                return board
            self._keep(orders.checkpoints, key, board, told)
        board.go_on(source)
        Machine(self.hardware, _debugged(board, self.hardware, debugger)).run_to_the_end()
        return board

    def _key(self, orders: Orders) -> str:
        facts = (self._request.board, self._request.command_line, self._config, *orders.facts)
        return key_of(facts, [Path(self.guest.command[0]), *orders.files])

    def _resumed(self, checkpoints: Checkpoints, key: str, outside: Outside, told: Told) -> AnyBoard | None:
        """None where there is no checkpoint that is whole."""
        with checkpoints.opened(key) as descriptor:
            if descriptor is None:
                return None
            try:
                found = read_checkpoint(descriptor, key)
                board = self._built(None, outside)
                found.map_ram(self.hardware.memory)
                resume(board, self.hardware, found.board)
                self._board = board
            except (Broken, WrongState, OSError) as problem:
                self._hardware = None  # which may be changed in part
                self._tell(f"{checkpoints.path}: a checkpoint is not used, and made anew: {problem}")
                return None
        told.tell(found.told)
        return board

    def _keep(self, checkpoints: Checkpoints | None, key: str, board: AnyBoard, told: Told) -> None:
        """What it saves has changed by that, so that it is saved in any case. Without room the next run boots, too."""
        try:
            state = saved(board, self.hardware)
        except NotKept:
            return
        lines = told.taken()
        if checkpoints is not None and lines is not None:
            with contextlib.suppress(OSError):
                checkpoints.keep(
                    key, lambda descriptor: write_checkpoint(descriptor, key, state, lines, self.hardware.memory)
                )

    def _output_is_full(self) -> None:
        if self._board is not None:
            self._board.end(Ended.LIMIT)

    def _ending(self, board: AnyBoard) -> Ending:
        ended = board.ended
        assert ended is not None, "it has come to its end"
        if ended not in (Ended.OFF, Ended.STATUS):
            self._tell(ended.value)
        if ended is Ended.LIMIT:
            for line in board.whereabouts()[:MOST_WHEREABOUTS]:
                self._line(line)
        for line in board.last_exceptions():
            self._line(line)
        status = {Ended.OFF: 0, Ended.STATUS: board.exit_status}.get(ended, FAILURE_STATUS)
        return Ending(status << 8, "a limit" if ended is Ended.LIMIT else None)


def _debugged(board: AnyBoard, hardware: Hardware, debugger: GdbServer | None) -> Software:
    if debugger is None:
        return board
    if debugger.debugged is None:
        debugger.debugged = (
            Debugged(board, hardware.memory, RAM_BASE, debugger)
            if isinstance(board, Virt)
            else Debugged(board, hardware.memory, 0, debugger)
        )
    return debugger.debugged


def _once(tell: Callable[[str], None]) -> Callable[[str], None]:
    said: set[str] = set()

    def message(text: str) -> None:
        if text not in said and len(said) < 100:
            said.add(text)
            tell(text)

    return message


def _contents(path: str) -> bytes:
    if not path:
        raise PerfemuError("an image's or an initrd's name is empty")
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            raise PerfemuError(f"{path}: a pipe, and no file: it would be waited for")
        with Path(path).open("rb") as file:
            data = file.read(MOST_IMAGE_BYTES + 1)
    except OSError as problem:
        raise PerfemuError(f"{path}: {os.strerror(problem.errno or 0)}") from None
    if len(data) > MOST_IMAGE_BYTES:
        raise PerfemuError(f"{path}: more than {MOST_IMAGE_BYTES >> 30} GiB")
    return data


def standard_output() -> BinaryIO:
    return sys.stdout.buffer
