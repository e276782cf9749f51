"""Power events of redwood-cove's trace: where a CPU sleeps, perf says what the kernel's cpu_idle says; frequencies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.cpu import Waking
from intel_pt_truth import built, perfs, session_of
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import scope_of_cpus
from perfemu.session import Session
from real_perf import RealPerf

CORE = "redwood-cove"
SLEEPS = 7  # of intel_pt/sleeps.c, each ended by a timer
_LINE = re.compile(r"\[(\d+)\] +(\d+)\.(\d+): +(?:\S+:)?(\w+): *(.*)")
Row = tuple[int, int, str, str]  # CPU, ns, event, fields


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sleeps", tmp_path_factory.mktemp("intel_pt"))


def rows(perf: RealPerf, file: Path, *options: str) -> Iterator[Row]:
    for line in perf.run("script", "--ns", "-i", file, *options).splitlines():
        found = _LINE.search(line)
        assert found, line
        yield int(found[1]), int(found[2]) * 10**9 + int(found[3]), found[4], found[5].strip()


def power_events(perf: RealPerf, file: Path) -> list[Row]:
    return list(rows(perf, file, "--itrace=pe", "-F", "cpu,time,event,synth"))


def record_cpus(program: Path, event: str, cpus: int, file: Path) -> None:
    record(session_of([program], CORE, cpus), [event], Sampling(), str(file), scope=scope_of_cpus(True, None, cpus))


@pytest.mark.parametrize("terms", ["pwr_evt,cyc", "pwr_evt,cyc,pt,branch=0", "pwr_evt,cyc,mtc=0,psb_period=0"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_cpu_sleeps_where_the_kernel_says_it_idles(tmp_path: Path, program: Path, terms: str, cpus: int) -> None:
    """EXSTOP has the time of a CYC, and PWRX that of a TSC; perf's conversions of both lose up to two nanoseconds."""
    record_cpus(program, "power:cpu_idle", cpus, tmp_path / "idle")
    record_cpus(program, f"intel_pt/{terms}/u", cpus, tmp_path / "trace")
    for perf in perfs(tmp_path):
        idle = [
            (cpu, time, "state=1" in said)
            for cpu, time, _, said in rows(perf, tmp_path / "idle", "-F", "trace:cpu,time,event,trace")
        ]
        found = power_events(perf, tmp_path / "trace")
        stops = [(cpu, time, name == "exstop") for cpu, time, name, _ in found if name in ("exstop", "pwrx")]
        for cpu in range(cpus):
            expected, told = ([row for row in table if row[0] == cpu] for table in (idle, stops))
            assert [row[2] for row in told] == [row[2] for row in expected]
            assert all(abs(one[1] - other[1]) <= 2 for one, other in zip(told, expected, strict=True))
        assert len(stops) >= 2 * SLEEPS * cpus
        assert {said for _, _, name, said in found if name == "pwre"} == {"hw: 0 cstate: 0 sub-cstate: 0"}
        assert {said for _, _, name, said in found if name == "exstop"} == {"IP: 0"}


@pytest.mark.parametrize("cpus", [1, 2])
def test_what_wakes_it(tmp_path: Path, program: Path, cpus: int) -> None:
    """Timers interrupt; another CPU stores to what MWAIT monitors."""
    record_cpus(program, "intel_pt/pwr_evt/u", cpus, tmp_path / "trace")
    for perf in perfs(tmp_path):
        found = power_events(perf, tmp_path / "trace")
        reasons = Counter(int(said.split()[-1], 16) for _, _, name, said in found if name == "pwrx")
        assert reasons[Waking.INTERRUPT] == SLEEPS
        assert (reasons[Waking.STORE] >= SLEEPS) == (cpus > 1)
        assert set(reasons) <= set(Waking)


@pytest.mark.parametrize("event", ["intel_pt/cyc/u", "intel_pt/pwr_evt,cyc/u"])
def test_cycles_of_cyc_are_none_of_those_it_has_slept(tmp_path: Path, program: Path, event: str) -> None:
    """A millisecond has 3.9 million; between branches the longest time is a page fault's."""
    record_cpus(program, event, 1, tmp_path / "trace")
    for perf in perfs(tmp_path):
        text = perf.run("script", "-D", "-i", tmp_path / "trace")
        cycles = [int(count, 16) for count in re.findall(r" CYC (0x[0-9a-f]+)", text)]
        assert len(cycles) > 1000
        assert max(cycles) < 100_000


def test_a_task_s_own_trace_ends_where_it_sleeps(tmp_path: Path, program: Path) -> None:
    """So there are none: its event is not on the CPU then."""
    record(session_of([program], CORE, 2), ["intel_pt/pwr_evt/u"], Sampling(), str(tmp_path / "trace"))
    for perf in perfs(tmp_path):
        assert {name for _, _, name, _ in power_events(perf, tmp_path / "trace")} == {"psb", "cbr"}


@pytest.mark.parametrize("terms", ["", "cyc"])
def test_frequencies(tmp_path: Path, program: Path, terms: str) -> None:
    """CBR says each that CPUs have with --dvfs, of 100 MHz, from the next branch on."""
    profile = tmp_path / "steps.toml"
    profile.write_text(
        "repeat = true\n[[step]]\nfrequency_hz = 3_900_000_000\nfor_us = 20\n"
        "[[step]]\nfrequency_hz = 1_300_000_000\nfor_us = 30\n"
    )
    session = Session(Guest([str(program)], core=CORE, dvfs=str(profile), stdout=-1))
    record(session, [f"intel_pt/{terms}/u"], Sampling(), str(tmp_path / "trace"))
    for perf in perfs(tmp_path):
        found = [(time, said) for _, time, name, said in power_events(perf, tmp_path / "trace") if name == "cbr"]
        assert {said for _, said in found} == {"cbr: 39 freq: 3900 MHz (100%)", "cbr: 13 freq: 1300 MHz ( 33%)"}
        start = found[0][0]
        for time, said in found[1:]:
            slow = (time - start) % 50_000 >= 20_000
            assert slow == ("1300" in said)
        assert len(found) >= 5


def test_perf_s_usual_letters(tmp_path: Path, program: Path) -> None:
    """All that it synthesizes by default, and cycles, which perf 6.1 does not know: without a complaint."""
    record_cpus(program, "intel_pt/pwr_evt,ptw,cyc/u", 2, tmp_path / "trace")
    old, new = perfs(tmp_path)
    for perf, letters in ((old, "ibxwpe"), (new, "iybxwpe")):
        lines = perf.run("script", "-i", tmp_path / "trace", f"--itrace={letters}", "-F", "event").splitlines()
        names = {line.strip().split(":")[0] for line in lines}
        assert names >= {"branches", "pwre", "exstop", "pwrx", "cbr", "psb"}
