"""Random guests: random bytes as code, and random syscalls with random arguments, for both ISAs, from a seed.

As a script it goes on for a time: ``python -m end_to_end.random_guests [SECONDS [FIRST_SEED]]`` in tests/. What it
prints is enough to do the same again.
"""

from __future__ import annotations

import os
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

from emulator.cpu import ExceptionKind, ExitReason, TrapKind
from emulator.linux.arch.x86_64 import R8, R9, R10, RAX, RDI, RDX, RSI
from emulator.linux.errors import LinuxError
from emulator.linux.kernel import Kernel
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIGKILL
from emulator.linux.syscalls import table
from end_to_end.watching import MANY, MODELLED, Watch, observe
from perfemu.ending import Ending
from perfemu.guest import Guest
from perfemu.session import Session

ISAS = ("aarch64", "x86_64")
MACHINES = {"aarch64": 183, "x86_64": 62}
BASE = 0x400000
CODE_OFFSET = 0x1000
CODE_BYTES = 0x2000
DATA_BYTES = 0x10000
DATA = BASE + CODE_OFFSET + CODE_BYTES
CYCLES = 200_000  # after these a guest that goes on is stopped
RWX = 7

# A start for code that runs a while: one instruction of each, of which random bits are flipped.
SEEDS_OF_CODE = {
    "aarch64": [
        struct.pack("<I", word)
        for word in (
            0x91000421,  # add x1, x1, #1
            0xF9400020,  # ldr x0, [x1]
            0xF9000020,  # str x0, [x1]
            0xA9BF7BFD,  # stp x29, x30, [sp, #-16]!
            0x54000041,  # b.ne +8
            0x94000002,  # bl +8
            0x14000002,  # b +8
            0xD61F0020,  # br x1
            0xD65F03C0,  # ret
            0x4E801C20,  # mov v0.16b, v1.16b ...
            0x1E602820,  # fadd d0, d1, d0
            0x9AC10801,  # udiv x1, x0, x1
            0xC85F7C20,  # ldxr x0, [x1]
            0xC8007C20,  # stxr w0, x0, [x1]
            0xD53BD040,  # mrs x0, tpidr_el0
            0xD53B9D00,  # mrs x0, pmccntr_el0
            0xD51B9C00,  # msr pmcr_el0, x0
            0xD4000001,  # svc #0
            0xD4200000,  # brk #0
            0xD4400000,  # hlt #0
            0xD50B7420,  # dc zva, x0
            0xD5033FDF,  # isb
            0xB8616820,  # ldr w0, [x1, x1]
            0x4C407000,  # ld1 {v0.16b}, [x0]
            0xC8200420,  # ldaxp-like
            0xF8200020,  # ldadd x0, x0, [x1]
            0x37000040,  # tbnz w0, #0, +8
            0xB4000040,  # cbz x0, +8
        )
    ],
    "x86_64": [
        bytes.fromhex(code)
        for code in (
            "4883c001", "488b06", "488907", "488b0424", "50", "58", "c3", "e800000000", "eb00", "7500", "0f8400000000",
            "f3a4", "f348a5", "f3aa", "f2ae", "f3a6", "0f05", "0fa2", "0f31", "0f01f9", "0f33", "0f01d0", "cc", "cd80",
            "f4", "0f0b", "f7f1", "48f7f9", "0f6fc1", "660f6fc1", "0f28c1", "c5f877", "c5fc28c1", "660f3800c1", "d9e8",
            "dec1", "9b", "0fae00", "0fae08", "f0480fc101", "0fb00e", "480fc70e", "ff25", "ffe0", "ffd0", "c8000000",
            "c9", "64488b00", "65488b00", "8ed8", "0f20c0", "0f30", "fa", "e400", "9c", "9d", "48cf", "f1", "0fc7f0",
            "c20800", "62f17c4828c1", "66666690", "6c", "6e", "cf", "cb", "ea", "0f35", "0f34", "62", "e300", "e2fe",
            "f00fbae007", "f00fabc8", "f0660fa3c1", "d9c9", "d9fa", "660f70c01b", "660f3a63c118",
        )
    ],
}  # fmt: skip

