"""Random drivers: whatever they do to a board's devices, there is an answer, soon, and the host is as it was."""

from __future__ import annotations

from pathlib import Path

from fuzz.devices.campaign import DevicesCampaign

SEEDS = 24


def test_random_drivers(tmp_path: Path) -> None:
    campaign = DevicesCampaign(0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    # It is not just noise: a good part of what is asked for is done.
    assert campaign.answers > campaign.acts // 10
