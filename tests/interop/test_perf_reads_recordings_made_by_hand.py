"""The real perf reads what PerfDataWriter writes, without a warning, and its report is ours, line by line."""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

import pytest

import require
from perfcore.abi.constants import ReadFormat, SampleType
from perfcore.abi.read_format import ReadValues
from perfcore.abi.records import Comm, Exit, LostSamples
from perfcore.perfdata.features import EventDescription, EventGroup
from perfcore.perfdata.records import BuildId
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.cli import report
from real_perf import RealPerf
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event, features

TEXT = ADDRESS + TEXT_OFFSET
CHAINS = SAMPLE_TYPE | SampleType.CALLCHAIN
BUILD_ID = bytes(range(1, 21))
FUNCTIONS = ("main", "middle", "leaf", "_ZN2ns3BoxIlE4workERKSt6vectorIlSaIlEEm")
ISAS = ("x86_64", "aarch64")


@pytest.fixture
def perf(tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path)


def program(directory: Path, architecture: str) -> Path:
    """Four functions of 0x100 bytes, then code without a name, then a PLT with two entries."""
    symbols = [ElfSymbol(name, 0x100 * number, 0x100) for number, name in enumerate(FUNCTIONS)]
    imported = [ElfSymbol("malloc", 0, 0, section=0), ElfSymbol("free", 0, 0, section=0)]
    return synthetic_elf(
        directory / "prog",
        symbols,
        architecture,
        imported,
        plt=(1, 2),
        build_id=BUILD_ID,
        pie=architecture == "aarch64",
    )


def recording(directory: Path, architecture: str, events: list[EventDescription], samples: int = 400) -> Recording:
    """Samples all over the program, from random call chains with a fixed seed."""
    made = Recording(events)
    made.start(program(directory, architecture), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    chance = random.Random(7)
    plt = 0x820 if architecture == "aarch64" else 0x810
    for number in range(samples):
        leaf = TEXT + chance.choice((0x300, 0x200, 0x200, 0x100, 0x500, plt)) + 4 * chance.randrange(4)
        callers = [TEXT + 0x100 * chance.randrange(3) + 4 * chance.randrange(60) for _ in range(chance.randrange(4))]
        made.sample(leaf, [*callers, TEXT + 8], period=chance.choice((997, 1000, 1009)), number=number % len(events))
    made.exit()
    return made


def ours(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    assert report.run(parser.parse_args(["-i", str(path), *options])) == 0
    lines = capsys.readouterr().out.splitlines()
    while lines and not lines[-1]:
        lines.pop()
    return lines


OPTIONS = [
    (),
    ("--no-children",),
    ("--sort", "sym"),
    ("--sort", "dso,sym", "-n", "--show-total-period"),
    ("--sort", "comm"),
    ("--sort", "pid,sym", "--no-children"),
    ("--percent-limit", "5"),
    ("-g", "graph,10,callee", "--no-children"),
    ("-G", "--no-children"),
    ("-g", "none"),
    ("-g", "graph,10", "-s", "dso,sym"),
    ("-F", "overhead,sym"),
    ("-q",),
]


@pytest.mark.parametrize("architecture", ISAS)
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_call_graph_report_is_perfs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf, architecture: str, options: tuple[str, ...]
) -> None:
    made = recording(tmp_path, architecture, [event(sample_type=CHAINS)])
    path = made.write(tmp_path / "perf.data", architecture)
    assert ours(capsys, path, *options) == perf.report(path, *options)


@pytest.mark.parametrize("architecture", ISAS)
@pytest.mark.parametrize(
    "options", [(), ("-n", "--sort", "comm,sym"), ("-F", "overhead,period,sample,sym")], ids=" ".join
)
def test_flat_report_of_several_events_is_perfs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf, architecture: str, options: tuple[str, ...]
) -> None:
    events = [event(), event("cycles:u", 2, config=0), event("r8:u", 3, type=4, config=8)]
    made = recording(tmp_path, architecture, events)
    made.add(Comm(PID, PID, "renamed"), number=1)
    for _ in range(10):
        made.sample(TEXT, number=2)
    made.add(LostSamples(3))
    path = made.write(tmp_path / "perf.data", architecture)
    assert ours(capsys, path, *options) == perf.report(path, *options)


