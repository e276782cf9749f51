"""Random bare-metal images: whatever they do to their board, it goes on, and nobody who watches changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.boards.campaign import BOARDS, BoardCampaign
from fuzz.boards.run import FUZZED

SEEDS = 24


@pytest.mark.parametrize("board", BOARDS)
def test_random_images(board: str, tmp_path: Path) -> None:
    campaign = BoardCampaign((board,), 0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    # It is not just noise: most images go on for long, and make exceptions from which they return.
    assert campaign.instructions > SEEDS * 5000
    assert campaign.exceptions > SEEDS * 100


@pytest.mark.parametrize("board", BOARDS)
def test_an_image_follows_from_its_seed(board: str) -> None:
    images = [FUZZED[board].make(seed) for seed in (7, 7, 8)]
    assert images[0] == images[1] != images[2]
