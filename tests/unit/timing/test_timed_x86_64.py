"""What the timing models see in x86-64 code: classes by hand, registers and flags against capstone's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capstone
import pytest
from capstone import x86
from elftools.elf.elffile import ELFFile

import require
from emulator._native import timed_decode
from emulator.op_classes import OpClass
from tests.unit.native.bare import assemble

# emulator/native/ops/timed_op.hpp
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
FLAGS, CARRY, VECTOR, MMX, X87, FP_CONTROL = 32, 33, 34, 50, 66, 67

# Instruction, and which of these it has.
RENAMING = {"adds_little", "fuses_with_load", "fuses_with_move", "loads_whole"}
RENAMED = """
    add rax, 1023             | adds_little fuses_with_move
    add rax, 1024             | fuses_with_move
    sub rsp, 32               | adds_little fuses_with_move
    add eax, 1                | fuses_with_move
    inc rax                   | adds_little fuses_with_move
    inc eax                   | fuses_with_move
    lea rax, [rcx-8]          | adds_little
    lea rax, [rcx+4096]       |
    lea rax, [rcx+rdx]        |
    lea rax, [rip+8]          |
    add rax, rcx              | fuses_with_load fuses_with_move
    xor eax, ecx              | fuses_with_load fuses_with_move
    and rax, 7                | fuses_with_move
    and al, 7                 |
    add rax, [rcx]            |
    neg rax                   | fuses_with_move
    shl rax, 3                | fuses_with_move
    shl rax, cl               |
    imul rax, rcx             |
    adc rax, rcx              |
    cmp rax, rcx              |
    lea rax, [rax+rcx]        |
    paddd xmm0, xmm1          | fuses_with_move
    mulsd xmm0, xmm1          | fuses_with_move
    pshufb xmm0, xmm1         |
    addps xmm0, [rcx]         |
    mov rax, [rcx+8]          | loads_whole
    mov eax, [rcx]            | loads_whole
    mov al, [rcx]             |
    mov rax, [rcx+rdx*8]      |
    movzx eax, byte ptr [rcx] |
    pop rax                   |
