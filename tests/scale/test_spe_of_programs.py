"""SPE of whole programs: each record of `record` is the truth of the very instruction that had to be sampled.

The truth is of another run of the same, in which the core goes step by step. Which ones are sampled follows from the
interval and the random number of 8 bits that is added to it; those that meet one which is not through are lost, and
the unit says so. `make units` runs all.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from emulator.probes import Probe
from perfcore.abi.constants import AuxFlag
from perfcore.abi.records import Aux
from perfcore.perfdata.reader import open_perf_data
from perfemu.events.attributes import Sampling
from scale import runs
from scale.distribution import LEAST_CHANCE, fit
from scale.programs import FOR_AARCH64, Command, prepare_aarch64
from scale.samples import OP, Table, random_numbers
from spe_records import BRANCH, EVENTS, LOAD, OTHER, SOURCES, STORE, SpeRecord, read_records, traces_in

INTERVAL = 1024
EVENT = "arm_spe_0/ts_enable=1,pa_enable=1,jitter=1/u"
SEED = 0x6C078965  # of the shift register
AUX_PAGES = 4096
MOST_CYCLES = 4095
MASKS = {1 << bit: sum(1 << probe for probe in probes) for bit, probes in EVENTS.items()}
NOT_TAKEN, CONDITIONAL, INDIRECT = 1 << 6, 1, (3, 5, 6)  # kinds of branches
RUNS = [(command, 1) for command in FOR_AARCH64]
RUNS += [(command, 4) for command in FOR_AARCH64 if command.name in ("xz", "threads", "fork")]
SLOW = pytest.mark.skipif(os.environ.get("UNITS") != "all", reason="a minute or two each: make units")


def has(fired: int, *probes: Probe) -> bool:
    return any(fired >> probe & 1 for probe in probes)


def memory_operation(fired: int) -> int:
    """Subclass: of an atomic, an exclusive one, or of general or vector registers; bit 0: it stores."""
    loads, stores = has(fired, Probe.LOAD), has(fired, Probe.STORE)
    if has(fired, Probe.LOAD_EXCLUSIVE, Probe.STORE_EXCLUSIVE):
        return 0b1010 | has(fired, Probe.STORE_EXCLUSIVE)
    if loads and stores:
        return 0b0110
    return int(stores) | has(fired, Probe.SIMD_OP) << 2


def wanted_record(op: np.void, context: int, time: Callable[[int], int]) -> SpeRecord:
    """What is to be said of an instruction."""
    pc, following, address, physical, _, *times, low, high, _, level, branch, known = op.item()
    dispatched, issued, completed, walked, _ = times
    fired = low | high << 64
    loads, stores = has(fired, Probe.LOAD), has(fired, Probe.STORE)
    events = sum(bit for bit, mask in MASKS.items() if fired & mask)
    if branch == CONDITIONAL and not has(fired, Probe.BR_TAKEN):
        events |= NOT_TAKEN
    record = SpeRecord(
        addresses={"pc": pc},
        cycles={"issue": min(issued - dispatched, MOST_CYCLES), "total": min(completed - dispatched, MOST_CYCLES)},
        level=0,
        kind=LOAD if loads else STORE if stores else BRANCH if branch else OTHER,
        payload=0,
        events=events,
        context=context,
        timestamp=time(completed),
    )
    if loads or stores:
        record.payload = memory_operation(fired)
        if record.payload & 1:
            record.kind = STORE
        assert known
        record.addresses |= {"virtual": address, "physical": physical}
        record.cycles["translation"] = min(walked, MOST_CYCLES)
        record.source = SOURCES.get(level) if loads else None
    elif branch:
        record.payload = (branch == CONDITIONAL) | (branch in INDIRECT) << 1
        record.addresses["target"] = following
    return record


def through(ops: Table) -> Iterator[int]:
    """Which of them: those that do not meet the one before, which is not through."""
    busy = 0
    for number, (dispatched, completed) in enumerate(ops[["dispatched", "completed"]].tolist()):
        if dispatched >= busy:
            busy = completed
            yield number


class Contexts:
    """Which task each instruction of a CPU is of."""

    def __init__(self, turns: Sequence[runs.Turn], cpu: int) -> None:
        here = [turn for turn in turns if turn.cpu == cpu and turn.ended > turn.began]
        self._begins, self._tids = [turn.began[0] for turn in here], [turn.tid for turn in here]

    def at(self, position: int) -> int:
        return self._tids[bisect_right(self._begins, position) - 1]


@SLOW
@pytest.mark.parametrize(("command", "cpus"), [pytest.param(*each, id=f"{each[0].name}-{each[1]}") for each in RUNS])
def test_spe(command: Command, cpus: int, tmp_path: Path) -> None:
    place, truth, file = tmp_path / "place", tmp_path / "truth", tmp_path / "perf.data"
    root = prepare_aarch64(command, place)
    truth.mkdir()
    make = lambda: runs.session(command, "neoverse-n1", cpus, place, root=root)  # noqa: E731
    runs.sampled_on_cpus(make(), [EVENT], file, Sampling(period=INTERVAL), AUX_PAGES)
    traces = [bytearray() for _ in range(cpus)]
    for cpu, trace in traces_in(file.read_bytes()):
        traces[cpu] += trace
    with open_perf_data(str(file)) as recording:
        told = [recording.decode_record(each) for each in recording.records() if each.type == Aux.TYPE]
    file.unlink()
    flags = [each.flags for each in told if isinstance(each, Aux)]
    assert not any(each & AuxFlag.TRUNCATED for each in flags)
    found = [read_records(bytes(trace)) for trace in traces]
    distances = [
        np.append(np.uint64(INTERVAL), INTERVAL + random_numbers(SEED, 8, len(each) * 2 + 8)) for each in found
    ]
    wanted = {"op": [runs.Wanted(Probe.INST_RETIRED, each) for each in distances]}
    turns = runs.Turns(run := make(), Probe.INST_RETIRED)
    runs.write_ops(run, wanted, truth)
    sampled, lost = [], 0
    for cpu in range(cpus):
        ops = np.fromfile(truth / f"op.{cpu}", OP)
        assert len(ops) < len(distances[cpu])
        positions = np.cumsum(distances[cpu])[: len(ops)] - np.uint64(1)
        retired = np.memmap(truth / f"retired.{cpu}", np.uint64, "r")
        assert np.array_equal(retired[positions], ops["pc"])
        contexts = Contexts(turns.turns, cpu)
        recorded = list(through(ops))
        lost += len(ops) - len(recorded)
        assert len(found[cpu]) == len(recorded)
        for record, number in zip(found[cpu], recorded, strict=True):
            context = contexts.at(int(positions[number]))
            assert record == wanted_record(ops[number], context, run.machine.clock.monotonic_at)
        sampled += [record.addresses["pc"] for record in found[cpu]]
    assert any(each & AuxFlag.COLLISION for each in flags) == (lost > 0)
    executed = np.concatenate([np.fromfile(truth / f"retired.{cpu}", np.uint64) for cpu in range(cpus)])
    fitted = fit(executed, np.array(sampled, np.uint64))
    for path in truth.iterdir():
        path.unlink()
    print(f"{command.name}, CPUs: {cpus}: {len(sampled):,} records, {lost} collisions, {fitted}")
    assert len(sampled) > 5000
    assert fitted.chance > LEAST_CHANCE
