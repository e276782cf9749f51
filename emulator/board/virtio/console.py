"""Console: a terminal with one port. VIRTIO 1.2, "Console Device"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.board.virtio.device import Answering
from emulator.board.virtio.queue import Chain, Queue

RECEIVE, TRANSMIT = 0, 1  # queues
CONSOLE = 3  # device ID
MOST_DIGITS = 9  # of a verdict


class Console(Answering):
    name, number, queues = "virtio-console", CONSOLE, 2
    kept = "_received", "_has_room", "transfers"
    kept_growing = ("_received",)
    configuration = bytes(12)  # size, ports, emergency write: all belong to features that it has not

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._received = bytearray()
        self._has_room = False  # as far as the driver has said
        self.attend: Callable[[int], None] | None = None  # the transport's: one of the queues has something to do
        self.transfers = 0  # bytes, chunks of them at least
        self.when_polled: Callable[[], None] | None = None  # nobody can

    @property
    def wants_input(self) -> bool:
        return self._has_room and not self._received

    def receive(self, data: bytes) -> None:
        """Bytes from outside: they wait until the guest has room."""
        self._received += data
        assert self.attend is not None, "it has a transport"
        self.attend(RECEIVE)

    def notified(self, number: int, queues: Sequence[Queue]) -> bool:
        if number == TRANSMIT:
            return super().notified(number, queues)
        self._has_room = True
        interrupts, queue = False, queues[number]
        for chain in queue.chains(lambda: bool(self._received)):
            written = chain.write(bytes(self._received[: chain.room]))
            del self._received[:written]
            self.transfers += 1
            interrupts |= queue.give_back(chain, written)
        return interrupts

    def answer(self, number: int, chain: Chain) -> int:
        self.transfers += 1
        self._send(chain.read())
        return 0

    def reset(self) -> None:
        self._has_room = False


class TestExit(Answering):
    """A console by which a test ends the run: "<n>q" is its verdict n, by a convention of test images."""

    name, number, queues = "the test device", CONSOLE, 2
    configuration = bytes(12)

    def __init__(self, end: Callable[[int], None]) -> None:
        """`end` gets the exit status."""
        self._end = end
        self._digits = b""

    def notified(self, number: int, queues: Sequence[Queue]) -> bool:
        return number == TRANSMIT and super().notified(number, queues)

    def answer(self, number: int, chain: Chain) -> int:
        text = self._digits + chain.read()
        end = text.find(b"q")
        if end >= 0:
            self._end((int(_digits_behind(text[:end]) or b"0") << 1 | 1) & 0xFF)
        self._digits = _digits_behind(text)
        return 0


def _digits_behind(text: bytes) -> bytes:
    """With which it ends."""
    last = text[-MOST_DIGITS:]
    return last[len(last.rstrip(b"0123456789")) :]
