"""The grammar of metrics' expressions, by the values that perf's own tests of it have (tools/perf/tests/expr.c)."""

from __future__ import annotations

import math

import pytest

from perfemu.vendor_metrics.expression import ExpressionError, parse

VALUES = {"FOO": 1.0, "BAR": 2.0, "#slots": 6.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+1", 2),
        ("FOO+BAR", 3),
        ("(BAR/2)%2", 1),
        ("1 - -4", 5),
        ("(FOO-1)*2 + (BAR/2)%2 - -4", 5),
        ("1-1 | 1", 1),
        ("1-1 & 1", 0),
        ("1 ^ 1", 0),
        ("min(1,2) + 1", 2),
        ("max(1,2) + 1", 3),
        ("1+1 if 3*4 else 0", 2),
        ("100 if 1 else 200 if 1 else 300", 100),
        ("100 if 0 else 200 if 1 else 300", 200),
        ("100 if 0 else 200 if 0 else 300", 300),
        ("1.1 + 2.1", 3.2),
        (".1 + 2.", 2.1),
        ("d_ratio(1, 2)", 0.5),
        ("d_ratio(2.5, 0)", 0),
        ("1.1 < 2.2", 1),
        ("2.2 > 1.1", 1),
        ("1.1 < 1.1", 0),
        ("2.2 > 2.2", 0),
        ("1e3 * FOO", 1000),
        ("8 - 4 - 2", 2),
        ("16 / 4 / 2", 2),
        ("2 * #slots", 12),
    ],
)
def test_a_value(text: str, value: float) -> None:
    assert parse(text).compute(VALUES) == pytest.approx(value)


def test_nothing_is_divided_by_zero() -> None:
    assert math.isnan(parse("FOO/0").compute(VALUES))
    assert math.isnan(parse("FOO % 0").compute(VALUES))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FOO + BAR * FOO", ("FOO", "BAR")),
        (r"EVENT1\,param\=3@", ("EVENT1,param=3/",)),
        (r"8 * cpu@a.b\,cmask\=0x8@", ("cpu/a.b,cmask=0x8/",)),
        (r"topdown\-fe\-bound / slots", ("topdown-fe-bound", "slots")),
        ("dash-FOO", ("dash", "FOO")),
        ("#slots * CPU_CYCLES", ("#slots", "CPU_CYCLES")),
        ("min(a, b) if c else d_ratio(e, 4)", ("a", "b", "c", "e")),
    ],
)
def test_the_names_in_it(text: str, names: tuple[str, ...]) -> None:
    assert set(parse(text).names) == set(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' ends where a value is due"),
        ("FOO +", "'FOO .' ends where a value is due"),
        ("(1 + 2", r"'\(1 . 2' ends where \) is due"),
        ("1 2", "'1 2': '2' is one too many"),
        ("min(1)", r"'\)' where , is due"),
        ("1 if 2", "ends where else is due"),
        ("1 $ 2", r"'\$' is not of an expression"),
        ("* 2", r"'\*' where a value is due"),
    ],
)
def test_what_is_none(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse(text)
