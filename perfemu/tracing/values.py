"""Shapes: how one argument of a system call becomes text, as strace(1) writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from emulator.linux.errors import LinuxError
from emulator.linux.signals.signal import NAMES as SIGNALS
from emulator.linux.signals.signal import NSIG, SIGRTMIN
from perfemu.tracing.callers import Caller
from perfemu.tracing.constants import FILE_TYPES, MODE_BITS, OPEN, OPEN_ACCESS, Names

LARGEST_ERRNO = 4095
LONGEST_STRING = 4096  # bytes that are looked at to find the end of a string
MOST_ITEMS = 32  # of an array

_ESCAPES = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


@dataclass(frozen=True, slots=True)
class View:
    """What a shape sees: a call at its beginning (`result` is None) or at its end."""

    task: Caller
    arguments: tuple[int, ...]
    result: int | None
    longest: int = MOST_ITEMS  # characters of a string, items of an array
    names_files: bool = False
    unread: list[int] = field(default_factory=list)  # addresses at which nothing was found

    @property
    def isa(self) -> str:
        return self.task.architecture.isa

    @property
    def failed(self) -> bool:
        return self.result is not None and -LARGEST_ERRNO <= self.result < 0

    def peek(self, address: int, size: int) -> bytes | None:
        """The guest's memory, undisturbed. None where it may not read, or the host does not give a mapped file."""
        try:
            data = self.task.mm.peek(address, size) if size else b""
        except LinuxError:
            data = None
        if data is None:
            self.unread.append(address)
        return data

    def number(self, address: int, size: int) -> int | None:
        data = self.peek(address, size)
        return None if data is None else int.from_bytes(data, "little")

    def string(self, address: int) -> tuple[bytes, bool] | None:
        """A string, and whether it ends where it was looked at; None where there is none."""
        data = b""
        while len(data) < LONGEST_STRING:
            count = 4096 - (address + len(data)) % 4096
            piece = self.peek(address + len(data), count)
            if piece is None:
                return None
            end = piece.find(b"\0")
            if end >= 0:
                return data + piece[:end], True
            data += piece
        return data[:LONGEST_STRING], False


Show = Callable[[View, int], str]


@dataclass(frozen=True, slots=True)
class Shape:
    """`out`: what it shows is there when the call is over."""

    show: Show
    out: bool = False


# ---- numbers


def signed(raw: int, bits: int) -> int:
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if raw >> (bits - 1) else raw


def hexadecimal(raw: int) -> str:
    return f"{raw:#x}" if raw else "0"


def pointer(raw: int) -> str:
    return f"{raw:#x}" if raw else "NULL"


INT = Shape(lambda view, raw: str(signed(raw, 32)))
UNSIGNED = Shape(lambda view, raw: str(raw & 0xFFFF_FFFF))
LONG = Shape(lambda view, raw: str(signed(raw, 64)))
UNSIGNED_LONG = Shape(lambda view, raw: str(raw))
HEX = Shape(lambda view, raw: hexadecimal(raw))
HEX32 = Shape(lambda view, raw: hexadecimal(raw & 0xFFFF_FFFF))
ADDRESS = Shape(lambda view, raw: pointer(raw))
RESULT_ADDRESS = Shape(lambda view, raw: pointer(raw), out=True)
OCTAL = Shape(lambda view, raw: octal(raw & 0xFFFF_FFFF))


def octal(mode: int) -> str:
    return (f"0{mode:o}" if mode else "0").zfill(3)


def file_mode(mode: int) -> str:
    kind = FILE_TYPES.get(mode & 0o170000)
    names = [kind] if kind is not None else []
    names += [name for bit, name in MODE_BITS.items() if mode & bit]
    return "|".join((*names, octal(mode & 0o777)))


MODE = Shape(lambda view, raw: octal(raw & 0xFFFF_FFFF) if raw & 0xFFFF_FFFF < 0o10000 else file_mode(raw & 0xFFFF))
NODE_MODE = Shape(lambda view, raw: file_mode(raw & 0xFFFF))

# ---- names


def flags(names: Names, value: int, first: Names | None = None, nothing: str = "0") -> str:
    """Set bits by name. `first`: what the bits that are not in `names` say, by value."""
    found = []
    rest = value
    if first is not None:
        mask = 0
        for number in first:
            mask |= number
        kind = first.get(rest & mask)
        if kind is not None:
            found.append(kind)
            rest &= ~mask
    for bits, name in names.items():
        if bits and rest & bits == bits:
            found.append(name)
            rest &= ~bits
    if rest:
        found.append(f"{rest:#x}")
    return "|".join(found) or nothing


def choice(names: Names, value: int, prefix: str) -> str:
    return names.get(value) or f"{hexadecimal(value & 0xFFFF_FFFF)} /* {prefix}_??? */"


def bits_of(names: Names, nothing: str = "0", bits: int = 32, first: Names | None = None) -> Shape:
    mask = (1 << bits) - 1
    return Shape(lambda view, raw: flags(names, raw & mask, first, nothing))


def one_of(names: Names, prefix: str) -> Shape:
    return Shape(lambda view, raw: choice(names, signed(raw, 32), prefix))


