"""Random bare-metal images: whatever they do to their board, it goes on, and nobody who watches changes it."""

from __future__ import annotations

from pathlib import Path

from fuzz.boards.campaign import BoardCampaign
from fuzz.boards.image import RandomImage

SEEDS = 24


def test_random_images(tmp_path: Path) -> None:
    campaign = BoardCampaign(0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    # It is not just noise: most images go on for long, and make exceptions from which they return.
    assert campaign.instructions > SEEDS * 5000
    assert campaign.exceptions > SEEDS * 100


def test_an_image_follows_from_its_seed() -> None:
    images = [RandomImage(seed).bytes() for seed in (7, 7, 8)]
    assert images[0] == images[1] != images[2]
