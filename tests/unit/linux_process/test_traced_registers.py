"""Registers that a tracer reads and writes: x86-64's as natively, AArch64's as its kernel's source has them."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux

SOURCE = Path(__file__).with_name("traced_registers.c")
AARCH64 = [  # arch/arm64/kernel/ptrace.c, without a debug register: sizes in bytes, and errnos
    "debug registers: 264 0",  # struct user_hwdebug_state: 8 + 16 * 16
    "how many: 1536 0",  # 0x600: Armv8, none
    "one: -1 28",  # ENOSPC
    "debug registers: 264 0",
    "how many: 1536 0",
    "one: -1 28",
    "TLS: 8 0",
    "TLS is set: 1 0",
    "FPSIMD: 528 0",  # 32 * 16 + 2 * 4, and 8 of padding
    "unknown: -1 22",  # EINVAL
    "user area: -1 5",  # EIO
    "registers: 272 0",  # 34 * 8
    "x7 at the entry: 0 0",
    "PSTATE: -1 22",  # EINVAL
    "number: 4 0",
    "getppid: 1 0",
    "number: 0 0",
    "x7 at the exit: 1 0",
    "registers: 0 0",
    "end: 7 0",
]


@pytest.mark.skipif(same_as_linux.HOST_ISA != "x86_64", reason="the host is no x86-64 machine")
def test_x86_registers_are_as_natively(tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, "x86_64")
    assert printed == same_as_linux.native(SOURCE, tmp_path)
    assert len(printed) > 20
    assert messages == []


def test_aarch64_registers_are_as_the_kernel_has_them(tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, "aarch64")
    assert printed == AARCH64
    assert messages == []
