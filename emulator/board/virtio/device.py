"""VirtioDevice: what stands behind a transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emulator.board.virtio.queue import Chain, Queue

MOST_DESCRIPTORS = 256  # of a queue


class VirtioDevice(Protocol):
    """Its number, features and configuration: VIRTIO 1.2, "Device Types"."""

    name: str
    number: int
    features: int  # of the device's own; those of queues are the transport's

    @property
    def queues(self) -> int:
        """How many it has."""

    @property
    def configuration(self) -> bytes: ...

    def configure(self, offset: int, data: bytes) -> None:
        """The driver has written there, within the configuration."""

    def notified(self, number: int, queues: Sequence[Queue]) -> bool:
        """There is something in that queue. Whether the driver is to be interrupted. Raises BrokenQueue."""

    def reset(self) -> None: ...


class Answering:
    """A device that answers each chain at once."""

    queues = 1
    features = 0
    configuration = b""

    def configure(self, offset: int, data: bytes) -> None:
        """Nothing there can be changed."""

    def notified(self, number: int, queues: Sequence[Queue]) -> bool:
        queue, interrupts = queues[number], False
        for chain in queue.chains():
            interrupts |= queue.give_back(chain, self.answer(number, chain))
        return interrupts

    def answer(self, number: int, chain: Chain) -> int:
        """How many bytes it has written. Raises BrokenQueue for what no driver asks."""
        raise NotImplementedError

    def reset(self) -> None:
        """It keeps nothing."""
