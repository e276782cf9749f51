"""Samples in SPE's records, beside those that the tests' own reader finds in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.command import perfemu
from guests import guest
from perfcore.perfdata.arm_spe import SpeSample, spe_samples
from spe_records import read_records, traces_in


def test_all_that_a_trace_has(tmp_path: Path) -> None:
    event = "arm_spe_0/ts_enable=1,pa_enable=1/u"
    arguments = ("--core", "neoverse-n1", "-e", event, "-c", "1024", guest("sort", "aarch64").path, "1000")
    assert perfemu("record", *arguments, cwd=tmp_path).returncode == 0
    data = b"".join(trace for _, trace in traces_in((tmp_path / "perf.data").read_bytes()))
    found = list(spe_samples(data))
    assert len(found) > 50
    assert found == [
        SpeSample(record.timestamp or 0, record.context or 0, record.addresses["pc"], record.level or 0)
        for record in read_records(data)
    ]


def test_addresses_of_the_kernel_are_extended() -> None:
    """56 bits of an address are there; above them are the level, here EL1, and the security state."""
    packet = b"\xb0" + (0xFF_8000_1000_2000 & (1 << 56) - 1 | 1 << 61 | 1 << 63).to_bytes(8, "little")
    assert list(spe_samples(packet + b"\x01")) == [SpeSample(0, 0, 0xFFFF_8000_1000_2000, 1)]


@pytest.mark.parametrize("data", [b"\xb0\x00", b"\x71\x00\x00", b"\x02"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="packet"):
        list(spe_samples(data))
