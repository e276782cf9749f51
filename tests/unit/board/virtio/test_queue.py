"""Queues, and the transport's registers: what a driver may write there, and what it had better not."""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random

import pytest

from emulator._native import PhysicalMemory
from emulator.board.bus import Unmodelled
from emulator.board.virtio.block import Block
from emulator.board.virtio.console import Console
from emulator.board.virtio.device import VirtioDevice
from emulator.board.virtio.entropy import Entropy
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.queue import BrokenQueue, Queue
from emulator.board.virtio.transport import Transport

BASE, RAM_BYTES = 0x4000_0000, 1 << 20
TABLE, AVAILABLE, USED, DATA = BASE, BASE + 0x1000, BASE + 0x2000, BASE + 0x3000
NEXT, WRITE, INDIRECT = 1, 2, 4
Descriptor = tuple[int, int, int, int]


class Bytes:
    """A disk in memory."""

    writable = True

    def __init__(self, size: int) -> None:
        self.size = size
        self.data = bytearray(size)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        self.data[offset : offset + len(data)] = data


def ram() -> GuestMemory:
    memory = PhysicalMemory(RAM_BYTES)
    memory.allocate(RAM_BYTES >> 12)
    return GuestMemory(memory, BASE)


def queue_of(memory: GuestMemory, *descriptors: Descriptor, size: int = 8) -> Queue:
    """A queue in which the chain that begins with the first of them is available."""
    for number, descriptor in enumerate(descriptors):
        memory.write(TABLE + 16 * number, struct.pack("<QIHH", *descriptor))
    memory.write(AVAILABLE, struct.pack("<HHH", 0, 1, 0))
    queue = Queue(memory, 256)
    queue.has_tables = True
    queue.size, queue.descriptors, queue.available, queue.used = size, TABLE, AVAILABLE, USED
    queue.start()
    return queue


def test_a_chain_is_read_then_written() -> None:
    memory = ram()
    memory.write(DATA, b"to be read")
    descriptors = (DATA, 5, NEXT, 2), (DATA + 0xFFE, 4, WRITE, 0), (DATA + 5, 5, NEXT, 1)
    queue = queue_of(memory, *descriptors)
    chain = queue.take()
    assert chain is not None
    assert (chain.read(), chain.room, chain.write(b"written")) == (b"to be read", 4, 4)
    assert memory.read(DATA + 0xFFE, 5) == b"writ\0"  # across two frames
    assert queue.give_back(chain, 4)
    assert memory.read(USED, 12) == struct.pack("<HHII", 0, 1, 0, 4)
    assert queue.take() is None


def test_a_table_elsewhere() -> None:
    memory = ram()
    memory.write(DATA, struct.pack("<QIHHQIHH", DATA + 64, 2, NEXT, 1, DATA + 96, 3, WRITE, 0))
    memory.write(DATA + 64, b"ab")
    chain = queue_of(memory, (DATA, 32, INDIRECT, 0)).take()
    assert chain is not None
    assert (chain.read(), chain.room) == (b"ab", 3)


@pytest.mark.parametrize(
    ("descriptors", "says"),
    [
        ([(DATA, 1, NEXT, 1), (DATA, 1, NEXT, 0)], "a chain of more than 8 descriptors"),
        ([(DATA, 1, NEXT, 8)], "descriptor 8 of 8"),
        ([(BASE + RAM_BYTES - 1, 2, 0, 0)], "2 bytes at 0x400fffff are not within RAM"),
        ([((1 << 64) - 1, 2, 0, 0)], "2 bytes at 0xffffffffffffffff are not within RAM"),
        ([(0x0900_0000, 1, WRITE, 0)], "1 bytes at 0x9000000 are not within RAM"),
        ([(DATA, 1, NEXT | WRITE, 1), (DATA, 1, 0, 0)], "to be read behind one to be written"),
        ([(DATA, 15, INDIRECT, 0)], "a table of 15 bytes"),
        ([(TABLE, 16, INDIRECT, 0)], "a table of 16 bytes"),  # one table in another
    ],
)
def test_what_is_broken_is_told(descriptors: list[Descriptor], says: str) -> None:
    with pytest.raises(BrokenQueue, match=says):
        queue_of(ram(), *descriptors).take()


def test_a_chain_that_is_too_large() -> None:
    memory = PhysicalMemory(32 << 20)
    memory.allocate(32 << 8)
    with pytest.raises(BrokenQueue, match="a chain of more than 16 MiB"):
        queue_of(GuestMemory(memory, BASE), (BASE, 16 << 20, NEXT, 1), (BASE, 1, 0, 0)).take()


