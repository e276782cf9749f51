"""GdbServer: where debuggers connect, one at a time: a port of this machine alone, or a socket in the file system.

It is a board's `Debugger`. While the board runs, a thread waits for a debugger to say something; nobody else reads.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from emulator.board.debugging import Debugged, Stop, Why
from perfemu.errors import PerfemuError, UsageError
from perfemu.gdb.packets import Connection, Disconnected
from perfemu.gdb.stub import GdbStub, Gone

LOOPBACK = "127.0.0.1"
MOST_PORT = 0xFFFF


class GdbServer:
    """From `with` on somebody may connect; the board waits at its first instruction until somebody has."""

    def __init__(self, place: str, tell: Callable[[str], None]) -> None:
        """`place`: a port, 0 for any that is free, or a path. Raises UsageError, PerfemuError."""
        self._path = None if place.isdecimal() else place
        self._tell = tell
        self._listener = _listener(place)
        address = self._listener.getsockname()
        self.place = self._path or f"{LOOPBACK}:{address[1]}"
        self.debugged: Debugged[Any] | None = None  # there before it runs
        self._connection: Connection | None = None
        self._stub: GdbStub | None = None
        self._waits = False  # the debugger, to hear of a stop: it has let the board run before
        self._bell = _Bell(self._ring)

    def __enter__(self) -> GdbServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bell.close()
        self._hang_up()
        self._listener.close()
        if self._path is not None:
            os.unlink(self._path)

    # ---- as a board's debugger

    def stopped(self, stop: Stop) -> None:
        self._bell.rest()
        while self._connection is None:  # nobody has connected yet
            self._tell(f"gdb: nothing runs until a debugger says so: target remote {self.place}")
            self._accept()
        self._converse(stop)

    def look(self) -> bool:
        if self._connection is None:
            self._accept()
            return self._connection is not None
        try:
            if self._connection.interrupted():
                return True
        except Disconnected:
            self._let_go()
        self._listen()
        return False

    def fileno(self) -> int:
        """Where somebody may say something while the board runs."""
        return (self._listener if self._connection is None else self._connection).fileno()

    def attend(self) -> bool:
        """Somebody has, while the board waits for something of the host's: whether it is to wait on."""
        assert self.debugged is not None, "it waits"
        if self.look():
            self.stopped(Stop(0, Why.ASKED))
        return not self.debugged.board.ended

    def ended(self, status: int) -> None:
        """The board has."""
        self._bell.rest()
        try:
            if self._stub is not None:
                self._stub.ended(status)
        except Disconnected:
            pass
        self._hang_up()
        self._listener.close()  # who waits there hears that nobody comes

    # ---- who is connected

    def _accept(self) -> None:
        stream, _ = self._listener.accept()
        if stream.family == socket.AF_INET:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert self.debugged is not None, "there is a board before it runs"
        self._connection = Connection(stream)
        self._stub = GdbStub(self.debugged, self._connection)
        self._waits = False

    def _converse(self, stop: Stop) -> None:
        assert self._stub is not None, "somebody is connected"
        waits, self._waits = self._waits, True
        try:
            self._stub.stopped(stop, waits)
        except (Disconnected, Gone):
            self._let_go()
        self._listen()

    def _let_go(self) -> None:
        """The board runs on as if nobody had been there."""
        self._hang_up()
        assert self.debugged is not None, "it had a debugger"
        self.debugged.forget()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._stub = None

    def _listen(self) -> None:
        if self._connection is not None and self._connection.holds_interruption:
            self._ring()
        else:
            self._bell.wait_for(self._listener if self._connection is None else self._connection)

    def _ring(self) -> None:
        assert self.debugged is not None, "it runs"
        self.debugged.want_look()


class _Bell:
    """A thread that says when something can be read, once for each `wait_for`."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._wake_read, self._wake_write = os.pipe()
        self._wanted = threading.Condition()
        self._descriptor: int | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="gdb")
        self._thread.start()

    def wait_for(self, source: socket.socket | Connection) -> None:
        with self._wanted:
            self._descriptor = source.fileno()
            self._wanted.notify()

    def rest(self) -> None:
        """Say nothing more."""
        with self._wanted:
            self._descriptor = None
        os.write(self._wake_write, b"\0")

    def close(self) -> None:
        with self._wanted:
            self._closed = True
            self._wanted.notify()
        os.write(self._wake_write, b"\0")
        self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        while True:
            with self._wanted:
                while self._descriptor is None and not self._closed:
                    self._wanted.wait()
                if self._closed:
                    return
                descriptor = self._descriptor
            assert descriptor is not None, "somebody waits for it"
            try:
                ready, _, _ = select.select([descriptor, self._wake_read], [], [])
            except (OSError, ValueError):
                ready = []  # closed in the meantime
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            with self._wanted:
                if descriptor not in ready or self._descriptor != descriptor:
                    continue
                self._descriptor = None
            self._ring()


def _listener(place: str) -> socket.socket:
    if place.isdecimal():
        if int(place) > MOST_PORT:
            raise UsageError(f"--gdb {place}: a port is at most {MOST_PORT}")
        listener = socket.socket(socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    elif "/" in place:
        listener = socket.socket(socket.AF_UNIX)
    else:
        raise UsageError(f"--gdb {place}: a port, 0 for any that is free, or the path of a socket, with a slash in it")
    try:
        listener.bind(place if listener.family == socket.AF_UNIX else (LOOPBACK, int(place)))
        if listener.family == socket.AF_UNIX:
            os.chmod(place, stat.S_IRUSR | stat.S_IWUSR)
        listener.listen(1)
    except OSError as problem:
        listener.close()
        raise PerfemuError(f"--gdb {place}: {os.strerror(problem.errno or 0)}") from None
    return listener
