"""What the benchmarks run: our guest programs and Debian's, on both ISAs, and how a run's CPU seconds are taken."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import debian
from emulator._native import Core
from emulator.cpu import Cpu, ExceptionKind, ExitReason
from emulator.linux.configuration import LinuxConfig
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.sysregs import SysReg

GUESTS = Path(__file__).resolve().parents[2] / "guest_programs"
ISAS = ("aarch64", "x86_64")
PACKAGES = ("gzip", "lua5.4", "sqlite3")

LUA = """
local numbers = {}
for i = 1, 60000 do numbers[i] = (i * 7919) % 100003 end
table.sort(numbers)
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local words = {}
for i = 1, 8000 do words[#words + 1] = string.format("%d:%s", i, tostring(i * 1.5)) end
print(numbers[30000], fib(21), #table.concat(words))
"""
SQL = """
create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000)
  insert into t select i, 'name' || (i * 7919 % 20011), i * 31 % 1009 from n;
create index x on t(b);
select count(*), sum(c) from t where b like 'name1%';
select c, count(*) from t group by c order by 2 desc, 1 limit 3;
select sum(p.c * q.c) from t p join t q on p.b = q.b;
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """One program on one ISA. `argv[0]` is a host path; Debian's arm64 programs find their libraries in `sysroot`."""

    name: str
    isa: str
    argv: tuple[str, ...]
    sysroot: str | None = None


def guest_program(name: str, isa: str, argument: str) -> Workload:
    return Workload(name, isa, (str(GUESTS / name / f"{isa}.elf"), argument))


def debian_program(name: str, isa: str, *arguments: str) -> Workload:
    root = str(debian.unpacked(debian.ARCHITECTURES[isa], *PACKAGES))
    program = "/bin/gzip" if name == "gzip" else f"/usr/bin/{name}"
    return Workload(name, isa, (root + program, *arguments), root)


def real_programs(isa: str, directory: Path) -> list[Workload]:
    """A CoreMark-like mix, quicksort, a matrix product, DEFLATE, Lua, SQLite: 30 to 200 million instructions each."""
    text = directory / "text"
    if not text.exists():
        words = [f"{(i * 2654435761 % 4093):x} of {i % 977} and the" for i in range(60_000)]
        text.write_text(" ".join(words), encoding="ascii")
    return [
        guest_program("embedded_mix", isa, "1500"),
        guest_program("sort", isa, "600000"),
        guest_program("matrix", isa, "192"),
        debian_program("gzip", isa, "-c", str(text)),
        debian_program("lua5.4", isa, "-e", LUA),
        debian_program("sqlite3", isa, ":memory:", SQL),
    ]


def raw(workload: Workload) -> None:
    """Unicorn in its fastest configuration: virtual TLB, native fill hook, no other hooks. The Linux is ours."""
    machine = LinuxMachine(MachineConfig(workload.isa), LinuxConfig(sysroot=workload.sysroot))
    cpu = machine.cpus[0]
    cpu.core = Core(workload.isa, machine.memory, counting=False)
    with open(os.devnull, "wb") as nowhere:
        machine.start(Program(workload.argv[0], workload.argv, stdout=nowhere.fileno()))
        status = _run_raw(machine, cpu)
    if status != 0:
        raise SystemExit(f"{workload.argv[0]} ended with wait status {status:#x}")


def _run_raw(machine: LinuxMachine, cpu: Cpu) -> int:
    kernel = machine.kernel
    answers: dict[int, Callable[[Cpu], None]] = {
        ExitReason.SYSCALL: kernel.syscalls.handle,
        ExitReason.FAULT: kernel.handle_fault,
        ExitReason.EXCEPTION: kernel.handle_exception,
    }
    while (turn := kernel.scheduler.next_turn()) is not None:
        reason = cpu.core.run(turn[1])
        if reason == ExitReason.EXCEPTION and _answer_mrs(machine, cpu):
            continue
        answers[reason](cpu)
    assert kernel.exit_status is not None, "the machine ends with its first process"
    return kernel.exit_status


def _answer_mrs(machine: LinuxMachine, cpu: Cpu) -> bool:
    """The C library reads ID registers as it starts, which a core without counting does not trap."""
    core = cpu.core
    if machine.config.isa != "aarch64" or core.exception != ExceptionKind.UNDEFINED:
        return False
    word = int.from_bytes(machine.kernel.running(cpu).mm.read(core.pc, 4), "little")
    if word & 0xFFF00000 != 0xD5300000:
        return False
    core.write_register(word & 31, cpu.system_registers.read(SysReg.from_encoding(word >> 5 & 0x7FFF | 1 << 15)))
    core.write_register(32, core.pc + 4)
    return True


def cpu_seconds(run: Callable[[], None]) -> float:
    """CPU seconds of this process in `run`.

    What earlier runs have left is collected before: that is not this one's time.
    """
    gc.collect()
    before = time.process_time()
    run()
    return time.process_time() - before


def child_seconds(argv: list[str]) -> float:
    """CPU seconds of a program, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
