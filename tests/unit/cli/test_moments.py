"""What -D and -I take: simulated time, instructions, ranges; and what they say of anything else."""

import pytest

from perfemu.moments import Span, read_delay, read_span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1", Span(ns=1_000_000)),  # ms, as perf's
        ("0.2", Span(ns=200_000)),
        ("1.5s", Span(ns=1_500_000_000)),
        ("20us", Span(ns=20_000)),
        ("250ns", Span(ns=250)),
        ("1000000i", Span(instructions=1_000_000)),
    ],
)
def test_spans(text: str, span: Span) -> None:
    assert read_span(text) == span


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "5m", "1.5i", "0i", "i", "1e40"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|instructions"):
        read_span(text)


def test_a_delay_says_when_counting_begins_and_ends() -> None:
    assert read_delay("-1") == ()
    assert read_delay("100i") == (Span(instructions=100),)
    assert read_delay("10us-20us,30us") == tuple(Span(ns=us * 1000) for us in (10, 20, 30))
    assert read_delay("10-20,30-40") == tuple(Span(ns=ms * 1_000_000) for ms in (10, 20, 30, 40))


@pytest.mark.parametrize("text", ["-7", "20-10", "10-20,15-30", "10,20-30", "10i-20", "1-2-3", "0"])
def test_what_is_no_delay(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranges|time"):
        read_delay(text)
