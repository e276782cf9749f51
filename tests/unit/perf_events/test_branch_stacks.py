"""Samples have the branches before them, as the core's own recorder has them: each core's driver, through registers."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import pytest

from emulator._native import RetirementRecorder
from guests import guest
from perfcore.abi.constants import BRANCH_TYPE_SHIFT, BranchFlag, BranchType, RecordType
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import open_perf_data
from perfemu.events.attributes import Sampling
from perfemu.events.branch_filters import branch_filter
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session
from pmu.branch_records import BranchKind

PERIOD = 97
TAKEN = {
    "skylake": "br_inst_retired.near_taken",
    "redwood-cove": "br_inst_retired.near_taken",
    "zen5": "ex_ret_brn_tkn",
}
ENTRIES = {"skylake": 32, "redwood-cove": 32, "zen5": 16}
KINDS = {  # filter -> what it keeps
    "any": [kind for kind in BranchKind if kind],
    "any_call": [BranchKind.CALL, BranchKind.INDIRECT_CALL],
    "any_ret": [BranchKind.RETURN],
    "ind_call": [BranchKind.INDIRECT_CALL],
    "ind_jmp": [BranchKind.INDIRECT],
    "cond": [BranchKind.CONDITIONAL],
    "call": [BranchKind.CALL],
}
TYPES = {
    BranchKind.CONDITIONAL: BranchType.COND,
    BranchKind.DIRECT: BranchType.UNCOND,
    BranchKind.INDIRECT: BranchType.IND,
    BranchKind.CALL: BranchType.CALL,
    BranchKind.INDIRECT_CALL: BranchType.IND_CALL,
    BranchKind.RETURN: BranchType.RET,
}
Branch = tuple[int, int, int, int, bool, bool]  # from, to, cycle, kind, taken, mispredicted


def recorded(core: str, filters: str, path: Path) -> tuple[list[Branch], list[Sample]]:
    """All taken branches of a program, and its samples: one in so many taken branches."""
    session = Session(Guest([str(guest("embedded_mix", "x86_64").path), "2"], core=core, stdout=-1))
    recorder = RetirementRecorder(keep=True)
    session.machine.cpus[0].core.listen(recorder)
    sampling = Sampling(None, PERIOD, branches=branch_filter(filters))
    record(session, [f"{TAKEN[core]}:u"], sampling, str(path))
    with open_perf_data(str(path)) as file:
        found = [each for each in file.records() if each.type == RecordType.SAMPLE]
        samples = [file.decode_sample(each, file.event_number(each)) for each in found]
    return [branch for branch in recorder.take_branches() if branch[4]], samples


class Truth:
    """Of all taken branches those that a filter keeps."""

    def __init__(self, branches: list[Branch], filters: str) -> None:
        kept = [(number, branch) for number, branch in enumerate(branches) if branch[3] in KINDS[filters]]
        self._numbers = [number for number, _ in kept]
        self._kept = [(branch[0], branch[1], int(branch[5])) for _, branch in kept]

    def newest(self, before: int, entries: int) -> list[tuple[int, int, int]]:
        """(from, to, mispredicted), when so many branches had been taken."""
        end = bisect_left(self._numbers, before)
        return self._kept[max(end - entries, 0) : end][::-1]


@pytest.mark.parametrize("core", TAKEN)
@pytest.mark.parametrize("filters", KINDS)
def test_samples_have_the_branches_before_them(core: str, filters: str, tmp_path: Path) -> None:
    """The counter counts taken branches, and system calls: sample n is right behind the (n * PERIOD)th of both."""
    branches, samples = recorded(core, filters, tmp_path / "perf.data")
    assert len(samples) >= len(branches) // PERIOD > 20
    truth = Truth(branches, filters)
    calls = 0  # system calls until then
    for number, sample in enumerate(samples, 1):
        found = [(entry.from_ip, entry.to_ip, entry.flags & BranchFlag.MISPRED) for entry in sample.branches]
        while found != truth.newest(number * PERIOD - calls, ENTRIES[core]):
            calls += 1
            assert calls < PERIOD, f"sample {number} has {found}"


@pytest.mark.parametrize("core", TAKEN)
def test_types(core: str, tmp_path: Path) -> None:
    branches, samples = recorded(core, "any,save_type", tmp_path / "perf.data")
    kinds = {branch[0]: branch[3] for branch in branches}
    entries = [entry for sample in samples for entry in sample.branches]
    assert len(entries) > 20 * ENTRIES[core] // 2
    for entry in entries:
        assert entry.flags >> BRANCH_TYPE_SHIFT & 0xF == TYPES[BranchKind(kinds[entry.from_ip])]