"""

# Instruction, class, width in bytes, and what else is true of it.
CLASSES = """
    mov rax, rcx              | MOVE             |  8 | eliminable_move
    mov eax, ecx              | MOVE             |  4 | eliminable_move
    mov al, cl                | ALU              |  4 |
    mov eax, 7                | CONSTANT         |  4 |
    mov al, 7                 | ALU              |  4 |
    movabs rax, 0x123456789ab | CONSTANT         |  8 |
    mov rax, [rcx]            | NONE             |  8 | loads
    mov al, [rcx]             | ALU              |  4 | loads
    mov [rcx+rdx*8], rax      | NONE             |  8 | stores complex_address
    mov dword ptr [rcx], 7    | NONE             |  4 | stores
    movzx eax, cl             | ALU              |  4 |
    movzx eax, byte ptr [rcx] | NONE             |  4 | loads
    movsxd rax, dword ptr [rcx] | NONE           |  8 | loads
    xor eax, eax              | ZERO             |  4 |
    sub rax, rax              | ZERO             |  8 | compares
    xor al, al                | ALU              |  4 |
    xor eax, ecx              | ALU              |  4 |
    add rax, rcx              | ALU              |  8 | compares
    add rax, [rcx]            | ALU              |  8 | loads compares
    add [rcx], rax            | ALU              |  8 | loads stores
    cmp rax, rcx              | ALU              |  8 | compares compare_only
    cmp dword ptr [rcx], 7    | ALU              |  4 | loads compares compare_only memory_or_immediate
    test eax, ecx             | ALU              |  4 | compares compare_only
    inc eax                   | ALU              |  4 | compares
    not rax                   | ALU              |  8 |
    adc rax, rcx              | ALU_CARRY        |  8 |
    cdqe                      | ALU              |  8 |
    cqo                       | SHIFT            |  8 |
    shl rax, 3                | SHIFT            |  8 |
    sar eax, cl               | SHIFT_BY_COUNT   |  4 |
    shlx rax, rcx, rdx        | SHIFT_VARIABLE   |  8 |
    ror eax, 3                | ROTATE           |  4 |
    rorx rax, rcx, 3          | ROTATE           |  8 |
    rcr rax, 1                | ROTATE_CARRY     |  8 |
    shld rax, rcx, 3          | SHIFT_DOUBLE     |  8 |
    bextr rax, rcx, rdx       | BITFIELD         |  8 |
    cmove rax, rcx            | SELECT           |  8 |
    cmovbe rax, rcx           | SELECT_TWO_FLAGS |  8 |
    sete al                   | SELECT           |  4 |
    lea rax, [rcx+8]          | LEA              |  8 |
    lea rax, [rcx+rdx]        | LEA              |  8 |
    lea rax, [rip+8]          | LEA              |  8 |
    lea rax, [rcx+rdx*4]      | LEA_SCALED       |  8 |
    lea rax, [rcx+rdx*4+8]    | LEA_COMPLEX      |  8 |
    popcnt rax, rcx           | BIT_COUNT        |  8 |
    bsf rax, rcx              | BIT_SCAN         |  8 |
    blsr rax, rcx             | BIT_LOWEST       |  8 |
    bt rax, 3                 | BIT_TEST         |  8 |
    bt [rcx], rax             | BIT_TEST         |  8 | loads microcoded
    bts rax, rcx              | BIT_TEST         |  8 |
    bswap eax                 | BYTE_REVERSE     |  4 |
    pext rax, rcx, rdx        | PARALLEL_BITS    |  8 |
    imul eax, ecx             | MUL32            |  4 |
    imul rax, rcx, 7          | MUL64            |  8 |
    imul rcx                  | MUL_HIGH         |  8 |
    mul ecx                   | MUL_HIGH         |  4 |
    mulx rax, rbx, rcx        | MUL_HIGH         |  8 |
    div ecx                   | DIV32            |  4 |
    div rcx                   | DIV64            |  8 |
    idiv ecx                  | DIV32            |  4 |
    idiv qword ptr [rcx]      | DIV_SIGNED64     |  8 | loads
    crc32 rax, rcx            | CRC              |  8 |
    xchg rax, rcx             | EXCHANGE         |  8 |
    xchg [rcx], rax           | ATOMIC           |  8 | loads stores
    lock add [rcx], rax       | ATOMIC           |  8 | loads stores
    lock cmpxchg [rcx], rdx   | ATOMIC           |  8 | loads stores
    lahf                      | FLAGS            |  8 |
    movsb                     | STRING           |  4 | loads stores microcoded
    rep stosq                 | STRING           |  8 | stores microcoded repeated
    repne scasb               | STRING           |  4 | loads microcoded repeated
    .byte 0xf2, 0xa5          | STRING           |  4 | loads stores microcoded repeated
    nop                       | NOP              |  8 |
    nop word ptr [rax+rax]    | NOP              |  4 |
    endbr64                   | NOP              |  8 |
    pause                     | PAUSE            |  8 | microcoded
    prefetcht0 [rcx]          | NONE             |  4 | prefetches
    mfence                    | BARRIER          |  8 | serializes
    sfence                    | BARRIER          |  8 |
    cpuid                     | SERIALIZE        |  8 | serializes microcoded
    rdtsc                     | SYSTEM           |  8 | microcoded
    push rax                  | NONE             |  8 | stores
    push [rcx]                | NONE             |  8 | loads stores
    pop rax                   | NONE             |  8 | loads
    leave                     | NONE             |  8 | loads
    ret                       | RETURN           |  8 | loads
    call 1f                   | CALL             |  8 | stores
    call [rcx]                | CALL             |  8 | loads stores
    jmp 1f                    | BRANCH           |  8 |
    jmp rcx                   | BRANCH_INDIRECT  |  8 |
    1: jne 1b                 | BRANCH           |  8 | fuses_with_compare
    jrcxz 1b                  | BRANCH_COUNT     |  8 |
    movaps xmm0, xmm1         | FP_MOVE          | 16 | eliminable_move
    movdqu xmm0, [rcx]        | NONE             | 16 | loads
    movups [rcx], xmm0        | NONE             | 16 | stores
    movsd xmm0, xmm1          | VECTOR_PERMUTE   |  8 |
    movsd xmm0, qword ptr [rcx] | NONE           |  8 | loads
    movhps xmm0, [rcx]        | VECTOR_PERMUTE   |  8 | loads
    movhps [rcx], xmm0        | NONE             |  8 | stores
    blendps xmm0, xmm1, 1     | VECTOR_BLEND     | 16 |
    movq xmm0, xmm1           | VECTOR_LOGIC     |  8 |
    movq xmm0, rax            | MOVE_TO_VECTOR   |  8 |
    movd eax, xmm0            | MOVE_FROM_VECTOR |  4 |
    pmovmskb eax, xmm0        | MOVE_FROM_VECTOR |  4 |
    pinsrq xmm0, rax, 1       | VECTOR_INSERT    | 16 |
    pextrd eax, xmm0, 1       | VECTOR_EXTRACT   |  4 |
    addsd xmm0, xmm1          | FP_ADD           |  8 |
    addps xmm0, [rcx]         | FP_ADD           | 16 | loads
    mulss xmm0, xmm1          | FP_MUL           |  4 |
    divss xmm0, xmm1          | FP_DIV32         |  4 |
    divsd xmm0, xmm1          | FP_DIV64         |  8 |
    divps xmm0, xmm1          | VECTOR_DIV32     | 16 |
    divpd xmm0, xmm1          | VECTOR_DIV64     | 16 |
    sqrtss xmm0, xmm1         | FP_SQRT32        |  4 |
    sqrtsd xmm0, xmm1         | FP_SQRT64        |  8 |
    sqrtps xmm0, xmm1         | VECTOR_SQRT32    | 16 |
    sqrtpd xmm0, xmm1         | VECTOR_SQRT64    | 16 |
    rsqrtps xmm0, xmm1        | FP_ESTIMATE      | 16 |
    maxsd xmm0, xmm1          | FP_MINMAX        |  8 |
    cmpltpd xmm0, xmm1        | FP_COMPARE       | 16 |
    cmpordsd xmm0, qword ptr [rcx] | FP_COMPARE  |  8 | loads
    ucomisd xmm0, xmm1        | FP_COMPARE_FLAGS |  8 |
    roundsd xmm0, xmm1, 1     | FP_ROUND         |  8 |
    xorps xmm0, xmm1          | FP_LOGIC         | 16 |
    xorps xmm0, xmm0          | ZERO             | 16 |
    haddpd xmm0, xmm1         | FP_HORIZONTAL    | 16 |
    dpps xmm0, xmm1, 1        | FP_DOT           | 16 |
    blendvps xmm1, xmm2, xmm0 | FP_SELECT        | 16 |
    cvtsi2sd xmm0, rax        | GPR_TO_FP        |  8 |
    cvtsi2sd xmm0, dword ptr [rcx] | INT_TO_FP   |  4 | loads
    cvttsd2si rax, xmm0       | FP_TO_GPR        |  8 |
    cvtss2sd xmm0, xmm1       | FP_CONVERT       |  8 |
    cvtdq2ps xmm0, xmm1       | INT_TO_FP        | 16 |
    cvttps2dq xmm0, xmm1      | FP_TO_INT        | 16 |
    paddd xmm0, xmm1          | VECTOR_ALU       | 16 |
    paddd mm0, mm1            | VECTOR_ALU       |  8 |
    paddusb xmm0, xmm1        | VECTOR_SATURATE  | 16 |
    pand xmm0, xmm1           | VECTOR_LOGIC     | 16 |
    pxor xmm0, xmm0           | ZERO             | 16 |
    pcmpeqb xmm0, xmm1        | VECTOR_COMPARE   | 16 |
    pcmpgtq xmm0, xmm1        | VECTOR_COMPARE64 | 16 |
    pminub xmm0, xmm1         | VECTOR_MINMAX    | 16 |
    psllq xmm0, 3             | VECTOR_SHIFT     | 16 |
    psllq xmm0, xmm1          | VECTOR_SHIFT_VARIABLE | 16 |
    pmuludq xmm0, xmm1        | VECTOR_MUL       | 16 |
    pmulld xmm0, xmm1         | VECTOR_MUL_LONG  | 16 |
    psadbw xmm0, xmm1         | VECTOR_REDUCE    | 16 |
    phaddd xmm0, xmm1         | VECTOR_PAIRWISE  | 16 |
    pshufb xmm0, xmm1         | VECTOR_TABLE     | 16 |
    pshufd xmm0, xmm1, 1      | VECTOR_PERMUTE   | 16 |
    packuswb xmm0, xmm1       | VECTOR_PACK      | 16 |
    pmovzxbw xmm0, xmm1       | VECTOR_WIDEN     | 16 |
    ptest xmm0, xmm1          | VECTOR_TEST      | 16 |
    pcmpistri xmm0, xmm1, 1   | VECTOR_STRING    | 16 |
    aesenc xmm0, xmm1         | AES              | 16 |
    aesimc xmm0, xmm1         | AES_MIX          | 16 |
    aeskeygenassist xmm0, xmm1, 1 | AES_KEY      | 16 | microcoded
    pclmulqdq xmm0, xmm1, 1   | CARRYLESS_MUL    | 16 |
    fld qword ptr [rcx]       | X87_MOVE         |  8 | loads
    fstp tbyte ptr [rcx]      | X87_MOVE         | 16 | stores
    fild dword ptr [rcx]      | X87_CONVERT      |  4 | loads
    faddp                     | X87_ADD          | 16 |
    fmul qword ptr [rcx]      | X87_MUL          |  8 | loads
    fdivp                     | X87_DIV          | 16 |
    fucomi st, st(1)          | X87_COMPARE      | 16 |
    fcmove st, st(1)          | X87_SELECT       | 16 |
    fnstcw [rcx]              | X87_CONTROL      |  4 | stores
    ldmxcsr [rcx]             | X87_CONTROL      |  4 | loads
    fsin                      | X87_SPECIAL      |  8 | microcoded