def test_a_group_is_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf) -> None:
    made = recording(tmp_path, "x86_64", [event(), event("cycles:u", 2, config=0)])
    told = features()
    told.groups = (EventGroup(leader_index=0, members=2),)
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    assert ours(capsys, path) == perf.report(path)


def test_a_pipe_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf) -> None:
    path = recording(tmp_path, "x86_64", [event()]).write(tmp_path / "pipe", pipe=True)
    assert ours(capsys, path, "--sort", "sym") == perf.report(path, "--sort", "sym")


def test_symfs_stands_before_recorded_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    program(root / "bin", "x86_64")
    made = Recording([event()])
    made.start("/bin/prog", 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    made.sample(TEXT + 0x200)
    path = made.write(tmp_path / "perf.data")
    shown = perf.report(path, "--symfs", str(root))
    assert any(line.rstrip().endswith("[.] leaf") for line in shown)
    assert ours(capsys, path, "--symfs", str(root)) == shown


@pytest.mark.parametrize("architecture", ISAS)
def test_header_says_what_was_told(tmp_path: Path, perf: RealPerf, architecture: str) -> None:
    made = recording(tmp_path, architecture, [event()])
    told = features(architecture)
    told.cpuid = "0x00000000410fd083" if architecture == "aarch64" else "GenuineIntel,6,85,4"
    told.pmu_mappings = ((1, "software"), (8, "armv8_pmuv3_0"))
    told.build_ids = (BuildId(str(tmp_path / "prog"), BUILD_ID),)
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    header = perf.run("report", "--header-only", "-i", path)
    for line in (
        "# hostname : perfemu",
        "# os release : 6.1.0",
        "# perf version : 6.1",
        f"# arch : {architecture}",
        "# nrcpus online : 1",
        "# nrcpus avail : 1",
        "# cpudesc : ideal",
        f"# cpuid : {told.cpuid}",
        "# total memory : 4194304 kB",
        "# cmdline : perfemu record ./prog ",
        "# pmu mappings: software = 1, armv8_pmuv3_0 = 8",
        "# time of first sample : 100.000003",  # START_NS + 3 us: COMM, MMAP2, then the first sample
    ):
        assert line in header.splitlines()
    assert perf.run("buildid-list", "-i", path).split() == [BUILD_ID.hex(), str(tmp_path / "prog")]


def test_evlist_names_events_and_attributes(tmp_path: Path, perf: RealPerf) -> None:
    """Not of a pipe: there evlist does not look at the names, also at those of perf record's own pipes."""
    made = recording(tmp_path, "x86_64", [event(), event("INST_RETIRED:u", 2, type=8, config=0x8)])
    path = made.write(tmp_path / "perf.data")
    first, second = perf.run("evlist", "-v", "-i", path).splitlines()[:2]
    assert first.startswith("instructions:u:")
    assert second.startswith("INST_RETIRED:u:")
    assert "sample_type: IP|TID|TIME|PERIOD|IDENTIFIER" in first
    assert "exclude_kernel: 1" in first


def test_script_lists_every_sample(tmp_path: Path, perf: RealPerf) -> None:
    made = recording(tmp_path, "x86_64", [event()], samples=0)
    made.sample(TEXT + 0x204, period=997)
    made.sample(TEXT + 0x108, period=1000)
    path = made.write(tmp_path / "perf.data")
    lines = perf.run("script", "-i", path, "-F", "comm,pid,tid,time,period,event,ip,sym,symoff,dso").splitlines()
    place = tmp_path / "prog"
    assert [line.split() for line in lines] == [
        ["prog", "1000/1000", "100.000004:", "997", "instructions:u:", "401204", "leaf+0x4", f"({place})"],
        ["prog", "1000/1000", "100.000005:", "1000", "instructions:u:", "401108", "middle+0x8", f"({place})"],
    ]


@pytest.mark.parametrize(
    ("architecture", "tool", "package"),
    [
        ("x86_64", "objdump", "binutils"),
        ("aarch64", "aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu"),
    ],
)
def test_annotate_finds_the_instruction(
    tmp_path: Path, perf: RealPerf, architecture: str, tool: str, package: str
) -> None:
    require.command(tool, package=package)
    made = recording(tmp_path, architecture, [event()], samples=0)
    for offset in (0x10, 0x10, 0x10, 0x20):
        made.sample(TEXT + 0x200 + offset)
    path = made.write(tmp_path / "perf.data", architecture)
    text = perf.run("annotate", "--stdio", "-i", path, "leaf")
    percents = {
        match[2]: match[1] for match in re.finditer(r"^\s+(\d+\.\d+) .*?:?\s*([0-9a-f]+):\s", text, re.MULTILINE)
    }
    hot = {address: percent for address, percent in percents.items() if percent != "0.00"}
    start = 0x1200 if architecture == "aarch64" else 0x401200  # the aarch64 program is position-independent
    assert hot == {f"{start + 0x10:x}": "75.00", f"{start + 0x20:x}": "25.00"}


def test_an_interrupted_recording_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf) -> None:
    """Ctrl-C: `close` is reached in the middle of everything, before any EXIT record."""
    made = recording(tmp_path, "x86_64", [event()], samples=50)
    path = tmp_path / "perf.data"
    writer = PerfDataWriter(path, made.events, features())
    try:
        for number, record in enumerate(made.records):
            if number == 20:
                raise KeyboardInterrupt
            writer.write(record)
    except KeyboardInterrupt:
        writer.close()
    assert ours(capsys, path) == perf.report(path)


