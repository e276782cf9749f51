"""Guest: what a user may say of a program and its machine is one table, which the command line and Python follow."""

from __future__ import annotations

import pickle
import re
from argparse import Namespace
from dataclasses import fields, replace
from pathlib import Path

import pytest

import perfemu
from emulator.core_file.core_file import load_core
from emulator.linux.configuration import LinuxConfig
from emulator.linux.fast_forward import Skipped, Until
from emulator.machine import MachineConfig
from guests import DIRECTORY, guest
from perfemu.checking.benchmarks import read_benchmarks
from perfemu.cli.guest import add_counters_option, add_guest_options, guest_of
from perfemu.cli.options import CommandParser
from perfemu.guest import Guest
from perfemu.guest_options import OPTIONS
from perfemu.session import Session

LOOP = str(guest("loop_1k", "aarch64").path)
PROFILE = str(Path(__file__).with_name("frequency.toml"))
NOT_OPTIONS = {"argv", "environment", "cwd", "stdin", "stdout", "stderr", "interactive", "_values"}
SAID = {  # how both say the same, of every option
    "core": ("cortex-a55", "cortex-a55"),
    "core_changes": ("l1d.size=64KiB", ["l1d.size=64KiB"]),
    "pmu": ("pmuv3p5", "pmuv3p5"),
    "units": ("bts", ["bts"]),
    "untimed": (None, True),
    "fast_forward": ("region", "region"),
    "warmup": ("7", 7),
    "sysroot": ("/usr", "/usr"),
    "binds": ("/usr:/x", ["/usr:/x"]),
    "isolate": (None, True),
    "writable_paths": ("/tmp", ["/tmp"]),
    "cpus": ("3", 3),
    "quantum": ("0x100", 256),
    "seed": ("-1", -1),
    "date": ("2026-11-20T09:30", "2026-11-20T09:30"),
    "dvfs": (PROFILE, PROFILE),
    "vdso": (None, False),
    "timeout": ("2500ms", 2.5),
    "max_instructions": ("1000", 1000),
    "max_tasks": ("5", 5),
    "max_output": ("1M", 1 << 20),
    "user": ("1000", 1000),
    "memory": ("64M", 64 << 20),
    "counters": ("2", 2),
}


def from_command_line(*arguments: str, bare_time: str = "s") -> Guest:
    parser = CommandParser("run", "", "", "")
    add_guest_options(parser, bare_time)
    add_counters_option(parser)
    options = parser.parse_args([*arguments, LOOP], Namespace(descriptors=(0, 1, 2)))
    return guest_of(options)


def configurations(said: Guest) -> tuple[object, ...]:
    core = load_core("ideal")
    return said.machine("aarch64", core), said.skipped(), said._values


def test_the_table_is_of_guests_fields_and_of_the_configurations() -> None:
    assert {field.name for field in fields(Guest)} - NOT_OPTIONS == set(OPTIONS) == set(SAID)
    becoming = [option.becomes for option in OPTIONS.values() if option.becomes is not None]
    assert len(set(becoming)) == len(becoming) == 14
    for owner, name in becoming:
        assert name in {field.name for field in fields(owner)}
    described = (DIRECTORY.parent / "docs" / "api.md").read_text()
    assert [name for name in OPTIONS if f"`{name}`" not in described] == []
    commands = (DIRECTORY.parent / "docs" / "commands.md").read_text()
    assert [option.flag for option in OPTIONS.values() if not re.search(rf"{option.flag}\b", commands)] == []


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("isolate", "sysroot", "binds")])
def test_the_command_line_says_what_python_says(name: str) -> None:
    text, value = SAID[name]
    said = from_command_line(OPTIONS[name].flag, *([] if text is None else [text]))
    here = Guest([LOOP], **{name: value})
    assert getattr(said, name) == value or str(getattr(said, name)) == text
    assert configurations(said) == configurations(here)
    assert (said.core_changes, said.core) == (list(here.core_changes), here.core)


def test_a_number_alone_is_of_the_unit_that_the_command_says() -> None:
    for text, unit, most_ns in (("20", "ms", 20_000_000), ("2s", "ms", 2 * 10**9), ("20", "s", 20 * 10**9)):
        said = from_command_line("--timeout", text, bare_time=unit)
        assert said.machine("aarch64", load_core("ideal")).most_ns == most_ns


def test_the_machine_has_the_one_configuration_that_was_made_of_the_guest() -> None:
    run = Guest(
        [LOOP], core="cortex-a55", cpus=2, quantum=77, seed=5, date="@1000", timeout="3ms", max_instructions=9,
        memory="64M", max_tasks=6, max_output="1M", user="7:8", vdso=False, warmup=4, writable_paths=["/tmp"],
    )  # fmt: skip
    session = Session(run)
    assert session.machine.config == MachineConfig(
        isa="aarch64", core=session.core, memory_bytes=64 << 20, cpus=2, quantum=77, schedule_seed=5,
        most_instructions=9, most_ns=3_000_000, realtime_at_boot_ns=1000 * 10**9,
    )  # fmt: skip
    assert run.linux(session.space) == LinuxConfig(
        writable_paths=("/tmp",), most_tasks=6, most_output_bytes=1 << 20, user=(7, 8), vdso=False
    )
    assert run.skipped() == Skipped(0, 4)
    assert Guest([LOOP], fast_forward="region").skipped() == Skipped(Until.REGION)


def test_what_is_not_said_is_the_configurations_own() -> None:
    core = load_core("ideal")
    assert Guest([LOOP]).machine("aarch64", core) == MachineConfig("aarch64", core)
    assert Guest([LOOP]).linux(Guest([LOOP]).space()) == LinuxConfig()


def test_a_guest_is_a_value_for_any_number_of_runs() -> None:
    """2,004 instructions, see guest_programs/loop_1k."""
    run = perfemu.Guest([LOOP], core="ideal")
    assert pickle.loads(pickle.dumps(run)) == run == replace(run)
    assert perfemu.run(run).instructions == 2004
    assert perfemu.stat(run, ["instructions"])["instructions"] == 2004
    assert perfemu.run(replace(run, max_instructions=100)).instructions == 100
    assert perfemu.run([LOOP]).instructions == 2004  # arguments alone


def test_what_a_guest_says_may_stand_in_the_call(tmp_path: Path) -> None:
    assert perfemu.run([LOOP], core="ideal", max_instructions=100).instructions == 100
    assert perfemu.run(perfemu.Guest([LOOP], core="ideal"), max_instructions=100).instructions == 100
    assert perfemu.stat([LOOP], ["instructions"], core="ideal", timeout="0.001ms")["instructions"] == 1000
    recording = perfemu.record([LOOP], core="ideal", cpus=2, cpu_list="1", output=tmp_path / "data")
    assert recording.sample_count == 0
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_time'"):
        perfemu.run([LOOP], max_time=1)


def test_now_is_the_same_in_all_runs_of_a_guest() -> None:
    run = Guest([LOOP], date="now")
    assert run.machine("aarch64", load_core("ideal")) == run.machine("aarch64", load_core("ideal"))


def test_benchmark_files_say_all_options(tmp_path: Path) -> None:
    path = f"{tmp_path}/perfemu.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"[benchmark.loop]\ncommand = '{LOOP}'\ndate = '@5'\ncounters = 3\nmax_tasks = 4\nuser = '1:2'\n")
    (benchmark,) = read_benchmarks(path)
    assert benchmark.guest == Guest((LOOP,), date="@5", counters=3, max_tasks=4, user="1:2", cwd=str(tmp_path))