def test_more_than_there_can_be() -> None:
    memory = ram()
    queue = queue_of(memory)
    memory.write(AVAILABLE + 2, struct.pack("<H", 9))
    with pytest.raises(BrokenQueue, match="9 chains are available in a queue of 8"):
        queue.take()


def test_a_device_says_that_it_needs_a_reset() -> None:
    memory, lines, messages = ram(), list[bool](), list[str]()
    queue_of(memory, (0, 1, 0, 0))
    transport = Transport(Entropy(0), memory, lines.append, messages.append)
    for offset, value in ((0x38, 8), (0x80, TABLE), (0x90, AVAILABLE), (0xA0, USED), (0x44, 1), (0x50, 0)):
        transport.write(offset, 4, value)
    assert messages == ["virtio-rng: 1 bytes at 0x0 are not within RAM; its driver must reset it"]
    assert (transport.read(0x70, 4), transport.read(0x60, 4), lines) == (64, 2, [True])
    transport.write(0x70, 4, 0)
    assert (transport.read(0x70, 4), transport.read(0x60, 4), lines[-1]) == (0, 0, False)


def test_features_that_were_not_offered_are_refused() -> None:
    transport = Transport(Entropy(0), ram(), lambda level: None, lambda text: None)
    transport.write(0x14, 4, 1)
    assert transport.read(0x10, 4) == 1  # VERSION_1
    transport.write(0x70, 4, 8)
    assert transport.read(0x70, 4) == 0
    transport.write(0x24, 4, 1)
    transport.write(0x20, 4, 1)
    transport.write(0x70, 4, 8)
    assert transport.read(0x70, 4) == 8
    transport.write(0x20, 4, 3)
    transport.write(0x70, 4, 8)
    assert transport.read(0x70, 4) == 0


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_driver_writes(seed: int, legacy: bool) -> None:
    """Queues in random memory, registers in random order: the device answers or breaks, and nothing else happens."""
    random, memory = Random(seed), ram()
    devices: list[VirtioDevice] = [Block(Bytes(1 << 14), "disk"), Console(lambda data: None), Entropy(0)]
    device = devices[seed % len(devices)]
    transport = Transport(device, memory, lambda level: None, lambda text: None, legacy=legacy)
    for _ in range(30):
        _write(transport, 0x20, 4, random.choice((0, 1 << 28)))
        sizes = random.choice((1, 4, 16, 256)), random.choice((1, 512, 4096, 1 << 20))
        for number in range(64):
            address = random.choice((BASE + random.randrange(RAM_BYTES), random.getrandbits(64), TABLE))
            flags, following = random.choice((0, NEXT, WRITE, NEXT | WRITE, INDIRECT)), random.randrange(sizes[0])
            descriptor = struct.pack("<QIHH", address, random.randrange(sizes[1]), flags, following)
            memory.write(TABLE + 16 * number, descriptor)
        memory.write(AVAILABLE, struct.pack("<130H", *(random.randrange(70) for _ in range(130))))
        for offset, value in ((0x30, seed % 2), (0x38, sizes[0]), (0x80, TABLE), (0x90, AVAILABLE), (0xA0, USED)):
            _write(transport, offset, 4, value)
        _write(transport, 0x44, 4, 1)
        _write(transport, 0x50, 4, random.randrange(2))
        for _ in range(20):
            offset, size = random.randrange(0x200), random.choice((1, 2, 4, 4, 4, 8))
            _write(transport, offset, size, random.choice((0, 1, BASE >> 12, random.getrandbits(8 * size))))
            with suppress(Unmodelled):
                assert transport.read(offset, size) >= 0
        _write(transport, 0x70, 4, random.choice((0, 15)))


def _write(transport: Transport, offset: int, size: int, value: int) -> None:
    with suppress(Unmodelled):
        transport.write(offset, size, value & (1 << 8 * size) - 1)


def test_registers_that_are_none_are_named() -> None:
    transport = Transport(Entropy(0), ram(), lambda level: None, lambda text: None)
    with pytest.raises(Unmodelled, match="a load of 4 bytes at register 0x54 of virtio-rng"):
        transport.read(0x54, 4)
    with pytest.raises(Unmodelled, match="a store of 4 bytes at register 0x70 of an empty virtio slot"):
        Transport(None, ram(), lambda level: None, lambda text: None).write(0x70, 4, 1)
