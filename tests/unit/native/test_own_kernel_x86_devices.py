"""What a guest's own x86-64 kernel has to do with the rest of its machine: interrupts, ports, devices in memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.cpu import Cpu, ExitReason, TrapKind
from emulator.probes import Probe
from emulator.x86_64_system import SystemRegister
from tests.unit.native.bare import FOREVER, assemble
from tests.unit.native.own_x86 import LOADED_AT, NX, PRESENT, RAX, RCX, RDI, RDX, RFLAGS, RSI, WRITABLE, Pc
from tests.unit.native.test_own_kernel_x86_64 import PAGES, PROLOGUE, TABLES, gate, set_up

IRQ, NMI = 0x20, 2
RAISE_IRQ, RAISE_NMI = 0x80, 0x81  # ports
PLACES, COUNT = 0x800, 12  # in the code: where interrupts are to be taken

# An interrupt is raised by OUT, and its handler notes what it has interrupted.
INTERRUPTS = f"""{PROLOGUE}
        xor     ebx, ebx                # 1
        sti                             # 1    the line is asserted already
        inc     ebx                     # 1    not before this one
one:    inc     ebx                     # 1
        out     {RAISE_IRQ}, al         # 1
two:    inc     ebx                     # 1
        cli                             # 1
        out     {RAISE_IRQ}, al         # 1    masked
        inc     ebx                     # 1
        sti                             # 1
        sti                             # 1    in the shadow of the one before, and has none itself
three:  inc     ebx                     # 1
        cli                             # 1
        pushf                           # 1
        or      dword ptr [rsp], 0x200  # 1
        out     {RAISE_IRQ}, al         # 1
        popf                            # 1    no shadow
four:   inc     ebx                     # 1
        cli                             # 1
        out     {RAISE_IRQ}, al         # 1
        mov     eax, 0x10               # 1
        sti                             # 1
        mov     ss, eax                 # 1    which has a shadow, too
        inc     ebx                     # 1
five:   cli                             # 1
        out     {RAISE_IRQ}, al         # 1
        mov     rax, rsp                # 1
        push    0x10                    # 1
        push    rax                     # 1
        push    0x202                   # 1
        push    8                       # 1
        lea     rax, [rip + six]        # 1
        push    rax                     # 1
        iretq                           # 1    no shadow
six:    inc     ebx                     # 1
        out     {RAISE_NMI}, al         # 1
seven:  inc     ebx                     # 1
        cli                             # 1
        out     {RAISE_IRQ}, al         # 1
        mov     ecx, 1000               # 1
1:      dec     ecx                     # 1000
        jnz     1b                      # 1000
        sti                             # 1
        hlt                             # 1    in the shadow: it waits for what is there
eight:  cli                             # 1
        hlt                             # 1
irq:    push    rax                     # 7
        mov     rax, [rsp + 8]          # 7
        mov     [r14], rax              # 7
        add     r14, 8                  # 7
        pop     rax                     # 7
        iretq                           # 7
nmi:    mov     rax, [rsp]              # 2
        mov     [r14], rax              # 2
        add     r14, 8                  # 2
        cmp     ebp, 1                  # 2
        je      1f                      # 2
        mov     ebp, 1                  # 1
        out     {RAISE_NMI}, al         # 1    waits until IRET
        nop                             # 1
1:      iretq                           # 2
{TABLES}
        .org    {PLACES}
        .quad   one - begin, two - begin, three - begin, four - begin, five - begin, six - begin
        .quad   seven - begin, seven - begin, eight - begin, irq - begin, nmi - begin