REPETITIONS = (*[1] * 40, 2, 500)  # of an instruction: long runs of one kind, too


def elf(isa: str, code: bytes) -> bytes:
    """A static program: `code` is writable, and 64 KiB of zeros follow."""
    ident = b"\x7fELF\2\1\1" + bytes(9)
    entry = BASE + CODE_OFFSET
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, MACHINES[isa], 1, entry, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    size = CODE_OFFSET + len(code)
    load = struct.pack("<IIQQQQQQ", 1, RWX, 0, BASE, BASE, size, size + DATA_BYTES, 0x1000)
    return (header + load).ljust(CODE_OFFSET, b"\0") + code


def random_value(rng: random.Random) -> int:
    """For a register: an address of data or code, a small number, or anything."""
    kind = rng.randrange(8)
    if kind < 4:
        return DATA + rng.randrange(0, DATA_BYTES, 8)
    if kind == 4:
        return BASE + CODE_OFFSET + rng.randrange(0, CODE_BYTES, 4)
    if kind < 7:
        return rng.randrange(100)
    return rng.getrandbits(64)


def load_registers(isa: str, rng: random.Random) -> bytes:
    """Code that gives the general registers values with which much can be done."""
    code = bytearray()
    if isa == "aarch64":
        for register in range(30):
            value = random_value(rng)
            for part in range(4):  # movz, movk
                word = (0xF2800000 if part else 0xD2800000) | part << 21 | (value >> 16 * part & 0xFFFF) << 5 | register
                code += struct.pack("<I", word)
        return bytes(code)
    for register in (0, 1, 2, 3, 5, 6, 7, *range(8, 16)):  # but rsp: mov r64, imm64
        code += bytes([0x48 | register >> 3, 0xB8 | register & 7]) + struct.pack("<Q", random_value(rng))
    return bytes(code)


