"""RandomPcImage: a Multiboot image that follows from its seed, and does to its pc whatever can be done.

As with RandomImage it is not noise alone: handlers go on behind what has failed, page tables have aliases of its own
code, and registers point at devices, tables, code and nothing, so that most of what it tries gets far.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from emulator.board.pc.memory_map import IO_APIC, LOCAL_APIC, VIRTIO, VIRTIO_SLOT_BYTES
from fuzz.boards.image import MEMORY_BYTES
from fuzz.boards.pc import x86
from fuzz.boards.pc.boot import NORMAL_CR0, NORMAL_CR4, beginning, descriptors, page_tables
from fuzz.boards.pc.code import STACK, Code
from fuzz.boards.pc.handlers import handlers
from fuzz.boards.pc.machine_registers import PORTS, msr, msr_value, port_value
from fuzz.boards.pc.places import (
    ALIAS,
    BASE_OF_ALIAS,
    BASE_OF_APIC,
    BASE_OF_CODE,
    BASE_OF_DATA,
    BASE_OF_IO_APIC,
    BASE_OF_TABLES,
    BASE_OF_VIRTIO,
    BASES,
    CODE,
    CODE_BYTES,
    DATA,
    END,
    GDT,
    HANDLERS,
    IDT,
    KERNEL_CODE,
    KERNEL_DATA,
    SLOT,
    START,
    TABLES,
    TOP,
    TRAMPOLINE,
    TRAMPOLINE_IMAGE,
    USER_CODE,
    USER_DATA,
)
from fuzz.boards.virtio import driver_writes

LEAST_CODE = 0x2000  # bytes, behind which it may end
EXIT_PORT = 0xF4
APIC_REGISTERS = (*range(0x20, 0x400, 0x10), 0x80, 0xB0, 0x300, 0x320, 0x340, 0x380, 0x3E0, 0x24)
APIC_VALUES = (0, 0x1FF, 0x1_0040, 0x40, 0x2_0041, 0x441, 0x400, 0x700, 11, 3, 200, 0x20, 0xF0, 0x4_0041)
IPIS = (0x4041, 0x4400, 0x4_4041, 0x8_4041, 0xC_4041, 0xC_4400, 0x4841, 0x4942, 0x4500, 0x4600 | TRAMPOLINE >> 12)


class RandomPcImage(Code):
    """A file with Multiboot's header."""

    def __init__(self, seed: int) -> None:
        super().__init__(Random(f"pc image {seed}"))

    def bytes(self) -> bytes:
        random = self.random
        slot = VIRTIO + VIRTIO_SLOT_BYTES * random.choice((0, 1, 2, 3))
        bases = {
            BASE_OF_CODE: CODE, BASE_OF_ALIAS: CODE + ALIAS, BASE_OF_DATA: DATA, BASE_OF_APIC: LOCAL_APIC,
            BASE_OF_IO_APIC: IO_APIC, BASE_OF_TABLES: TABLES, BASE_OF_VIRTIO: slot,
        }  # fmt: skip
        while len(self.code) < CODE_BYTES - 0x800:
            if len(self.code) > LEAST_CODE and random.random() < 0.02:
                break
            random.choices(_PARTS, _WEIGHTS)[0](self)
        if random.random() < 0.5:
            self.emit(x86.move(x86.RDX, EXIT_PORT), b"\xee")
        else:
            self.jump_to(random.randrange(0x40))
        first, second = beginning(random, bases)
        code, idt = handlers(random, STACK, bases)
        placed = [(START, first), (TRAMPOLINE_IMAGE, second), (HANDLERS, code), (IDT, idt), *descriptors(random)]
        placed += [(CODE, bytes(self.code)), (TABLES, page_tables(random)), (DATA, random.randbytes(END - DATA))]
        image = bytearray(END - START)
        for place, piece in placed:
            image[place - START : place - START + len(piece)] = piece
        return bytes(image)

    # ---- pieces of code

    def noise(self) -> None:
        self.emit(self.random.randbytes(self.random.choice((4, 8, 15))))

    def integer(self) -> None:
        self.emit(x86.drawn(self.random, x86.INTEGER, self.bases()))

    def vectors(self) -> None:
        self.emit(x86.drawn(self.random, x86.VECTORS, self.bases()))

    def math(self) -> None:
        self.emit(x86.drawn(self.random, x86.X87, self.bases()))

    def extended(self) -> None:
        """VEX, EVEX."""
        random = self.random
        prefix = random.choice(
            (
                b"\xc5" + random.randbytes(1),
                b"\xc4" + bytes([0xE0 | random.randrange(1, 4), random.randrange(256)]),
                b"\x62" + bytes([0xF0 | random.randrange(1, 4), 0x04 | random.randrange(256), random.randrange(256)]),
            )
        )
        operand = random.choice((0xC0 | random.randrange(64), random.randrange(64) & ~7 | 2, 0x40 | 2))
        self.emit((prefix + bytes([random.randrange(256), operand]) + random.randbytes(6))[:15])

    def stack(self) -> None:
        self.emit(x86.drawn(self.random, x86.STACK, self.bases()))
        if self.random.random() < 0.1:
            self.emit(x86.move(x86.RSP, STACK - 8 * self.random.randrange(0x40)))

    def string(self) -> None:
        random = self.random
        for register in (x86.RSI, x86.RDI):
            if random.random() < 0.8:
                place = random.choice((DATA + random.randrange(0x8000), self.address()))
                self.emit(x86.move(register, place))
        if random.random() < 0.9:
            self.emit(x86.move(x86.RCX, random.choice((0, 1, 3, random.randrange(200), 0x2000, self.value()))))
        if random.random() < 0.3:
            self.emit(x86.move(x86.RDX, random.choice(PORTS)))
        self.emit(random.choice((b"", b"", b"\xfd", b"\xfc")), x86.drawn(random, x86.STRINGS, BASES))

    def constant(self) -> None:
        self.emit(x86.move(self.random.choice(x86.GENERAL), self.value()))

    def move_base(self) -> None:
        base = self.random.choice((BASE_OF_APIC, BASE_OF_IO_APIC, BASE_OF_TABLES, BASE_OF_VIRTIO, BASE_OF_DATA))
        self.emit(x86.move(base, self.address()))

    def system(self) -> None:
        self.emit(x86.drawn(self.random, x86.SYSTEM, self.bases()))

    def read_msr(self) -> None:
        self.emit(x86.move(x86.RCX, msr(self.random)), x86.RDMSR)
        if self.random.random() < 0.3:
            self.emit(x86.move(x86.RCX, self.random.choice((0, 1, 3, 7, 1 << 30, 1 << 30 | 2, 1 << 29))), x86.RDPMC)

    def write_msr(self) -> None:
        number = msr(self.random)
        self.emit(*x86.write_msr(number, msr_value(self.random, number, self.value)))

    def ask(self) -> None:
        random = self.random
        leaf = random.choice((*range(0x20), 0x8000_0000 + random.randrange(0x28), self.value()))
        self.emit(x86.move(x86.RAX, leaf), x86.move(x86.RCX, random.randrange(4)), x86.CPUID)
        self.emit(random.choice((x86.RDTSC, x86.RDTSCP, x86.PAUSE, x86.WBINVD)))

    def control(self) -> None:
        """MOV CRn."""
        random = self.random
        number = random.choice((0, 2, 3, 4, 8))
        usual = {
            0: NORMAL_CR0 ^ random.choice((0, 8, 8, 4, 1 << 16, 1 << 30, 1 << 5, 1 << random.randrange(64))),
            2: self.address(),
            3: random.choice((*[TOP] * 20, *[TOP | 0x18] * 5, TOP | 1 << 63, TABLES + 0x1000)),
            4: NORMAL_CR4 ^ random.choice((0, 4, 8, 1 << 7, 1 << 8, 1 << 9, 1 << 16, 1 << 20, 1 << 18, 1 << 17)),
            8: random.randrange(17),
        }
        value = usual[number] if random.random() < 0.95 else self.value()
        self.emit(x86.move(x86.RAX, value), _control(number, 0x22) if random.random() < 0.8 else _control(number, 0x20))

    def debug(self) -> None:
        random = self.random
        number = random.randrange(8)
        values = (0x400, 0x402, 0x2400, 0x1_0402, 0xD_0401, 0xFFFF_0FF0, self.address(), self.in_code(), DATA + 8)
        code = bytes([0x0F, random.choice((0x21, 0x23, 0x23)), 0xC0 | number << 3])
        self.emit(x86.move(x86.RAX, random.choice(values)), code)

    def port(self) -> None:
        random = self.random
        number = random.choice(PORTS)
        self.emit(x86.move(x86.RAX, port_value(random, number)), x86.move(x86.RDX, number))
        self.emit(random.choice((b"", b"", b"\x66")) + bytes([random.choice((0xEC, 0xED, 0xEE, 0xEF, 0xEE, 0xEF))]))

    def access(self) -> None:
        """A register of a device, by its usual size or another."""
        random = self.random
        base, offset, values = random.choice(
            (
                (BASE_OF_APIC, random.choice(APIC_REGISTERS), APIC_VALUES),
                (BASE_OF_IO_APIC, random.choice((0, 0x10, 0x10, 0x20, 0x40)), (0x10, 0x14, 0x15, 0x8050, 0x52, 0x751)),
                (BASE_OF_VIRTIO, 4 * random.randrange(0x50), (0, 1, 3, 11, 8, 64)),
            )
        )
        value = random.choice((*values, random.getrandbits(32)))
        others = (b"\x88", b"\x8a", b"\x01", b"\x0f\xb6", *((b"\x87", b"\x0f\xb1") if random.random() < 0.1 else ()))
        opcode = random.choice((b"\x89", b"\x89", b"\x89", b"\x8b", b"\x8b", *others))
        self.emit(x86.move(x86.RAX, value), x86.in_memory(opcode, 0, base, offset, wide=random.random() < 0.1))

    def flags(self) -> None:
        self.emit(self.random.choice((x86.CLI, x86.STI, x86.STI, x86.CLTS, x86.SWAPGS)))

    def wait(self) -> None:
        random = self.random
        timer = (x86.store(BASE_OF_APIC, 0x320, 0x40), x86.store(BASE_OF_APIC, 0x380, random.randrange(1, 3000)))
        self.emit(*(timer if random.random() < 0.8 else ()), *random.choices((x86.STI, b""), (9, 1)), x86.HLT)

    def interrupt(self) -> None:
        random = self.random
        self.emit(random.choice((b"\xcc", b"\xf1", x86.UD2, *[bytes([0xCD, random.randrange(256)])] * 3)))

    def jump(self) -> None:
        random = self.random
        if random.random() < 0.2:
            register = random.choice(x86.GENERAL)
            place = self.in_code() + random.choice((0, 0, ALIAS))
            self.emit(x86.move(register, place), bytes([0xFF, random.choice((0xD0, 0xE0)) | register]))
        else:
            condition = random.choice((None, random.randrange(16), random.randrange(16)))
            self.jump_to(self.near(), condition, call=random.random() < 0.3)

    def loop(self) -> None:
        random = self.random
        self.emit(*[x86.NOP] * (-len(self.code) % SLOT))
        self.emit(x86.move(x86.RBX, random.randrange(2, 60)), *[x86.NOP] * (SLOT - 5))
        start = self.slots
        for _ in range(random.randrange(1, 6)):
            random.choice(_PLAIN)(self)
        self.emit(b"\xff\xcb")
        self.jump_to(start, 5)

    def leave(self) -> None:
        """IRET, SYSRET, a far return or jump, with whatever state."""
        random = self.random
        code = random.choice((*[USER_CODE] * 14, *[KERNEL_CODE] * 8, self.selector()))
        data = USER_DATA if code & 3 else random.choice((KERNEL_DATA, KERNEL_DATA, 0, USER_DATA))
        flags = random.choice((0x202, 0x202, 2, 0x3202, 0x302, 0x1_0202, 0x4202, 0x2_0202, random.getrandbits(22)))
        target = self.in_code() + random.choice((0, 0, 0, ALIAS))
        kind = random.random()
        if kind < 0.6:
            self.emit(*(_push(value) for value in (data, STACK, flags, code, target)), x86.IRETQ)
        elif kind < 0.8:
            self.emit(
                x86.move(x86.RCX, target), x86.move(11, flags), random.choice((*[x86.SYSRET] * 30, x86.SYSRET_32))
            )
            self.emit(x86.SYSCALL)
        else:
            self.emit(_push(code), _push(target), b"\x48\xcb")

    def tables(self) -> None:
        """LGDT, LIDT, LLDT, LTR, segment registers."""
        random = self.random
        if random.random() < 0.3:
            limit, base = random.choice(
                ((0x7F, GDT), (0xFFF, IDT), (0xFFF, IDT), (random.getrandbits(16), self.address()))
            )
            operand = DATA + 0x10
            self.emit(x86.move(x86.RAX, limit), x86.in_memory(b"\x89", 0, BASE_OF_DATA, operand - DATA))
            self.emit(x86.move(x86.RAX, base), x86.in_memory(b"\x89", 0, BASE_OF_DATA, operand - DATA + 2, wide=True))
            which = 2 if base == GDT else 3 if base == IDT else random.choice((2, 3))
            self.emit(x86.in_memory(b"\x0f\x01", which, BASE_OF_DATA, operand - DATA))
        else:
            loads = [bytes([0x8E, 0xC0 | number << 3]) for number in (0, 2, 3, 4, 5)] + [
                b"\x0f\x00\xd0",
                b"\x0f\x00\xd8",
            ]
            self.emit(x86.move(x86.RAX, random.choice((self.selector(), KERNEL_DATA, USER_DATA))), random.choice(loads))

    def rewrite(self) -> None:
        """Code ahead or behind, through one of its addresses, and with or without something that serializes."""
        random = self.random
        base = random.choice((BASE_OF_CODE, BASE_OF_ALIAS, BASE_OF_ALIAS))
        at = SLOT * max(self.slots + random.randrange(-20, 20), 0) + random.choice((0, 0, 0, random.randrange(16)))
        new = random.choice(
            (0x9090_9090, 0xCC, 0xF4, 0x0B0F, 0xC0FF_C0FF, random.getrandbits(64), 0xE9 | random.randrange(99) << 8)
        )
        self.emit(x86.move(x86.RAX, new), x86.in_memory(b"\x89", x86.RAX, base, at, wide=random.random() < 0.5))
        self.emit(random.choice((b"", b"", x86.CPUID, _control(0, 0x20), b"\x0f\xae\xf0")))

    def remap(self) -> None:
        """An entry of the tables."""
        random = self.random
        entry = random.choice(
            (
                random.randrange(4), 0x200 + random.randrange(5), 0x400 + random.randrange(9),
                *(0xA00 + 0x110 + random.randrange(0x30) for _ in range(15)),
                *(0xA00 + 0x140 + random.randrange(0xC0) for _ in range(15)),
                *(0xC00 + 0x100 + random.randrange(0x100) for _ in range(30)),
            )
        )  # fmt: skip
        value = random.choice(
            (0, random.randrange(0x1000) << 12 | random.choice((3, 7, 5, 0x107)), CODE | 7, random.getrandbits(64))
        )
        self.emit(x86.move(x86.RAX, value), x86.in_memory(b"\x89", 0, BASE_OF_TABLES, 8 * entry, wide=True))
        page = (entry & 0x1FF) << 12 | (ALIAS if entry >= 0xC00 else 0)
        flush = (x86.move(x86.RBX, page), b"\x0f\x01\x3b"), (_control(3, 0x20), _control(3, 0x22)), ()
        self.emit(*random.choice(flush))

    def step(self) -> None:
        self.emit(x86.PUSHFQ, b"\x81\x0c\x24\x00\x01\x00\x00", x86.POPFQ)

    def send(self) -> None:
        """An IPI."""
        random = self.random
        value = random.choice((*IPIS, random.getrandbits(20)))
        self.emit(x86.store(BASE_OF_APIC, 0x310, random.choice((0, 1, 1, 0xFF, 2)) << 24))
        self.emit(x86.store(BASE_OF_APIC, 0x300, value))

    def drive(self) -> None:
        places = (DATA, DATA + 0x1000, DATA + 0x2000, TABLES, 0, MEMORY_BYTES - 16)
        for register, value in driver_writes(self.random, places):
            self.emit(x86.store(BASE_OF_VIRTIO, register, value))


