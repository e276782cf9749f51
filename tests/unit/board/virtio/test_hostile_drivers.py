"""Drivers that mean harm: what they write costs no more time and memory than what an honest one does."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from emulator.board.virtio.block import Block
from emulator.board.virtio.console import Console
from emulator.board.virtio.console import TestExit as VerdictDevice
from emulator.board.virtio.device import VirtioDevice
from emulator.board.virtio.entropy import Entropy
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.transport import Transport
from tests.unit.board.virtio.test_queue import (
    AVAILABLE,
    BASE,
    DATA,
    INDIRECT,
    NEXT,
    RAM_BYTES,
    TABLE,
    USED,
    WRITE,
    Bytes,
    Descriptor,
    ram,
)  # fmt: skip

SOON_SECONDS = 1.0
NEEDS_RESET = 64
STATUS, NOTIFY, SIZE, READY, SELECT = 0x70, 0x50, 0x38, 0x44, 0x30
SECTOR_BYTES = 512


class Driver:
    """Of one device: its transport, and a queue in memory in which the first descriptor's chain is available."""

    def __init__(self, device: VirtioDevice, *descriptors: Descriptor, queue: int = 0, used: int = USED) -> None:
        self.memory: GuestMemory = ram()
        self.messages: list[str] = []
        self.transport = Transport(device, self.memory, lambda level: None, self.messages.append)
        if isinstance(device, Console):
            device.attend = self.transport.attend
        for number, descriptor in enumerate(descriptors):
            self.memory.write(TABLE + 16 * number, struct.pack("<QIHH", *descriptor))
        self.memory.write(AVAILABLE, struct.pack("<HHH", 0, 1, 0))
        for offset, value in ((SELECT, queue), (SIZE, 8), (0x80, TABLE), (0x90, AVAILABLE), (0xA0, used), (READY, 1)):
            self.write(offset, value)

    def write(self, offset: int, value: int) -> None:
        self.transport.write(offset, 4, value)

    def accept(self, features: int) -> None:
        self.write(0x24, 0)
        self.write(0x20, features)

    @property
    def is_broken(self) -> bool:
        return bool(self.transport.read(STATUS, 4) & NEEDS_RESET)


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SOON_SECONDS


def test_a_queue_that_grows_while_it_is_ready() -> None:
    """A circle of empty descriptors would end when as many were seen as the queue has."""
    driver = Driver(Entropy(0), (DATA, 0, NEXT | WRITE, 1), (DATA, 0, NEXT | WRITE, 0))
    with soon():
        driver.write(SIZE, 1 << 22)
        driver.write(NOTIFY, 0)
    assert driver.is_broken
    assert driver.messages == ["virtio-rng: its QueueNum changes while it is ready; its driver must reset it"]


def test_a_used_ring_that_makes_chains_available() -> None:
    """Each answer makes another chain available, with room for nothing."""
    console = Console(lambda data: None)
    driver = Driver(console, (DATA, 0, WRITE, 0), used=AVAILABLE)
    with soon():
        console.receive(b"typed")
        driver.write(NOTIFY, 0)
    assert driver.memory.read(DATA, 1) == b"\0"


def test_tables_elsewhere_have_to_be_negotiated() -> None:
    table = struct.pack("<QIHH", DATA + 64, 4, WRITE, 0)
    for features, is_broken in ((0, True), (1 << 28, False)):
        driver = Driver(Entropy(0), (DATA, len(table), INDIRECT, 0))
        driver.accept(features)
        driver.memory.write(DATA, table)
        driver.write(NOTIFY, 0)
        assert driver.is_broken == is_broken
    assert driver.memory.read(DATA + 64, 4) != bytes(4)


@pytest.mark.parametrize("size", [0xFFFF_FFFF, 0xFFFF_FFF0, RAM_BYTES])
@pytest.mark.parametrize("flags", [0, WRITE, INDIRECT])
@pytest.mark.parametrize("address", [DATA, BASE - 1, BASE + RAM_BYTES - 1, (1 << 64) - 1, 0x0900_0000, 0])
def test_more_than_the_memory_there_is(address: int, flags: int, size: int) -> None:
    driver = Driver(Entropy(0), (address, size, flags, 0))
    driver.accept(1 << 28)
    with soon():
        driver.write(NOTIFY, 0)
    assert driver.is_broken


@pytest.mark.parametrize("place", [0x0900_0000, BASE + RAM_BYTES - 2, (1 << 64) - 4, 0])
def test_rings_outside_of_memory(place: int) -> None:
    for low in (0x80, 0x90, 0xA0):
        driver = Driver(Entropy(0), (DATA, 16, WRITE, 0))
        driver.write(low, place & 0xFFFF_FFFF)
        driver.write(low + 4, place >> 32)
        driver.write(NOTIFY, 0)
        assert driver.is_broken
        driver.write(STATUS, 0)
        assert not driver.is_broken


def test_an_index_that_jumps() -> None:
    for index in (9, 0x7FFF, 0xFFFF):
        driver = Driver(Entropy(0), (DATA, 16, WRITE, 0))
        driver.memory.write(AVAILABLE + 2, struct.pack("<H", index))
        driver.write(NOTIFY, 0)
        assert driver.messages == [
            f"virtio-rng: {index} chains are available in a queue of 8; its driver must reset it"
        ]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("sector", [4, 5, 1 << 23, 1 << 55, (1 << 64) - 1])
def test_beyond_the_end_of_a_disk(sector: int, kind: int) -> None:
    """The disk has four sectors."""
    disk = Bytes(4 * SECTOR_BYTES)
    buffer = (DATA + 512, SECTOR_BYTES, NEXT | (WRITE if kind == 0 else 0), 2)
    driver = Driver(Block(disk, "disk"), (DATA, 16, NEXT, 1), buffer, (DATA + 2048, 1, WRITE, 0))
    driver.memory.write(DATA, struct.pack("<I4xQ", kind, sector))
    driver.memory.write(DATA + 512, bytes((0xA5,)) * SECTOR_BYTES)
    driver.write(NOTIFY, 0)
    assert (driver.memory.read(DATA + 2048, 1), driver.is_broken) == (b"\1", False)
    assert disk.data == bytes(4 * SECTOR_BYTES)


def test_the_most_that_one_notification_asks_for() -> None:
    """As many chains as there can be, each as large as one may be: bounded, as all of them together are."""
    driver = Driver(Console(lambda data: None), *[(BASE, RAM_BYTES, NEXT, n + 1) for n in range(7)], queue=1)
    driver.memory.write(TABLE + 16 * 7, struct.pack("<QIHH", BASE, RAM_BYTES, 0, 0))
    driver.memory.write(AVAILABLE, struct.pack("<HH8H", 0, 8, *[0] * 8))
    with soon():
        driver.write(NOTIFY, 1)
    assert not driver.is_broken


@pytest.mark.parametrize("byte", [b"x", b"7", b"q"])
def test_a_verdict_that_is_long(byte: bytes) -> None:
    ended: list[int] = []
    driver = Driver(VerdictDevice(ended.append), *[(DATA, 1 << 19, NEXT, n + 1) for n in range(7)], queue=1)
    driver.memory.write(TABLE + 16 * 7, struct.pack("<QIHH", DATA, 1 << 19, 0, 0))
    driver.memory.write(DATA, byte * (1 << 19))
    driver.memory.write(AVAILABLE, struct.pack("<HH8H", 0, 8, *[0] * 8))
    with soon():
        driver.write(NOTIFY, 1)
    assert (driver.is_broken, ended[:1]) == (False, [1] if byte == b"q" else [])
