"""PEBS of whole programs: each sample of `record` is the truth of the very instruction that had to be sampled.

The truth is of another run of the same, in which the core goes step by step. Each task's events are counted for
themselves, on each CPU, and large buffers of records become samples at once: whose turn it is follows from what has
retired between the switches. Periods are fixed, so that the samples of a loop whose length has a factor in common with
one are not of all its instructions, as on hardware: how often each is sampled is not judged. `make units` runs all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from emulator.clock import MONOTONIC_AT_BOOT_NS
from emulator.probes import Probe
from perfcore.abi.memory import Blocked, DataSource, Level, LevelNumber, Lock, Op, Snoop, Tlb
from perfemu.events.attributes import Sampling
from perfemu.recording import record
from scale import runs
from scale.programs import COMMANDS, KINDS, Command, prepare
from scale.samples import OP, Flags, Table, fired, samples_in

LDLAT = 6  # cycles, more than which a load takes that misses L1D, or waits
LONG = 40  # ... and few others: of a short run, in which many slices have no record
PERIODS = {Probe.INST_RETIRED: 101, Probe.LOAD: 31, Probe.STORE: 37}
OPTIONS = "data", "weight", "sample_cpu"
MOST_16 = 0xFFFF
LEVELS = {  # that answered -> level, its number
    1: (Level.L1, LevelNumber.L1),
    2: (Level.L2, LevelNumber.L2),
    3: (Level.L3, LevelNumber.L3),
    4: (Level.L3, LevelNumber.L3),
    5: (Level.LOC_RAM, LevelNumber.RAM),
}
OTHER_CORE, MEMORY = 4, 5
SHORT = Command("short", (("gcc", "gcc"),), (f"./{KINDS}", "threads", "500"))
RUNS = [(command, "redwood-cove" if number % 2 else "skylake", 1) for number, command in enumerate(COMMANDS)]
RUNS += [(command, "skylake", 4) for command in COMMANDS if command.name in ("threads", "fork")]
RUNS += [(command, "redwood-cove", 4) for command in COMMANDS if command.name == "xz"]
SLOW = pytest.mark.skipif(os.environ.get("UNITS") != "all", reason="a minute or two each: make units")


def places(turns: Sequence[runs.Turn], index: int, period: int, cpus: int) -> list[list[int]]:
    """Of each CPU: at which of the events there, from 1 on, the periods of the tasks end that have their turns.

    A task has an event on each CPU.
    """
    counted: dict[tuple[int, int], int] = {}
    found: list[list[int]] = [[] for _ in range(cpus)]
    for turn in turns:
        began, ended = turn.began[index], turn.ended[index]
        before = counted.get((turn.tid, turn.cpu), 0)
        counted[turn.tid, turn.cpu] = now = before + ended - began
        first = -(-(before + 1) // period) * period
        found[turn.cpu] += (began + due - before for due in range(first, now + 1, period))
    assert all(after > before for each in found for before, after in pairwise(each))
    return found


def data_sources(truth: Table, op: Op) -> np.ndarray:
    """As intel_pmu_pebs_data_source_skl has them."""
    modified, missed = fired(truth, Probe.FETCHED_HITM), fired(truth, Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE)
    keys = np.stack([truth["level"], modified, missed, fired(truth, Probe.LOCKED)]).astype(np.int64)
    wanted = np.empty(len(truth), np.uint64)
    for level, hitm, walked, locked in np.unique(keys, axis=1).T:
        where, number = LEVELS[level]
        snoop = {OTHER_CORE: Snoop.HITM if hitm else Snoop.HIT, MEMORY: Snoop.HIT}.get(level, Snoop.NONE)
        here = (keys.T == (level, hitm, walked, locked)).all(axis=1)
        wanted[here] = DataSource.pack(
            op=op,
            level=where | Level.HIT,
            level_number=number,
            snoop=snoop,
            lock=Lock.LOCKED if locked else 0,
            tlb=Tlb.MISS | Tlb.L2 if walked else Tlb.HIT | Tlb.L1 | Tlb.L2,
            blocked=Blocked.NA,
        )
    return wanted


def stores_of_skylake(truth: Table) -> np.ndarray:
    """It knows whether they hit L1D: behind what the same instruction loads, they do."""
    missed = fired(truth, Probe.L1D_REFILL_STORE)
    na = DataSource.NOT_AVAILABLE & ~int(Op.NA) & ~(int(Level.NA) << 5) | int(Op.STORE)
    hit, miss = (na | int(Level.L1 | what) << 5 for what in (Level.HIT, Level.MISS))
    return np.where(missed, miss, hit).astype(np.uint64)


def check(found: Table, truth: Table, *, adaptive: bool, hz: int) -> None:
    """What any event's records say."""
    assert np.array_equal(found["ip"], truth["pc"])
    known = truth["known"].astype(bool)
    assert np.array_equal(found["addr"], np.where(known, truth["address"], 0))
    times = MONOTONIC_AT_BOOT_NS + np.array([cycle * 1_000_000_000 // hz for cycle in truth["cycle"].tolist()])
    assert np.array_equal(found["time"], times.astype(np.uint64))
    loads = fired(truth, Probe.LOAD)
    has: Flags = loads | fired(truth, Probe.STORE) if adaptive else loads
    latency = np.minimum(truth["completed"] - truth["issued"], MOST_16)
    assert np.array_equal(found["weight"], np.where(has, latency, 0))
    since_dispatch = np.minimum(truth["completed"] - truth["dispatched"], MOST_16)
    assert np.array_equal(found["weight_2"], np.where(has, since_dispatch, 0) if adaptive else np.zeros(len(truth)))


@pytest.mark.parametrize(
    ("command", "core", "cpus"),
    [
        *(pytest.param(SHORT, "skylake", cpus, id=f"short-{cpus}") for cpus in (1, 4)),
        *(pytest.param(*each, id=f"{each[0].name}-{each[1]}-{each[2]}", marks=SLOW) for each in RUNS),
    ],
)
def test_pebs(command: Command, core: str, cpus: int, tmp_path: Path) -> None:
    place, truth, file = tmp_path / "place", tmp_path / "truth", tmp_path / "perf.data"
    prepare(command, place)
    truth.mkdir()
    periods, ldlat = ({Probe.LOAD: PERIODS[Probe.LOAD]}, LONG) if command is SHORT else (PERIODS, LDLAT)
    names = {
        Probe.INST_RETIRED: "instructions/period={}/ppu",
        Probe.LOAD: f"cpu/mem-loads,ldlat={ldlat},period={{}}/Pu",
        Probe.STORE: "cpu/mem-stores,period={}/Pu",
    }
    events = [names[probe].format(period) for probe, period in periods.items()]
    turns = runs.Turns(run := runs.session(command, core, cpus, place), *periods)
    record(run, events, Sampling(options=OPTIONS), str(file))
    tables, missing = samples_in(file, *(0 for _ in periods))
    file.unlink()
    assert not missing
    wanted = {
        probe.name: [
            runs.Wanted(probe, np.diff(np.array(each), prepend=0).tolist())
            for each in places(turns.turns, number, period, cpus)
        ]
        for number, (probe, period) in enumerate(periods.items())
    }
    run = runs.session(command, core, cpus, place)
    again = runs.Turns(run, *periods)
    runs.write_ops(run, wanted, truth)
    assert again.turns == turns.turns
    adaptive = core != "skylake"
    for (probe, of_cpus), table in zip(wanted.items(), tables, strict=True):
        for cpu in range(cpus):
            ops = np.fromfile(truth / f"{probe}.{cpu}", OP)
            assert len(ops) == len(of_cpus[cpu].distances)
            if probe == "INST_RETIRED":
                retired = np.memmap(truth / f"retired.{cpu}", np.uint64, "r")
                assert np.array_equal(retired[np.cumsum(of_cpus[cpu].distances, dtype=np.int64) - 1], ops["pc"])
            if probe == "LOAD":
                ops = ops[ops["completed"] - ops["issued"] > ldlat]
            found = table[table["cpu"] == cpu]
            found = found[np.argsort(found["time"], kind="stable")]
            assert len(found) == len(ops)
            check(found, ops, adaptive=adaptive, hz=run.machine.clock.frequency_hz)
            if probe == "LOAD":
                sources = data_sources(ops, Op.LOAD)
            elif probe == "STORE":
                sources = data_sources(ops, Op.STORE) if adaptive else stores_of_skylake(ops)
            else:
                sources = np.full(len(ops), int(DataSource.NOT_AVAILABLE), np.uint64)
            # an instruction that several events chose has one record, whose word is as one of them has it
            others = [np.fromfile(truth / f"{name}.{cpu}", OP) for name in wanted if name != probe and not adaptive]
            own = ~np.isin(ops["cycle"], np.concatenate([np.empty(0, OP), *others])["cycle"])
            assert own.sum() > 0.5 * len(own)
            assert np.array_equal(found["data_src"][own], sources[own])
    for path in truth.iterdir():
        path.unlink()
    counts = ", ".join(f"{len(table):,}" for table in tables)
    print(f"{command.name} on {core}, CPUs: {cpus}: {counts} records of {', '.join(wanted)}")
    assert len(tables[0]) > (100 if command is SHORT else 50_000)
