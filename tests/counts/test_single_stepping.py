"""A second opinion from the host's own processor: x86-64 guests single-stepped by ptrace retire what ours retire.

After each iteration of a REP string instruction the trap flag stops with RIP still on it; when RIP moves on, it has
retired.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import require
from attribution import start_attribution, tally
from emulator.cpu import ExitReason
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.linux.sched.timers import FOREVER
from emulator.machine import MachineConfig
from guests import guest

PTRACE_TRACEME, PTRACE_PEEKUSER, PTRACE_SINGLESTEP = 0, 3, 9
RIP = 16 * 8  # in struct user, sys/user.h
MOST_INSTRUCTIONS = 400_000
# Small enough to be stepped to their end; between them every kind of branch, REP, LOCK, and code that changes itself.
WHOLE = ("branch_patterns", "locked_operations", "loop_1k", "memory_access", "page_crossing", "recursion",
         "self_modifying", "string_instructions")  # fmt: skip
# instructions_rep: call and 5 before the loop, then 3 rounds of mov, mov, rep stosb, inc, dec, jnz
REP_INSTRUCTIONS, REP_STEPS = 1 + 5 + 3 * 6, 1 + 5 + 3 * (5 + 16_384)


@dataclass
class Stepper:
    """A process of the host that executes one instruction, or one iteration, at a time."""

    process: subprocess.Popen[bytes]
    steps: int = 0

    @classmethod
    def start(cls, path: Path) -> Stepper:
        """`path`, stopped at its first instruction."""
        if platform.machine() != "x86_64":
            require.missing("an x86-64 processor is needed to step x86-64 code")
        traced = partial(ptrace, PTRACE_TRACEME, 0)
        process = subprocess.Popen([path], stdout=subprocess.DEVNULL, preexec_fn=traced, env={})
        stepper = cls(process)
        if not stepper.wait():
            require.missing("ptrace is not allowed here")
        return stepper

    def wait(self) -> bool:
        """It has stopped, not ended."""
        _, status = os.waitpid(self.process.pid, 0)
        if os.WIFSTOPPED(status):
            assert os.WSTOPSIG(status) == signal.SIGTRAP
            return True
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return False

    def step(self) -> bool:
        ptrace(PTRACE_SINGLESTEP, self.process.pid)
        self.steps += 1
        return self.wait()

    @property
    def pc(self) -> int:
        return ptrace(PTRACE_PEEKUSER, self.process.pid, RIP)


def ptrace(request: int, pid: int, address: int = 0) -> int:
    return int(_libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address), None))


_libc = ctypes.CDLL(None)
_libc.ptrace.restype = ctypes.c_long


def retired_on_the_host(path: Path, instructions: int) -> tuple[Counter[int], int]:
    """How often the instruction at each address retired among the first `instructions`, and the steps that took."""
    counts: Counter[int] = Counter()
    stepper = Stepper.start(path)
    at = stepper.pc
    for _ in range(instructions):
        while (running := stepper.step()) and stepper.pc == at:
            pass  # one more iteration
        counts[at] += 1
        if not running:
            return counts, stepper.steps
        at = stepper.pc
    stepper.process.kill()
    stepper.process.wait()
    return counts, stepper.steps


def retired_here(path: Path, until: int = FOREVER) -> Counter[int]:
    """The same on our machine, up to its cycle `until`."""
    machine = LinuxMachine(MachineConfig("x86_64"))
    with open(os.devnull, "wb") as nowhere:
        machine.start(Program(str(path), (str(path),), stdout=nowhere.fileno()))
        core = machine.cpus[0].core
        start_attribution(core)
        if until == FOREVER:
            machine.run()
        else:
            while core.cycles < until:
                if ExitReason(core.run(until)) is ExitReason.FAULT:
                    machine.kernel.handle_fault(machine.cpus[0])
    return tally(core)


@pytest.mark.parametrize("name", WHOLE)
def test_the_host_retires_the_same_instructions(name: str) -> None:
    program = guest(name, "x86_64")
    counts, _ = retired_on_the_host(program.path, MOST_INSTRUCTIONS)
    assert counts.total() == program.counts["INST_RETIRED"]
    assert counts == retired_here(program.path)


def test_the_host_retires_rep_once() -> None:
    program = guest("instructions_rep", "x86_64")
    counts, steps = retired_on_the_host(program.path, REP_INSTRUCTIONS)
    assert (counts.total(), steps) == (REP_INSTRUCTIONS, REP_STEPS)
    assert sorted(counts.values()) == [1] * 6 + [3] * 6
    assert counts == retired_here(program.path, until=REP_INSTRUCTIONS)
