"""Every event row has the vendor's code and the vendor's spelling, and no row claims a part that lacks it.

Checked against small extracts beside this file, and, where PERFEMU_VENDOR_EVENTS names a folder that holds the vendors'
whole lists (arm-*.json of ARM-software/data, intel-skylake_core.json of intel/perfmon), against those too; AMD's
against what Debian's perf has built in (tests/interop/test_perf_knows_our_events.py).
"""

import json
import os
from pathlib import Path

import pytest

from pmu.amd import event_rows as amd_rows
from pmu.amd.core_pmu import GENERIC_CACHE_EVENTS, GENERIC_EVENTS
from pmu.arm.event_rows import OWN
from pmu.event import Event
from pmu.intel.event_rows import TOP_DOWN
from pmu.model import model, models

HERE = Path(__file__).parent
WHOLE_LISTS = os.environ.get("PERFEMU_VENDOR_EVENTS")
NOT_THE_VENDORS = {event.name for event in (*OWN, *TOP_DOWN, *amd_rows.OWN)} - {"TOPDOWN.SLOTS"}
LISTED = [name for name in models() if name != "loongarch"]  # of which Linux alone lists any: test_loongarch.py
SLOTS_ON_ANY_COUNTER = next(event for event in TOP_DOWN if event.name == "TOPDOWN.SLOTS")


def extract(name: str) -> set[tuple[int, str]]:
    lines = (HERE / name).read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(int(code, 16), event) for code, event, *_ in rows}


def parts() -> dict[str, set[int]]:
    """Model -> the codes that its real part has."""
    codes: dict[str, set[int]] = {}
    for line in (HERE / "arm-parts.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, *numbers = line.split()
            codes.setdefault(name, set()).update(int(number, 16) for number in numbers)
    return codes


def arm_lists(folder: Path) -> set[tuple[int, str]]:
    rows = [row for path in sorted(folder.glob("arm-*.json")) for row in json.loads(path.read_text())["events"]]
    return {(row["code"], row["name"]) for row in rows if "name" in row}


def intel_list(folder: Path, part: str) -> set[tuple[int, str]]:
    rows = json.loads((folder / f"intel-{part}_core.json").read_text())["Events"]
    fields = (
        ("EventCode", 16, 0),
        ("UMask", 16, 8),
        ("EdgeDetect", 10, 18),
        ("Invert", 10, 23),
        ("CounterMask", 10, 24),
    )
    return {
        (sum(int(row[key], base) << place for key, base, place in fields), row["EventName"])
        for row in rows
        if "," not in row["EventCode"]
    }


# By model, else by instruction set
KNOWN = {
    "aarch64": [extract("arm.txt")],
    "x86_64": [extract("intel-skylake.txt")],
    "redwood_cove": [extract("intel-graniterapids.txt")],
    "zen4": [extract("amd-zen4.txt")],
    "zen5": [extract("amd-zen5.txt")],
}
if WHOLE_LISTS is not None:
    KNOWN["aarch64"].append(arm_lists(Path(WHOLE_LISTS)))
    KNOWN["x86_64"].append(intel_list(Path(WHOLE_LISTS), "skylake"))
    KNOWN["redwood_cove"].append(intel_list(Path(WHOLE_LISTS), "graniterapids"))


def lists_for(name: str) -> list[set[tuple[int, str]]]:
    return KNOWN.get(name) or KNOWN[model(name).isa]


@pytest.mark.parametrize(
    ("name", "event"), [pytest.param(name, event, id=event.name) for name in LISTED for event in model(name).events]
)
def test_code_and_name_are_the_vendors(name: str, event: Event) -> None:
    if event.name in NOT_THE_VENDORS or event == SLOTS_ON_ANY_COUNTER:
        assert "perfemu's own" in event.note or "later parts" in event.note
        return
    if amd_rows.EARLIER in event.note:  # Zen 1's and 2's
        assert (event.code, event.name) in extract("amd-zen2.txt")
        return
    if amd_rows.OWN_MASK in event.note:
        assert not event.listed
        assert event.code in (*GENERIC_EVENTS.values(), *GENERIC_CACHE_EVENTS.values())
        return
    for known in lists_for(name):
        assert (event.code, event.name) in known


@pytest.mark.parametrize("name", parts())
def test_what_the_real_part_lacks_says_so(name: str) -> None:
    codes = parts()[name]
    lacking = {
        event.name for event in model(name).events if event.code not in codes and event.name not in NOT_THE_VENDORS
    }
    assert lacking == {event.name for event in model(name).events if "no real " in event.note}
    # all of them are architectural: nothing of another part's own has crept in
    assert all(event.code < 0x40 or event.code >= 0x4000 for event in model(name).events if event.name in lacking)


@pytest.mark.parametrize("name", LISTED)
def test_what_the_vendor_lists_and_no_row_counts_is_refused_by_name(name: str) -> None:
    """A guest would read 0 for it otherwise. Arm's numbers from 0xc0 on are a part's own, so of that part only."""
    pmu = model(name)
    (known, *_) = lists_for(name)
    own = parts().get(name, set())
    for code, event in known:
        if pmu.isa == "aarch64" and not (code < 0xC0 or 0x4000 <= code < 0x4040 or code in own):
            continue
        counted = pmu.counted_by(code)
        assert counted is not None or pmu.cannot_know(code) is not None, f"{code:#06x} {event}"
        assert counted is None or pmu.cannot_know(code) is None


def test_counters_are_those_that_the_vendor_gives() -> None:
    """The list's third column, for our rows; where Linux's constraints, which we have, come from another source."""
    pmu = model("redwood_cove")
    lines = (HERE / "intel-graniterapids.txt").read_text().splitlines()
    listed = {name: counters for _, name, counters in (line.split() for line in lines if not line.startswith("#"))}
    for event in pmu.events:
        if event.name in NOT_THE_VENDORS:
            continue
        fixed = any(counter.event == event.name for counter in pmu.fixed_counters)
        counters = "fixed" if fixed else f"{pmu.counters_for(event.code) & (1 << pmu.counters) - 1:#x}"
        assert counters == listed[event.name], event.name
