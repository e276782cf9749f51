"""demangle: C++ and Rust symbols as perf shows them, names without parameter lists.

The C++ demangler is libstdc++'s own, `__cxa_demangle`: it is in the process anyway, since the native core is C++.
(PyPI's itanium_demangler prints constructors, qualifiers and nested templates differently; cxxfilt is a wrapper of the
same call.)
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

from perfemu.symbols.rust import demangle_v0
from perfemu.visible import visible

_RUST = re.compile(r"_ZN.*17h[0-9a-f]{16}E(?=$|\.)")
_RUST_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_RUST_ESCAPE = re.compile(r"\$(?:([A-Z]+)|u([0-9a-f]+))\$")
_QUALIFIERS = re.compile(r"( const| volatile| &&?)+$")
_SPECIAL = ("T", "G")  # vtables, thunks, guards, clones: names of another form
_LONGEST = 2000  # characters; longer names are left as they are


@cache
def _cxa_demangle() -> Callable[[bytes], str | None]:
    """The library's function, or one that knows no name where there is no libstdc++."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        libc = ctypes.CDLL(None)
    except OSError:
        return lambda _: None
    function = library["__cxa_demangle"]
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    free = libc.free
    free.argtypes = (ctypes.c_void_p,)

    def demangled(name: bytes) -> str | None:
        text = function(name, None, None, None)
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            free(text)

    return demangled


@cache
def demangle(name: str) -> str:
    """The readable name, or `name` itself where it is not mangled; fit for a terminal."""
    return visible(_demangled(name))


def _demangled(name: str) -> str:
    if name.startswith("_R") and len(name) <= _LONGEST:
        return demangle_v0(name) or name
    if not name.startswith("_Z") or len(name) > _LONGEST or not name.isascii():
        return name
    if rust := _RUST.match(name):
        text = _cxa_demangle()(rust[0].encode())
        return name if text is None else _rust(text.rpartition("::")[0])
    symbol, _, suffix = name.partition(".")  # GCC's clones: .part.0, .constprop.0, .cold
    special = symbol[2:3] in _SPECIAL
    text = _cxa_demangle()(symbol.encode()) if special else _without_parameters(symbol)
    if text is None:
        return name
    return f"{text} [clone .{suffix}]" if suffix else text


def _without_parameters(symbol: str) -> str | None:
    """Demangle only the <name> of `_Z <name> <types>`: the shortest part of the symbol that is a whole name."""
    demangled = _cxa_demangle()
    for end in range(4, len(symbol) + 1):
        if symbol[end : end + 1] == "I":
            continue  # template arguments follow: they belong to the name
        text = demangled(symbol[:end].encode())
        if text is not None:
            return _QUALIFIERS.sub("", text)
    return None


def _rust(text: str) -> str:
    """Undo the escapes of Rust's legacy mangling, as in `_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$...`."""
    parts = []
    for part in text.split("::"):
        if part.startswith("_$"):
            part = part[1:]
        parts.append(_RUST_ESCAPE.sub(_rust_escape, part).replace("..", "::"))
    return "::".join(parts)


def _rust_escape(match: re.Match[str]) -> str:
    if match[2]:
        code = int(match[2], 16)
        return chr(code) if code < 0x110000 else match[0]
    return _RUST_ESCAPES.get(match[1], match[0])
