"""What every textbook says of caches, predictors and store buffers shows on every core; docs/effects.md tells of it."""

from __future__ import annotations

from functools import cache

import pytest

import perfemu
from guests import guest

CORES = {
    "cortex-a55": "aarch64",
    "cortex-a72": "aarch64",
    "neoverse-n1": "aarch64",
    "redwood-cove": "x86_64",
    "skylake": "x86_64",
    "zen5": "x86_64",
}
# (slow form, fast form): the least ratio of their cycles. Cores differ by far more than this.
EFFECTS = {
    ("matrix-jki", "matrix-ikj"): 1.5,  # down columns misses at each element; along rows at each line
    ("columns", "rows"): 1.1,
    ("unsorted", "sorted"): 1.5,  # half of the branches is mispredicted, or next to none
    ("array-of-structs", "struct-of-arrays"): 2.0,  # one useful word of a line, or all sixteen
}
FORWARDING = ("forward-blocked", "forwarded")  # the load waits until both stores have left the store buffer
ALIASING = ("aliased", "apart")


@cache
def cycles(effect: str, core: str) -> int:
    counted = perfemu.stat(
        perfemu.Guest([guest("textbook", CORES[core]).path, effect], core=core), ["cycles:u"], capture=True
    )
    assert counted.exit_status == 0
    return counted["cycles:u"]


def ratio(forms: tuple[str, str], core: str) -> float:
    slow, fast = forms
    return cycles(slow, core) / cycles(fast, core)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("forms", EFFECTS, ids="-".join)
def test_the_slow_form_is_slower(forms: tuple[str, str], core: str) -> None:
    assert ratio(forms, core) > EFFECTS[forms]


@pytest.mark.parametrize("core", [core for core in CORES if core != "cortex-a55"])
def test_a_load_that_no_single_store_can_answer_waits(core: str) -> None:
    assert ratio(FORWARDING, core) > 2


def test_the_in_order_core_forwards_nothing() -> None:
    """Its model has no store forwarding: loads behind a store are as fast in both forms."""
    assert ratio(FORWARDING, "cortex-a55") == pytest.approx(1, abs=0.02)


def test_loads_behind_a_store_to_the_same_offset_of_another_page_are_delayed_on_skylake() -> None:
    assert ratio(ALIASING, "skylake") > 1.3


@pytest.mark.parametrize("core", [core for core in CORES if core != "skylake"])
def test_and_only_there(core: str) -> None:
    assert ratio(ALIASING, core) == pytest.approx(1, abs=0.02)