"""


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def decoded(source: str, folder: Path) -> list[dict[str, Any]]:
    return timed_decode("x86_64", 0, assemble("x86_64", ".intel_syntax noprefix\n" + source, folder))


def test_instructions_have_the_class_and_width_of_their_row(tmp_path: Path) -> None:
    table = rows(CLASSES)
    ops = decoded("\n".join(row[0] for row in table), tmp_path)
    assert len(ops) == len(table)
    found = [
        [row[0], OpClass(op["op_class"]).name, str(op["width_bytes"]), " ".join(sorted(set(op["flags"]) - RENAMING))]
        for row, op in zip(table, ops, strict=True)
    ]
    assert found == [[row[0], row[1], row[2], " ".join(sorted(row[3].split()))] for row in table]


def test_renamers_know_constants_moves_and_what_computes_on_them(tmp_path: Path) -> None:
    table = rows(RENAMED)
    ops = decoded("\n".join(row[0] for row in table), tmp_path)
    found = [[row[0], " ".join(sorted(set(op["flags"]) & RENAMING))] for row, op in zip(table, ops, strict=True)]
    assert found == table


ROLES: list[tuple[str, list[int], list[int], list[int], int | None]] = [
    # instruction, sources, address sources, destinations, write-back
    ("add rax, [rcx+rdx*8]", [RAX], [RCX, RDX], [RAX, FLAGS, CARRY], None),
    ("add [rcx], rax", [RAX], [RCX], [FLAGS, CARRY], None),
    ("mov [rsp+8], rdi", [RDI], [RSP], [], None),
    ("mov ah, 7", [RAX], [], [RAX], None),
    ("inc eax", [RAX], [], [RAX, FLAGS], None),
    ("adc eax, ecx", [RAX, RCX, CARRY], [], [RAX, FLAGS, CARRY], None),
    ("xor eax, eax", [], [], [RAX, FLAGS, CARRY], None),
    ("xor eax, ecx", [RAX, RCX], [], [RAX, FLAGS, CARRY], None),
    ("pcmpeqd xmm1, xmm1", [], [], [VECTOR + 1], None),
    ("lea rax, [rcx+rdx*4+8]", [RCX, RDX], [], [RAX], None),
    ("shl rax, cl", [RAX, RCX], [], [RAX, FLAGS, CARRY], None),
    ("shlx rax, rbx, rcx", [RBX, RCX], [], [RAX], None),
    ("cmovb rax, rcx", [RAX, RCX, CARRY], [], [RAX], None),
    ("cmova rax, rcx", [RAX, RCX, FLAGS, CARRY], [], [RAX], None),
    ("setne cl", [RCX, FLAGS], [], [RCX], None),
    ("bt rax, 3", [RAX], [], [CARRY], None),
    ("mul rcx", [RCX, RAX], [], [FLAGS, CARRY, RAX, RDX], None),
    ("mul cl", [RCX, RAX], [], [FLAGS, CARRY, RAX], None),
    ("imul rcx", [RCX, RAX], [], [RAX, RDX, FLAGS, CARRY], None),
    ("imul eax, ecx, 7", [RCX], [], [RAX, FLAGS, CARRY], None),
    ("mulx rax, rbx, rcx", [RCX, RDX], [], [RAX, RBX], None),
    ("div rcx", [RCX, RAX, RDX], [], [FLAGS, CARRY, RAX, RDX], None),
    ("cmpxchg [rsi], rdi", [RDI, RAX], [RSI], [FLAGS, CARRY, RAX], None),
    ("lock cmpxchg16b [rsi]", [RBX, RAX, RDX, RCX], [RSI], [FLAGS, RAX, RDX], None),
    ("xadd [rsi], rdi", [RDI], [RSI], [RDI, FLAGS, CARRY], None),
    ("push rbx", [RBX], [RSP], [], RSP),
    ("push [rbx]", [], [RBX, RSP], [], RSP),
    ("pop rbx", [], [RSP], [RBX], RSP),
    ("call rbx", [RBX], [RSP], [], RSP),
    ("ret", [], [RSP], [], RSP),
    ("leave", [], [RBP], [RBP], RSP),
    ("rep movsb", [RCX], [RSI, RDI], [RSI, RDI, RCX], None),
    ("stosd", [RAX], [RDI], [RDI], None),
    ("lodsb", [RAX], [RSI], [RAX, RSI], None),
    ("xlatb", [], [RAX, RBX], [RAX], None),
    ("addsd xmm1, xmm2", [VECTOR + 1, VECTOR + 2], [], [VECTOR + 1], None),
    ("movsd xmm1, xmm2", [VECTOR + 1, VECTOR + 2], [], [VECTOR + 1], None),
    ("movsd xmm1, qword ptr [rcx]", [], [RCX], [VECTOR + 1], None),
    ("movaps xmm1, xmm2", [VECTOR + 2], [], [VECTOR + 1], None),
    ("movhps [rcx], xmm1", [VECTOR + 1], [RCX], [], None),
    ("sqrtsd xmm1, xmm2", [VECTOR + 2], [], [VECTOR + 1], None),
    ("sqrtpd xmm1, xmm2", [VECTOR + 2], [], [VECTOR + 1], None),
    ("cvtsi2sd xmm1, rcx", [RCX], [], [VECTOR + 1], None),
    ("pblendvb xmm1, xmm2, xmm0", [VECTOR + 1, VECTOR + 2, VECTOR], [], [VECTOR + 1], None),
    ("ucomisd xmm1, xmm2", [VECTOR + 1, VECTOR + 2], [], [FLAGS, CARRY], None),
    ("pcmpestri xmm1, xmm2, 1", [VECTOR + 1, VECTOR + 2, RAX, RDX], [], [FLAGS, CARRY, RCX], None),
    ("paddd mm1, mm2", [MMX + 1, MMX + 2], [], [MMX + 1], None),
    ("fadd st, st(1)", [X87], [], [X87], None),
    ("fldcw [rcx]", [], [RCX], [FP_CONTROL], None),
    ("fnstsw ax", [RAX, FP_CONTROL], [], [RAX], None),
]


def test_registers_have_their_roles(tmp_path: Path) -> None:
    ops = decoded("\n".join(row[0] for row in ROLES), tmp_path)
    found = [
        (row[0], sorted(op["sources"]), sorted(op["address_sources"]), sorted(op["destinations"]), op["write_back"])
        for row, op in zip(ROLES, ops, strict=True)
    ]
    assert found == [(row[0], *(sorted(registers) for registers in row[1:4]), row[4]) for row in ROLES]


# Intel's table of what macro-fuses (Optimization Reference Manual, "Macro-fusion").
@pytest.mark.parametrize(
    ("compare", "branches"),
    [
        ("test eax, ecx", "je jb ja jl jo js jp"),
        ("and eax, ecx", "je jb ja jl jo js jp"),
        ("cmp eax, ecx", "je jb ja jl"),
        ("add eax, ecx", "je jb ja jl"),
        ("sub eax, ecx", "je jb ja jl"),
        ("dec eax", "je jl"),
    ],
)
def test_a_compare_fuses_with_the_branches_that_intel_lists(compare: str, branches: str, tmp_path: Path) -> None:
    every = ["je", "jb", "ja", "jl", "jo", "js", "jp"]
    first, *seconds = decoded("\n".join([f"1: {compare}", *(f"{branch} 1b" for branch in every)]), tmp_path)
    assert first["conditions"] != 0xFF
    assert [branch for branch, op in zip(every, seconds, strict=True) if first["conditions"] & op["conditions"]] == (
        branches.split()
    )


# Where we differ from capstone 5.0 on purpose, or where it is wrong.
DIFFERENT_REGISTERS = {
    "zero idioms": ("xor sub pxor xorps xorpd psubb psubw psubd psubq pcmpeqb pcmpeqw pcmpeqd pcmpgtb", "read nothing"),
    "parts of a register": ("mov movsx lea imul sete setne setg setge setl setle seta setae setb setbe sets setns seto "
                            "setno setp setnp", "writing 8 or 16 bits keeps the rest"),
    "unwritten selections": ("cmove cmovne cmovg cmovge cmovl cmovle cmova cmovae cmovb cmovbe cmovs cmovns cmovo "
                             "cmovno cmovp cmovnp", "capstone does not say that the destination may stay"),
    "scans": ("bsf bsr", "of zero leave the destination as it was"),
    "comparisons": ("test", "capstone: of EAX and an immediate it writes EAX; of memory it reads no register"),
    "implied": ("cmpxchg cqo cdq leave fnstsw cpuid adox cmpxchg16b nop syscall", "capstone: too few or too many"),
}  # fmt: skip
DIFFERENT_FLAGS = {
    "bt bts btr btc bsf bsr": "those that are undefined afterwards are not renamed",
    "fcomi fcompi fucomi fucompi fcmove fcmovb fcmovbe fcmovu fcmovnbe": "capstone: of x87's status word",
    "fstp fldl2t fldl2e fldln2": "capstone: C1 of x87's status word is CF",
    "cmpltsd cmplesd cmpless cmpnlesd cmpnless": "capstone: as the string instruction's",
    "pcmpistri lzcnt test": "capstone: left out",
    "syscall": "the kernel gives them back",
}
OTHER_CORES = "kmov kor ktest kunpck kxnor kand kshift xbegin xtest rdpkru wrpkru rdrand rdseed"


def register_numbers() -> dict[str, int]:
    legacy = "rax eax ax al ah|rcx ecx cx cl ch|rdx edx dx dl dh|rbx ebx bx bl bh|rsp esp sp spl|rbp ebp bp bpl"
    groups = [
        *legacy.split("|"),
        "rsi esi si sil",
        "rdi edi di dil",
        *(f"r{n} r{n}d r{n}w r{n}b" for n in range(8, 16)),
    ]
    numbers = {name: number for number, group in enumerate(groups) for name in group.split()}
    numbers |= {f"xmm{n}": VECTOR + n for n in range(16)}
    return numbers | {f"mm{n}": MMX + n for n in range(8)}


def flag_bits(*kinds: str) -> dict[int, int]:
    """CARRY and FLAGS, each with capstone's bits of `kinds` of them."""
    others = ("OF", "SF", "ZF", "PF")
    carry = sum(getattr(x86, f"X86_EFLAGS_{kind}_CF", 0) for kind in kinds)
    return {CARRY: carry, FLAGS: sum(getattr(x86, f"X86_EFLAGS_{kind}_{flag}", 0) for kind in kinds for flag in others)}


