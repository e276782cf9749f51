"""perfemu script is the unmodified perf's, to the byte: our files of both ISAs, files made by hand, and perf's own."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import require
from end_to_end.command import perfemu
from guests import ISAS, guest
from perfcore.abi.constants import Misc, SampleType
from perfcore.abi.records import Exit, Lost, LostSamples, Mmap, Switch, SwitchCpuWide
from perfcore.abi.sample import BranchEntry
from perfcore.perfdata.features import EventDescription
from real_perf import RealPerf, trixies_perf
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

TEXT = ADDRESS + TEXT_OFFSET
CHAINS = ("-g", "-e", "instructions", "-c", "10009")
TWO = ("-e", "cycles,instructions", "-c", "10009")
EXACT = ("--exact", "-e", "cycles,instructions")
TRACEPOINTS = ("-e", "sched:*,raw_syscalls:*,cycles/period=100003/")
SIDEBAND = ("--show-task-events", "--show-mmap-events", "--show-switch-events", "--show-lost-events")
CASES = [
    (CHAINS, ()),
    (CHAINS, ("-G",)),
    (CHAINS, ("-F", "ip,sym")),
    (CHAINS, ("-F", "-ip")),
    (CHAINS, ("-F", "comm,tid,time,event,ip,sym,symoff,dso,srcline", "--ns")),
    (CHAINS, ("--max-stack", "2", "--time", "10%/2")),
    (CHAINS, ("-S", "partition,main", "--reltime")),
    (TWO, ()),
    (TWO, ("-F", "+misc,-comm,+pid", "--deltatime", *SIDEBAND)),
    (TWO, ("-F", "ip,sym,srcline", "--time", "100.0001,")),
    (EXACT, ()),
    (EXACT, ("-F", "period,ip,sym,symoff", "--comms", "{isa}.elf", "--pid", "1000", "--dsos", "{isa}.elf")),
    (TRACEPOINTS, ()),
    (TRACEPOINTS, ("-F", "trace:comm,cpu,event,trace")),
]


def same(perf: RealPerf, file: Path, *options: str) -> str:
    """What both print."""
    theirs = perf.run("script", "-i", file, *options)
    assert perfemu("script", "-i", file, *options).stdout.decode() == theirs
    return theirs


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, tuple[str, ...]], Path]:
    made = {}
    for isa in ISAS:
        for number, options in enumerate((CHAINS, TWO, EXACT, TRACEPOINTS)):
            made[isa, options] = tmp_path_factory.mktemp(isa) / str(number)
            perfemu("record", "-q", *options, "-o", made[isa, options], guest("sort", isa).path)
    return made


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("recorded", "options"), CASES, ids=lambda words: " ".join(words))
def test_our_recordings(
    isa: str,
    recorded: tuple[str, ...],
    options: tuple[str, ...],
    recordings: dict[tuple[str, tuple[str, ...]], Path],
    tmp_path: Path,
) -> None:
    perf = RealPerf(tmp_path)
    text = same(perf, recordings[isa, recorded], *(option.replace("{isa}", isa) for option in options))
    assert text.count("\n") > 10


def test_a_pipe_has_tracepoints_too(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    path.write_bytes(perfemu("record", "-q", *TRACEPOINTS, "-o", "-", guest("sort", "x86_64").path).stdout)
    assert "sched:sched_process_exit: comm=" in same(RealPerf(tmp_path), path, *SIDEBAND)


def test_namespaces_and_control_groups(tmp_path: Path) -> None:
    """Of the program, of what it starts, and of the group that it makes."""
    path = tmp_path / "data"
    options = ("--namespaces", "--all-cgroups", "-e", "instructions", "-c", "100000", "-o", path)
    perfemu("record", "-q", *options, "--", "sh", "-c", "mkdir /sys/fs/cgroup/new; :")
    text = same(RealPerf(tmp_path), path, "--show-namespace-events", "--show-cgroup-events")
    assert text.count("nr_namespaces: 7") == 2  # the shell's and its child's
    assert text.count("4/user: ") == 2
    assert "cgroup: 1 /\n" in text
    assert " /new\n" in text


_OF_WHAT_WAS_LOST = (
    "Warning:",
    "Processed 13 events and lost 1 chunks!",
    "Check IO/CPU overload!",
    "Processed 5 samples and lost 60.00%!",
)


def by_hand(directory: Path, events: list[EventDescription]) -> Recording:
    symbols = [ElfSymbol(name, 0x100 * number, 0x100) for number, name in enumerate(("main", "_ZN2ns3Box4workEv"))]
    made = Recording(events)
    made.start(synthetic_elf(directory / "prog", symbols), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    return made


def test_records_of_every_kind(tmp_path: Path) -> None:
    made = by_hand(tmp_path, [event(sample_type=SAMPLE_TYPE | SampleType.CPU)])
    made.fork(PID + 1)
    made.add(Switch(), Misc.SWITCH_OUT | Misc.SWITCH_OUT_PREEMPT)
    made.add(SwitchCpuWide(7, 8), Misc.USER)
    made.add(SwitchCpuWide(7, 8), Misc.USER | Misc.SWITCH_OUT)
    made.sample(TEXT + 0x104)
    made.sample(TEXT + 0x20_0000)
    made.add(Lost(0, 7))
    made.add(LostSamples(3))
    made.add(Mmap(PID, PID, 0x70_0000, 0x1000, 0, "/a/file"), Misc.USER | Misc.MMAP_DATA)
    made.add(Exit(PID + 1, PID, PID + 1, PID, made.time_ns))
    made.exit()
    path = made.write(tmp_path / "data")
    perf = RealPerf(tmp_path, says=_OF_WHAT_WAS_LOST)
    text = same(perf, path, *SIDEBAND, "-F", "+misc,+pid")
    assert "PERF_RECORD_FORK(1001:1001):(1000:1000)" in text
    assert "IN           prev pid/tid:     7/8" in text
    assert "ns::Box::work+0x4" in text
    assert same(perf, path, "-C", "0") == same(perf, path)
    assert perfemu("script", "-i", path, "-C", "1").stdout == b""


def test_values_read_by_a_leader_are_samples_of_its_members(tmp_path: Path) -> None:
    data = tmp_path / "data"
    program = guest("sort", "x86_64").path
    perfemu("record", "-q", "-e", "{instructions,branches}:S", "-c", "100003", "-o", data, program)
    assert "branches:Su" in same(RealPerf(tmp_path), data)


SOURCE = "int main(void) { volatile long i; for (i = 0; i < 30000000; i++); return 0; }"


def test_perfs_own_recording(tmp_path: Path) -> None:
    """Of a program of the host's, in user mode: the kernel's symbols are perf's to know."""
    compiler = require.command("gcc", package="gcc")
    (tmp_path / "loop.c").write_text(SOURCE)
    subprocess.run([compiler, "-g", "-o", tmp_path / "loop", tmp_path / "loop.c"], check=True)
    perf, data = shutil.which("perf"), tmp_path / "data"
    command = [perf or "perf", "record", "-q", "-g", "-e", "cpu-clock:u", "-o", data, tmp_path / "loop"]
    done = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path)}, check=False)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
    for options in (
        (),
        ("-S", "main", "-F", "+srcline", "-G"),
        ("-F", "+misc", *SIDEBAND),
        ("--ns", "-F", "comm,pid,tid,time,ip,sym,dso"),
    ):
        assert "main" in same(RealPerf(tmp_path), data, *options)


