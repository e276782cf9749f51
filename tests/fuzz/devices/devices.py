"""A board with all its devices, and random accesses to them. No guest executes anything."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from emulator.board.board import Boot, Outside
from emulator.board.bus import Bus, Unmodelled
from emulator.board.disk import Disk
from emulator.board.image import read_image
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.memory_map import LOCAL_APIC_BYTES
from emulator.board.pc.pc import Pc
from emulator.board.pc.pc_cpu import PcCpu
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.transport import NEEDS_RESET, Transport
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, MachineConfig
from emulator.sysregs import UndefinedRegister
from fuzz.devices.drivers import QueueDriver, access
from fuzz.devices.messages import NAMES, number
from perfemu.board_shares import shares

RAM_BYTES, SCRATCH_BYTES, SCRATCH_OFFSET = 16 << 20, 2 << 20, 4 << 20
CPUS = 2
MOST_WRITTEN_BYTES, MOST_SHARED_BYTES = 32 << 10, 8 << 20  # to a disk that is not kept; into the shared directory
MOST_OUTPUT_BYTES = 1 << 20
_HEADER = 0x1BAD_B002, 1 << 16  # Multiboot's: the magic number, and that addresses follow
MULTIBOOT = struct.pack("<8I", *_HEADER, -sum(_HEADER) & 0xFFFF_FFFF, 1 << 20, 1 << 20, 0, 0, 1 << 20)
FLAT = bytes.fromhex("1f2003d5")  # NOP
OPERATIONS = (*range(0x20), 0x20, 0x30, 0x31, 0x32, 0xFFFF_FFFF)  # of semihosting
Act = Callable[[], None]


class Typed:
    """Somebody types: always the same."""

    is_live = False

    def __init__(self) -> None:
        self._left = [b"typed\n"] * 50

    def take(self, most: int, wait_ns: int | None) -> bytes | None:
        return self._left.pop()[:most] if self._left else None


@dataclass(frozen=True, slots=True)
class Shifted:
    """A part of the bus as a device."""

    bus: Bus
    start: int

    def read(self, offset: int, size: int) -> int:
        return self.bus.read(self.start + offset, size)

    def write(self, offset: int, size: int, value: int) -> None:
        self.bus.write(self.start + offset, size, value)


class Devices:
    """All devices of a board, and who misuses them."""

    def __init__(self, seed: int, inside: Path) -> None:
        self.random = random = Random(f"devices {seed}")
        self.said: list[str] = []
        self.output = bytearray()
        self.answers = 0
        is_virt = bool(seed % 3)
        isa = "aarch64" if is_virt else "x86_64"
        self.hardware = Hardware(MachineConfig(isa, load_core("ideal"), RAM_BYTES, cpus=CPUS))
        disks = [Disk(str(inside / f"disk{n}"), keeps=bool(n), most_written_bytes=32 << 10) for n in range(2)]
        outside = Outside(
            self._send, self.said.append, Typed(), disks, shares([f"{inside / 'share'}:tag:rw"], MOST_SHARED_BYTES),
            virtio_console=random.random() < 0.7, test_device=True, semihosting=is_virt, gic=random.choice((3, 3, 2)),
        )  # fmt: skip
        self.board: Virt | Pc
        if is_virt:
            self.base = RAM_BASE
            self.board = Virt(self.hardware, Boot(read_image(FLAT, RAM_BASE), command_line="random"), outside)
        else:
            self.base = 0
            self.board = Pc(self.hardware, Boot(read_pc_image(MULTIBOOT), command_line="random"), outside)
        scratch = self.base + SCRATCH_OFFSET
        self.memory = GuestMemory(self.hardware.memory, self.base)
        self.queues = QueueDriver(random, self.memory, scratch, SCRATCH_BYTES)
        self.scratch = scratch
        self._slots = [region for region in self.board.bus.regions if isinstance(region.device, Transport)]
        acts: Sequence[tuple[int, Act]] = (
            (8, self._queue), (4, self._register), (2, self._system_register), (1, self._time), (1, self._type),
        ) + (((3, self._call),) if is_virt else ((4, self._port), (2, self._apic)))  # fmt: skip
        self.acts = [act for weight, act in acts for _ in range(weight)]

    def _send(self, data: bytes) -> None:
        if len(self.output) < MOST_OUTPUT_BYTES:
            self.output += data

    def _queue(self) -> None:
        used = [region for region in self._slots if region.device.read(8, 4)]
        region = self.random.choice(used)
        device, before = region.device, len(self.said)

        def write(offset: int, value: int) -> None:
            with suppress(Unmodelled):  # registers of the other interface
                device.write(offset, 4, value)

        legacy, status = device.read(4, 4) == 1, device.read(0x70, 4)
        self.queues.drive(device.read(8, 4), write, legacy=legacy, needs_reset=bool(status & NEEDS_RESET))
        self.answers += len(self.said) == before

    def _register(self) -> None:
        region = self.random.choice(self.board.bus.regions)
        access(self.random, region.size, Shifted(self.board.bus, region.start))

    def _system_register(self) -> None:
        registers = self.random.choice(self.board.cpus).cpu.system_registers
        register, value = self.random.choice(registers.claimed()), number(self.random, 64)
        with suppress(UndefinedRegister):
            if self.random.random() < 0.5:
                registers.check_value(register, value)
                registers.write(register, value)
            else:
                assert registers.read(register) >= 0

    def _port(self) -> None:
        assert isinstance(self.board, Pc)
        some, size = self.random.choice(self.board.ports.ranges), self.random.choice((1, 1, 2, 4))
        port = self.random.choice((some.first + self.random.randrange(some.count), self.random.getrandbits(16)))
        if self.random.random() < 0.6:
            self.board.ports.write(port, size, number(self.random, 8 * size))
        else:
            assert 0 <= self.board.ports.read(port, size) < 1 << 8 * size

    def _apic(self) -> None:
        cpu = self.random.choice(self.board.cpus)
        assert isinstance(cpu, PcCpu)
        access(self.random, LOCAL_APIC_BYTES, cpu.apic)

    def _time(self) -> None:
        """What is due by then is attended to, as if CPUs waited."""
        for cpu in self.board.cpus:
            cpu.cpu.idle(self.random.choice((0, 1, 1000, 10_000_000)))
        self.board.ended = None
        for cpu in self.board.cpus:
            cpu.look_at_timers()
        self.board.next_turn()

    def _type(self) -> None:
        self.board.go_on(Typed())

    def _call(self) -> None:
        """Semihosting: a block of parameters, and a name that they refer to."""
        random, at = self.random, self.scratch + 0x1000 + 8 * self.random.randrange(64)
        name = random.choice((b":tt", b"tag/out/secret", *(b"tag/" + each for each in NAMES)))
        self.memory.write(self.scratch, name)
        values = [
            random.choice((self.scratch, number(random, 64), random.randrange(12), random.randrange(1, 5), len(name)))
            for _ in range(4)
        ]
        if random.random() < 0.5:
            values[:3] = [self.scratch, random.randrange(12), len(name)]
        self.memory.write(at, struct.pack("<4Q", *values))
        cpu = random.choice(self.board.cpus)
        assert not isinstance(cpu, PcCpu)
        assert cpu.host_call is not None
        block = random.choice((at, at, at, at, number(random, 64), (1 << 64) - 8))
        self.answers += cpu.host_call(cpu.tables, random.choice(OPERATIONS), block) >= 0
