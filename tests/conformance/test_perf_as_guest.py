"""Debian's unmodified perf as a guest: what it counts is what perfemu counts, what it records is read on the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corpus.debian_machine import machine
from guests import DIRECTORY, ISAS, guest
from real_perf import RealPerf

PERFEMU = Path(sys.executable).with_name("perfemu")
PERIOD = 10007


class Debian:
    """A Debian machine with perf, and perfemu to run its programs with."""

    def __init__(self, isa: str, directory: Path) -> None:
        self.isa = isa
        self._root = machine(isa, ("linux-perf",))
        self._directory = directory

    def perfemu(self, command: str, *arguments: str, says: str = "") -> str:
        """The command's standard output. `says` is a part of what must be on standard error; "" allows anything."""
        options = ("--core", "ideal", "--sysroot", str(self._root))
        done = subprocess.run(
            [PERFEMU, command, *options, *arguments],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done
        assert says in done.stderr
        return done.stdout

    def environment_of_perf(self) -> list[str]:
        """Options that give a program what perf gives those that it starts: a longer PATH, and variables of its own."""
        lines = self.perfemu("run", "--", "perf", "stat", "-n", "env").splitlines()
        assert any(line.startswith("PERF_BUILDID_DIR=") for line in lines)
        return [f"--env={line}" for line in lines]


@pytest.fixture(params=ISAS)
def debian(request: pytest.FixtureRequest, tmp_path: Path) -> Debian:
    return Debian(request.param, tmp_path)


def counted(separated: str) -> dict[str, str]:
    """Event -> count, of `stat -x,`."""
    rows = [line.split(",") for line in separated.splitlines() if "," in line]
    return {row[2]: row[0] for row in rows}


@pytest.mark.parametrize(
    "program",
    [
        ("true",),
        ("env",),
        ("timeout", "9", "env"),  # its child is counted: inherit. (dash writes its parent's pid, which differs.)
    ],
    ids=" ".join,
)
def test_it_counts_what_we_count(debian: Debian, tmp_path: Path, program: tuple[str, ...]) -> None:
    """With equal arguments and environment. Both count from execve's return on (enable_on_exec)."""
    events = ("-e", "instructions:u,branches:u,cycles:u")
    debian.perfemu("run", "--", "perf", "stat", "-x,", "-o", "theirs", *events, *program)
    environment = debian.environment_of_perf()
    debian.perfemu("stat", *environment, "-x,", "-o", "ours", *events, "--", *program)
    theirs, ours = (counted((tmp_path / file).read_text()) for file in ("theirs", "ours"))
    assert theirs == ours
    assert int(ours["instructions:u"]) > 10_000


def test_its_report_says_that_count(debian: Debian, tmp_path: Path) -> None:
    environment = debian.environment_of_perf()
    debian.perfemu("stat", *environment, "-x,", "-o", "ours", "-e", "instructions:u", "true")
    count = counted((tmp_path / "ours").read_text())["instructions:u"]
    debian.perfemu("run", "--", "perf", "stat", "-e", "instructions:u", "true", says=f" {count}      instructions:u")


def test_the_hosts_perf_reads_what_it_records(debian: Debian, tmp_path: Path) -> None:
    """Samples with callchains: the same ones in the same order as in a file of perfemu record."""
    program = str(DIRECTORY / "sort" / f"{debian.isa}.elf")
    recording = ("--call-graph", "fp", "-e", "instructions:u", "-c", str(PERIOD))
    debian.perfemu("run", "--", "perf", "record", *recording, "-o", "theirs", program, says="perf record: Captured and")
    debian.perfemu("record", *recording, "-o", "ours", "--", program)
    perf = RealPerf(tmp_path)
    theirs, ours = (perf.run("script", "-F", "ip,sym", "-i", tmp_path / file) for file in ("theirs", "ours"))
    assert theirs == ours
    assert theirs.count("quicksort") > 100
    reports = [
        [line for line in perf.report(tmp_path / file, "--sort", "sym") if not line.startswith("#")]
        for file in ("theirs", "ours")
    ]
    assert reports[0] == reports[1]
    assert any("quicksort" in line for line in reports[0])


def test_it_counts_control_groups(debian: Debian, tmp_path: Path) -> None:
    """What runs in a group counts there and in those above it, and samples name it."""
    groups = "/sys/fs/cgroup/a /sys/fs/cgroup/a/b /sys/fs/cgroup/c"
    program = DIRECTORY / "sort" / f"{debian.isa}.elf"
    moved = f"sh -c 'echo 0 > /sys/fs/cgroup/a/b/cgroup.procs && exec {program}'"
    counting = "perf stat -a -x, -o theirs -e instructions:u,cgroup-switches --for-each-cgroup a,a/b,c"
    recording = f"perf record -o recorded --all-cgroups -e instructions:u -c {PERIOD}"
    script = f"mkdir {groups} && {counting} -- {moved} && {recording} -- {moved}"
    debian.perfemu("run", "--", "sh", "-c", script, says="perf record: Captured and")
    lines = [line.split(",") for line in (tmp_path / "theirs").read_text().splitlines() if "," in line]
    counts = {(event, group): count for count, _, event, group, *_ in lines}
    assert counts["instructions:u", "a"] == counts["instructions:u", "a/b"]
    assert int(counts["instructions:u", "a"]) > guest("sort", debian.isa).counts["INST_RETIRED"]  # and sh until execve
    assert counts["cgroup-switches", "a"] == "1"  # it has moved on its CPU, which switches when it has ended
    assert counts["instructions:u", "c"] == "<not counted>"
    lines = RealPerf(tmp_path).report(tmp_path / "recorded", "-F", "sample,comm", "-s", "cgroup")
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    inside = {comm: int(samples) for samples, comm, group in rows if group == "/a/b"}
    assert inside.pop(f"{debian.isa}.elf") > 100
    assert set(inside) <= {"sh"}
    assert {group for _, _, group in rows} == {"/", "/a/b"}


@pytest.mark.parametrize("groups", [("-G", "a"), ("-G", ",c"), ("--for-each-cgroup", "a,/a/b,c")], ids=" ".join)
def test_it_counts_control_groups_as_we_do(debian: Debian, tmp_path: Path, groups: tuple[str, str]) -> None:
    """Lines, fields and numbers; but what is in no group is of perf itself, too."""
    made = "mkdir /sys/fs/cgroup/a /sys/fs/cgroup/a/b /sys/fs/cgroup/c"
    program = DIRECTORY / "sort" / f"{debian.isa}.elf"
    moved = f"sh -c 'echo 0 > /sys/fs/cgroup/a/b/cgroup.procs; exec {program}'"
    counting = ("stat", "-a", "-x,", "-e", "instructions:u,cycles:u", *groups, "-o")
    debian.perfemu("run", "--", "sh", "-c", f"{made}; perf {' '.join(counting)} theirs -- {moved}")
    environment = debian.environment_of_perf()
    debian.perfemu(*counting, "ours", *environment, "--", "sh", "-c", f"{made}; {moved}; :")
    theirs, ours = (
        [line.split(",") for line in (tmp_path / file).read_text().splitlines() if "," in line]
        for file in ("theirs", "ours")
    )
    of_groups = [row[3] != "" for row in ours]
    assert any(of_groups)
    assert [row[2:4] for row in theirs] == [row[2:4] for row in ours]
    for their_row, our_row, of_group in zip(theirs, ours, of_groups, strict=True):
        assert not of_group or their_row == our_row


def test_it_counts_and_samples_by_loongarchs_monitors(debian: Debian, tmp_path: Path) -> None:
    """Raw events are LoongArch's then, 2 its branches; how many, and where, is what the core's own PMU says, too."""
    program = str(DIRECTORY / "sort" / f"{debian.isa}.elf")
    counting = ("perf", "stat", "-x,", "-o", "theirs", "-e", "r2:u,branches:u,instructions:u", program)
    debian.perfemu("run", "--pmu", "loongarch", "--", *counting)
    counts = counted((tmp_path / "theirs").read_text())
    derived = guest("sort", debian.isa).counts
    assert counts["r2:u"] == counts["branches:u"] == str(derived["BR_RETIRED"])
    assert counts["instructions:u"] == str(derived["INST_RETIRED"])
    recording = ("-c", str(PERIOD), "-o")
    sampling = ("perf", "record", "-e", "r2:u", *recording, "inside", program)
    debian.perfemu("run", "--pmu", "loongarch", "--", *sampling, says="perf record: Captured and")
    debian.perfemu("record", "--pmu", "loongarch", "-e", "branches:u", *recording, "outside", "--", program)
    debian.perfemu("record", "-e", "branches:u", *recording, "own", "--", program)
    perf = RealPerf(tmp_path)
    inside, outside, own = (
        perf.run("script", "-F", "ip,sym", "-i", tmp_path / file) for file in ("inside", "outside", "own")
    )
    assert inside == outside == own
    assert len(own.splitlines()) == derived["BR_RETIRED"] // PERIOD


def test_it_samples_registers_and_stacks_to_unwind_by(debian: Debian, tmp_path: Path) -> None:
    """perf asks for all registers that its ISA's kernel samples: on x86-64 CS and SS, too."""
    program = str(DIRECTORY / "sort" / f"{debian.isa}.elf")
    options = ("--call-graph", "dwarf,512", "-e", "instructions:u", "-c", str(PERIOD), "-o", "theirs")
    debian.perfemu("run", "--", "perf", "record", *options, program, says="perf record: Captured and")
    samples = RealPerf(tmp_path).run("script", "-F", "ip,sym,uregs", "-i", tmp_path / "theirs")
    assert samples.count("ABI:2") > 100
    if debian.isa == "x86_64":  # Debian's perf unwinds what runs on its own ISA
        assert samples.count(" CS:0x33") == samples.count(" SS:0x2b") == samples.count("ABI:2")
        assert samples.count("quicksort") > 3


def test_the_hosts_perf_prints_tracepoints_that_it_records(debian: Debian, tmp_path: Path) -> None:
    """It takes their formats from our tracefs."""
    events = ("-e", "sched:sched_process_exec", "-e", "syscalls:sys_enter_write")
    debian.perfemu("run", "--", "perf", "record", *events, "-o", "theirs", "echo", "word", says="perf record: Captured")
    lines = RealPerf(tmp_path).run("script", "-F", "trace:comm,event,trace", "-i", tmp_path / "theirs").splitlines()
    executed, written = (line.split(maxsplit=2) for line in lines)
    assert executed[1] == "sched:sched_process_exec:"
    assert "/usr/bin/echo pid=" in executed[2]
    assert written[:2] == ["echo", "syscalls:sys_enter_write:"]
    assert written[2].startswith("fd: 0x00000001, buf: 0x")
    assert written[2].endswith(f"count: {len('word') + 1:#010x}")


PROBED = """perf probe -q -x {program} 'descend n={first}:s32'
perf probe -q -x {program} leaf
perf probe -q -x {program} 'descend%return $retval:s32'
perf probe -l
perf record -q -o theirs -e 'probe_recursion:*' {program}
perf script -F event,trace -i theirs
perf record -q -o filtered -e probe_recursion:descend --filter 'n > 96' {program}
perf script -F event,trace -i filtered
perf stat -x, -o counted -e 'probe_recursion:*' {program}
perf probe -q -d 'probe_recursion:*'
cat /sys/kernel/tracing/uprobe_events
"""
PROBES = ("descend", "descend__return", "leaf")
MOST_NESTED = 64  # calls of which Linux hears that they return: MAX_URETPROBE_DEPTH


def test_it_probes_functions(debian: Debian, tmp_path: Path) -> None:
    """descend is called 101 times, with 100 to 0, and none returns before the last one is called: leaf, once."""
    program = tmp_path / "recursion"
    program.write_bytes((DIRECTORY / "recursion" / f"{debian.isa}.elf").read_bytes())
    program.chmod(0o755)
    script = PROBED.format(program=program, first={"aarch64": "%x0", "x86_64": "%di"}[debian.isa])
    lines = debian.perfemu("run", "--env", f"HOME={tmp_path}", "--", "sh", "-c", script).splitlines()
    defined, told = lines[:3], [line.split() for line in lines[3:]]
    assert {line.split()[0] for line in defined} == {f"probe_recursion:{name}" for name in PROBES}
    entered = [words[2] for words in told if words[0] == "probe_recursion:descend:"]
    assert entered[:101] == [f"n={n}" for n in range(100, -1, -1)]
    assert entered[101:] == ["n=100", "n=99", "n=98", "n=97"]
    assert [words[0] for words in told].count("probe_recursion:descend__return:") == MOST_NESTED
    counts = {name: int(count) for name, count in counted((tmp_path / "counted").read_text()).items()}
    assert counts == dict(zip((f"probe_recursion:{name}" for name in PROBES), (101, MOST_NESTED, 1), strict=True))


def test_its_commands_about_the_scheduler_find_what_they_record(debian: Debian, tmp_path: Path) -> None:
    """sh and its two children: each starts once, and is left once for good."""
    script = (
        "perf sched record -o tasks sh -c 'ls >/dev/null; ls >/dev/null'; perf sched latency -p -i tasks >latency; "
        "perf sched timehist -i tasks >history; perf lock record -o locks ls >/dev/null; perf lock contention -i locks"
    )
    nobody_waited = "contended   total wait     max wait     avg wait         type   caller\n\n"
    debian.perfemu("run", "--cpus", "2", "--", "sh", "-c", script, says=nobody_waited)
    latency, history = ((tmp_path / file).read_text() for file in ("latency", "history"))
    assert latency.count("\n  ls:") == 2
    assert latency.count("\n  sh:") == 1
    assert history.count(" ls[") == 2
    assert "<idle>" in history


def test_it_traces_the_scheduler_which_wakes_it(debian: Debian, tmp_path: Path) -> None:
    """Each occurrence wakes perf, which waits for them; that is none itself."""
    debian.perfemu(
        "run", "--", "perf", "trace", "--no-syscalls", "-o", "traced", "-e", "sched:*", "timeout", "9", "true"
    )
    lines = (tmp_path / "traced").read_text().splitlines()
    assert sum(" sched:sched_process_exec(" in line for line in lines) == 2
    assert any(" sched:sched_switch(" in line for line in lines)