def signal_name(number: int) -> str:
    if SIGRTMIN <= number <= NSIG:
        return "SIGRTMIN" if number == SIGRTMIN else f"SIGRT_{number - SIGRTMIN}"
    return SIGNALS.get(number, str(number))


def signal_set(mask: int) -> str:
    """``[INT CHLD]``, or what is missing: ``~[KILL STOP]``."""
    present = [number for number in range(1, NSIG + 1) if mask >> (number - 1) & 1]
    inverted = len(present) > NSIG * 2 // 3
    shown = sorted(set(range(1, NSIG + 1)) - set(present)) if inverted else present
    names = [_short_signal(number) for number in shown]
    return f"{'~' if inverted else ''}[{' '.join(names)}]"


def _short_signal(number: int) -> str:
    return "RTMIN" if number == SIGRTMIN else signal_name(number).removeprefix("SIG")


SIGNAL = Shape(lambda view, raw: signal_name(signed(raw, 32)))

# ---- strings


def quoted(data: bytes, cut: bool = False) -> str:
    """As C writes it; all in hex where more than text is in a short piece of random bytes."""
    return f'"{_escape(data)}"{"..." if cut else ""}'


def _escape(data: bytes) -> str:
    pieces = []
    for index, byte in enumerate(data):
        known = _ESCAPES.get(byte)
        if known is not None:
            pieces.append(known)
        elif 32 <= byte < 127:
            pieces.append(chr(byte))
        else:
            digit_follows = index + 1 < len(data) and chr(data[index + 1]) in "01234567"
            pieces.append(f"\\{byte:03o}" if digit_follows else f"\\{byte:o}")
    return "".join(pieces)


def in_hex(data: bytes, cut: bool = False) -> str:
    text = "".join(f"\\x{byte:02x}" for byte in data)
    return f'"{text}"{"..." if cut else ""}'


def buffer_text(view: View, address: int, size: int) -> str:
    """`size` bytes at an address, as many as a line has room for."""
    if not address:
        return "NULL"
    data = view.peek(address, min(size, view.longest))
    return pointer(address) if data is None else quoted(data, size > view.longest)


def string_text(view: View, address: int, longest: int | None = None) -> str:
    if not address:
        return "NULL"
    found = view.string(address)
    if found is None:
        return pointer(address)
    data, ended = found
    limit = LONGEST_STRING if longest is None else longest
    return quoted(data[:limit], len(data) > limit or not ended)


PATH = Shape(lambda view, raw: string_text(view, raw))
TEXT = Shape(lambda view, raw: string_text(view, raw, view.longest))


def bytes_in(size_index: int) -> Shape:
    """Bytes that the call reads, as many as another argument says."""
    return Shape(lambda view, raw: buffer_text(view, raw, view.arguments[size_index]))


def bytes_out(show: Callable[[View, int, int], str] = buffer_text) -> Shape:
    """Bytes that the call has written, as many as its result says."""
    return Shape(
        lambda view, raw: pointer(raw) if view.failed or view.result is None else show(view, raw, view.result), out=True
    )


# ---- descriptors


def descriptor_text(view: View, number: int) -> str:
    if view.names_files and number in view.task.files.descriptors():
        return f"{number}<{_path_text(view.task.files.get(number).path)}>"
    return str(number)


def _path_text(path: str) -> str:
    """A guest's names may have anything in them: their control characters shall not reach the user's terminal."""
    return _escape(path.encode("utf-8", "surrogateescape"))


DESCRIPTOR = Shape(lambda view, raw: descriptor_text(view, signed(raw, 32)))


def _directory(view: View, raw: int) -> str:
    number = signed(raw, 32)
    if number != -100:  # AT_FDCWD, uapi/linux/fcntl.h
        return descriptor_text(view, number)
    return f"AT_FDCWD<{_path_text(view.task.fs.cwd)}>" if view.names_files else "AT_FDCWD"


DIRECTORY = Shape(_directory)

# ---- what is at an address

Read = Callable[[View, bytes], str]


def structure(size: int, read: Read, out: bool = False) -> Shape:
    """A structure of `size` bytes; its address where the call failed, or where it cannot be read."""

    def show(view: View, raw: int) -> str:
        if not raw:
            return "NULL"
        if out and (view.failed or view.result is None):
            return pointer(raw)
        data = view.peek(raw, size)
        return pointer(raw) if data is None else read(view, data)

    return Shape(show, out)


def array(item_size: int, count: Callable[[View], int], read: Read, out: bool = False) -> Shape:
    """Structures one behind the other."""

    def show(view: View, raw: int) -> str:
        number = count(view)
        if not raw:
            return "NULL"
        if number < 0 or (out and view.failed):
            return pointer(raw)
        shown = min(number, view.longest)
        data = view.peek(raw, shown * item_size)
        if data is None:
            return pointer(raw)
        items = [read(view, data[at : at + item_size]) for at in range(0, len(data), item_size)]
        return f"[{', '.join((*items, '...') if number > shown else items)}]"

    return Shape(show, out)


# ---- what more than one file needs


def open_flags(isa: str, value: int) -> str:
    return flags(OPEN[isa], value & 0xFFFF_FFFF, OPEN_ACCESS)


OPEN_FLAGS = Shape(lambda view, raw: open_flags(view.isa, raw))
