"""record --exact: every event at its own instruction. The sums are stat's counts, and nothing else is changed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import ISAS, guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu import api
from perfemu.attributing import ExactSamples
from perfemu.events.attributes import Sampling, is_exact
from perfemu.interruption import Interruption
from perfemu.kept_recording import KeptRecording
from perfemu.recording import planned
from perfemu.scope import PROGRAM
from perfemu.session import Session
from perfemu.streams import Streams

TASKS = Path(__file__).with_name("tasks.c")
EVENTS = {
    "aarch64": ("instructions", "branches", "cycles", "ld_retired", "st_retired", "br_immed_retired"),
    "x86_64": (
        "instructions",
        "branches",
        "cycles",
        "L1-dcache-loads",
        "L1-dcache-stores",
        "br_inst_retired.near_taken",
    ),
}
MODELLED = {
    "aarch64": ("neoverse-n1", "cortex-a55"),
    "x86_64": ("zen5", "skylake"),
}
MODELLED_EVENTS = ("instructions", "cycles", "branch-misses", "L1-dcache-load-misses", "dTLB-load-misses", "branches")


def exact(path: Path, events: tuple[str, ...], output: Path, *argv: str, **options: Any) -> dict[str, int]:
    """Record `path` exactly: event -> the sum of its samples' periods."""
    api.record(api.Guest([path, *argv], **options), events, output=output, exact=True, capture=True)
    return sums(output)


def sums(data: Path) -> dict[str, int]:
    sums = Counter[str]()
    with open_perf_data(str(data)) as file:
        assert all(is_exact(event.attr) for event in file.events)
        for raw in file.records():
            assert raw.type != RecordType.LOST
            if raw.type == RecordType.SAMPLE:
                number = file.event_number(raw)
                sums[file.events[number].name.split(":")[0]] += file.decode_sample(raw, number).period
    return dict(sums)


def counted(path: Path, events: tuple[str, ...], *argv: str, **options: Any) -> dict[str, int]:
    result = api.stat(api.Guest([path, *argv], **options), [f"{event}:u" for event in events], capture=True)
    return {event: result[event] for event in events if result[event]}


@pytest.fixture(scope="module", params=ISAS)
def tasks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(TASKS, request.param, tmp_path_factory.mktemp(request.param) / "tasks")


@pytest.mark.parametrize("cpus", [1, 4])
def test_threads_children_and_signals_add_up_to_what_stat_counts(tasks: Path, cpus: int, tmp_path: Path) -> None:
    events = next(events for isa, events in EVENTS.items() if tasks.parent.name.startswith(isa))
    here = exact(tasks, events, tmp_path / "perf.data", core="ideal", cpus=cpus)
    assert here == counted(tasks, events, core="ideal", cpus=cpus)
    assert here["instructions"] > 200_000


@pytest.mark.parametrize(("isa", "core"), [(isa, core) for isa in ISAS for core in MODELLED[isa]])
def test_what_models_count_is_attributed_to_the_last_event(isa: str, core: str, tmp_path: Path) -> None:
    path = guest("sort", isa).path
    here = exact(path, MODELLED_EVENTS, tmp_path / "perf.data", core=core)
    assert here == counted(path, MODELLED_EVENTS, core=core)
    assert here["branch-misses"] > 1000
    assert here["cycles"] > 1_000_000


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_has_its_own_count(isa: str, tmp_path: Path) -> None:
    """loop_1k: its loop is two instructions, 1,000 times each (guest_programs/loop_1k says so)."""
    data = tmp_path / "perf.data"
    exact(guest("loop_1k", isa).path, ("instructions",), data, core="ideal")
    counts = sorted(sample.period for _, sample in api.Recording(str(data), 0, 0, None, None, None).samples())
    assert sum(counts) == guest("loop_1k", isa).counts["INST_RETIRED"]
    assert counts.count(1000) == 2
    assert set(counts) == {1, 1000}


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_replaces_itself_is_attributed_to_each_program(isa: str, tmp_path: Path) -> None:
    """The same addresses are the shell's before execve, and the other's behind it."""
    program = tmp_path / "again"
    source = tmp_path / "again.c"
    source.write_text(AGAIN, encoding="utf-8")
    build(source, isa, program, "-DROUNDS=1000")
    data = tmp_path / "perf.data"
    other = build(source, isa, tmp_path / "other", "-DROUNDS=3000", "-fno-inline", "-DOTHER")
    exact(program, ("instructions",), data, str(other), core="ideal", environment={})
    table = api.report(data)["instructions"]
    rows = {(row.keys["comm"], row.symbol): row.period for row in table}
    assert rows["again", "rounds"] * 3 == pytest.approx(rows["other", "other_rounds"], abs=20)
    assert ("other", "rounds") not in rows


