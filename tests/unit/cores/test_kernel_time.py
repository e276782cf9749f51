"""Kernel work costs what the core file says: on the clock, as system time, and as the kernel's cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
import require
from emulator.core_file.core_file import load_core
from end_to_end.random_guests import write_program
from guests import ISAS, guest
from perfcore.abi.constants import Misc, RecordType
from perfcore.perfdata.reader import open_perf_data


def seconds(result: perfemu.StatResult, what: str) -> str:
    """A time as stat prints it, in seconds."""
    return next(line.split()[0] for line in str(result).splitlines() if line.endswith(f"seconds {what}"))


@pytest.mark.parametrize("isa", ISAS)
def test_a_system_call_costs_its_cycles_and_only_cycles_of_the_kernel_see_them(isa: str) -> None:
    """loop_1k makes one system call, exit, and executes n instructions: n ns of user time on the ideal core at 1 GHz,
    and 1000 ns in the kernel."""
    program = guest("loop_1k", isa)
    instructions = program.counts["INST_RETIRED"]
    result = perfemu.stat(
        perfemu.Guest([program.path], core="ideal", core_changes=["kernel.syscall_cycles=1000"]),
        ["cycles", "task-clock", "instructions"],
    )
    assert result["cycles"] == result["instructions"] == instructions
    kernel = perfemu.stat(
        perfemu.Guest([program.path], core="ideal", core_changes=["kernel.syscall_cycles=1000"]),
        ["cycles:k", "cycles:uk", "cycles:u"],
    )
    assert [kernel[name] for name in ("cycles:k", "cycles:uk", "cycles:u")] == [1000, instructions + 1000, instructions]
    assert result["task-clock"] == instructions + 1000
    assert seconds(result, "user") == f"{instructions / 1e9:.9f}"
    assert seconds(result, "sys") == "0.000001000"
    assert seconds(result, "time elapsed") == f"{(instructions + 1000) / 1e9:.9f}"


def test_faults_cost_theirs_the_kernels_own_too() -> None:
    program = guest("compression", "aarch64")
    changes = ["kernel.fault_cycles=500"]
    plain = perfemu.stat(perfemu.Guest([program.path], core="ideal"), ["page-faults"], capture=True)
    result = perfemu.stat(
        perfemu.Guest([program.path], core="ideal", core_changes=changes), ["page-faults"], capture=True
    )
    assert result["page-faults"] == plain["page-faults"] > 10
    assert seconds(plain, "sys") == "0.000000000"
    assert seconds(result, "sys") == f"{500 * result['page-faults'] / 1e9:.9f}"
    assert seconds(result, "user") == seconds(plain, "user")


def test_frequency_turns_cycles_into_time() -> None:
    """2600 cycles a microsecond: the program's 2004 are 770 ns and a bit, rounded down, the kernel's 5200 are 2000."""
    result = perfemu.stat(
        perfemu.Guest(
            [guest("loop_1k", "aarch64").path],
            core="ideal",
            core_changes=["frequency_hz=2_600_000_000", "kernel.syscall_cycles=5200"],
        ),
        ["cycles", "task-clock"],
    )
    assert result["cycles"] == 2004
    assert result["task-clock"] == 2770  # 7204 / 2.6 = 2770.8
    assert seconds(result, "sys") == "0.000002000"
    assert seconds(result, "user") == "0.000000770"


def test_an_exception_costs_its_cycles(tmp_path: Path) -> None:
    """udf ends the program: one instruction that does not retire, one exception."""
    program = tmp_path / "undefined"
    write_program(program, "aarch64", bytes.fromhex("00000000"))
    result = perfemu.stat(
        perfemu.Guest([program], core="ideal", core_changes=["kernel.exception_cycles=700"]),
        ["instructions"],
        capture=True,
    )
    assert result["instructions"] == 0
    assert seconds(result, "sys") == "0.000000700"


def test_sleeping_costs_a_switch_and_is_no_cpu_time() -> None:
    sleep = require.command("busybox", package="busybox-static")
    changes = ["kernel.switch_cycles=3000"]
    result = perfemu.stat(
        perfemu.Guest([sleep, "sleep", "1"], core="ideal", core_changes=changes), ["context-switches"]
    )
    assert result["context-switches"] == 1
    assert seconds(result, "sys") == "0.000003000"
    assert result.elapsed_ns > 1_000_000_000


def test_a_program_sees_its_system_time() -> None:
    """At 1 MHz a million cycles are a second, 100 ticks. A static busybox makes calls before it reads the file."""
    cat = require.command("busybox", package="busybox-static")
    changes = ["frequency_hz=1_000_000", "kernel.syscall_cycles=1_000_000"]
    run = perfemu.run(perfemu.Guest([cat, "cat", "/proc/self/stat"], core="ideal", core_changes=changes), capture=True)
    assert run.stdout is not None
    system_ticks = int(run.stdout.split()[14])
    assert system_ticks >= 300
    assert system_ticks % 100 == 0
    assert int(run.stdout.split()[13]) == run.instructions * 100 // 1_000_000 or int(run.stdout.split()[13]) < 100
    times = perfemu.run(perfemu.Guest([cat, "cat", "/proc/stat"], core="ideal", core_changes=changes), capture=True)
    assert times.stdout is not None
    assert int(times.stdout.split()[3]) == system_ticks  # cpu user nice system


@pytest.mark.parametrize("isa", ISAS)
def test_watching_changes_nothing_where_the_kernel_takes_time(isa: str, tmp_path: Path) -> None:
    changes = [f"kernel.{name}_cycles=1234" for name in ("syscall", "fault", "exception", "switch")]
    program = guest("compression", isa).path
    alone = perfemu.run(perfemu.Guest([program], core="ideal", core_changes=changes), capture=True)
    watched = perfemu.stat(
        perfemu.Guest([program], core="ideal", core_changes=changes), ["cycles", "cpu-clock"], capture=True
    )
    recorded = perfemu.record(
        perfemu.Guest([program], core="ideal", core_changes=changes),
        ["cpu-clock", "cycles"],
        period=10007,
        capture=True,
        output=tmp_path / "perf.data",
    )
    assert watched.stdout == recorded.stdout == alone.stdout
    assert watched.elapsed_ns == alone.elapsed_ns
    assert watched["cycles"] == alone.instructions


@pytest.mark.parametrize("core", ["neoverse-n1", "zen5"])
def test_cycles_of_the_kernel_are_the_system_time(core: str) -> None:
    """Every switch, fault and call of the program, whatever the pipeline had begun when it entered the kernel."""
    isa = "aarch64" if core == "neoverse-n1" else "x86_64"
    program = [guest("compression", isa).path]
    result = perfemu.stat(perfemu.Guest(program, core=core), ["cycles:k", "cycles:u", "cycles:uk"], capture=True)
    assert result["cycles:uk"] == result["cycles:k"] + result["cycles:u"]
    frequency = load_core(core).frequency_hz
    assert seconds(result, "sys") == f"{result['cycles:k'] * 10**9 // frequency / 1e9:.9f}"
    assert "<not supported>" in str(perfemu.stat(perfemu.Guest(program, core=core), ["instructions:k"], capture=True))
    assert "<not supported>" in str(perfemu.stat(perfemu.Guest(program, core="ideal"), ["cycles:k"], capture=True))


@pytest.mark.parametrize("isa", ISAS)
def test_samples_of_the_kernels_cycles_and_those_that_are_lost_are_all_periods(isa: str, tmp_path: Path) -> None:
    """loop_1k on the ideal core: n cycles of user mode and one system call of 1000, with which several periods of 300
    end at once: a sample, which is the kernel's, and the rest in PERF_RECORD_LOST_SAMPLES."""
    program = guest("loop_1k", isa)
    instructions = program.counts["INST_RETIRED"]
    profile = tmp_path / "perf.data"
    changes = ["kernel.syscall_cycles=1000"]
    perfemu.record(
        perfemu.Guest([program.path], core="ideal", core_changes=changes), ["cycles:uk"], period=300, output=profile
    )
    report = perfemu.report(profile)
    in_user = instructions // 300
    lost = (instructions + 1000) // 300 - in_user - 1
    assert lost > 0
    assert report.lost_samples == lost
    with open_perf_data(str(profile)) as file:
        modes = [record.misc & 7 for record in file.records() if record.type == RecordType.SAMPLE]
    assert modes == [Misc.USER] * in_user + [Misc.KERNEL]
