"""The words of the runner's state for x86-64 (runner/x86_64.c), and what rows of the table may ignore of them."""

from __future__ import annotations

from tests.instructions.protocol import FAULT_WORDS, Layout, States

GENERAL = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
_IMAGE = (
    "x87_words", "x87_ip", "x87_dp", "mxcsr",
    *(f"st{number}{part}" for number in range(8) for part in ("", "_exponent")),
    *(f"xmm{number}{part}" for number in range(16) for part in ("", "_high")),
    *(f"unused{number}" for number in range(12)),
)  # fmt: skip
LAYOUT = Layout((*GENERAL, "rflags", "second_way", "fs_base", "gs_base", *_IMAGE))

_RFLAGS = {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "OF": 11}
_X87_STATUS = {"IE": 0, "DE": 1, "ZE": 2, "OE": 3, "UE": 4, "PE": 5, "SF": 6, "ES": 7, "C0": 8, "C1": 9, "C2": 10,
               "TOP": 11, "C3": 14, "B": 15}  # fmt: skip
_MXCSR = {"IE": 0, "DE": 1, "ZE": 2, "OE": 3, "UE": 4, "PE": 5}
_EVERYTHING = (1 << 64) - 1

Place = tuple[tuple[int, int], ...]


def _bits(word: str, bits: dict[str, int], shift: int = 0) -> dict[str, Place]:
    index = LAYOUT.index(word)
    return {name: ((index, 1 << shift + bit),) for name, bit in bits.items()}


def _whole(*words: str) -> dict[str, Place]:
    return {"all": tuple((LAYOUT.index(word), _EVERYTHING) for word in words)}


PLACES: dict[str, dict[str, Place]] = {
    "rflags": _bits("rflags", _RFLAGS),
    "mxcsr": _bits("mxcsr", _MXCSR),
    "x87_status": _bits("x87_words", _X87_STATUS, 16),
    "x87_tags": {"all": ((LAYOUT.index("x87_words"), 0xFF << 32),)},
    "fault": _whole("signal", "si_code", "si_addr"),
    "address": _whole("si_addr"),
    "pc": _whole("pc"),
    **{name: _whole(name) for name in GENERAL},
}


def signal(states: States) -> int:
    return states.after[0]


def extended(state: tuple[int, ...], number: int) -> tuple[int, int]:
    """Significand and exponent (with sign) of ST(number)."""
    index = LAYOUT.index(f"st{number}")
    return state[index], state[index + 1] & 0xFFFF


assert FAULT_WORDS == 4
