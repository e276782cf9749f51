"""A guest's own x86-64 kernel in 64-bit mode: privilege, exceptions, page tables, and counts by level."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from emulator.probes import Probe
from emulator.x86_64_system import SystemRegister
from tests.unit.native.bare import FOREVER, assemble
from tests.unit.native.own_x86 import (
    LOADED_AT,
    NX,
    PRESENT,
    RFLAGS,
    USER,
    WRITABLE,
    Pc,
)

USER_CODE, KERNEL_DATA = LOADED_AT + 0x1000, LOADED_AT + 0x2000
GDT, TSS, LOG = KERNEL_DATA, KERNEL_DATA + 0x100, KERNEL_DATA + 0x400
IDT, STACK, INTERRUPT_STACK = LOADED_AT + 0x3000, LOADED_AT + 0x5000, LOADED_AT + 0x6000  # the stacks' ends
USER_DATA, READ_ONLY, ABSENT = 0x3_0000, 0x3_1000, 0x3_2000
RESERVED = 1 << 45  # an address bit that CPUID does not have
KERNEL_PAGE = PRESENT | WRITABLE | NX
PAGES = {
    LOADED_AT: LOADED_AT | PRESENT,
    USER_CODE: USER_CODE | PRESENT | USER,
    KERNEL_DATA: KERNEL_DATA | KERNEL_PAGE,
    IDT: IDT | KERNEL_PAGE,
    STACK - 0x1000: STACK - 0x1000 | KERNEL_PAGE,
    INTERRUPT_STACK - 0x1000: INTERRUPT_STACK - 0x1000 | KERNEL_PAGE,
    USER_DATA: 0x4_0000 | PRESENT | WRITABLE | USER | NX,
    READ_ONLY: 0x4_1000 | PRESENT | USER | NX,
    ABSENT + 0x1000: 0x4_2000 | RESERVED | PRESENT | WRITABLE | USER,
}

# Selectors, and descriptors by SDM vol. 3, 3.4.5. SYSRET wants user data before user code.
KERNEL_CS, KERNEL_SS, USER_SS, USER_CS, TASK = 0x08, 0x10, 0x1B, 0x23, 0x28
DESCRIPTORS = [0, 0x00AF9B000000FFFF, 0x00CF93000000FFFF, 0x00CFF3000000FFFF, 0x00AFFB000000FFFF]
TASK_BYTES = 0x68
GATE, USER_GATE = 0x8E, 0xEE  # 64-bit interrupt gates, of DPL 0 and 3


def gate(offset: int, kind: int = GATE, stack: int = 0) -> bytes:
    return struct.pack("<HHBBHII", offset & 0xFFFF, KERNEL_CS, stack, kind, offset >> 16 & 0xFFFF, offset >> 32, 0)


def set_up(pc: Pc, gates: dict[int, bytes]) -> None:
    task = struct.pack(
        "<8H", TASK_BYTES - 1, TSS & 0xFFFF, TSS >> 16 & 0xFF | 0x8900, (TSS >> 24 & 0xFF) << 8, TSS >> 32, 0, 0, 0
    )
    pc.write(GDT, struct.pack("<5Q", *DESCRIPTORS) + task)
    pc.write(TSS, struct.pack("<I4Q", 0, STACK, 0, 0, 0) + struct.pack("<Q", INTERRUPT_STACK))
    pc.write(TSS + 102, struct.pack("<H", TASK_BYTES))  # no I/O bitmap
    for vector, entry in gates.items():
        pc.write(IDT + 16 * vector, entry)
    pc.store(0x4_0000, 5)


# The loads of tables: once each.
PROLOGUE = f"""
        .intel_syntax noprefix
begin:
        lgdt    [rip + gdt]             # 1
        lidt    [rip + idt]             # 1
        mov     eax, {TASK}             # 1
        ltr     ax                      # 1
        mov     esp, {STACK}            # 1
        mov     r14d, {LOG}             # 1
"""
TABLES = f"""
gdt:    .word   {8 * len(DESCRIPTORS) + 15}
        .quad   {GDT}
idt:    .word   0xfff
        .quad   {IDT}