def test_rounds_and_late_records_do_not_disturb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf
) -> None:
    made = recording(tmp_path, "x86_64", [event()], samples=30)
    made.add(Exit(PID, PID, PID, PID, made.time_ns))
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, made.events, features()) as writer:
        for start in range(0, len(made.records), 4):
            writer.write(b"".join(reversed(made.records[start : start + 4])))
            writer.finish_round()
    assert ours(capsys, path) == perf.report(path)


def test_leader_sampling_gives_every_member_its_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perf: RealPerf
) -> None:
    """{instructions,cycles}:S: only the leader samples, and reads both; values are cumulative."""
    kind = SAMPLE_TYPE | SampleType.READ
    group_read = ReadFormat.ID | ReadFormat.GROUP
    events = [
        event(sample_type=kind, read_format=group_read),
        event("cycles:u", 2, sample_type=kind, config=0, read_format=group_read, sample_period=0),
    ]
    made = Recording(events)
    made.start(program(tmp_path, "x86_64"), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    for number, (offset, cycles) in enumerate([(0x200, 1500), (0x100, 1500), (0x200, 5500)], start=1):
        values = (ReadValues(1000 * number, 0, 0, 10, 0), ReadValues(cycles, 0, 0, 20, 0))
        made.sample(TEXT + offset, read=values)
    told = features()
    told.groups = (EventGroup(leader_index=0, members=2),)
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    shown = ours(capsys, path, "--sort", "sym")
    assert shown == perf.report(path, "--sort", "sym")
    # instructions: leaf 2000 of 3000; cycles: leaf 1500 + 4000 of 5500, middle's did not grow
    assert [line.split() for line in shown if not line.startswith("#")] == [
        ["66.67%", "100.00%", "[.]", "leaf"],
        ["33.33%", "0.00%", "[.]", "middle"],
    ]
