"""LineDiscipline: what happens between who types and who reads at a terminal: editing, echo, signals (n_tty).

termios(3), drivers/tty/n_tty.c. Left out: parity and breaks, which no pseudo-terminal has; delays; ECHOPRT, which does
as ECHOE.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emulator.linux.signals.signal import SIGINT, SIGQUIT, SIGTSTP
from emulator.linux.tty import terminal_modes as modes
from emulator.linux.tty.terminal_modes import TerminalModes

INPUT_BYTES = 4096  # N_TTY_BUF_SIZE: what can be typed ahead; a line is one less, with its end
TAB_COLUMNS = 8
BELL, BACKSPACE, TAB, NEWLINE, RETURN, DELETE = 7, 8, 9, 10, 13, 127
SIGNALS = ((modes.VINTR, SIGINT), (modes.VQUIT, SIGQUIT), (modes.VSUSP, SIGTSTP))
PLAIN_OUTPUT = (0, modes.OPOST, modes.OPOST | modes.ONLCR)  # c_oflag values that need no look at each character


class LineDiscipline:
    """One terminal's. `show` takes what appears on it; `signal` sends to the group in the foreground."""

    def __init__(self, show: Callable[[bytes], None], signal: Callable[[int], None]) -> None:
        self.modes = TerminalModes()
        self.stopped = False  # by VSTOP: what is written waits
        self._show = show
        self._signal = signal
        self._echoes: bytearray | None = None  # what is being echoed: it appears when all has been typed
        self._held = bytearray()  # ... and when nothing is stopped
        self._lines: deque[bytearray] = deque()  # complete; an empty one is an end of file
        self._complete_bytes = 0
        self._line = bytearray()  # the one that is being typed; without ICANON all there is
        self._line_column = 0  # where it begins
        self._column = 0
        self._literal = False  # VLNEXT was typed

    # ---- what is read

    @property
    def is_canonical(self) -> bool:
        return bool(self.modes.local & modes.ICANON)

    def readable_bytes(self) -> int:
        return self._complete_bytes + (0 if self.is_canonical else len(self._line))

    def ready(self) -> bool:
        """Whether a read finds something, as poll(2) tells it."""
        if self._lines or self.is_canonical:
            return bool(self._lines)
        characters = self.modes.characters
        return len(self._line) >= (1 if characters[modes.VTIME] else max(characters[modes.VMIN], 1))

    def look(self, size: int, *, at_once: bool) -> bytes | None:
        """A line or a part of it, or what was typed; None where a reader has to wait. `take` takes it."""
        if self._lines:
            return bytes(self._lines[0][:size])
        if self.is_canonical:
            return None
        characters = self.modes.characters
        least = 1 if characters[modes.VTIME] or at_once else characters[modes.VMIN]
        if not self._line and not characters[modes.VMIN] and not characters[modes.VTIME]:
            return b""
        if len(self._line) < max(min(least, size), 1):
            return None
        return bytes(self._line[:size])

    def take(self, count: int) -> None:
        """The first `count` bytes of what `look` has shown have been read."""
        if not self._lines:
            del self._line[:count]
            return
        line = self._lines[0]
        del line[:count]
        self._complete_bytes -= count
        if not line:
            self._lines.popleft()

    @property
    def silence_ns(self) -> int | None:
        """After how long a read gives up that found nothing (VTIME without VMIN)."""
        characters = self.modes.characters
        if self.is_canonical or characters[modes.VMIN] or not characters[modes.VTIME]:
            return None
        return characters[modes.VTIME] * 100_000_000

    def room(self) -> int:
        """How many more characters it takes now. A line that nobody can read yet takes all, and drops them."""
        if self.is_canonical and not self._lines:
            return INPUT_BYTES
        return max(INPUT_BYTES - 1 - self._typed_bytes(), 0)

    def _typed_bytes(self) -> int:
        return self._complete_bytes + len(self._line)

    def flush(self) -> None:
        """What was typed is forgotten."""
        self._lines.clear()
        self._complete_bytes = 0
        self._line.clear()

    def set_modes(self, changed: TerminalModes) -> None:
        """What was typed under ICANON can all be read without, and the other way it is a line."""
        if (changed.local ^ self.modes.local) & modes.ICANON:
            typed = bytearray().join((*self._lines, self._line))
            self.flush()
            if changed.local & modes.ICANON and typed:
                self._lines.append(typed)
                self._complete_bytes = len(typed)
            else:
                self._line = typed
        self.modes = changed
        if not changed.input & modes.IXON:
            self.start()

    # ---- what is typed

    def type(self, data: bytes) -> int:
        """How much of it there was room for."""
        count = 0
        self._echoes = bytearray()
        while count < len(data) and self.room():
            self._type(data[count])
            count += 1
        echoes, self._echoes = self._echoes, None
        self._held += echoes[: INPUT_BYTES - len(self._held)]
        if not self.stopped:
            self.start()
        return count

    def stop(self) -> None:
        """What is written waits, and so do echoes."""
        self.stopped = True

    def start(self) -> None:
        self.stopped = False
        if self._held:
            held, self._held = bytes(self._held), bytearray()
            self._show(held)

    def _type(self, character: int) -> None:
        flags, local = self.modes.input, self.modes.local
        if flags & modes.ISTRIP:
            character &= 0x7F
        if flags & modes.IUCLC and local & modes.IEXTEN and 65 <= character <= 90:
            character += 32
        if self._literal:
            self._literal = False
            self._put(character)
            return
        if self._controls(character):
            return
        if character == RETURN:
            if flags & modes.IGNCR:
                return
            if flags & modes.ICRNL:
                character = NEWLINE
        elif character == NEWLINE and flags & modes.INLCR:
            character = RETURN
        if not local & modes.ICANON or not self._edits(character):
            self._put(character)

    def _controls(self, character: int) -> bool:
        """Flow and signals, which act whatever is being typed."""
        current = self.modes
        if current.input & modes.IXON:
            if current.is_for(character, modes.VSTART):
                self.start()
                return True
            if current.is_for(character, modes.VSTOP):
                self.stop()
                return True
            if self.stopped and current.input & modes.IXANY:
                self.start()
        if not current.local & modes.ISIG:
            return False
        for function, signal in SIGNALS:
            if current.is_for(character, function):
                self._signal(signal)
                if not current.local & modes.NOFLSH:
                    self.flush()
                    self._held.clear()
                    self._echoes = bytearray()
                if current.input & modes.IXON:
                    self.start()
                if current.local & modes.ECHO:
                    self._echo(character)
                return True
        return False

    def _edits(self, character: int) -> bool:
        """What has a meaning in a line."""
        current, local = self.modes, self.modes.local
        extended = bool(local & modes.IEXTEN)
        if current.is_for(character, modes.VERASE):
            self._erase(character)
        elif current.is_for(character, modes.VKILL):
            self._kill(character)
        elif extended and current.is_for(character, modes.VWERASE):
            self._erase_word()
        elif extended and current.is_for(character, modes.VLNEXT):
            self._literal = True
            if local & modes.ECHO and local & modes.ECHOCTL:
                self.write(b"^\b")
        elif extended and local & modes.ECHO and current.is_for(character, modes.VREPRINT):
            self._echo(character)
            self.write(b"\n")
            for typed in self._line:
                self._echo(typed)
        elif character == NEWLINE:
            if local & (modes.ECHO | modes.ECHONL):
                self.write(b"\n")
            self._end_line(b"\n")
        elif current.is_for(character, modes.VEOF):
            self._end_line(b"")
        elif current.is_for(character, modes.VEOL) or (extended and current.is_for(character, modes.VEOL2)):
            if local & modes.ECHO:
                self._echo(character)
            self._end_line(bytes((character,)))
        else:
            return False
        return True

    def _end_line(self, end: bytes) -> None:
        self._lines.append(self._line + end)
        self._complete_bytes += len(self._lines[-1])
        self._line = bytearray()

    def _put(self, character: int) -> None:
        if self._typed_bytes() >= INPUT_BYTES - 1:
            if self.modes.input & modes.IMAXBEL:
                self._out(bytes((BELL,)))
            return
        if not self._line:
            self._line_column = self._column
        self._line.append(character)
        if self.modes.local & modes.ECHO:
            self._echo(character)

    # ---- taking back

    def _erase(self, character: int) -> None:
        if not self._line:
            return
        erased = self._drop_character()
        if not self.modes.local & modes.ECHO:
            return
        if self.modes.local & modes.ECHOE:
            self._rub_out(erased)
        else:
            self._echo(character)

    def _drop_character(self) -> int:
        """The last one, with all its bytes; its first byte."""
        while True:
            last = self._line.pop()
            continues = self.modes.input & modes.IUTF8 and last & 0xC0 == 0x80
            if not continues or not self._line:
                return last

    def _rub_out(self, erased: int) -> None:
        """It disappears from the terminal. How wide a tab was follows from what is before it."""
        if erased == TAB:
            column = self._line_column
            for typed in self._line:
                column = self._column_after(column, typed)
            count = max(self._column - column, 0)
            self._out(b"\b" * count)
            self._column -= count
            return
        width = 1
        if _is_control(erased):
            width = 2 if self.modes.local & modes.ECHOCTL else 0
        if width:
            self.write(b"\b \b" * width)

    def _column_after(self, column: int, character: int) -> int:
        if character == TAB:
            return column - column % TAB_COLUMNS + TAB_COLUMNS
        if _is_control(character):
            return column + (2 if self.modes.local & modes.ECHOCTL else 0)
        return column if self.modes.input & modes.IUTF8 and character & 0xC0 == 0x80 else column + 1

    def _kill(self, character: int) -> None:
        local = self.modes.local
        if local & modes.ECHO and local & modes.ECHOK and local & modes.ECHOKE and local & modes.ECHOE:
            while self._line:
                self._rub_out(self._drop_character())
            return
        self._line.clear()
        if local & modes.ECHO:
            self._echo(character)
            if local & modes.ECHOK:
                self.write(b"\n")

    def _erase_word(self) -> None:
        in_word = False
        while self._line:
            last = self._line[-1]
            belongs = bytes((last,)).isalnum() or last == ord("_") or last & 0x80
            if in_word and not belongs:
                return
            in_word = in_word or bool(belongs)
            erased = self._drop_character()
            if self.modes.local & modes.ECHO:
                self._rub_out(erased)

    # ---- what appears

    def _echo(self, character: int) -> None:
        if self.modes.local & modes.ECHOCTL and _is_control(character) and character != TAB:
            self.write(bytes((ord("^"), character ^ 0x40)))
        else:
            self.write(bytes((character,)))

    def write(self, data: bytes) -> None:
        """What a program writes, or an echo."""
        flags = self.modes.output
        if flags not in PLAIN_OUTPUT:
            data = b"".join(map(self._processed, data))
        else:
            if flags & modes.ONLCR:
                data = data.replace(b"\n", b"\r\n")
            self._follow(data)
        self._out(data)

    def _out(self, data: bytes) -> None:
        if self._echoes is None:
            self._show(data)
        else:
            self._echoes += data

    def _processed(self, character: int) -> bytes:
        flags = self.modes.output
        shown = bytes((character,))
        if flags & modes.OPOST:
            if character == NEWLINE and flags & modes.ONLCR:
                shown = b"\r\n"
            elif character == RETURN:
                if flags & modes.ONOCR and not self._column:
                    return b""
                if flags & modes.OCRNL:
                    shown = b"\n"
            elif character == TAB and flags & modes.TABDLY == modes.XTABS:
                shown = b" " * (TAB_COLUMNS - self._column % TAB_COLUMNS)
            elif flags & modes.OLCUC:
                shown = shown.upper()
        self._follow(shown)
        if character == NEWLINE and flags & modes.ONLRET:
            self._column = 0
        return shown

    def _follow(self, shown: bytes) -> None:
        """In which column it ends."""
        start = shown.rfind(b"\r") + 1
        column = 0 if start else self._column
        rest = shown[start:]
        if rest.isascii() and rest.isalnum():
            self._column = column + len(rest)
            return
        for character in rest:
            if character == BACKSPACE:
                column = max(column - 1, 0)
            elif character == TAB:
                column += TAB_COLUMNS - column % TAB_COLUMNS
            elif not _is_control(character) and not (self.modes.input & modes.IUTF8 and character & 0xC0 == 0x80):
                column += 1
        self._column = column


def _is_control(character: int) -> bool:
    return character < 32 or character == DELETE
