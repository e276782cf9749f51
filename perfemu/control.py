"""Control: orders that the guest gives to who measures it, at exactly the moment when it writes them: perf's --control.

perf reads them from a descriptor or a FIFO of the host, where nobody can say at which instruction of the guest that is.
So the FIFOs are the guest's, below its /dev: it writes ``enable``, ``disable``, ``ping``, ``snapshot`` or
``stop``, and reads ``ack``.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from emulator.linux.errors import LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLOUT, Caller, File
from emulator.linux.fs.pipes import Pipe, PipeEnd, write_pipe
from emulator.linux.kernel import Kernel

ACKNOWLEDGED = b"ack\n\0"  # EVLIST_CTL_CMD_ACK_TAG of tools/perf/util/evlist.h, with its NUL as perf writes it
_MODE = stat.S_IFIFO | 0o666
_PATH = re.compile(r"/dev(/[\w-][\w.-]*)+")

Switch = Callable[[bool, str], None]
"""Whether all events, or that of a name, count from now on."""
Snapshot = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Control:
    """Where the guest finds them."""

    commands: str
    acknowledgements: str = ""  # none are wanted


def read_control(text: str) -> Control:
    """``fifo:/dev/NAME,/dev/NAME``. ValueError says what is right."""
    kind, _, names = text.partition(":")
    right = "fifo:/dev/NAME[,/dev/NAME], which the guest writes and reads"
    if kind == "fd":
        raise ValueError(f"'{text}': a descriptor's writer is the host's, and its moments are not the guest's: {right}")
    paths = names.split(",")
    if kind != "fifo" or len(paths) > 2 or not all(map(_PATH.fullmatch, paths)) or len({*paths}) != len(paths):
        raise ValueError(f"'{text}' is not {right}")
    return Control(*paths)


class Orders:
    """The FIFOs of one run, and what is done with what comes in. Make it before the run."""

    def __init__(
        self, kernel: Kernel, control: Control, switch: Switch, stop: Callable[[], None], snapshot: Snapshot | None
    ) -> None:
        """`snapshot`: None where that is no command."""
        self._switch, self._stop, self._snapshot = switch, stop, snapshot
        self._answers = Pipe(kernel.file_tree.superblock)
        self._ours = PipeEnd(self._answers, O_RDWR)  # as perf's: answers are kept, and who reads waits for one
        tree = kernel.file_tree
        tree.register(control.commands, lambda task, flags: _Commands(self.obey, flags), _MODE)
        if control.acknowledgements:
            tree.register(control.acknowledgements, lambda task, flags: PipeEnd(self._answers, flags), _MODE)

    def obey(self, text: str) -> None:
        """As evlist__ctlfd_process(): what is no command is passed over, without an answer."""
        command, _, event = text.strip().partition(" ")
        if command in ("enable", "disable"):
            self._switch(command == "enable", event.strip())
        elif command == "stop":
            self._stop()
        elif command == "snapshot" and self._snapshot is not None:
            self._snapshot()
        elif command != "ping":
            return
        with suppress(LinuxError):  # nobody has read for long
            write_pipe(self._answers, ACKNOWLEDGED, "")


class _Commands(File):
    """The end that the guest writes: a line is a command, and so is what ends without one."""

    def __init__(self, obey: Callable[[str], None], flags: int) -> None:
        super().__init__(flags)
        self._obey = obey

    def write(self, task: Caller, data: bytes) -> int:
        for line in data.replace(b"\0", b"\n").decode("utf-8", "replace").split("\n"):
            if line.strip():
                self._obey(line)
        return len(data)

    def read(self, task: Caller, destination: Destination) -> int:
        """Nobody else writes there."""
        return 0

    def poll(self) -> int:
        return POLLOUT
