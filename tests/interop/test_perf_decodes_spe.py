"""What `perfemu record -e arm_spe_0//` has written, as the unmodified perf 6.1 and 6.12 decode it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from c_programs import build
from real_perf import RealPerf, trixies_perf
from spe_records import LOAD, STORE, SpeRecord, read_records, traces_in

GUESTS = Path(__file__).parents[2] / "guest_programs"
EVENT = "arm_spe_0/ts_enable=1,pa_enable=1,load_filter=1,branch_filter=1,store_filter=1,jitter=1/u"
# Said by perf mem, which asks the decoder for everything but a period in instructions: of any file.
NEEDS_INSTRUCTIONS = "Only instruction-based sampling period is currently supported by Arm SPE."


def perfemu(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "perfemu", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


@pytest.fixture(params=["6.1", "6.12"])
def perf(request: pytest.FixtureRequest, tmp_path: Path) -> RealPerf:
    command = tuple(map(str, trixies_perf("x86_64"))) if request.param == "6.12" else ()
    return RealPerf(tmp_path, command, says=(NEEDS_INSTRUCTIONS,))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spe") / "perf.data"
    perfemu("record", "-q", "-e", EVENT, "-c", "1024", "-o", path, "--", GUESTS / "embedded_mix" / "aarch64.elf", "100")
    return path


def records_of(recording: Path) -> list[SpeRecord]:
    return [record for _, trace in traces_in(recording.read_bytes()) for record in read_records(trace)]


def test_script_says_what_each_record_does(recording: Path, perf: RealPerf) -> None:
    """One line for each: address, data address and its physical one, total latency as weight."""
    lines = perf.run("script", "-i", recording, "--itrace=i1i", "-F", "ip,addr,phys_addr,weight").splitlines()
    wanted = []
    for record in records_of(recording):
        data, physical = (record.addresses.get(which, 0) for which in ("virtual", "physical"))
        wanted.append((data, record.cycles["total"], record.addresses["pc"], physical))
    found = []
    for line in lines:
        data, weight, pc, physical = line.split()[:4]
        found.append((int(data, 16), int(weight), int(pc, 16), int(physical, 16)))
    assert len(wanted) > 100
    assert found == wanted


def test_report_d_shows_each_packet(recording: Path, perf: RealPerf) -> None:
    """The dump has one line a packet."""
    text = perf.run("report", "-D", "-i", recording)
    records = records_of(recording)
    said = [int(pc, 16) for pc in re.findall(r" PC (0x[0-9a-f]+) el0 ns=1", text)]
    assert said == [record.addresses["pc"] for record in records]
    assert [int(cycles) for cycles in re.findall(r" LAT (\d+) ISSUE", text)] == [
        record.cycles["issue"] for record in records
    ]
    assert [int(source) for source in re.findall(r" DATA-SOURCE (\d+)", text)] == [
        record.source for record in records if record.source is not None
    ]
    assert [int(time) for time in re.findall(r" TS (\d+)", text)] == [record.timestamp for record in records]
    assert "bad packet" not in text.lower()


def test_mem_report_counts_loads_and_stores(recording: Path, perf: RealPerf) -> None:
    text = perf.run("mem", "report", "-i", recording, "--stdio", "--sort", "mem")
    section = text.partition("of event 'memory'")[2].partition("# Samples")[0]
    found = sum(int(samples) for samples in re.findall(r"^ +[0-9.]+% +(\d+) ", section, re.MULTILINE))
    kinds = Counter(record.kind for record in records_of(recording))
    assert found == kinds[LOAD] + kinds[STORE]
    assert min(kinds[LOAD], kinds[STORE]) > 50
    hits = sum(record.source == 0 for record in records_of(recording) if record.kind == LOAD)
    assert re.search(rf" {hits} +L1 ", section)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A recording of false_sharing.c on two CPUs, and where its cache line is."""
    directory = tmp_path_factory.mktemp("shared")
    source = Path(__file__).with_name("false_sharing.c")
    program = build(source, "aarch64", directory / "false_sharing", "-O1", "-pthread")
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        line = next(symbol["st_value"] for symbol in table.iter_symbols() if symbol.name == "counters")
    recording = directory / "perf.data"
    perfemu("record", "-q", "--cpus", "2", "-e", EVENT, "-c", "1024", "-o", recording, "--", program, "8")
    return recording, line


def test_c2c_finds_the_line_and_who_shares_it(shared: tuple[Path, int], perf: RealPerf) -> None:
    recording, line = shared
    text = perf.run("c2c", "report", "-i", recording, "--stdio")
    table = text.partition("Shared Data Cache Line Table")[2]
    first = re.search(r"^ +0 +(0x[0-9a-f]+) ", table, re.MULTILINE)
    assert first is not None
    assert int(first[1], 16) == line
    assert re.search(r"Total Shared Cache Lines +: +1$", text, re.MULTILINE)
    pareto = text.partition("Shared Cache Line Distribution Pareto")[2]
    assert set(re.findall(r"\[\.\] (\w+)", pareto)) == {"adds_to_first", "adds_to_second"}


def test_each_record_is_of_the_thread_that_executed(shared: tuple[Path, int], perf: RealPerf) -> None:
    """The first thread is in adds_to_first, the other in adds_to_second; each on a CPU of its own."""
    lines = perf.run("script", "-i", shared[0], "--itrace=i1i", "-F", "tid,cpu,ip,sym").splitlines()
    seen = Counter((tid, cpu, symbol) for tid, cpu, _, symbol, *_ in map(str.split, lines) if symbol.startswith("adds"))
    threads = {symbol: {tid for tid, _, found in seen if found == symbol} for _, _, symbol in seen}
    assert {symbol: len(tids) for symbol, tids in threads.items()} == {"adds_to_first": 1, "adds_to_second": 1}
    assert threads["adds_to_first"] != threads["adds_to_second"]
    assert min(seen.values()) > 100


def test_a_snapshot_has_the_latest_records(recording: Path, perf: RealPerf, tmp_path: Path) -> None:
    """Of an area of 16 KiB, which the unit goes round: the last ones of the very run of which all were recorded."""
    file = tmp_path / "snapshot"
    program = (GUESTS / "embedded_mix" / "aarch64.elf", "100")
    perfemu("record", "-q", "-Se", "-m", ",4", "-e", EVENT, "-c", "1024", "-o", file, "--", *program)
    every, latest = records_of(recording), records_of(file)
    assert 64 < len(latest) < len(every)
    assert [record.addresses for record in latest] == [record.addresses for record in every[-len(latest) :]]
    lines = perf.run("script", "-i", file, "--itrace=i1i", "-F", "ip").splitlines()
    assert [int(line, 16) for line in lines] == [record.addresses["pc"] for record in latest]
