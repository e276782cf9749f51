"""The unmodified perf 6.1 and 6.12 read what PEBS says of loads and stores, and find a line that is shared falsely."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import require
from c_programs import build
from guests import guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu.guest import Guest
from perfemu.session import Session
from real_perf import RealPerf, trixies_perf

SHARING = Path(__file__).with_name("false_sharing.c")
CORES = "skylake", "redwood-cove"
LOADS = "cpu/mem-loads,ldlat=30/P"
STORES = "cpu/mem-stores/P"
PERFS = {"6.1": lambda: (), "6.12": lambda: trixies_perf("x86_64")}


def record(path: Path, core: str, *options: str, program: Path | None = None, argument: str = "5") -> Path:
    program = program or guest("scan_and_reuse", "x86_64").path
    words = ["record", "-q", "--core", core, *options, "-o", str(path), "--", str(program), argument]
    subprocess.run([sys.executable, "-m", "perfemu", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


@pytest.mark.parametrize("version", PERFS)
@pytest.mark.parametrize("core", CORES)
def test_samples_of_data(core: str, version: str, tmp_path: Path) -> None:
    perf = RealPerf(tmp_path, PERFS[version]())
    path = record(tmp_path / "perf.data", core, "-e", LOADS, "-e", STORES, "-c", "3", "-d", "-W")
    with open_perf_data(str(path)) as file:
        samples = [file.decode_sample(each, 0) for each in file.records() if each.type == RecordType.SAMPLE]
    lines = perf.run("script", "-F", "event,addr,ip,weight,data_src", "-i", path).splitlines()
    assert len(lines) == len(samples) > 100
    loads = 0
    for line, sample in zip(lines, samples, strict=True):
        assert f"{sample.addr:x}" in line.split()
        assert f"{sample.ip:x}" in line.split()
        is_load = "mem-loads" in line
        assert ("OP LOAD" in line, "OP STORE" in line) == (is_load, not is_load)
        loads += is_load
        if is_load:
            assert sample.weight & 0xFFFF_FFFF > 30
            assert re.search(r"LVL (L2|L3|LFB|RAM|Local RAM|L1) (or \w+ )?hit", line) or "RAM hit" in line
    assert loads > 20
    assert "RAM hit" in "\n".join(lines)
    report = perf.run("mem", "report", "--stdio", "-i", path)
    assert "RAM" in report


def test_false_sharing(tmp_path: Path) -> None:
    """perf c2c finds the line that two threads write and read, and both functions that do."""
    program = build(SHARING, "x86_64", tmp_path / "sharing", "-g")
    path = record(
        tmp_path / "perf.data", "skylake", "-e", "cpu/mem-loads,ldlat=3/P", "-e", STORES, "-c", "37", "-d", "-W",
        "--phys-data", "--sample-cpu", "--cpus", "2", program=program,
    )  # fmt: skip
    text = RealPerf(tmp_path, trixies_perf("x86_64")).run("c2c", "report", "--stdio", "-i", path)
    lines = text[text.index("Shared Data Cache Line Table") :]
    assert "adds_to_first" in lines
    assert "adds_to_second" in lines


def test_branch_records_of_a_record_are_the_units(tmp_path: Path) -> None:
    """Adaptive records have them; else the driver reads them at the interrupt: with the same result, but for a cycle
    where a block that is cut behind a MOV does not fuse that."""
    stacks = []
    for name, event in ("adaptive", "instructions:ppu"), ("read", "instructions:u"):
        options = ("-b", "-e", event, "-c", "1009")
        path = record(
            tmp_path / name, "redwood-cove", *options, program=guest("sort", "x86_64").path, argument="5000"
        )  # fmt: skip
        with open_perf_data(str(path)) as file:
            samples = [file.decode_sample(each, 0) for each in file.records() if each.type == RecordType.SAMPLE]
        stacks.append([[(each.from_ip, each.to_ip) for each in sample.branches] for sample in samples])
    assert stacks[0] == stacks[1]
    assert len(stacks[0]) > 100
    assert len({tuple(stack) for stack in stacks[0]}) > 10
    assert {len(stack) for stack in stacks[0][1:]} == {32}


@pytest.mark.parametrize("core", CORES)
def test_perf_mem_as_a_guest(core: str, tmp_path: Path) -> None:
    """It finds the events in sysfs, and samples both with their latencies, addresses and sources."""
    perf = require.command("perf", package="linux-perf")
    file, program = tmp_path / "perf.data", guest("embedded_mix", "x86_64").path
    options = ["-B", "-N", "-c", "31", "-o", str(file)]
    arguments = [perf, "mem", "record", *options, str(program), "5"]
    session = Session(Guest(arguments, core=core, binds=[f"{tmp_path}:{tmp_path}:rw"], stdout=-1, stderr=-1))
    session.run()
    lines = RealPerf(tmp_path / "home").run("script", "-F", "event,addr,data_src", "-i", file).splitlines()
    assert {line.split(":")[0].split("/")[1].split(",")[0].strip() for line in lines} == {"mem-loads", "mem-stores"}
    assert sum("OP LOAD" in line and " hit" in line for line in lines) > 5
    assert sum("OP STORE" in line for line in lines) > 100
