"""The wire format, by the examples of https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations

import pytest

from perfemu.protobuf import Message, varint


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (150, "9601"), (300, "ac02"), (-2, "fe" + "ff" * 8 + "01")],
)
def test_varints(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded


def test_messages() -> None:
    inner = Message().number(1, 150)
    assert bytes(inner).hex() == "089601"
    assert bytes(Message().text(2, "testing")).hex() == "120774657374696e67"
    assert bytes(Message().message(3, inner)).hex() == "1a03089601"
    assert bytes(Message().numbers(6, [3, 270, 86942])).hex() == "3206038e029ea705"
    assert bytes(Message().number(1, 0).numbers(2, [])) == b""
