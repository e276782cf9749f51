"""Changed checkpoints: whatever is in such a file, it is refused, or its board goes on to some end."""

from __future__ import annotations

from pathlib import Path

from fuzz.checkpoints.campaign import CheckpointCampaign
from fuzz.checkpoints.run import ENDED, REFUSED

SEEDS = 36


def test_changed_checkpoints(tmp_path: Path) -> None:
    campaign = CheckpointCampaign(0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    assert campaign.endings[REFUSED] > SEEDS // 10
    assert campaign.endings[ENDED] > SEEDS // 10