"""

# Beside each line: how often it executes at CPL 0.
KERNEL = f"""{PROLOGUE}
        mov     ecx, 0xc0000081         # 1
        xor     eax, eax                # 1
        mov     edx, {(USER_SS - 8) << 16 | KERNEL_CS} # 1
        wrmsr                           # 1   STAR
        inc     ecx                     # 1
        lea     rax, [rip + syscalls]   # 1
        xor     edx, edx                # 1
        wrmsr                           # 1   LSTAR
        mov     ecx, 0xc0000084         # 1
        mov     eax, 0x200              # 1
        wrmsr                           # 1   SFMASK: IF
        push    {USER_SS}               # 1
        push    {USER_DATA + 0x800}     # 1
        push    0x202                   # 1
        push    {USER_CS}               # 1
        push    {USER_CODE}             # 1
        iretq                           # 1
syscalls:
        test    edi, edi                # 2
        jnz     end                     # 2
        mov     rax, rcx                # 1
        sysretq                         # 1
end:    hlt                             # 1
with_code:                              #     of the faults with error codes: GP, PF
        pop     rax                     # n
        mov     [r14 + 8], rax          # n
        mov     rax, cr2                # n
        mov     [r14 + 16], rax         # n
without_code:                           #     UD
        mov     rax, [rsp]              # n   m
        mov     [r14], rax              # n   m
        add     r14, 24                 # n   m
        add     [rsp], r15              # n   m    past the instruction
        iretq                           # n   m
software:
        mov     [r14], rsp              # 1
        add     r14, 24                 # 1
        iretq                           # 1
{TABLES}
        .org    {USER_CODE - LOADED_AT}
"""
BEFORE_USER = 6 + 17
AT_SYSCALLS = 2 + 2 + 1 + 1 + 1

# (instruction that faults at CPL 3, vector, error code, CR2 or None)
GP, PF, UD = 13, 14, 6
FAULTS: list[tuple[str, int, int, int | None]] = [
    ("hlt", GP, 0, None),
    ("cli", GP, 0, None),
    ("sti", GP, 0, None),
    ("mov rax, cr0", GP, 0, None),
    ("mov cr3, rax", GP, 0, None),
    ("mov rax, dr7", GP, 0, None),
    ("rdmsr", GP, 0, None),
    ("wrmsr", GP, 0, None),
    ("lgdt [rbx]", GP, 0, None),
    ("lidt [rbx]", GP, 0, None),
    ("ltr ax", GP, 0, None),
    ("lldt ax", GP, 0, None),
    ("lmsw ax", GP, 0, None),
    ("clts", GP, 0, None),
    ("invlpg [rbx]", GP, 0, None),
    ("swapgs", GP, 0, None),
    ("wbinvd", GP, 0, None),
    ("sysretq", GP, 0, None),
    ("in al, 0x60", GP, 0, None),
    ("out dx, eax", GP, 0, None),
    ("rdpmc", GP, 0, None),
    ("int 0x40", GP, 0x40 * 8 + 2, None),  # a gate of DPL 0
    ("int 0x90", GP, 0x90 * 8 + 2, None),  # none
    (f"mov ds, [{USER_DATA + 8}]", GP, KERNEL_SS, None),  # DPL 0
    (f"mov ss, [{USER_DATA + 8}]", GP, KERNEL_SS, None),
    (f"mov fs, [{USER_DATA + 16}]", GP, 0x100, None),  # beyond the table
    ("ud2", UD, 0, None),
    ("xgetbv", UD, 0, None),
    (".byte 0xf0, 0x48, 0x89, 0x03", UD, 0, None),  # lock mov [rbx], rax
    (f"mov rax, [{KERNEL_DATA}]", PF, 0b00101, KERNEL_DATA),
    (f"mov [{KERNEL_DATA + 8}], rax", PF, 0b00111, KERNEL_DATA + 8),
    (f"mov rax, [{ABSENT + 16}]", PF, 0b00100, ABSENT + 16),
    (f"inc qword ptr [{ABSENT + 24}]", PF, 0b00110, ABSENT + 24),
    (f"mov [{READ_ONLY + 4}], eax", PF, 0b00111, READ_ONLY + 4),
    (f"mov [{READ_ONLY - 4}], rax", PF, 0b00111, READ_ONLY),  # its first half may be written
    (f"mov al, [{ABSENT + 0x1000}]", PF, 0b01101, ABSENT + 0x1000),
    ("mov rax, [r13]", GP, 0, None),  # not canonical
]
SKIPPED = {GP: 9, PF: 9, UD: 5}  # of the handlers' instructions


def user_code(faults: Sequence[str]) -> str:
    """Each is preceded by one that says how long it is."""
    lines = [f"mov r15d, 2{i}f - 1{i}f; 1{i}: {fault}; 2{i}:" for i, fault in enumerate(faults)]
    return "\n".join(lines)


USER_PROGRAM = f"""
        mov     ebx, {USER_DATA}        # 1
        mov     r13, 0x800000000000     # 1
        mov     qword ptr [rbx + 8], {KERNEL_SS} # 1
        mov     qword ptr [rbx + 16], 0x100 # 1
        mov     r12, [rbx]              # 1
        xor     edi, edi                # 1
        syscall                         # 1
        mov     rbp, rax                # 1
        int     0x80                    # 1
        {user_code([fault for fault, *_ in FAULTS])}
        mov     edi, 1                  # 1
        syscall                         # 1