def random_code(isa: str, rng: random.Random) -> bytes:
    """Between pure noise and real instructions."""
    noise = rng.choice((0.0, 0.05, 0.3, 1.0))
    code = bytearray(load_registers(isa, rng))
    while len(code) < CODE_BYTES:
        if rng.random() < noise:
            code += rng.randbytes(rng.choice((1, 2, 4, 4, 8)) if isa == "x86_64" else 4)
            continue
        instruction = bytearray(rng.choice(SEEDS_OF_CODE[isa]))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            bit = rng.randrange(8 * len(instruction))
            instruction[bit // 8] ^= 1 << bit % 8
        code += instruction * rng.choice(REPETITIONS)
    return bytes(code[:CODE_BYTES])


def write_program(path: Path, isa: str, code: bytes) -> tuple[str, ...]:
    """Its argv."""
    path.write_bytes(elf(isa, code))
    path.chmod(0o755)
    return (str(path),)


def stop_after(kernel: Kernel, cycles: int) -> None:
    """Kill whatever runs then."""

    def stop() -> None:
        for task in list(kernel.tasks.values()):
            kernel.lifecycle.end_process(task.process, SIGKILL)

    kernel.add_timer(cycles, stop)


def run_code(isa: str, seed: int, directory: Path, core: str = "ideal") -> int:
    """Run random bytes until they end or `CYCLES` are over, and again while they are sampled; the exit status."""
    rng = random.Random(f"code {isa} {seed}")
    argv = write_program(directory / "code", isa, random_code(isa, rng))
    messages: list[str] = []

    def prepare(session: Session) -> None:
        session.machine.kernel.messages = messages.append
        stop_after(session.machine.kernel, CYCLES)

    period = rng.choice((1, 7, 97))
    ideal = (Watch("random", sample="instructions", period=period), Watch("many", count=MANY))
    alone = observe(argv, core=core, cwd=str(directory), before=prepare)
    for watch in ideal if core == "ideal" else MODELLED:
        other = observe(argv, watch, core=core, cwd=str(directory), before=prepare)
        assert alone.same_as(other), f"{watch}: {alone.difference(other)}"
    internal = [message for message in messages if "bug" in message]
    assert not internal, internal
    return Ending(alone.wait_status).exit_status


PIECES = 150
PIECE_CYCLES = 300


def run_pieces(isa: str, seed: int, directory: Path) -> dict[ExitReason, int]:
    """Run pieces of random code, each from its own start, and go on elsewhere after whatever stops one."""
    rng = random.Random(f"pieces {isa} {seed}")
    argv = write_program(directory / "pieces", isa, random_code(isa, rng))
    session = Session(Guest(argv, core="ideal", cwd=str(directory)))
    machine = session.machine
    if rng.randrange(2):
        Watch("random", sample="instructions", period=rng.choice((1, 3, 50))).open(session)
    machine.start(Program(argv[0], argv))
    core, kernel = machine.cpus[0].core, machine.kernel
    pc = PC[isa]
    reasons: dict[ExitReason, int] = {}
    for _ in range(PIECES):
        end = core.cycles + PIECE_CYCLES
        core.write_register(pc, BASE + CODE_OFFSET + rng.randrange(0, CODE_BYTES, 4 if isa == "aarch64" else 1))
        core.write_register(rng.randrange(16), random_value(rng))
        while (before := core.cycles) < end:
            reason = ExitReason(core.run(end))
            reasons[reason] = reasons.get(reason, 0) + 1
            assert before <= core.cycles <= end, f"{reason} at cycle {core.cycles} of {before}..{end}"
            if reason is ExitReason.OVERFLOW:
                machine.cpus[0].deliver_interrupts()
                continue
            if reason is ExitReason.FAULT:
                if kernel.running(machine.cpus[0]).mm.fault(core.fault_address, core.fault_access) is None:
                    continue
                break
            if reason is ExitReason.EXCEPTION:
                kind = ExceptionKind(core.exception)
                assert kind is not ExceptionKind.INTERNAL, f"nobody knows why the engine stopped at {core.pc:#x}"
                break
            if reason is ExitReason.REGISTER:
                assert core.trapped[0] in list(TrapKind)
                core.complete_trapped()
                continue
            core.write_register(pc, BASE + CODE_OFFSET + rng.randrange(0, CODE_BYTES, 4))
    return reasons


PC = {"aarch64": 32, "x86_64": 16}


class _Arguments:
    """Where random arguments come from."""

    # fmt: off
    NAMES = (
        b"/", b".", b"..", b"file", b"file2", b"directory", b"directory/x", b"link", b"/tmp/perfemu-fuzz", b"/dev/null",
        b"/proc/self/maps", b"/proc/self/fd/1", b"/proc/self/mem", b"/dev/zero", b"/etc/passwd", b"/etc/perfemu-fuzz",
        b"/bin/sh", b"", b"a" * 300, b"\xff\xfe",
    )
    NUMBERS = (
        0, 1, 2, 3, 4, 7, 8, 16, 17, 63, 64, 100, 255, 256, 1000, 4095, 4096, 4097, 65536, 1 << 20, 1 << 31,
        (1 << 31) - 1, 1 << 32, 1 << 40, (1 << 47) - 4096, 1 << 62, (1 << 63) - 1, 1 << 63, -1, -2, -4096,
    )
    # fmt: on
    FLAGS = (
        0,
        1,
        2,
        0o100,
        0o102,
        0o1102,
        0o200000,
        0o20200000,
        0x1000,
        0x80000,
        0x800,
        -100,
        0x22,
        0x32,
        0x11,
        0x100022,
    )

    def __init__(self, rng: random.Random, buffers: range) -> None:
        self._rng = rng
        self._buffers = buffers

    def buffer(self) -> bytes:
        """What a page of the guest may hold: names, small structures, pointers, noise."""
        rng = self._rng
        kind = rng.randrange(4)
        if kind == 0:
            return rng.choice(self.NAMES) + b"\0"
        if kind == 1:
            return struct.pack("<16Q", *(self.any() for _ in range(16)))
        if kind == 2:
            return struct.pack("<16I", *(self.any() & 0xFFFF_FFFF for _ in range(16)))
        return rng.randbytes(rng.choice((16, 128, 256)))

    def any(self) -> int:
        rng = self._rng
        kind = rng.randrange(7)
        if kind < 2:
            return rng.choice(self._buffers) + rng.choice((0, 0, 0, 1, 8, 4090))
        if kind == 2:
            return rng.randrange(12)
        if kind == 3:
            return rng.choice(self.FLAGS) & (1 << 64) - 1
        if kind < 6:
            return rng.choice(self.NUMBERS) & (1 << 64) - 1
        return rng.getrandbits(64)


BUFFERS = range(DATA, DATA + DATA_BYTES, 0x1000)
CALLS_PER_RUN = 120


def run_syscalls(isa: str, seed: int, directory: Path, log: list[str]) -> int:
    """Make random syscalls, as the instruction would; how many until the process ended. `log` gets each before it."""
    rng = random.Random(f"syscalls {isa} {seed}")
    argv = write_program(directory / "calls", isa, b"\0" * CODE_BYTES)
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        program = Program(argv[0], argv, cwd=str(directory), stdin=nowhere, stdout=nowhere, stderr=nowhere)
        session = Session(Guest(argv, core="ideal", cwd=str(directory), stdin=nowhere, stdout=nowhere, stderr=nowhere))
        machine = session.machine
        kernel, cpu = machine.kernel, machine.cpus[0]
        kernel.messages = lambda message: None
        machine.start(program)
        numbers = [*sorted(table.by_number(table.load(), isa)), 9999]
        arguments = _Arguments(rng, BUFFERS)
        for count in range(CALLS_PER_RUN):
            if kernel.exit_status is not None:
                return count
            _fill(kernel.running(cpu), arguments, rng)
            values = [rng.choice(numbers), *(arguments.any() for _ in range(6))]
            log.append(" ".join(f"{value:#x}" for value in values))
            for register, value in zip(SYSCALL_REGISTERS[isa], values, strict=True):
                cpu.core.write_register(register, value)
            kernel.syscalls.handle(cpu)
            kernel.scheduler.next_turn()  # somebody sleeps until his time has come; timers fire
        return CALLS_PER_RUN
    finally:
        os.close(nowhere)


# number, then six arguments (syscall(2)), by the core's register numbers
SYSCALL_REGISTERS = {"aarch64": (8, 0, 1, 2, 3, 4, 5), "x86_64": (RAX, RDI, RSI, RDX, R10, R8, R9)}


def _fill(task: Task, arguments: _Arguments, rng: random.Random) -> None:
    """New contents for some buffers; they may have been unmapped."""
    for _ in range(4):
        with suppress(LinuxError):
            task.mm.write(rng.choice(BUFFERS), arguments.buffer())


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end = time.monotonic() + seconds
    runs, seen, results = 0, set[str](), Counter[object]()
    while time.monotonic() < end:
        for isa in ISAS:
            for what in ("code", "pieces", "syscalls"):
                log: list[str] = []
                start = time.monotonic()
                try:
                    with tempfile.TemporaryDirectory() as directory:
                        if what == "code":
                            results[run_code(isa, seed, Path(directory))] += 1
                        elif what == "pieces":
                            results.update(run_pieces(isa, seed, Path(directory)))
                        else:
                            results[f"{run_syscalls(isa, seed, Path(directory), log) // 20 * 20} calls"] += 1
                except Exception:
                    place = traceback.format_exc().splitlines()[-4:]
                    if str(place[0]) not in seen:
                        seen.add(str(place[0]))
                        print("FAILED", what, isa, seed, log[-1:], traceback.format_exc(), flush=True)
                took = time.monotonic() - start
                if took > 3:
                    print("SLOW", what, isa, seed, f"{took:.1f} s", log[-1:], flush=True)
                runs += 1
        seed += 1
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{runs} runs, up to seed {seed}, {len(seen)} failures, {megabytes} MB, {dict(results)}")


if __name__ == "__main__":
    main()
