"""Events that only some counters count: as Linux schedules them on Golden Cove and its kin, whose counters 0 to 3 count
what happens in caches, and 4 to 7 the rest."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from emulator.linux.errors import EINVAL, LinuxError
from emulator.probes import Probe
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.counter_assignment import placement
from perfcore.events.event_state import EventState
from pmu.model import model
from unit.perf_events.fake_machine import FakeMachine
from unit.perf_events.test_groups import INSTRUCTIONS

ANYWHERE = 0x02A4  # TOPDOWN.BACKEND_BOUND_SLOTS
ON_0_TO_3 = 0x0151  # L1D.REPLACEMENT
ON_0 = 0x04A4  # TOPDOWN.BAD_SPEC_SLOTS


def raw(config, **more):
    return INSTRUCTIONS.copy(type=PerfType.RAW, config=config, **more)


def machine():
    return FakeMachine("x86_64", pmu="redwood_cove")


def test_others_move_and_count_on():
    fake = machine()
    anywhere = [fake.open(raw(ANYWHERE)) for _ in range(4)]
    assert [event.hw.idx for event in anywhere] == [0, 1, 2, 3]
    fake.bank.fire(Probe.SLOTS_BACKEND, 100)
    narrow = fake.open(raw(ON_0))
    assert narrow.hw.idx == 0
    assert sorted(event.hw.idx for event in anywhere) == [1, 2, 3, 4]
    fake.bank.fire(Probe.SLOTS_BACKEND, 10)
    fake.bank.fire(Probe.SLOTS_BAD_SPECULATION, 7)
    assert [event.count() for event in (*anywhere, narrow)] == [110, 110, 110, 110, 7]
    rest = [fake.open(raw(ON_0_TO_3)) for _ in range(4)]
    assert [event.state for event in rest] == [EventState.ACTIVE] * 3 + [EventState.INACTIVE]
    assert sorted(event.hw.idx for event in anywhere) == [4, 5, 6, 7]
    fake.bank.fire(Probe.SLOTS_BACKEND, 1)
    assert [event.count() for event in anywhere] == [111] * 4


@pytest.mark.parametrize("configs", sorted(set(permutations([ON_0_TO_3] * 3 + [ON_0] + [ANYWHERE])), key=str))
def test_a_group_that_fits_fits_in_any_order(configs):
    fake = machine()
    leader = fake.open(raw(configs[0]))
    members = [leader, *(fake.open(raw(config), group=leader) for config in configs[1:])]
    assert all(event.state == EventState.ACTIVE for event in members)


@pytest.mark.parametrize("configs", [[ON_0] * 2, [ON_0_TO_3] * 5, [ON_0] + [ON_0_TO_3] * 4, [ANYWHERE] * 9])
def test_a_group_that_cannot_be_scheduled_is_refused(configs):
    fake = machine()
    leader = fake.open(raw(configs[0]))
    for config in configs[1:-1]:
        fake.open(raw(config), group=leader)
    with pytest.raises(LinuxError, match="the group needs more counters than there are") as error:
        fake.open(raw(configs[-1]), group=leader)
    assert error.value.code == EINVAL


SLOTS, RETIRING, BACKEND = 0x0400, 0x8000, 0x8300


def test_topdown_events_are_in_a_group_that_slots_lead():
    fake = machine()
    slots = fake.open(raw(SLOTS))
    shares = [fake.open(raw(config), group=slots) for config in (RETIRING, BACKEND)]
    assert slots.hw.idx == 32 + 3
    fake.bank.fire(Probe.UOPS_RETIRED, 5)
    fake.bank.fire(Probe.SLOTS_BACKEND, 3)
    assert [event.count() for event in (slots, *shares)] == [8, 5, 3]


@pytest.mark.parametrize(
    ("leader", "event"),
    [
        (None, raw(RETIRING)),
        (INSTRUCTIONS, raw(RETIRING)),
        (raw(SLOTS, sample_period=1000), raw(RETIRING)),
        (raw(SLOTS), raw(RETIRING, sample_period=1000)),
    ],
)
def test_topdown_events_are_refused_elsewhere(leader, event):
    fake = machine()
    first = fake.open(leader) if leader is not None else None
    with pytest.raises(LinuxError) as error:
        fake.open(event, group=first)
    assert error.value.code == EINVAL


def test_a_pmu_that_measures_has_no_limits():
    fake = FakeMachine("x86_64", pmu=model("redwood_cove").without_limits(), counters=9)
    events = [fake.open(raw(ON_0)) for _ in range(8)]
    assert [event.hw.idx for event in events] == list(range(8))
    assert fake.open(raw(RETIRING)).state == EventState.ACTIVE


def test_whoever_can_be_placed_is_placed():
    """Against trying all assignments of up to four events to four counters."""
    rng = random.Random(5)
    for _ in range(500):
        wants = {event: [c for c in range(4) if rng.random() < 0.5] for event in range(4)}
        holders: dict[int, int] = {}
        for event in wants:
            moves = placement(holders, wants.__getitem__, event)
            here = [*holders.values(), event]
            possible = any(len({*chosen}) == len(here) for chosen in product(*(wants[one] for one in here)))
            assert (moves is not None) == possible
            for moved, counter in moves or []:
                assert counter in wants[moved]
                holders = {c: e for c, e in holders.items() if e != moved}
                assert counter not in holders
                holders[counter] = moved