"""
AT_INTERRUPTS = 6 + 24 + 10 + 6 + 2000 + 4 + 7 * 6 + 2 * 6 + 3


def run_with_interrupts(code: bytes, core: str, slice_cycles: int) -> tuple[Pc, list[int], list[int]]:
    """The machine, and where interrupts were taken and are to be taken."""
    pc = Pc.load(code, core)
    places = struct.unpack(f"<{COUNT - 1}Q", code[PLACES : PLACES + 8 * (COUNT - 1)])
    set_up(pc, {IRQ: gate(LOADED_AT + places[-2]), NMI: gate(LOADED_AT + places[-1])})
    pc.start_64(PAGES)
    line = [True]
    guest = pc.cpu.core

    def answer_port(cpu: Cpu) -> None:
        kind, port, size = guest.trapped
        assert (kind, size) == (TrapKind.OUT, 1)
        if port == RAISE_IRQ:
            line[0] = True
            guest.set_interrupt_line(True)
        else:
            guest.raise_nmi()
        guest.complete_access()

    def interrupt(cpu: Cpu) -> None:
        line[0] = False
        guest.set_interrupt_line(False)
        guest.take_interrupt(IRQ)

    def wait(cpu: Cpu) -> None:
        pc.monitor.ended = not line[0]

    pc.monitor.answers_to = {
        ExitReason.REGISTER: answer_port,
        ExitReason.INTERRUPT: interrupt,
        ExitReason.IDLE: wait,
    }
    pc.monitor.slice_cycles = slice_cycles
    guest.set_interrupt_line(True)
    pc.run()
    log = 0x1_2400
    return pc, [pc.read(log + 8 * i) - LOADED_AT for i in range(len(places) - 2)], list(places[:-2])


@pytest.fixture(scope="module")
def interrupts(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble("x86_64", INTERRUPTS, tmp_path_factory.mktemp("interrupts"))


@pytest.mark.parametrize("core", ["ideal", "zen5"])
@pytest.mark.parametrize("slice_cycles", [FOREVER, 1, 5])
def test_interrupts_are_taken_where_a_processor_takes_them(slice_cycles: int, core: str, interrupts: bytes) -> None:
    pc, taken, places = run_with_interrupts(interrupts, core, slice_cycles)
    assert [hex(place) for place in taken] == [hex(place) for place in places]
    assert pc.by_level(Probe.INST_RETIRED) == (0, AT_INTERRUPTS)
    assert pc.by_level(Probe.EXC_TAKEN) == (0, len(places))


# --- ports and devices ---

DEVICE, PHYSICAL, BUFFER = 0x10_0000, 0xFEE0_0000, 0x1_2800

PORTS = f"""{PROLOGUE}
        mov     rax, 0x1122334455667788
        in      al, 0x60
        mov     r8, rax
        mov     dx, 0x1f0
        in      ax, dx
        mov     r9, rax
        in      eax, dx
        mov     r10, rax
        out     0x43, al
        out     dx, eax
        mov     edi, {BUFFER}
        mov     ecx, 3
        rep insw
        mov     esi, {BUFFER}
        mov     ecx, 2
        rep outsw
        hlt
{TABLES}
"""

ACCESSES = f"""{PROLOGUE}
        mov     ebx, {DEVICE}
        mov     eax, [rbx + 0x20]
        mov     r8, rax
        movzx   r9d, byte ptr [rbx + 0x24]
        movsx   r10, word ptr [rbx + 0x26]
        mov     ah, [rbx + 0x25]
        mov     r11, rax
        mov     [rbx + 0x30], rax
        mov     dword ptr [rbx + 0x38], 0xcafe
        mov     [rbx + 0x3c], ah
        or      dword ptr [rbx + 0x38], 0x10001
        mov     eax, 0x77
        xchg    [rbx + 0x38], eax
        mov     r12, rax
        test    byte ptr [rbx + 0x38], 8
        setz    r13b
        add     r13d, [rbx + 0x38]
        cmp     dword ptr [rbx + 0x38], 0x78
        setb    bpl
        inc     dword ptr [rbx + 0x38]
        mov     edi, {DEVICE + 0x40}
        mov     eax, 0x5a5a
        mov     ecx, 3
        rep stosw
        mov     esi, {DEVICE + 0x40}
        mov     edi, {BUFFER}
        mov     ecx, 3
        rep movsw
        hlt
{TABLES}
"""


def run_code(source: str, folder: Path, answers: Callable[[Pc], dict[ExitReason, Callable[[Cpu], None]]]) -> Pc:
    pc = Pc.load(assemble("x86_64", source, folder))
    set_up(pc, {})
    pc.start_64(PAGES | {DEVICE: PHYSICAL | PRESENT | WRITABLE | NX})
    pc.monitor.answers_to = answers(pc)
    pc.run()
    return pc


def test_ports(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int, int]] = []

    def answers(pc: Pc) -> dict[ExitReason, Callable[[Cpu], None]]:
        def register(cpu: Cpu) -> None:
            kind, port, size = cpu.core.trapped
            assert cpu.core.access is not None
            address, size_there, is_store, value = cpu.core.access
            assert (address, size_there) == (port, size)
            assert is_store == (kind in (TrapKind.OUT, TrapKind.OUTS))
            seen.append((TrapKind(kind).name, port, size, value if is_store else 0))
            assert cpu.core.complete_access(0xA1B2C3D4 + len(seen)) is None

        return {ExitReason.REGISTER: register}

    pc = run_code(PORTS, tmp_path, answers)
    core = pc.cpu.core
    assert [core.read_register(number) for number in (8, 9, 10)] == [
        0x1122334455667788 & ~0xFF | 0xD5,
        0x1122334455667788 & ~0xFFFF | 0xC3D6,
        0xA1B2C3D7,
    ]
    assert seen == [
        ("IN", 0x60, 1, 0),
        ("IN", 0x1F0, 2, 0),
        ("IN", 0x1F0, 4, 0),
        ("OUT", 0x43, 1, 0xD7),
        ("OUT", 0x1F0, 4, 0xA1B2C3D7),
        *[("INS", 0x1F0, 2, 0)] * 3,
        ("OUTS", 0x1F0, 2, 0xC3DA),
        ("OUTS", 0x1F0, 2, 0xC3DB),
    ]
    assert [core.read_register(number) for number in (RCX, RDI, RSI)] == [0, BUFFER + 6, BUFFER + 4]
    assert pc.by_level(Probe.INST_RETIRED) == (0, 6 + 17)


def test_accesses_of_devices(tmp_path: Path) -> None:
    memory = bytearray(0x100)
    memory[0x20:0x28] = bytes.fromhex("8899aabb818283f4")
    seen: list[tuple[int, int, int]] = []

    def answers(pc: Pc) -> dict[ExitReason, Callable[[Cpu], None]]:
        def device(cpu: Cpu) -> None:
            assert cpu.core.access is not None
            address, size, kind, value = cpu.core.access
            offset = address - PHYSICAL
            seen.append((kind, offset, size))
            loaded = int.from_bytes(memory[offset : offset + size], "little")
            stored = cpu.core.complete_access(loaded)
            assert (stored is None) == (kind != 2)
            if kind:
                memory[offset : offset + size] = (value if stored is None else stored).to_bytes(size, "little")

        return {ExitReason.DEVICE: device}

    pc = run_code(ACCESSES, tmp_path, answers)
    core = pc.cpu.core
    values = [core.read_register(number) for number in (8, 9, 10, 11, 12, 13)]
    ah = 0xBBAA8288
    added = (0x77 + 1) & 0xFFFF_FFFF  # TEST has found bit 3 clear: 0x77 & 8
    assert values == [0xBBAA9988, 0x81, 0xFFFF_FFFF_FFFF_F483, ah, 0x1CAFE | 0x10001 & ~0, added]
    assert core.read_register(6) & 0xFF == 1  # BPL: 0x77 is below 0x78
    assert memory[0x30:0x40] == struct.pack("<QII", ah, 0x78, 0x82)
    assert memory[0x40:0x46] == b"\x5a" * 6
    assert pc.read(BUFFER, 6) == int.from_bytes(b"\x5a" * 6, "little")
    assert seen == [
        (0, 0x20, 4), (0, 0x24, 1), (0, 0x26, 2), (0, 0x25, 1), (1, 0x30, 8), (1, 0x38, 4), (1, 0x3C, 1),
        (2, 0x38, 4), (2, 0x38, 4), (0, 0x38, 1), (0, 0x38, 4), (0, 0x38, 4), (2, 0x38, 4),
        *[(1, 0x40 + 2 * i, 2) for i in range(3)],
        *[(0, 0x40 + 2 * i, 2) for i in range(3)],
    ]  # fmt: skip
    assert pc.by_level(Probe.INST_RETIRED) == (0, 6 + 29)
    assert core.read_register(RFLAGS) & 1 == 1  # INC leaves CF, which CMP has set
    assert pc.get(SystemRegister.CR2) == 0  # none of them was a fault
    assert core.read_register(RAX) == 0x5A5A
    assert core.read_register(RDX) == 0x306C4  # as a reset has left it
