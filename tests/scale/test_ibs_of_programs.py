"""IBS of whole programs: each sample of `record` is the truth of the very op or fetch that had to be sampled.

The truth is of another run of the same, in which the core goes step by step. That op's turn it was follows from the
period and AMD's random counts: ops begin at one of 0 to 127, fetches at one of 0 to 15. `make units` runs all.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from emulator.probes import Probe
from perfemu.events.attributes import Sampling
from pmu.amd.ibs_registers import IBS_FETCH_CTL, IBS_OP_CTL, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3
from pmu.register import Field, Register
from scale import runs
from scale.distribution import LEAST_CHANCE, fit
from scale.programs import COMMANDS, Command, prepare
from scale.samples import OP, Numbers, Table, fired, random_numbers, samples_in

PERIOD, FETCH_PERIOD = 128, 64
EVENTS = f"ibs_op/cnt_ctl=1,period={PERIOD}/u", f"ibs_fetch/rand_en=1,period={FETCH_PERIOD}/u"
OPTIONS = "raw_samples", "data", "weight", "phys_data"
OP_REGISTERS, FETCH_REGISTERS = 8, 4  # in raw data
SEED = 0x2A5C9D17  # of both shift registers
MOST_16 = np.uint64(0xFFFF)
LOADS, STORES = (Probe.LOAD,), (Probe.STORE,)
MISSES = Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE
TLB_MISSES = Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE
WALKS = Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE
NONE, LAST, OTHER_CORE, MEMORY = 0, 3, 4, 5  # levels that answer
SOURCES = {LAST: 1, OTHER_CORE: 1, MEMORY: 3}  # DataSrc; 0: L1D or L2
RUNS = [(command, "zen5" if number % 2 else "zen4", 1) for number, command in enumerate(COMMANDS)]
RUNS += [(command, "zen5", 4) for command in COMMANDS if command.name in ("xz", "threads", "fork")]
SLOW = pytest.mark.skipif(os.environ.get("UNITS") != "all", reason="a minute or two each: make units")


def field(values: Numbers, register: type[Register], name: str) -> Numbers:
    bits: Field = getattr(register, name)
    return (values & np.uint64(bits.mask)) >> np.uint64(bits.lo)


def distances(period: int, bits: int, count: int, *, first_is_random: bool) -> Numbers:
    """Of so many samples: the period, less what its count begins at."""
    begins = random_numbers(SEED, bits, count)
    if not first_is_random:
        begins = np.append(np.uint64(0), begins[:-1])
    return np.maximum(np.uint64(period) - begins, 1)


def check_ops(found: Table, truth: Table) -> None:
    control, rip, data, data2, data3, linear, physical, target = found["registers"].T
    assert np.array_equal(found["ip"], truth["pc"])
    assert np.array_equal(rip, truth["pc"])
    assert field(control, IBS_OP_CTL, "IbsOpVal").all()
    waited = np.where(truth["cycle"] > truth["completed"], truth["cycle"] - truth["completed"], np.uint64(0))
    assert np.array_equal(field(data, IBS_OP_DATA, "IbsCompToRetCtr"), np.minimum(waited, MOST_16))
    taken = np.minimum(truth["cycle"] - truth["dispatched"], MOST_16)
    assert np.array_equal(field(data, IBS_OP_DATA, "IbsTagToRetCtr"), taken)
    for name, probe in {
        "IbsOpReturn": Probe.BR_RETURN,
        "IbsOpBrnTaken": Probe.BR_TAKEN,
        "IbsOpBrnMisp": Probe.BR_MISPREDICTED,
        "IbsOpBrnRet": Probe.BR_RETIRED,
    }.items():
        assert np.array_equal(field(data, IBS_OP_DATA, name), fired(truth, probe)), name
    assert np.array_equal(target, np.where(fired(truth, Probe.BR_TAKEN), truth["next"], 0))
    loads, stores = fired(truth, *LOADS), fired(truth, *STORES)
    accesses = loads | stores
    missed, missed_tlb = fired(truth, *MISSES) & accesses, fired(truth, *TLB_MISSES) & accesses
    for name, wanted in {
        "IbsLdOp": loads,
        "IbsStOp": stores,
        "IbsDcMiss": missed,
        "IbsDcL1TlbMiss": missed_tlb,
        "IbsDcL2TlbMiss": fired(truth, *WALKS) & accesses,
        "IbsDcMisAcc": fired(truth, Probe.UNALIGNED_LOAD, Probe.UNALIGNED_STORE) & accesses,
        "IbsDcLockedOp": fired(truth, Probe.LOCKED) & accesses,
        "L2Miss": fired(truth, Probe.L2_REFILL_LOAD, Probe.L2_REFILL_STORE) & accesses,
        "IbsDcMissLat": np.where(missed, np.minimum(truth["waited"], MOST_16), 0),
        "IbsTlbRefillLat": np.where(missed_tlb, np.minimum(truth["walked"], MOST_16), 0),
        "IbsDcLinAddrValid": accesses,
        "IbsDcPhyAddrValid": accesses,
    }.items():
        assert np.array_equal(field(data3, IBS_OP_DATA3, name), wanted), name
    assert truth["known"][accesses].all()
    assert np.array_equal(linear, np.where(accesses, truth["address"], 0))
    assert np.array_equal(physical, np.where(accesses, truth["physical"], 0))
    assert np.array_equal(found["addr"], linear)
    assert np.array_equal(found["phys_addr"], physical)
    sizes = np.where(accesses & (truth["size"] & truth["size"] - 1 == 0), truth["size"], 0)
    widths = field(data3, IBS_OP_DATA3, "IbsOpMemWidth")
    small = accesses & (sizes > 0) & (sizes <= 64)
    assert np.array_equal(np.uint64(1) << widths[small] - np.uint64(1), sizes[small])
    assert not widths[~small].any()
    sources = np.select([loads & (truth["level"] == level) for level in SOURCES], [*SOURCES.values()], 0)
    assert np.array_equal(field(data2, IBS_OP_DATA2, "DataSrcLo"), sources)
    clean = loads & np.isin(truth["level"], (LAST, OTHER_CORE)) & ~fired(truth, Probe.FETCHED_HITM)
    assert np.array_equal(field(data2, IBS_OP_DATA2, "CacheHitSt"), clean)
    late = missed & loads
    assert np.array_equal(found["weight"], np.where(late, np.minimum(truth["waited"], MOST_16), 0))
    assert np.array_equal(found["weight_2"], np.where(late, taken, 0))


def check_fetches(found: Table, truth: Table) -> None:
    control, linear, physical, extended = found["registers"].T
    assert np.array_equal(found["ip"], truth["pc"])
    assert np.array_equal(linear, truth["pc"])
    assert np.array_equal(physical & np.uint64(0xFFF), truth["pc"] & np.uint64(0xFFF))
    missed_tlb = fired(truth, Probe.ITLB_REFILL)
    late = fired(truth, Probe.L1I_REFILL) | missed_tlb
    known = late & ~fired(truth, *MISSES, *TLB_MISSES)  # else what is known is how long it waited for data
    walked = np.minimum(truth["walked"], MOST_16)
    for name, wanted in {
        "IbsFetchVal": np.ones(len(truth)),
        "IbsFetchComp": np.ones(len(truth)),
        "IbsPhyAddrValid": np.ones(len(truth)),
        "IbsIcMiss": fired(truth, Probe.L1I_REFILL),
        "IbsL1TlbMiss": missed_tlb,
        "IbsL2TlbMiss": fired(truth, Probe.ITLB_WALK),
        "IbsFetchL2Miss": fired(truth, Probe.L2_REFILL_FETCH),
        "IbsFetchL3Miss": fired(truth, Probe.LL_REFILL_FETCH),
        "IbsFetchLat": np.where(known, np.minimum(truth["walked"] + truth["waited"], MOST_16), 0),
    }.items():
        assert np.array_equal(field(control, IBS_FETCH_CTL, name), wanted), name
    assert np.array_equal(extended, np.where(known & missed_tlb, walked, 0))


@SLOW
@pytest.mark.parametrize(
    ("command", "core", "cpus"), [pytest.param(*each, id=f"{each[0].name}-{each[1]}-{each[2]}") for each in RUNS]
)
def test_ibs(command: Command, core: str, cpus: int, tmp_path: Path) -> None:
    place, truth, file = tmp_path / "place", tmp_path / "truth", tmp_path / "perf.data"
    prepare(command, place)
    truth.mkdir()
    runs.sampled_on_cpus(runs.session(command, core, cpus, place), EVENTS, file, Sampling(options=OPTIONS))
    (ops, fetches), missing = samples_in(file, OP_REGISTERS, FETCH_REGISTERS)
    file.unlink()
    assert not missing
    number = range(cpus)
    of_ops, of_fetches = ([each[each["cpu"] == cpu] for cpu in number] for each in (ops, fetches))
    op_distances = [distances(PERIOD, 7, len(each) + 1, first_is_random=False) for each in of_ops]
    fetch_distances = [distances(FETCH_PERIOD, 4, len(each) + 1, first_is_random=True) for each in of_fetches]
    wanted = {
        "op": [runs.Wanted(Probe.INST_RETIRED, each, from_now=True) for each in op_distances],
        "fetch": [runs.Wanted(Probe.L1I_ACCESS, each, from_now=True) for each in fetch_distances],
    }
    runs.write_ops(runs.session(command, core, cpus, place), wanted, truth, fetched=True)
    for cpu in number:
        check_ops(of_ops[cpu], true := np.fromfile(truth / f"op.{cpu}", OP))
        retired = np.memmap(truth / f"retired.{cpu}", np.uint64, "r")
        assert np.array_equal(retired[np.cumsum(op_distances[cpu])[: len(true)] - np.uint64(1)], true["pc"])
        check_fetches(of_fetches[cpu], np.fromfile(truth / f"fetch.{cpu}", OP))
    fits = []
    for name, found in ("retired", ops), ("fetched", fetches):
        executed = np.concatenate([np.fromfile(truth / f"{name}.{cpu}", np.uint64) for cpu in number])
        fits.append(fit(executed, found["ip"]))
    for path in truth.iterdir():
        path.unlink()
    print(f"{command.name} on {core}, CPUs: {cpus}: {len(ops):,} ops, {fits[0]}; {len(fetches):,} fetches, {fits[1]}")
    assert len(ops) > 100_000
    assert len(fetches) > 1000
    assert min(each.chance for each in fits) > LEAST_CHANCE