AGAIN = """
#include <unistd.h>
#ifdef OTHER
#define rounds other_rounds
#endif
__attribute__((noinline)) void rounds(long n) { for (volatile long i = 0; i < n; i++); }
int main(int count, char **arguments) {
    rounds(ROUNDS);
    if (count > 1) execv(arguments[1], (char *[]){arguments[1], 0});
}
"""


@pytest.mark.parametrize("isa", ISAS)
def test_stat_counts_functions_beside_its_own_counts(isa: str) -> None:
    """What is of no instruction is in the total alone; functions add up to what is."""
    path = guest("compression", isa).path
    events = ["instructions", "branches", "page-faults"]
    with_functions = api.stat(api.Guest([path], core="ideal"), events, functions=True, capture=True)
    alone = api.stat(api.Guest([path], core="ideal"), events, capture=True)
    assert dict(with_functions.items()) == dict(alone.items())
    for event in events[:2]:
        functions = with_functions.functions(event)
        assert sum(functions.values()) == alone[event]
        assert max(functions, key=functions.__getitem__)[1].startswith("match_length")
    assert set(with_functions.functions("page-faults")) == {("[no instruction]", "[no instruction]")}


def test_stat_prints_functions(tmp_path: Path) -> None:
    path = guest("loop_1k", "aarch64").path
    text = perfemu("stat", "--functions", "-e", "instructions", path).stderr.decode()
    assert "instructions by function:" in text
    assert f"2,004  100.00%  _start  {path.name}" in text
    lines = perfemu("stat", "-j", "--functions", "-e", "instructions", path).stderr.decode().splitlines()
    assert json.loads(lines[-1]) == {
        "counter-value": "2004.000000", "event": "instructions", "function": "_start", "module": path.name,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("record", "--exact", "-g"),
            "record --exact: cycles:u: counts have no callchains, registers or group readings",
        ),
        (("stat", "--functions", "-x,"), "stat --functions: there is text and -j, not -x"),
    ],
)
def test_what_cannot_be_exact_is_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = perfemu(*arguments, guest("loop_1k", "x86_64").path, cwd=tmp_path)
    assert done.returncode != 0
    assert complaint(done) == message
    assert not list(tmp_path.iterdir())


def test_what_is_of_no_instruction_is_named(tmp_path: Path) -> None:
    path = guest("sort", "x86_64").path
    done = perfemu("record", "--exact", "-q", "-e", "instructions,page-faults", path, cwd=tmp_path)
    told = rb"perfemu: record: \d+ of page-faults:u were of no instruction, and are not in the file\n"
    assert re.fullmatch(told, done.stderr)


@pytest.mark.parametrize(("isa", "core"), [(isa, core) for isa in ISAS for core in MODELLED[isa]])
def test_samples_beside_exact_counts_are_those_without(isa: str, core: str) -> None:
    """A period ends at the instruction at which it does: also where the models are asked behind each instruction."""

    def samples(beside: Sequence[str]) -> list[tuple[int, int]]:
        with Streams(None, capture=True) as streams, Interruption() as interruption:
            session = Session(streams.connect(api.Guest([guest("sort", isa).path, "2000"], core=core)))
            specs, sampling = planned(session, ["cycles"], Sampling(frequency_hz=None, period=1009))
            exactly, _ = planned(session, beside, Sampling())
            recording = KeptRecording(session, specs, sampling, PROGRAM, interruption)
            if exactly:
                KeptRecording(session, exactly, Sampling(), PROGRAM, interruption, ExactSamples)
            session.run(interruption)
        (event,) = recording.profile("samples", pytest.fail, keeps_moments=True).events
        return [(moment.time_ns, moment.sample.place.address) for moment in event.moments]

    alone = samples([])
    assert len(alone) > 100
    assert samples(["cycles"]) == alone
    assert samples(["branch-misses"]) == alone