READS, WRITES = flag_bits("TEST"), flag_bits("MODIFY", "SET", "RESET", "UNDEFINED")


@pytest.mark.parametrize("library", ["lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libm.so.6"])
def test_registers_agree_with_capstone(library: str) -> None:
    with (require.debian_tree("amd64", "libc6") / library).open("rb") as stream:
        code = ELFFile(stream).get_section_by_name(".text").data()
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.detail = True
    numbers = register_numbers()
    different = {name for names, _ in DIFFERENT_REGISTERS.values() for name in names.split()}
    different_flags = {name for names in DIFFERENT_FLAGS for name in names.split()}
    seen: set[bytes] = set()
    wrong: list[str] = []
    for instruction in disassembler.disasm(code[:400_000], 0):  # quick, and everything occurs
        encoded = bytes(instruction.bytes)
        mnemonic = instruction.mnemonic.split()[-1]
        if encoded in seen or mnemonic.startswith(("v", *OTHER_CORES.split())):
            continue
        seen.add(encoded)
        (op,) = timed_decode("x86_64", 0, encoded)
        special = {FLAGS, CARRY, X87, FP_CONTROL}
        read, written = (
            {numbers[name] for register in registers if (name := disassembler.reg_name(register)) in numbers}
            for registers in instruction.regs_access()
        )
        ours_read = {*op["sources"], *op["address_sources"]} - special
        ours_written = {*op["destinations"], op["write_back"]} - special - {None}
        if (read, written) != (ours_read, ours_written) and mnemonic not in different:
            wrong.append(f"{mnemonic} {instruction.op_str}: {OpClass(op['op_class']).name} {ours_read} {ours_written}")
        eflags = instruction.eflags if capstone.x86.X86_GRP_FPU not in instruction.groups else 0
        flags_read, flags_written = ({flag for flag, bits in each.items() if eflags & bits} for each in (READS, WRITES))
        ours_flags = ({FLAGS, CARRY} & {*op["sources"]}, {FLAGS, CARRY} & {*op["destinations"]})
        if (flags_read, flags_written) != ours_flags and mnemonic not in different_flags:
            wrong.append(f"{mnemonic} {instruction.op_str}: {ours_flags}, not {flags_read, flags_written}")
    assert len(seen) > 5_000
    assert wrong == []
