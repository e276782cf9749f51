"""Console: the user's terminal as the guest's controlling one: who is in its foreground, and what its keys signal.

What the user types is input, as the bytes of a file are: a signal key takes effect between two turns of the machine.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Collection
from typing import Protocol

from emulator.linux.errors import ERESTARTSYS, LinuxError
from emulator.linux.signals.signal import SIGTTIN


class Controlling(Protocol):
    """A terminal that a session may have."""

    session: int
    foreground: int  # process group

    @property
    def path(self) -> str: ...


class Processes(Protocol):
    """What a terminal does to processes (``Terminals``)."""

    def members(self, group: int) -> Collection[object]: ...

    def signal_foreground(self, group: int, signal: int) -> None:
        """To the processes of a group, or to the machine's first one where there are none."""

    def check_background(self, terminal: Controlling, signal: int) -> None:
        """A caller that is not in the foreground gets `signal`, and its call starts again later."""

    def check_controls(self, terminal: Controlling) -> None:
        """ENOTTY for a caller of a session whose terminal it is not."""

    def set_foreground(self, terminal: Controlling, group: int) -> None:
        """... to a group of the terminal's session."""


class Calls(Protocol):
    """Who makes calls between two turns of the machine (a ``Scheduler``)."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """A host signal's handler may ask for it."""

    def make_calls(self) -> None:
        """... at once, in a system call."""


class Console:
    """One for all standard streams that are terminals."""

    path = "/dev/tty"

    def __init__(self) -> None:
        self._processes: Processes | None = None  # None: nobody is stopped or signalled
        self._calls: Calls | None = None
        self.foreground = 0  # the process group that may read, and that signal keys mean
        self.session = 0
        self.in_dialogue = False  # whether the guest has read from the user
        self.at_line_start = True  # whether what the guest wrote last has ended its line
        self.unread: dict[int, bytes] = {}  # by host descriptor: what a read of the user's did not have room for
        self.before_output: Callable[[], None] | None = None  # called before the guest writes
        self._bell: int | None = None  # an eventfd that ends a wait for keys

    def attach(self, processes: Processes, calls: Calls) -> None:
        """To a kernel."""
        self._processes, self._calls = processes, calls

    def __del__(self) -> None:
        if self._bell is not None:
            os.close(self._bell)

    @property
    def is_free(self) -> bool:
        """Whether others may write between the guest's lines: nobody sits there and waits for a prompt."""
        return self.at_line_start and not self.in_dialogue

    # ---- from the user

    def connect(self) -> None:
        """From now on `press` will be called."""
        if self._bell is None:
            self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def press(self, signal: int) -> None:
        """The user has sent a signal to the foreground. A host signal's handler may call this at any moment."""
        assert self._processes is not None, "there is no machine"
        assert self._calls is not None, "there is no machine"
        assert self._bell is not None, "nobody has connected it"
        processes = self._processes
        self._calls.call_soon(lambda: processes.signal_foreground(self.foreground, signal))
        os.eventfd_write(self._bell, 1)

    # ---- from the guest

    def check_reader(self) -> None:
        """Before a task reads the terminal. Raises as `check_background`."""
        self.in_dialogue = True
        self.check_background(SIGTTIN)

    def check_background(self, signal: int) -> None:
        """Raises as ``Processes.check_background``, unless nobody is in the foreground."""
        if self._processes is not None and self._processes.members(self.foreground):
            self._processes.check_background(self, signal)

    def check_controls(self) -> None:
        """Raises as ``Processes.check_controls``."""
        if self._processes is not None:
            self._processes.check_controls(self)

    def set_foreground(self, group: int) -> None:
        """Raises as ``Processes.set_foreground``."""
        assert self._processes is not None, "there is no machine"
        self._processes.set_foreground(self, group)

    def wait_for_input(self, descriptor: int) -> None:
        """Until a read of the host's terminal, pipe or socket `descriptor` will not wait.

        Raises LinuxError(ERESTARTSYS) where the user sends a signal meanwhile. Returns at once if nobody is connected.
        """
        if self._calls is None or self._bell is None:
            return
        ready, _, _ = select.select([descriptor, self._bell], [], [])
        if self._bell in ready:
            os.eventfd_read(self._bell)
            self._calls.make_calls()
            raise LinuxError(ERESTARTSYS, "the user has sent a signal")

    def note_output(self, data: bytes) -> None:
        """The guest is about to write this."""
        if self.before_output is not None:
            self.before_output()
        if data:
            self.at_line_start = data.endswith(b"\n")