@pytest.mark.parametrize(
    ("isa", "options"),
    [
        ("x86_64", ("--core", "skylake", "-j", "any,u")),
        ("x86_64", ("--core", "zen5", "-j", "any_call,any_ret,u,save_type")),
        ("aarch64", ("--unit", "brbe", "-b")),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_branch_stacks(isa: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """As perf 6.12 has them: 6.1 does not say whether a branch was speculative."""
    path, perf = tmp_path / "data", RealPerf(tmp_path, trixies_perf("x86_64"))
    perfemu("record", "-q", *options, "-e", "instructions", "-c", "20011", "-o", path, guest("sort", isa).path)
    text = same(perf, path, "-F", "comm,time,ip,sym,dso,brstack")
    assert len(re.findall("/[MP]/-/-/[0-9]+/", text)) > 100
    text = same(perf, path, "-F", "ip,brstacksym")
    assert len(re.findall(r"\w\+0x\w+/\w+\+0x\w+/[MP]/", text)) > 100


def test_branches_that_only_others_record(tmp_path: Path) -> None:
    """Transactions, kinds of later days, what is not known: flags by hand."""
    made = by_hand(tmp_path, [event(sample_type=SAMPLE_TYPE | SampleType.BRANCH_STACK)])
    flags = (0, 1, 2, 4 | 8, 0xFFFF << 4, *(kind << 20 for kind in range(15)), *(spec << 24 for spec in range(1, 4)))
    faults = tuple(15 << 20 | new << 26 for new in range(3))
    made.sample(TEXT, branches=[BranchEntry(TEXT, TEXT + 0x104, each) for each in (*flags, *faults)])
    path = made.write(tmp_path / "data")
    perf = RealPerf(tmp_path, trixies_perf("x86_64"))
    assert "/FAULT_INST/-" in same(perf, path, "-F", "ip,brstack")
