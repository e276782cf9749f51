"""Tracepoints are as in Debian's 6.12, which runs on the board: the fields of each, and a task's life in them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from on_a_board import Board
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import TracepointEvent
from perfemu.initramfs import program

SOURCE = Path(__file__).with_name("perf_calls") / "told.c"
ISA = "aarch64"
# Of the others, when they happen is a matter of who else is there.
TOLD = (
    "task:task_rename",
    "task:task_newtask",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
    "sched:sched_process_fork",
    "sched:sched_process_wait",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_waking",
    "signal:signal_deliver",
    "signal:signal_generate",
    "timer:itimer_expire",
    "timer:itimer_state",
)
SCRIPT = f"""
mount -t tracefs t /sys/kernel/tracing
cd /sys/kernel/tracing
for each in {" ".join(name.replace(":", "/") for name in TOLD)}; do echo 1 > events/$each/enable; done
/told
echo 0 > tracing_on
cat trace
for system in exceptions lock power raw_syscalls sched signal syscalls task timer; do cat events/$system/*/format; done
"""
FIELD = re.compile(r"field:(.+);\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);")
EVENT = re.compile(r"^name: (\w+)\nID: \d+\nformat:\n(.*?)\n\nprint fmt: (.*?)$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tracepoints")
    told = build(SOURCE, ISA, folder / "told", "-w")
    return "\n".join(Board(release=TRIXIE).run(SCRIPT, folder, [program("told", told.read_bytes())]))


def fields(text: str) -> list[tuple[str, ...]]:
    return FIELD.findall(text)


def test_fields_are_as_in_6_12(theirs: str) -> None:
    real = {name: fields(format) for name, format, _ in EVENT.findall(theirs)}
    assert len(real) > 700
    ours: dict[str, TracepointEvent] = {event.name: event for event in tracepoints_of(ISA).values()}
    assert len(ours) > 500
    assert {
        name: fields(event.text) for name, event in ours.items() if name in real and fields(event.text) != real[name]
    } == {}
    assert sorted(event.full_name for name, event in ours.items() if name not in real) == []


def test_what_is_printed_is_as_in_6_12(theirs: str) -> None:
    """But for sched_switch, whose masks Linux leaves to its reader to add up."""
    real = {name: text for name, _, text in EVENT.findall(theirs)}
    ours = {event.name: event.print_format for event in tracepoints_of(ISA).values()}
    assert [name for name, text in ours.items() if real.get(name) != text] == ["sched_switch"]


def life(lines: list[str], pattern: str) -> list[str]:
    """What is told of the program, from its first signal on, and of its children, whose numbers are 1 and 2."""
    found = [re.search(pattern, line) for line in lines]
    told = [
        f"{match[1]}: {match[2]}" for match in found if match and re.search(r"comm=(told|renamed)|sig=|it", match[2])
    ]
    own = [line for line in told if "comm=init" not in line and "comm=sh" not in line]
    first = min(int(number) for line in own for number in re.findall(r"\bpid=([1-9]\d*)", line))
    numbered = [re.sub(r"pid=([1-9]\d*)", lambda match: f"pid={int(match[1]) - first}", line) for line in own]
    signals, ends = (
        [at for at, line in enumerate(numbered) if line.startswith(kind)] for kind in ("sig", "sched_process_exit")
    )
    return numbered[signals[0] : ends[-1] + 1]


def test_a_tasks_life_is_told_as_in_6_12(theirs: str, tmp_path: Path) -> None:
    told = build(SOURCE, ISA, tmp_path / "told", "-w")
    options = [option for name in TOLD for option in ("-e", name)]
    record = [PERFEMU, "record", "-q", "--core", "ideal", "-a", *options, "-o", tmp_path / "data", told]
    subprocess.run(record, env=ENVIRONMENT, check=True, capture_output=True)
    script = [PERFEMU, "script", "-F", "event,trace", "-i", tmp_path / "data"]
    ours = subprocess.run(script, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.splitlines()
    here = life(ours, r"\w+:(\w+): (.*)")
    there = life(theirs.splitlines(), r"\d: (\w+): (.*=.*)")
    assert here == there
    assert len(here) > 30
