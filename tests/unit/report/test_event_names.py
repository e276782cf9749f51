"""What events are called whose file does not name them: as perf evlist calls them in a file without EVENT_DESC."""

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfemu.profile.event_names import event_name

HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW = range(5)


@pytest.mark.parametrize(
    ("type_", "config", "name"),
    [
        (HARDWARE, 0, "cycles"),
        (HARDWARE, 9, "ref-cycles"),
        (SOFTWARE, 2, "page-faults"),
        (SOFTWARE, 5, "minor-faults"),
        (SOFTWARE, 6, "major-faults"),
        (CACHE, 0x00000, "L1-dcache-loads"),
        (CACHE, 0x10002, "LLC-load-misses"),
        (CACHE, 0x10004, "iTLB-load-misses"),
        (CACHE, 0x10005, "branch-load-misses"),
        (CACHE, 0x00104, "unknown attr type: 3, config 0x104"),  # nobody stores to the ITLB
        (TRACEPOINT, 7, "unknown attr type: 2, config 0x7"),
        (RAW, 0xC4, "raw 0xc4"),
    ],
)
def test_names(type_: int, config: int, name: str) -> None:
    assert event_name(PerfEventAttr(type=type_, config=config)) == name
    assert event_name(PerfEventAttr(type=type_, config=config, exclude_kernel=1, exclude_hv=1)) == f"{name}:u"