"""
AT_USER = 9 + len(FAULTS) + 2


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble("x86_64", KERNEL + USER_PROGRAM, tmp_path_factory.mktemp("own_kernel"))


def offset_of(code: bytes, label: str, folder: Path) -> int:
    """Of a label of KERNEL: the assembler says where."""
    return struct.unpack("<Q", assemble("x86_64", f"{KERNEL}\n.org 0x1ff8\n.quad {label} - begin", folder)[-8:])[0]


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    folder = tmp_path_factory.mktemp("labels")
    with_code, without_code, software = (
        LOADED_AT + offset_of(b"", label, folder) for label in ("with_code", "without_code", "software")
    )
    return {
        GP: gate(with_code),
        PF: gate(with_code, stack=1),
        UD: gate(without_code),
        0x40: gate(software),
        0x80: gate(software, USER_GATE),
    }


def booted(code: bytes, gates: dict[int, bytes], core: str = "ideal") -> Pc:
    pc = Pc.load(code, core)
    set_up(pc, gates)
    pc.start_64(PAGES)
    return pc


CORES = ["ideal", "skylake", "zen5"]


@pytest.mark.parametrize("core", CORES)
def test_kernel_and_user_mode_are_counted_apart(core: str, code: bytes, gates: dict[int, bytes]) -> None:
    pc = booted(code, gates, core)
    pc.run()
    at_kernel = BEFORE_USER + AT_SYSCALLS + 3 + sum(SKIPPED[vector] for _, vector, *_ in FAULTS)
    assert pc.by_level(Probe.INST_RETIRED) == (AT_USER, at_kernel)
    # Two system calls, INT, and each fault; all from user mode.
    assert pc.by_level(Probe.EXC_TAKEN) == (2 + 1 + len(FAULTS), 0)
    assert pc.by_level(Probe.EXC_SVC) == (2, 0)


def test_faults_are_told_to_the_kernel(code: bytes, gates: dict[int, bytes]) -> None:
    pc = booted(code, gates)
    pc.run()
    assert pc.read(LOG) == STACK - 5 * 8  # INT pushes five words
    last_address = 0
    for number, (fault, vector, error, address) in enumerate(FAULTS, 1):
        at, pushed, cr2 = struct.unpack("<3Q", pc.read(LOG + 24 * number, 24).to_bytes(24, "little"))
        last_address = address or last_address
        if vector != UD:
            assert (pushed, cr2) == (error, last_address), fault
        assert USER_CODE < at < USER_CODE + 0x1000, fault


def test_registers_of_system_calls(code: bytes, gates: dict[int, bytes]) -> None:
    pc = booted(code, gates)
    pc.run()
    core = pc.cpu.core
    assert core.read_register(12) == 5  # R12: what user mode has loaded
    assert USER_CODE < core.read_register(6) < USER_CODE + 0x100  # RBP: RCX behind the first SYSCALL
    assert core.read_register(11) & 0x200  # R11: RFLAGS with IF, which SFMASK has taken away
    assert not core.read_register(RFLAGS) & 0x200
    assert pc.get(SystemRegister.CPL) == 0


CR0_EM, CR0_TS, CR4_PAE, CR4_OSFXSR = 1 << 2, 1 << 3, 1 << 5, 1 << 9
PE_WP_PG = 1 | 1 << 16 | 1 << 31
NO_MATH = 7


@pytest.mark.parametrize(
    ("instruction", "control_0", "control_4", "vector"),
    [
        ("movaps xmm0, xmm1", 0, CR4_OSFXSR, None),
        ("movaps xmm0, xmm1", 0, 0, UD),
        ("movaps xmm0, xmm1", CR0_TS, CR4_OSFXSR, NO_MATH),
        ("movaps xmm0, xmm1", CR0_EM, CR4_OSFXSR, UD),
        ("movd mm0, eax", 0, 0, None),
        ("movd mm0, eax", CR0_TS, 0, NO_MATH),
        ("fld1", CR0_EM, 0, NO_MATH),
        ("fld1", 0, 0, None),
        ("fxsave [rsp - 0x400]", CR0_TS, 0, NO_MATH),
        ("pause; sfence; prefetchnta [rsp]", CR0_TS | CR0_EM, 0, None),
        (f"lock cmpxchg [{KERNEL_DATA + 0x800}], edx", CR0_TS, 0, None),  # which the core does by a vector instruction
    ],
)
def test_units_that_a_kernel_has_not_enabled(
    instruction: str, control_0: int, control_4: int, vector: int | None, tmp_path: Path
) -> None:
    source = f"{PROLOGUE}\n{instruction}\nud2\nhandler: hlt\n{TABLES}\n.org 0x800\n.quad handler - begin"
    code = assemble("x86_64", source, tmp_path)
    pc = Pc.load(code)
    handler = LOADED_AT + struct.unpack("<Q", code[-8:])[0]
    set_up(pc, {vector: gate(handler) for vector in (UD, NO_MATH)})
    pc.start_64(PAGES)
    pc.set({SystemRegister.CR0: PE_WP_PG | control_0, SystemRegister.CR4: CR4_PAE | control_4})
    pc.run()
    at = pc.read(STACK - 5 * 8) - (LOADED_AT + code.index(b"\x0f\x0b"))
    *_, (_, cpl, rip, taken, error, address, software) = pc.cpu.core.exceptions_taken
    assert (taken, at == 0) == (vector or UD, vector is None)
    assert (cpl, rip, error, address, software) == (0, pc.read(STACK - 5 * 8), None, None, False)


DEBUG = 1
# The kernel steps itself: a trap behind each instruction from the one behind the first POPF on, up to the second POPF;
# of a REP behind each iteration but the last, and behind it.
STEPS = f"""{PROLOGUE}
        pushf
        or      qword ptr [rsp], 0x100
        popf
        nop
