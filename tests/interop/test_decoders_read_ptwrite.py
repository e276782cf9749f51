"""PTWRITE on redwood-cove: perf and libipt find what a program has written, in its order, and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intel_pt_truth import (
    THREADS,
    WRITES,
    built,
    instructions,
    perfs,
    recorded,
    session_of,
    traced,
    without_repeats,
    writes_of,
    written_by,
)
from perfemu.errors import PerfemuError
from perfemu.events.attributes import Sampling
from perfemu.recording import record
from real_perf import RealPerf

CORE = "redwood-cove"
_PAYLOAD = re.compile(r"payload: (\w+)")  # behind it perf prints it as text, if that is what it could be


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("ptwrites", tmp_path_factory.mktemp("intel_pt"))


def payloads(perf: RealPerf, file: Path, *fields: str) -> list[str]:
    return perf.run("script", "-i", file, "--itrace=we", "-F", ",".join((*fields, "synth"))).splitlines()


@pytest.mark.parametrize(
    ("event", "cpus"),
    [
        ("intel_pt/ptw/u", 1),
        ("intel_pt/ptw/u", 4),
        ("intel_pt/ptw,fup_on_ptw,cyc,psb_period=0/u", 1),
        ("intel_pt/ptw,pt,branch=0/u", 4),
    ],
)
def test_perf_finds_what_each_thread_has_written(tmp_path: Path, program: Path, event: str, cpus: int) -> None:
    file = tmp_path / "perf.data"
    record(session_of([program], CORE, cpus), [event], Sampling(), str(file))
    for perf in perfs(tmp_path):
        found: dict[str, list[int]] = {}
        for line in payloads(perf, file, "tid"):
            payload = _PAYLOAD.search(line)
            assert payload
            found.setdefault(line.split()[0], []).append(int(payload[1], 16))
        assert [found[tid] for tid in sorted(found)] == [written_by(thread) for thread in range(THREADS)]


@pytest.mark.parametrize("event", ["intel_pt/ptw,fup_on_ptw/u", "intel_pt/ptw,fup_on_ptw,noretcomp,cyc/u"])
def test_with_addresses_each_is_where_it_has_retired(tmp_path: Path, program: Path, event: str) -> None:
    truth = traced(program, tmp_path / "perf.data", event, CORE)
    offsets = {address & 0xFFF for address in writes_of(program)}
    retired = [address for address in truth.instructions if address & 0xFFF in offsets and address >> 40 == 0x55]
    for perf in perfs(tmp_path):
        lines = payloads(perf, truth.file, "ip")
        assert all("IP: 1" in line for line in lines)
        assert [int(line.split()[-1], 16) for line in lines] == retired
        assert len(lines) == THREADS * WRITES + 3


@pytest.mark.parametrize("event", ["intel_pt/ptw/u", "intel_pt/ptw,fup_on_ptw/u"])
def test_instructions_are_what_has_retired(tmp_path: Path, program: Path, event: str) -> None:
    file = tmp_path / "perf.data"
    retired = recorded([program], file, event, CORE)
    for perf in perfs(tmp_path):
        [found], [truth] = instructions(perf, file), retired
        assert without_repeats(found) == without_repeats(truth)


def test_without_ptw_there_is_nothing_of_it(tmp_path: Path, program: Path) -> None:
    file = tmp_path / "perf.data"
    record(session_of([program], CORE), ["intel_pt/fup_on_ptw/u"], Sampling(), str(file))
    for perf in perfs(tmp_path):
        assert payloads(perf, file, "ip") == []


@pytest.mark.parametrize("term", ["ptw", "fup_on_ptw"])
@pytest.mark.parametrize("core", ["skylake", "zen5"])
def test_others_have_none(tmp_path: Path, program: Path, core: str, term: str) -> None:
    with pytest.raises(PerfemuError, match="config are not what its unit can"):
        record(session_of([program], core), [f"intel_pt/{term}/u"], Sampling(), str(tmp_path / "perf.data"))