def _control(number: int, opcode: int) -> bytes:
    """MOV between RAX and CRn."""
    return (b"\x44" if number >> 3 else b"") + bytes([0x0F, opcode, 0xC0 | (number & 7) << 3])


def _push(value: int) -> bytes:
    """Of 31 bits."""
    return b"\x68" + struct.pack("<I", value)


_TABLE: dict[Callable[[RandomPcImage], None], float] = {
    RandomPcImage.noise: 2, RandomPcImage.integer: 14, RandomPcImage.vectors: 6, RandomPcImage.math: 2.5,
    RandomPcImage.extended: 2, RandomPcImage.stack: 4, RandomPcImage.string: 2, RandomPcImage.constant: 6,
    RandomPcImage.move_base: 1, RandomPcImage.system: 3, RandomPcImage.read_msr: 2, RandomPcImage.write_msr: 3,
    RandomPcImage.ask: 1.5, RandomPcImage.control: 1.5, RandomPcImage.debug: 0.7, RandomPcImage.port: 3,
    RandomPcImage.access: 5, RandomPcImage.flags: 2, RandomPcImage.wait: 0.8, RandomPcImage.interrupt: 1.5,
    RandomPcImage.jump: 5, RandomPcImage.loop: 3, RandomPcImage.leave: 1.5, RandomPcImage.tables: 0.4,
    RandomPcImage.rewrite: 2.5, RandomPcImage.remap: 1.5, RandomPcImage.step: 0.5, RandomPcImage.send: 0.8,
    RandomPcImage.drive: 0.4,
}  # fmt: skip
_PARTS, _WEIGHTS = list(_TABLE), list(_TABLE.values())
_PLAIN = (RandomPcImage.integer, RandomPcImage.vectors, RandomPcImage.constant, RandomPcImage.access)
