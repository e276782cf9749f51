"""Snapshots (record -S) and AUX samples (--aux-sample): perf finds in them what has retired before the moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests import guest
from intel_pt_truth import Retired, built, instructions, perfs, recorded, retired, session_of, without_repeats
from perfemu.control import Control
from perfemu.errors import UsageError
from perfemu.events.attributes import Sampling
from perfemu.events.aux_samples import Snapshots, read_aux_sample, read_snapshots
from perfemu.file_limits import Files
from perfemu.moments import When
from perfemu.recording import record

MOST_LATE = 64  # instructions
_TWICE = "./many_ways; kill -USR2 $PPID; ./many_ways; kill -USR2 $PPID"


@pytest.fixture(scope="module")
def many_ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("many_ways", tmp_path_factory.mktemp("intel_pt"))


@pytest.mark.parametrize(
    ("events", "sampling", "most"),
    [
        ("{intel_pt//u,branches:u}", Sampling(period=5000, aux_sample_bytes=4096), 4096),
        ("intel_pt//u,branches/period=3000,aux-sample-size=16384/u", Sampling(), 16384),
    ],
)
@pytest.mark.parametrize("cpus", [1, 4])
def test_aux_samples(tmp_path: Path, many_ways: Path, events: str, sampling: Sampling, most: int, cpus: int) -> None:
    """Before each sample of branches are listed the instructions that have retired before it, up to the last one, of
    as much as its bytes have a PSB before: one comes each 2 KiB, as for such parts it does by itself."""
    file = tmp_path / "perf.data"
    truth = [Retired(addresses) for addresses in recorded([many_ways], file, events, "skylake", cpus, sampling)]
    for perf in perfs(tmp_path):
        before: list[list[int]] = [[] for _ in range(cpus)]
        late: list[list[int]] = [[] for _ in range(cpus)]
        ends = [0] * cpus
        samples = 0
        for line in perf.run("script", "-i", file, "--itrace=i1ie", "-F", "event,cpu,ip").splitlines():
            place, event, address = line.split()
            cpu = int(place.strip("[]"))
            if event.startswith("instructions"):
                before[cpu].append(int(address, 16))
                continue
            samples += 1
            part, before[cpu] = without_late(before[cpu], late[cpu]), []
            assert len(part) > most // 4  # at least a few for each byte behind the PSB
            end = truth[cpu].end_of(part, max(ends[cpu] - len(part), 0))
            assert end is not None
            position = truth[cpu].addresses.index(int(address, 16), end)
            late[cpu] = truth[cpu].addresses[end:position]
            assert len(late[cpu]) < MOST_LATE
            assert position > ends[cpu]
            ends[cpu] = position
        assert samples > 5
        assert not any(without_late(*each) for each in zip(before, late, strict=True))


def without_late(part: list[int], late: list[int]) -> list[int]:
    """Between two packets perf guesses what time it was, and lists the last instructions before a sample behind it, if
    it thinks that they are later."""
    part = without_repeats(part)
    assert part[: len(late)] == late
    return part[len(late) :]


def test_snapshots_when_the_guest_says_so(tmp_path: Path, many_ways: Path) -> None:
    """Of an area of 16 KiB: what has retired before each of two signals, up to the kill() itself, whose instruction
    is the last."""
    file = tmp_path / "perf.data"
    session = session_of(["sh", "-c", _TWICE.replace("./many_ways", str(many_ways))], "skylake")
    [recorder] = retired(session)
    record(session, ["intel_pt//u"], Sampling(snapshots=Snapshots()), str(file), files=Files(aux_pages=4))
    truth = Retired([op[0] for op in recorder.take_selected()])
    for perf in perfs(tmp_path):
        [found] = instructions(perf, file)
        parts = truth.parts(found)
        assert len(parts) == 2
        assert len({truth.addresses[end - 1] for end, _ in parts}) == 1  # libc's SYSCALL in kill()
        assert min(length for _, length in parts) > 10_000


def test_snapshots_by_control_and_at_the_end(tmp_path: Path, many_ways: Path) -> None:
    """Of an area that is larger than the trace: the first one is of all until then; the second one is of what has come
    since, from its first PSB on."""
    file = tmp_path / "perf.data"
    session = session_of(["sh", "-c", f"echo snapshot >/dev/orders; exec {many_ways}"], "skylake")
    [recorder] = retired(session)
    sampling, when = Sampling(snapshots=read_snapshots("e")), When(control=Control("/dev/orders"))
    record(session, ["intel_pt/psb_period=0/u"], sampling, str(file), when=when)
    truth = Retired([op[0] for op in recorder.take_selected()])
    for perf in perfs(tmp_path):
        [found] = instructions(perf, file)
        (first, length), (end, rest) = truth.parts(found)
        assert first == length
        assert end == len(truth.addresses)
        assert 0 < end - rest - first < rest // 4  # what at most 2 KiB tell of, of some 40


def test_a_snapshot_of_so_many_bytes(tmp_path: Path, many_ways: Path) -> None:
    """The last 8 KiB of a run, with the area that has as much."""
    file = tmp_path / "perf.data"
    sampling = Sampling(snapshots=Snapshots(8192, at_end=True))
    [addresses] = recorded([many_ways], file, "intel_pt/psb_period=0/u", "skylake", sampling=sampling)
    truth = Retired(addresses)
    for perf in perfs(tmp_path):
        [found] = instructions(perf, file)
        [(end, length)] = truth.parts(found)
        assert (end, length > 10_000) == (len(truth.addresses), True)
        assert length < len(truth.addresses)


@pytest.mark.parametrize(
    ("events", "sampling", "why"),
    [
        (["cycles:u"], Sampling(snapshots=Snapshots()), "takes snapshots of a trace"),
        (["intel_pt//u", "cycles:u"], Sampling(aux_sample_bytes=4096), "requires an AUX area event group leader"),
        (["cycles/aux-sample-size=64/u"], Sampling(), "to a group leader"),
        (["{intel_pt//u,cycles/aux-sample-size=65544/u}"], Sampling(), "too big"),
        (["{cycles:u,branches/aux-sample-size=64/u}"], Sampling(), "group leader is not an AUX area event"),
        (["intel_pt/aux-sample-size=64/u"], Sampling(), "to an AUX area event"),
        (["{intel_bts//u,cycles:u}"], Sampling(aux_sample_bytes=4096), "no parts in samples"),
        (["{intel_pt//u,cycles:u}"], Sampling(aux_sample_bytes=64, snapshots=Snapshots()), "goes into samples"),
    ],
)
def test_what_is_refused(tmp_path: Path, events: list[str], sampling: Sampling, why: str) -> None:
    session = session_of([guest("loop_1k", "x86_64").path], "skylake")
    with pytest.raises(UsageError, match=why):
        record(session, events, sampling, str(tmp_path / "perf.data"))


def test_sizes() -> None:
    assert (read_aux_sample(""), read_aux_sample("0x101")) == (4096, 0x108)
    assert (read_snapshots(""), read_snapshots("e0x10")) == (Snapshots(), Snapshots(16, at_end=True))
    for wrong in ("0x10000", "-1", "4K"):
        with pytest.raises(ValueError, match="bytes"):
            read_aux_sample(wrong)
    with pytest.raises(ValueError, match="BYTES"):
        read_snapshots("x")
