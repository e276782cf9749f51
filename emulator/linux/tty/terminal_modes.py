"""TerminalModes: how a terminal behaves (termios(3)), as the kernel's struct termios, which both ISAs have alike."""

from __future__ import annotations

import struct
from dataclasses import dataclass

TERMIOS = struct.Struct("<4IB19s")  # asm-generic/termbits.h: iflag oflag cflag lflag line cc
WINDOW_BYTES = 8  # struct winsize: rows, columns, and two of pixels

# c_iflag
IGNBRK, BRKINT, ISTRIP, INLCR, IGNCR, ICRNL = 0o1, 0o2, 0o40, 0o100, 0o200, 0o400
IUCLC, IXON, IXANY, IXOFF, IMAXBEL, IUTF8 = 0o1000, 0o2000, 0o4000, 0o10000, 0o20000, 0o40000
# c_oflag
OPOST, OLCUC, ONLCR, OCRNL, ONOCR, ONLRET = 0o1, 0o2, 0o4, 0o10, 0o20, 0o40
TABDLY = XTABS = 0o14000
# c_cflag
B38400, CS8, CREAD = 0o17, 0o60, 0o200
# c_lflag
ISIG, ICANON, ECHO, ECHOE, ECHOK, ECHONL, NOFLSH, TOSTOP = 0o1, 0o2, 0o10, 0o20, 0o40, 0o100, 0o200, 0o400
ECHOCTL, ECHOKE, IEXTEN = 0o1000, 0o4000, 0o100000
# c_cc
VINTR, VQUIT, VERASE, VKILL, VEOF, VTIME, VMIN, VSWTC, VSTART, VSTOP, VSUSP, VEOL = range(12)
VREPRINT, VDISCARD, VWERASE, VLNEXT, VEOL2 = range(12, 17)
DISABLED = 0  # a function that no character has (_POSIX_VDISABLE)
CHARACTERS = bytes((3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0))  # INIT_C_CC

SPEEDS = (
    0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400,
    57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000, 1152000, 1500000, 2000000, 2500000, 3000000,
    3500000, 4000000,
)  # fmt: skip
CBAUDEX = 0o10000


@dataclass(frozen=True, slots=True)
class TerminalModes:
    """struct termios. The defaults are those of a pseudo-terminal (tty_std_termios)."""

    input: int = ICRNL | IXON
    output: int = OPOST | ONLCR
    control: int = B38400 | CS8 | CREAD
    local: int = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN
    line: int = 0
    characters: bytes = CHARACTERS

    @classmethod
    def unpack(cls, data: bytes) -> TerminalModes:
        return cls(*TERMIOS.unpack(data[: TERMIOS.size]))

    def pack(self) -> bytes:
        return TERMIOS.pack(self.input, self.output, self.control, self.local, self.line, self.characters)

    def pack2(self) -> bytes:
        """struct termios2"""
        return self.pack() + struct.pack("<2I", self.speed, self.speed)

    @property
    def speed(self) -> int:
        """In bits a second, which nothing is slowed down to."""
        index = (self.control & 0o17) + (15 if self.control & CBAUDEX else 0)
        return SPEEDS[index] if index < len(SPEEDS) else 0

    def is_for(self, character: int, function: int) -> bool:
        """Whether a character that was typed has this function."""
        return character == self.characters[function] != DISABLED
