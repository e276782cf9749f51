"""Kernel.user_breakpoints, which ptrace has its hardware breakpoints from."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import Cpu
from emulator.linux.debug_registers import HW_BREAKPOINT_X
from emulator.linux.errors import EINVAL, ENOSPC, LinuxError
from emulator.linux.user_breakpoints import Place
from perfemu.guest import Guest
from perfemu.session import Session

LOOP = Path(__file__).parents[3] / "guest_programs" / "loop_1k" / "x86_64.elf"
DEC, JNE = 0x401005, 0x401007  # the loop's two instructions, executed 1000 times each


def test_one_is_registered_moved_and_given_back() -> None:
    session = Session(Guest([LOOP], core="ideal"))
    kernel = session.machine.kernel
    assert kernel.user_breakpoints is not None
    task = kernel.lifecycle.first
    hits: list[int] = []
    code = Place(DEC, 8, HW_BREAKPOINT_X)

    def triggered(cpu: Cpu) -> None:
        hits.append(cpu.core.pc)
        if len(hits) == 10:
            breakpoint.modify(code._replace(address=JNE))
        if len(hits) == 30:
            breakpoint.unregister()

    breakpoint = kernel.user_breakpoints.register(task, code, triggered)
    with pytest.raises(LinuxError) as bad:
        breakpoint.modify(code._replace(length=4))
    assert bad.value.code == EINVAL
    others = [kernel.user_breakpoints.register(task, code._replace(disabled=True), triggered) for _ in range(3)]
    with pytest.raises(LinuxError) as full:
        kernel.user_breakpoints.register(task, code, triggered)
    assert full.value.code == ENOSPC
    for other in others:
        other.unregister()
    session.run()
    assert hits == [DEC] * 10 + [JNE] * 20
