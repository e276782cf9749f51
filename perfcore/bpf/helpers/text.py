"""What bpf_trace_printk() and bpf_snprintf() make of a format and numbers: bpf_bprintf_prepare() and vsnprintf()."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from emulator.linux.errors import EINVAL, LinuxError
from perfcore.bpf.instructions import signed

_FORMAT = re.compile(rb"%(?:(%)|([-+ #0]*)(\d*)(?:\.(\d+))?(ll|l|z|hh|h)?([diuxXcsp])(ks|us|B|S|K|x|X)?)")
_BITS = {b"": 32, b"hh": 8, b"h": 16, b"l": 64, b"ll": 64, b"z": 64}
_LONGEST = 512  # bytes of a string or a field's width

ReadString = Callable[[int, bool], bytes]
"""At an address; whether that is the user's."""


def formatted(format: bytes, values: Sequence[int], read_string: ReadString) -> bytes:
    """EINVAL where the format is not one, or wants more numbers than there are."""
    parts: list[bytes] = []
    left = iter(values)
    at = 0
    while (start := format.find(b"%", at)) >= 0:
        found = _FORMAT.match(format, start)
        if found is None:
            raise LinuxError(EINVAL, f"format {format!r}: what stands at {start} is no conversion")
        parts.append(format[at:start])
        at = found.end()
        parts.append(b"%" if found[1] else _converted(found, left, format, read_string))
    parts.append(format[at:])
    return b"".join(parts)


def _converted(found: re.Match[bytes], left: object, format: bytes, read_string: ReadString) -> bytes:
    value = next(left, None)  # type: ignore[call-overload]
    if value is None:
        raise LinuxError(EINVAL, f"format {format!r} has more conversions than there are numbers")
    flags, width, conversion, kind = found[2], found[3], found[6], found[7] or b""
    if len(width) > 3 or int(width or 0) > _LONGEST:
        raise LinuxError(EINVAL, f"format {format!r}: a field of {width!r} characters")
    if conversion == b"s" or kind in (b"ks", b"us"):
        text = read_string(value, kind == b"us")
        if found[4] is not None:
            text = text[: int(found[4])]
        return text.ljust(int(width or 0)) if b"-" in flags else text.rjust(int(width or 0))
    if conversion == b"p":
        return f"{value:016x}".encode().rjust(int(width or 0))
    if conversion == b"c":
        return bytes([value & 0xFF]).rjust(int(width or 0))
    bits = _BITS[found[5] or b""]
    number = signed(value, bits) if conversion in b"di" else value & (1 << bits) - 1
    as_python = flags.decode() + (width.decode() or "")
    return f"%{as_python}{'d' if conversion in b'diu' else conversion.decode()}".encode() % number
