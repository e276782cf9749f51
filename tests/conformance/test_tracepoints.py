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
from perfcore.events.probes.kernel_functions import KernelFunctions
from perfemu.initramfs import program

SOURCES = Path(__file__).with_name("perf_calls")
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
TIMERS = tuple(f"timer:hrtimer_{each}" for each in ("init", "start", "expire_entry", "expire_exit", "cancel"))
NEXT = "---- what the second program does"


def enabling(names: tuple[str, ...], number: int) -> str:
    files = " ".join(f"events/{name.replace(':', '/')}/enable" for name in names)
    return f"for each in {files}; do echo {number} > $each; done"


SCRIPT = f"""
mount -t tracefs t /sys/kernel/tracing
cd /sys/kernel/tracing
{enabling(TOLD, 1)}
/told
{enabling(TOLD, 0)}
cat trace
echo '{NEXT}'
{enabling(TIMERS, 1)}
echo 8192 > buffer_size_kb
mkdir /dev/mqueue
echo > trace
/slept
echo 0 > tracing_on
cat trace
echo '{NEXT}'
for system in exceptions lock power raw_syscalls sched signal syscalls task timer; do cat events/$system/*/format; done
"""
FIELD = re.compile(r"field:(.+);\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);")
EVENT = re.compile(r"^name: (\w+)\nID: \d+\nformat:\n(.*?)\n\nprint fmt: (.*?)$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tracepoints")
    programs = [program(name, built(name, folder).read_bytes()) for name in ("told", "slept")]
    return "\n".join(Board(release=TRIXIE).run(SCRIPT, folder, programs))


def built(name: str, folder: Path) -> Path:
    return build(SOURCES / f"{name}.c", ISA, folder / name, "-w")


def recorded(name: str, events: tuple[str, ...], folder: Path) -> list[str]:
    """The event and what it tells, a line each, of a program here."""
    options = [option for event in events for option in ("-e", event)]
    record = [PERFEMU, "record", "-q", "--core", "ideal", "-a", *options, "-o", folder / "data", built(name, folder)]
    subprocess.run(record, env=ENVIRONMENT, check=True, capture_output=True)
    script = [PERFEMU, "script", "-F", "comm,event,trace", "-i", folder / "data"]
    done = subprocess.run(script, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


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
    ours = recorded("told", TOLD, tmp_path)
    here = life(ours, r"\w+:(\w+): (.*)")
    there = life(theirs.split(NEXT)[0].splitlines(), r"\d: (\w+): (.*=.*)")
    assert here == there
    assert len(here) > 30


FUNCTIONS = {hex(address): name for name, address in KernelFunctions(ISA).addresses.items()}
IT_REAL_FN = next(address for address, name in FUNCTIONS.items() if name == "it_real_fn")
MODES = {str(value): name for value, name in ((0, "ABS"), (1, "REL"), (9, "REL|HARD"))}


def timers(lines: list[str], pattern: str) -> list[str]:
    """What is told of the timers of the second program: of each its clock, function and mode, and its slack in us.

    Where the modes have no names, as in a file, they are numbers, and so are functions.
    """
    told, own = [], set[str]()
    for line in lines:
        found = re.search(pattern, line)
        if found is None:
            continue
        comm, event, text = found.groups()
        values = dict(word.split("=", 1) for word in text.split())
        address = values.pop("hrtimer")
        made_here = event == "hrtimer_init" and comm == "slept"
        if made_here or values.get("function") in ("it_real_fn", IT_REAL_FN):  # the latter is made by its parent's fork
            own.add(address)
        if address not in own:
            continue
        values.pop("now", "")
        if "expires" in values:
            values["slack"] = str(round((int(values.pop("expires")) - int(values.pop("softexpires"))) / 1000))
        if "function" in values:
            values["function"] = FUNCTIONS.get(values["function"], values["function"])
        if "mode" in values:
            values["mode"] = MODES.get(values["mode"].removeprefix("0x"), values["mode"])
        told.append(f"{event}: {' '.join(f'{name}={value}' for name, value in values.items())}")
    return told


def test_timers_are_told_as_in_6_12(theirs: str, tmp_path: Path) -> None:
    here = timers(recorded("slept", TIMERS, tmp_path), r"(\S+) +timer:(hrtimer_\w+): (.*)")
    there = timers(theirs.split(NEXT)[1].splitlines(), r"(\S+)-\d+ .*\d: (hrtimer_\w+): (.*)")
    assert here == there
    assert len(here) > 200
