"""Packets of GDB's remote serial protocol: a payload between `$` and `#`, with a checksum, and `+` or `-` for it.

GDB's manual, "Remote Protocol", "Overview". Whoever is at the other end may send anything: what is no packet is
skipped, and what is too long ends the connection.
"""

from __future__ import annotations

import select
import socket

PACKET_BYTES = 0x4000  # the longest that we take, or send
MOST_WAITING_BYTES = 1 << 20  # that nobody has asked for
INTERRUPT = 0x03
ESCAPE, ESCAPED_WITH = 0x7D, 0x20
TO_ESCAPE = b"#$}*"


class Disconnected(Exception):
    """There is nobody at the other end any more, or nobody who speaks the protocol."""


class Connection:
    """A debugger's. Its reads wait, its writes do not wait for acknowledgements."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._waiting = bytearray()  # received, and not yet taken
        self.acknowledges = True

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        self._stream.close()

    def send(self, payload: bytes) -> None:
        """One packet. Raises Disconnected."""
        escaped = bytearray()
        for byte in payload:
            escaped += bytes((ESCAPE, byte ^ ESCAPED_WITH)) if byte in TO_ESCAPE else bytes((byte,))
        self._send(b"$%b#%02x" % (bytes(escaped), sum(escaped) & 0xFF))

    def receive(self) -> bytes | None:
        """The next packet's payload; None: an interruption instead. Raises Disconnected."""
        while True:
            found, payload = self._take()
            if found:
                return payload
            self._read()

    @property
    def holds_interruption(self) -> bool:
        """Whether there is one among what has been read already."""
        return INTERRUPT in self._waiting

    def interrupted(self) -> bool:
        """Without waiting: whether there is an interruption, while no packet is expected. Raises Disconnected."""
        while select.select([self._stream], [], [], 0)[0]:
            self._read()
        if not self.holds_interruption:
            return False
        del self._waiting[: self._waiting.index(INTERRUPT) + 1]
        return True

    def _take(self) -> tuple[bool, bytes | None]:
        """Whether there was a packet, or an interruption, and which."""
        waiting = self._waiting
        begin = next((at for at, byte in enumerate(waiting) if byte in (ord("$"), INTERRUPT)), len(waiting))
        del waiting[:begin]  # acknowledgements, and what is nothing
        if not waiting:
            return False, None
        if waiting[0] == INTERRUPT:
            del waiting[0]
            return True, None
        end = waiting.find(b"#")
        if end < 0 or len(waiting) < end + 3:
            if len(waiting) > PACKET_BYTES + 4:
                raise Disconnected
            return False, None
        body, checksum = bytes(waiting[1:end]), bytes(waiting[end + 1 : end + 3])
        del waiting[: end + 3]
        if self.acknowledges:
            right = checksum.lower() == b"%02x" % (sum(body) & 0xFF)
            self._send(b"+" if right else b"-")
            if not right:
                return self._take()
        return True, _unescaped(body)

    def _read(self) -> None:
        try:
            data = self._stream.recv(PACKET_BYTES)
        except OSError:
            raise Disconnected from None
        if not data or len(self._waiting) + len(data) > MOST_WAITING_BYTES:
            raise Disconnected
        self._waiting += data

    def _send(self, data: bytes) -> None:
        try:
            self._stream.sendall(data)
        except OSError:
            raise Disconnected from None


def _unescaped(body: bytes) -> bytes:
    if ESCAPE not in body:
        return body
    plain, escaped = bytearray(), False
    for byte in body:
        if byte == ESCAPE and not escaped:
            escaped = True
        else:
            plain.append(byte ^ ESCAPED_WITH if escaped else byte)
            escaped = False
    return bytes(plain)
