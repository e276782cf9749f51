"""On boards a guest's own kernel executes: branches of the levels that were asked for are recorded, and no others."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest

from guests import BoardGuest, board_guests
from perfcore.abi.constants import (
    BRANCH_PRIV_SHIFT,
    BRANCH_TYPE_SHIFT,
    BranchPrivilege,
    BranchSampleType,
    BranchType,
    RecordType,
)
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import open_perf_data
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import Scope

ANY, USER, KERNEL = BranchSampleType.ANY, BranchSampleType.USER, BranchSampleType.KERNEL
UNITS = {"virt": ("neoverse-n1", ("brbe",)), "pc": ("skylake", ())}
PERIOD = 2
EXCEPTIONS = (BranchType.SYSCALL, BranchType.IRQ, BranchType.EXTEND_ABI)
GUESTS = [guest for guest in board_guests() if guest.name in ("board_interrupts", "board_pmu_fixed")]
assert {guest.board for guest in GUESTS} == set(UNITS)


def samples_of(guest: BoardGuest, levels: int, period: int, path: Path) -> list[Sample]:
    core, units = UNITS[guest.board]
    request = BoardRequest(guest.board, semihosting=guest.board == "virt")
    machine = Guest([str(guest.path)], core=core, units=units, cpus=guest.cpus)
    session = BoardSession(machine, request, BytesIO(), lambda line: None)
    sampling = Sampling(None, period, branches=int(ANY | levels))
    record(session, ["instructions"], sampling, str(path), scope=Scope(cpus=tuple(range(guest.cpus))))
    with open_perf_data(str(path)) as file:
        samples = [file.decode_sample(each, 0) for each in file.records() if each.type == RecordType.SAMPLE]
    assert len(samples) > 10
    return samples


def entries(guest: BoardGuest, levels: int, path: Path) -> set[tuple[int, int, int]]:
    """(from, to, flags without cycles and predictions) of all samples' branches."""
    return {
        (entry.from_ip, entry.to_ip, entry.flags >> BRANCH_PRIV_SHIFT)
        for each in samples_of(guest, levels, PERIOD, path)
        for entry in each.branches
    }


@pytest.mark.parametrize("guest", GUESTS, ids=str)
def test_levels(guest: BoardGuest, tmp_path: Path) -> None:
    """board_pmu_fixed has no branches at privilege 3 but far calls: what leads there is three times the same return."""
    of_user, of_kernel = entries(guest, USER, tmp_path / "user"), entries(guest, KERNEL, tmp_path / "kernel")
    assert of_user
    assert guest.board == "virt" or len({target for _, target, _ in of_user}) == 1
    assert of_kernel
    assert not {entry[:2] for entry in of_user} & {entry[:2] for entry in of_kernel}
    if guest.board == "virt":
        assert {entry[2] for entry in of_user} == {BranchPrivilege.USER}
        # What leaves for EL0 is of no known privilege, and goes nowhere: half of a record.
        assert {(entry[2], bool(entry[1])) for entry in of_kernel} == {
            (BranchPrivilege.KERNEL, True),
            (BranchPrivilege.UNKNOWN, False),
        }
    together = entries(guest, USER | KERNEL, tmp_path / "both")
    assert together & of_kernel
    assert bool(together & of_user) == bool(of_user)


# Of exceptions for debuggers, which others make, Linux's driver tells nobody.
WITHOUT_DEBUGGERS = ("board_interrupts", "board_paging", "board_pmu_el0")
PATHS = [guest for guest in board_guests() if guest.board == "virt" and guest.name in WITHOUT_DEBUGGERS]


@pytest.mark.parametrize("guest", PATHS, ids=str)
def test_they_lead_from_each_instruction_to_the_next(guest: BoardGuest, tmp_path: Path) -> None:
    """BRBE, at both levels: a sample behind each instruction has the branch that it was, or what has come before it and
    behind it, exceptions and returns; and nothing else has happened."""
    samples = samples_of(guest, USER | KERNEL, 1, tmp_path / "perf.data")
    exceptions = 0
    for before, sample in pairwise(samples):
        place, has_executed = before.ip, False
        for entry in reversed(sample.branches):
            takes = entry.flags >> BRANCH_TYPE_SHIFT & 0xF in EXCEPTIONS
            if takes and entry.from_ip == place + 4 and not has_executed:  # behind the instruction, as that of SVC
                has_executed = True
            else:
                assert entry.from_ip == place
                assert takes or not has_executed
                has_executed |= not takes
            place = entry.to_ip
            exceptions += takes
        assert sample.ip == place + (0 if has_executed else 4)
    assert exceptions
