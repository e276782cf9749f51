"""What declarations of registers say besides bits: the comments behind fields, and where the register is found."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache

from emulator.sysregs import ConfigurationWord, Csr, Encoding, Msr
from pmu.register import Field, OnWrite, Register

_FIELD = re.compile(r"\s+(\w+) = (?:RW|RO|WO|W1S|W1C)\([^#]*\)\s+# (.+)")


def notes(register: type[Register]) -> Mapping[str, str]:
    """By field; those that have one. Empty where Python has no sources."""
    return _notes(register.__mro__)


@cache
def _notes(classes: tuple[type, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for each in reversed(classes):
        if not issubclass(each, Register) or each is Register:
            continue
        try:
            lines = inspect.getsource(each).splitlines()
        except (OSError, TypeError):
            continue
        found |= {match[1]: match[2] for line in lines if (match := _FIELD.fullmatch(line)) is not None}
    return found


def title(register: type[Register]) -> str:
    """The first sentence of its docstring."""
    text = " ".join((register.__doc__ or "").split())
    return re.split(r"\. (?=[A-Z])|\.$", text, maxsplit=1)[0]


def place(encoding: Encoding) -> str:
    """How an instruction names it: ``S3_3_C9_C12_0``, ``MSR 0x186``, ``CSR 0x200``, ``CPUCFG 6``."""
    match encoding:
        case Msr(index):
            return f"MSR {index:#x}"
        case Csr(number):
            return f"CSR {number:#x}"
        case ConfigurationWord(number):
            return f"CPUCFG {number}"
    return "S{}_{}_C{}_C{}_{}".format(*encoding)


def access(field: Field) -> str:
    """RW, RO, WO, W1S or W1C; ``W1S, WO``: which reads as zero."""
    kind = {
        OnWrite.STORE: "RW",
        OnWrite.IGNORE: "RO",
        OnWrite.COMMAND: "WO",
        OnWrite.SET: "W1S",
        OnWrite.CLEAR: "W1C",
    }[field.on_write]
    return kind if field.readable or kind == "WO" else f"{kind}, WO"


def bits(hi: int, lo: int) -> str:
    return f"{hi}" if hi == lo else f"{hi}:{lo}"


def undeclared(register: type[Register]) -> list[str]:
    """The bits that no field has, highest first."""
    runs: list[str] = []
    high: int | None = None
    for bit in range(63, -2, -1):
        free = bit >= 0 and not register.declared >> bit & 1
        if free and high is None:
            high = bit
        elif not free and high is not None:
            runs.append(bits(high, bit + 1))
            high = None
    return runs
