"""Entropy: random bytes, the same in every run. VIRTIO 1.2, "Entropy Device"."""

from __future__ import annotations

from random import Random
from typing import Any

from emulator.board.kept import WrongState
from emulator.board.virtio.device import Answering
from emulator.board.virtio.queue import Chain

MOST_BYTES = 4096  # at once: it need not give all that is asked for


class Entropy(Answering):
    name, number = "virtio-rng", 4
    kept = ("_position",)

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    @property
    def _position(self) -> tuple[Any, ...]:
        """In the stream of bytes."""
        return self._random.getstate()

    @_position.setter
    def _position(self, position: tuple[Any, ...]) -> None:
        try:
            self._random.setstate(position)
        except (TypeError, ValueError, OverflowError):
            raise WrongState(type(self).__name__) from None

    def answer(self, number: int, chain: Chain) -> int:
        return chain.write(self._random.randbytes(min(chain.room, MOST_BYTES)))
