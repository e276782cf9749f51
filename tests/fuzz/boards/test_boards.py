"""Random bare-metal images: whatever they do to their board, it goes on, and nobody who watches changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.boards.campaign import BOARDS, BoardCampaign
from fuzz.boards.run import FUZZED, run_seed

SEEDS = 10


@pytest.mark.parametrize("board", BOARDS)
def test_random_images(board: str, tmp_path: Path) -> None:
    campaign = BoardCampaign((board,), 0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    # It is not just noise: most images go on for long, and make exceptions from which they return.
    assert campaign.instructions > SEEDS * 5000
    assert campaign.exceptions > SEEDS * 100


# Code whose tables change beneath it, and a branch back into a block with a store: they ended perfemu by signal 11. An
# instruction that stores into itself: stepped, it retired again and again, and did nothing.
@pytest.mark.parametrize("seed", [146, 770026, 770127, 880272, 2000036])
def test_what_images_have_found_is_mended(seed: int, tmp_path: Path) -> None:
    assert run_seed("pc", seed, tmp_path).problem == ""


# Tables that change beneath code and data, without a word, on a CPU that has said a word of other pages.
@pytest.mark.parametrize("seed", [917000758, 5200126])
def test_what_images_for_virt_have_found_is_mended(seed: int, tmp_path: Path) -> None:
    assert run_seed("virt", seed, tmp_path).problem == ""


@pytest.mark.parametrize("board", BOARDS)
def test_an_image_follows_from_its_seed(board: str) -> None:
    images = [FUZZED[board].make(seed) for seed in (7, 7, 8)]
    assert images[0] == images[1] != images[2]
