"""Drivers, of what a guest can reach without executing anything: registers, ports, queues in memory, and calls."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from random import Random

from emulator.board.bus import Device, Unmodelled
from emulator.board.virtio.guest_memory import GuestMemory
from fuzz.devices.messages import ATTACH, disk_request, nine_p, number, verdict

NEAR = (0, 4, 8, 0xC, 0x14, 0x20, 0x30, 0x34, 0x38, 0x44, 0x50, 0x70, 0x80, 0x100, 0x180, 0x200, 0x280, 0x300, 0x400)
NEXT, WRITE, INDIRECT = 1, 2, 4
DESCRIPTOR = struct.Struct("<QIHH")
CONSOLE = 3
PAYLOADS = {2: disk_request, 9: nine_p, CONSOLE: verdict, 4: lambda random: b""}  # by a device's number
OUTSIDE = (0, 0x0900_0000, 0x0A00_0000, 0xFEE0_0000, (1 << 64) - 1, 1 << 40)
RING_OFFSETS = (0, 0x1000, 0x2000, 0x2000 + 4, 0x3000)

Write = Callable[[int, int], None]  # offset of a register of four bytes, value


class QueueDriver:
    """Of one transport at a time: it places queues as drivers do, with one mistake or none, and uses them."""

    def __init__(self, random: Random, memory: GuestMemory, base: int, size: int) -> None:
        """`base`, `size`: of the memory that it may use."""
        self._random, self._memory, self._base, self._size = random, memory, base, size

    def drive(self, number: int, write: Write, *, legacy: bool, needs_reset: bool) -> None:
        """The device with that number."""
        random = self._random
        queue = random.randrange(2) if number == CONSOLE else int(random.random() < 0.02)
        size = random.choice((4, 8, 8, 16, 16, 32, 64, 256, 256, random.choice((1, 3, 0, 1 << 16))))
        if needs_reset or random.random() < 0.1:
            write(0x70, 0)
        write(0x24, 0)
        write(0x20, random.choice((0, 1 << 28, 1 << 28, 0xFFFF_FFFF)))
        write(0x30, queue)
        write(0x40 if legacy else 0x44, 0)
        write(0x38, size)
        rings = [self._base + where for where in RING_OFFSETS[:3]]
        if random.random() < 0.1:
            rings[random.randrange(3)] = self._base + random.choice(RING_OFFSETS)
        if random.random() < 0.1:
            rings[random.randrange(3)] = random.choice((*OUTSIDE, self._base + self._size - 2))
        self._fill(size or 1, PAYLOADS.get(number, verdict), rings)
        if legacy:
            write(0x3C, 4096)
            write(0x40, rings[0] >> 12 & 0xFFFF_FFFF)
            self._offer(rings[0] + 16 * size, size or 1)
        else:
            for offset, ring in zip((0x80, 0x90, 0xA0), rings, strict=True):
                write(offset, ring & 0xFFFF_FFFF)
                write(offset + 4, ring >> 32)
            write(0x44, 1)
            self._offer(rings[1], size or 1)
        if random.random() < 0.03:
            write(0x38, random.choice((1 << 20, 0, 2)))
        write(0x50, queue)
        if random.random() < 0.3:
            write(0x64, 3)

    def _fill(self, size: int, payload: Callable[[Random], bytes], rings: list[int]) -> None:
        """Chains of one to three descriptors: what is read, and room for the answer."""
        random, at = self._random, self._base + 0x4000
        table, size = rings[0], min(size, 32)
        for first in range(0, size - 1, 2):
            data = payload(random) if first or payload is not nine_p else ATTACH
            room = random.choice((5000, 5000, 4096, 513, random.randrange(600)))
            self._put(at, data)
            chain = [(at, len(data), NEXT, first + 1), (at + 8192, room, WRITE, 0)]
            if random.random() < 0.05:
                chain = [self._spoiled(each, size) for each in chain]
            self._put(table + 16 * first, b"".join(DESCRIPTOR.pack(*each) for each in chain))
            if random.random() < 0.05:  # in a table of their own
                self._put(at + 16384, b"".join(DESCRIPTOR.pack(*each[:3], 1) for each in chain))
                self._put(table + 16 * first, DESCRIPTOR.pack(at + 16384, random.choice((32, 16, 33, 0)), INDIRECT, 0))
            at += 1 << 15

    def _spoiled(self, descriptor: tuple[int, int, int, int], size: int) -> tuple[int, int, int, int]:
        random = self._random
        address, length, flags, following = descriptor
        match random.randrange(4):
            case 0:
                address = random.choice((*OUTSIDE, self._base + self._size - 1))
            case 1:
                length = random.choice((0, 0xFFFF_FFFF, 1 << 20, self._size))
            case 2:
                flags = random.randrange(8)
            case _:
                following = random.randrange(size + 2)
        return address, length, flags, following

    def _offer(self, ring: int, size: int) -> None:
        random = self._random
        index = random.choice((1, 1, 1, 2, 2, size & 0xFFFF, size & 0xFFFF, size + 1 & 0xFFFF, 0xFFFF))
        heads = [2 * number % min(size, 32) for number in range(min(size, 256))]
        if random.random() < 0.1:
            random.shuffle(heads)
        self._put(ring, struct.pack(f"<HH{len(heads)}H", random.randrange(2), index, *heads))

    def _put(self, address: int, data: bytes) -> None:
        if self._base <= address and address + len(data) <= self._base + self._size:
            self._memory.write(address, data)


def access(random: Random, size_bytes: int, device: Device) -> None:
    """Of a register of a device that has so many bytes of them."""
    size = random.choice((1, 2, 4, 4, 4, 8))
    offset = random.choice((*NEAR, random.randrange(size_bytes))) % size_bytes & -size
    with suppress(Unmodelled):
        if random.random() < 0.6:
            device.write(offset, size, number(random, 8 * size))
        else:
            assert 0 <= device.read(offset, size)
