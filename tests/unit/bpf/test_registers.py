"""struct pt_regs as programs at kprobes have it."""

from __future__ import annotations

import struct

import pytest

from emulator.linux.arch import architecture
from perfcore.abi.pt_regs import PT_REGS
from perfcore.bpf.registers import kernel_registers

FUNCTION = 0xFFFF_8000_1234_5000


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_a_function_of_the_kernel_begins_and_returns(isa: str) -> None:
    """x86-64's stop is an instruction of one byte, and its kernel's selectors are 0x10 and 0x18."""
    of = architecture(isa)
    first = of.register_names.index({"aarch64": "x0", "x86_64": "rdi"}[isa])

    def seen(address: int | None, others: int) -> dict[str, int]:
        """What is not 0."""
        data = kernel_registers(of, lambda number: 7 if number == first else others, address)
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        return {saved.name: word for saved, word in zip(PT_REGS[isa], words, strict=True) if word}

    if isa == "aarch64":
        assert seen(FUNCTION, 0) == {"x0": 7, "pc": FUNCTION}
        assert seen(None, 9) == {"x0": 7}
    else:
        selectors = {"cs": 0x10, "ss": 0x18, "orig_ax": (1 << 64) - 1}
        assert seen(FUNCTION, 0) == {"di": 7, "ip": FUNCTION + 1} | selectors
        assert seen(None, 9) == {"ax": 9} | selectors