first:  mov     eax, 1
second: rdtsc
third:  mov     ecx, 2
fourth: rep stosb
fifth:  rep stosb
sixth:  pushf
seventh: and    qword ptr [rsp], ~0x100
eighth: popf
ninth:  nop
        hlt
handler: mov    rax, [rsp]
        mov     [r14], rax
        add     r14, 8
        mov     edi, {KERNEL_DATA + 0x800}
        iretq
{TABLES}
        .org    0x800
        .quad   first - begin, second - begin, third - begin, fourth - begin, fourth - begin, fifth - begin
        .quad   sixth - begin, seventh - begin, eighth - begin, ninth - begin
        .quad   handler - begin
"""


@pytest.mark.parametrize("core", ["ideal", "zen5"])
@pytest.mark.parametrize("slice_cycles", [FOREVER, 1, 3])
def test_a_kernel_steps_itself(slice_cycles: int, core: str, tmp_path: Path) -> None:
    code = assemble("x86_64", STEPS, tmp_path)
    *places, handler = struct.unpack("<11Q", code[0x800:0x858])
    pc = Pc.load(code, core)
    set_up(pc, {DEBUG: gate(LOADED_AT + handler)})
    pc.start_64(PAGES)
    pc.monitor.slice_cycles = slice_cycles
    pc.run()
    taken = pc.by_level(Probe.EXC_TAKEN)[1]
    log = [pc.read(LOG + 8 * i) - LOADED_AT for i in range(taken)]
    assert log == places
    # The prologue, PUSHF, OR and POPF; what is stepped, the first REP's iterations as one; NOP and HLT; the handler.
    assert pc.by_level(Probe.INST_RETIRED) == (0, 6 + 3 + (len(places) - 1) + 2 + 5 * len(places))
