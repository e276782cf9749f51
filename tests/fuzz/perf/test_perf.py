"""Programs that use perf_event_open, ptrace and bpf from several threads: all goes on, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fuzz.campaign import ISAS, Campaign
from fuzz.perf.program import PerfProgram
from fuzz.perf.run import PERF, Counters, left_behind
from fuzz.run import CALLS
from perfcore.abi.bpf import MapType
from perfcore.abi.read_format import ReadValues
from unit.bpf.programs import Workbench

SEEDS = 12  # some seconds of each ISA's; `make fuzz` goes on
USED = {"perf_event_open", "bpf", "ioctl", "mmap", "munmap", "read", "ptrace", "prctl", "clone", "dup3"}


@pytest.mark.parametrize("isa", ISAS)
def test_random_use_of_perf_events_and_bpf(isa: str, tmp_path: Path) -> None:
    campaign = Campaign((isa,), 0, tmp_path, PERF)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    assert campaign.tasks > SEEDS  # some have threads
    assert not USED & set(campaign.never_succeeded(isa))


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_follows_from_its_seed(isa: str) -> None:
    programs = [PerfProgram(isa, seed, CALLS, "/inside", "/inside/program").elf() for seed in (7, 7, 8)]
    assert programs[0] == programs[1] != programs[2]


def test_a_counter_that_goes_backward_is_heard() -> None:
    counters, event = Counters(), cast(Any, "an event")
    for value, enabled, running in ((5, 10, 10), (5, 12, 11), (4, 12, 11), (6, 12, 13), (6, 14, 12)):
        counters.hear(event, ReadValues(value, enabled, running, 1, 0))
    assert counters.backward == [
        "an event: value 5, then 4",
        "an event: runs 13 of 12 ns",
        "an event: running 13, then 12",
    ]
    counters.reset(event)
    counters.hear(event, ReadValues(0, 14, 13, 1, 0))
    assert len(counters.backward) == 3


def test_a_map_that_nobody_has_is_seen() -> None:
    bench = Workbench()
    assert left_behind(bench.bpf) == ""
    bench.map(MapType.ARRAY, 4, 8, 1)
    assert left_behind(bench.bpf) == "of no process any more: {'maps': 1, 'programs': 0, 'links': 0, 'types': 0}"
