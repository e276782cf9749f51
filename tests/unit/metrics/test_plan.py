"""Which events metrics need, in which groups, and what they come to."""

from __future__ import annotations

import math

import pytest

from perfemu.errors import UsageError
from perfemu.events.parser import parse_events
from perfemu.vendor_metrics.metric import VendorMetric
from perfemu.vendor_metrics.plan import counting_on, events_needed, plan_metrics
from perfemu.vendor_metrics.tables import literals_of, metrics_of
from pmu.model import model, models

LITERALS = {"#slots": 4.0}
TABLE = {
    row.name: row
    for row in (
        VendorMetric("ratio", "d_ratio(misses, accesses)", ("caches",), "", "100%"),
        VendorMetric("twice", "2 * misses", ("caches", "others"), ""),
        VendorMetric("rest", "1 - ratio", ("others",), "", "1per access"),
        VendorMetric("wide", "cycles * #slots", ("others",), "", "1slots"),
        VendorMetric("absent", "nobody / accesses", ("caches",), ""),
    )
}


def can_count(event: str) -> bool:
    return event != "nobody"


def test_a_metric_that_needs_no_more_shares_the_events_of_another() -> None:
    plan = plan_metrics(["twice", "rest", "wide"], TABLE, LITERALS, can_count)
    assert plan.events == ("{misses,accesses}:W", "{cycles}:W")
    assert [(planned.metric.name, planned.shown_at) for planned in plan.metrics] == [
        ("twice", 0),
        ("rest", 0),
        ("wide", 2),
    ]
    assert [planned.value([25.0, 100.0, 7.0], 1.0) for planned in plan.metrics] == [50.0, 0.75, 28.0]


def test_groups_can_be_left_out() -> None:
    plan = plan_metrics(["twice", "ratio"], TABLE, LITERALS, can_count, merged=False)
    assert plan.events == ("{misses,accesses}:W", "{misses}:W")
    plan = plan_metrics(["twice", "ratio"], TABLE, LITERALS, can_count, grouped=False)
    assert plan.events == ("misses", "accesses")


def test_a_scale_is_a_factor() -> None:
    (ratio,) = plan_metrics(["ratio"], TABLE, LITERALS, can_count).metrics
    assert (ratio.value([1.0, 8.0], 1.0), ratio.metric.unit) == (12.5, "%")
    assert VendorMetric("x", "1", (), "", "1e3per_1k_instr").scale == 1000.0


def test_of_a_group_what_cannot_be_counted_is_left_out_by_name() -> None:
    plan = plan_metrics(["caches"], TABLE, LITERALS, can_count)
    assert [planned.metric.name for planned in plan.metrics] == ["ratio", "twice"]
    assert plan.left_out == ("absent (nobody)",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "stat -M absent: this core cannot count nobody"),
        ("ratoi", "stat -M ratoi: no such metric or group; did you mean ratio"),
        ("zzz", r"stat -M zzz: no such metric or group \(perfemu list metric names them all\)"),
    ],
)
def test_what_is_not_there(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_metrics([name], TABLE, LITERALS, can_count)


def test_intels_top_down_events_are_one_group_that_slots_lead() -> None:
    pmu = model("redwood_cove")
    plan = plan_metrics(["TopdownL1"], metrics_of(pmu), literals_of(pmu), lambda event: True)
    (group,) = plan.events
    assert group.startswith("{slots,topdown-")


@pytest.mark.parametrize("name", models())
def test_every_formula_can_be_computed(name: str) -> None:
    """Whether or not the model has all of its events."""
    pmu = model(name)
    table = metrics_of(pmu)
    for metric in table:
        plan = plan_metrics([metric], table, literals_of(pmu), lambda event: True)
        (planned,) = plan.metrics
        assert math.isfinite(planned.value([10.0] * len(planned.places), 1.0)), metric


@pytest.mark.parametrize(("name", "most"), [("neoverse_n1", 0), ("redwood_cove", 0), ("skylake", 0), ("zen5", 9)])
def test_most_can_be_counted(name: str, most: int) -> None:
    """`most`: how many cannot."""
    pmu = model(name)
    table, literals = metrics_of(pmu), literals_of(pmu)
    can = counting_on(lambda events: parse_events(events, pmu))
    needed = {metric: events_needed(row, table, literals) for metric, row in table.items()}
    assert len([metric for metric, events in needed.items() if not all(map(can, events))]) == most
    assert len(table) > 20
