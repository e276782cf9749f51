"""The vDSO: programs find it as Linux's, unwind through it, and read the very clocks that system calls do."""

from __future__ import annotations

import dataclasses
import random
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import same_as_linux
from c_programs import build
from emulator.clock import MONOTONIC_AT_BOOT_NS, Clock
from emulator.core_file.core_file import load_core
from emulator.linux.configuration import LinuxConfig
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.linux.syscalls.names import syscall_name
from emulator.machine import MachineConfig
from guests import ISAS
from perfemu.symbols.vdso import vdso_file

SOURCE = Path(__file__).with_name("vdso.c")
# arch/x86/entry/vdso/vdso.lds.S, arch/arm64/kernel/vdso/vdso.lds.S
SYMBOLS = {
    "x86_64": {
        "LINUX_2.6",
        *("clock_gettime", "clock_getres", "gettimeofday", "time", "getcpu"),
        *("__vdso_clock_gettime", "__vdso_clock_getres", "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu"),
    },
    "aarch64": {
        "LINUX_2.6.39",
        *("__kernel_clock_gettime", "__kernel_clock_getres", "__kernel_gettimeofday", "__kernel_rt_sigreturn"),
    },
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return same_as_linux.native(SOURCE, tmp_path_factory.mktemp("native"))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("cpus", [1, 2])
def test_clocks_are_the_kernels(isa: str, cpus: int, expected: list[str], tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, isa, cpus)
    assert (printed, messages) == (expected, [])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("vdso", [True, False])
def test_who_finds_it_asks_the_kernel_no_more(isa: str, vdso: bool, tmp_path: Path) -> None:
    source = tmp_path / "asks.c"
    source.write_text(
        "#include <sys/time.h>\n#include <time.h>\nint main(void) { struct timespec t; struct timeval v;"
        "for (int i = 0; i < 100; i++) { clock_gettime(0, &t); clock_getres(1, &t); gettimeofday(&v, 0); } }\n"
    )
    program = build(source, isa, tmp_path / "asks")
    machine = LinuxMachine(MachineConfig(isa), LinuxConfig(vdso=vdso))
    asked: list[str] = []

    def note(task: Task, number: int, arguments: tuple[int, ...]) -> None:
        asked.append(syscall_name(isa, number))

    machine.kernel.tracepoints.sys_enter.subscribe(note)
    machine.start(Program(str(program), ("asks",), (), str(tmp_path)))
    maps = {mapping.name for mapping in machine.kernel.tasks[1000].mm.mappings}
    assert maps >= {"[vdso]", "[vvar]"} if vdso else not maps & {"[vdso]", "[vvar]"}
    assert machine.run() == 0
    # glibc's gettimeofday on AArch64 goes to clock_gettime where there is no vDSO
    times = sum(name in ("clock_gettime", "clock_getres", "gettimeofday") for name in asked)
    assert times == (0 if vdso else 300)


@pytest.mark.parametrize("isa", ISAS)
def test_symbols_are_linuxs(isa: str) -> None:
    with Path(vdso_file(isa)).open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert {symbol.name for symbol in table.iter_symbols()} - {""} == SYMBOLS[isa]


@pytest.mark.parametrize("frequency_hz", [1_000_000_000, 3_700_000_000, 3_123_456_789, 799_999_999])
def test_no_nanosecond_is_lost(frequency_hz: int) -> None:
    """What x86-64's code computes from the TSC is what the kernel says, at any cycle of any frequency."""
    draw = random.Random(frequency_hz)
    cycles = 0
    clock = Clock(lambda: cycles, frequency_hz)
    for bits in range(64):
        cycles = max(cycles, draw.getrandbits(bits) // 2)
        assert clock.counter() * 1_000_000_000 // frequency_hz == clock.shown_ns()
        assert clock.shown_ns() == MONOTONIC_AT_BOOT_NS + clock.elapsed_ns()


def test_frequencies_are_told(tmp_path: Path) -> None:
    """The data page: nanoseconds of a second, the frequency, and of each clock where it starts and how fine it is."""
    program = build(SOURCE, "x86_64", tmp_path / "program", "-w")
    core = dataclasses.replace(load_core("ideal"), frequency_hz=3_700_000_000)
    machine = LinuxMachine(MachineConfig("x86_64", core=core, realtime_at_boot_ns=5_000_000_000_000))
    machine.start(Program(str(program), ("program",), (), str(tmp_path)))
    mm = machine.kernel.tasks[1000].mm
    vvar = next(mapping for mapping in mm.mappings if mapping.name == "[vvar]")
    words = struct.unpack("<32Q", mm.read(vvar.start, 256))
    assert words[:2] == (1_000_000_000, 3_700_000_000)
    assert words[8:] == (
        *(4_900_000_000_000, 1, 0, 1, 0, 0, 0, 0, 0, 1),  # realtime, monotonic, two CPU clocks, raw
        *(4_900_000_000_000, 4_000_000, 0, 4_000_000, 0, 1, 0, 0, 0, 0, 0, 0),  # coarse ones, boottime, alarms, 10
        *(4_900_000_000_000, 1),  # TAI
    )
