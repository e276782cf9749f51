"""Told: what a board says, on its console and to the user, kept for runs that begin behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

SENT, SAID = "sent", "said"  # kinds: bytes of the console as hexadecimal digits, and lines
MOST_BYTES = 4 << 20


class Told:
    """Passes everything on at once. `lines`: all so far, in order; None if that is too much to be kept."""

    def __init__(self, send: Callable[[bytes], None], message: Callable[[str], None]) -> None:
        self._send, self._message = send, message
        self._sent = bytearray()
        self._lines: list[tuple[str, str]] = []
        self._size = 0
        self._keeps = True

    def send(self, data: bytes) -> None:
        self._send(data)
        if self._keeps:
            self._note(len(data))
            self._sent += data

    def message(self, text: str) -> None:
        self._message(text)
        if self._keeps:
            self._note(len(text))
            self._end_line()
            self._lines.append((SAID, text))

    def tell(self, lines: Sequence[tuple[str, str]]) -> None:
        """The same as in a run before."""
        for kind, text in lines:
            if kind == SENT:
                self._send(bytes.fromhex(text))
            else:
                self._message(text)

    def taken(self) -> Sequence[tuple[str, str]] | None:
        """From now on nothing is kept."""
        self._end_line()
        self._keeps = False
        return self._lines if self._size <= MOST_BYTES else None

    def _note(self, size: int) -> None:
        self._size += size
        if self._size > MOST_BYTES:
            self._sent.clear()
            self._lines.clear()
            self._keeps = False

    def _end_line(self) -> None:
        if self._sent:
            self._lines.append((SENT, self._sent.hex()))
            self._sent.clear()
