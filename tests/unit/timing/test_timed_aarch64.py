"""What the timing models see in AArch64 code: classes by hand, registers against capstone's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import capstone
import pytest
from elftools.elf.elffile import ELFFile

import require
from emulator._native import timed_decode
from emulator.op_classes import OpClass
from tests.unit.native.bare import assemble

STACK, FLAGS, VECTOR, FP_CONTROL = 31, 32, 34, 67  # emulator/native/ops/timed_op.hpp

# Instruction, class, width in bytes, and what else is true of it.
CLASSES = """
    b .                          | BRANCH            |  8 |
    bl .                         | CALL              |  8 |
    b.eq .                       | BRANCH            |  8 | fuses_with_compare
    cbz w3, .                    | BRANCH            |  4 |
    tbnz x3, #5, .               | BRANCH            |  4 |
    ret                          | RETURN            |  8 |
    br x3                        | BRANCH_INDIRECT   |  8 |
    blr x3                       | CALL              |  8 |
    adr x0, .                    | CONSTANT          |  8 |
    mov w0, #7                   | CONSTANT          |  4 |
    mov x0, #-7                  | CONSTANT          |  8 |
    mov x0, #0x5555555555555555  | CONSTANT          |  8 |
    mov x0, #0                   | ZERO              |  8 |
    mov w0, wzr                  | ZERO              |  4 |
    movk x0, #7, lsl #16         | ALU               |  8 |
    mov x0, x1                   | MOVE              |  8 | eliminable_move
    mov x0, sp                   | ALU               |  8 |
    add x0, x1, #7               | ALU               |  8 |
    adds w0, w1, #7              | ALU               |  4 | compares
    cmp x1, #7                   | ALU               |  8 | compares compare_only
    add x0, x1, x2               | ALU               |  8 |
    add x0, x1, x2, lsl #4       | ALU_LSL           |  8 |
    adds x0, x1, x2, lsl #4      | ALU_LSL           |  8 | compares
    add x0, x1, x2, lsl #5       | ALU_SHIFTED       |  8 |
    sub w0, w1, w2, lsr #1       | ALU_SHIFTED       |  4 |
    add x0, x1, w2, sxtw         | ALU_SHIFTED       |  8 |
    cmp x1, w2, uxtb             | ALU_SHIFTED       |  8 | compares compare_only
    and x0, x1, x2               | ALU               |  8 |
    orn x0, x1, x2, ror #9       | LOGIC_SHIFTED     |  8 |
    ands x0, x1, x2              | ALU               |  8 | compares
    tst x1, x2, lsl #9           | ALU_SHIFTED       |  8 | compares compare_only
    eor w0, w1, #0xff            | ALU               |  4 |
    adc x0, x1, x2               | ALU_CARRY         |  8 |
    sbcs w0, w1, w2              | ALU_CARRY         |  4 |
    lsl x0, x1, #3               | SHIFT             |  8 |
    ubfx w0, w1, #3, #4          | SHIFT             |  4 |
    sxtw x0, w1                  | EXTEND            |  8 |
    uxtb w0, w1                  | EXTEND            |  4 |
    lsr w0, w1, #24              | SHIFT             |  4 |
    bfi x0, x1, #3, #4           | BITFIELD          |  8 |
    extr x0, x1, x2, #7          | SHIFT_DOUBLE      |  8 |
    ror x0, x1, #7               | ROTATE            |  8 |
    lsl x0, x1, x2               | SHIFT_VARIABLE    |  8 |
    ror w0, w1, w2               | SHIFT_VARIABLE    |  4 |
    csel x0, x1, x2, ne          | SELECT            |  8 |
    cset w0, ne                  | SELECT            |  4 |
    ccmp x0, #3, #0, ne          | FLAGS             |  8 |
    rbit x0, x1                  | BIT_REVERSE       |  8 |
    rev16 w0, w1                 | BYTE_REVERSE      |  4 |
    clz x0, x1                   | BIT_COUNT         |  8 |
    mul w0, w1, w2               | MUL32             |  4 |
    mul x0, x1, x2               | MUL64             |  8 |
    smull x0, w1, w2             | MUL32             |  8 |
    umulh x0, x1, x2             | MUL_HIGH          |  8 |
    madd w0, w1, w2, w3          | MUL_ADD32         |  4 |
    msub x0, x1, x2, x3          | MUL_ADD64         |  8 |
    umaddl x0, w1, w2, x3        | MUL_ADD32         |  8 |
    udiv w0, w1, w2              | DIV32             |  4 |
    sdiv x0, x1, x2              | DIV64             |  8 |
    crc32cx w0, w1, x2           | CRC               |  8 |
    nop                          | NOP               |  8 |
    dmb ish                      | BARRIER           |  8 |
    dsb ish                      | BARRIER           |  8 | serializes
    isb                          | SERIALIZE         |  8 | serializes
    mrs x0, tpidr_el0            | SYSTEM            |  8 |
    svc #0                       | SYSTEM            |  8 | serializes
    dc zva, x0                   | NONE              |  8 | stores
    prfm pldl1keep, [x0, x1]     | NONE              |  8 | prefetches
    ldr x0, [x1]                 | NONE              |  8 | loads
    ldrb w0, [x1, #1]!           | NONE              |  4 | loads
    ldrsw x0, [x1], #4           | NONE              |  8 | loads
    ldr w0, .                    | NONE              |  4 | loads
    ldr q0, [x1, x2]             | NONE              | 16 | loads
    ldr q0, [x1, x2, lsl #4]     | NONE              | 16 | loads complex_address
    ldr x0, [x1, x2, lsl #3]     | NONE              |  8 | loads
    ldrh w0, [x1, w2, sxtw #1]   | NONE              |  4 | loads complex_address
    str d0, [x1], #8             | NONE              |  8 | stores
    stp q0, q1, [x1]             | NONE              | 16 | stores
    ldxr x0, [x1]                | EXCLUSIVE         |  8 | loads
    stlxr w0, x1, [x2]           | EXCLUSIVE         |  8 | stores
    ldar x0, [x1]                | NONE              |  8 | loads
    stlr w0, [x1]                | NONE              |  4 | stores
    ldadd x0, x1, [x2]           | ATOMIC            |  8 | loads stores
    casp x0, x1, x2, x3, [x4]    | ATOMIC            |  8 | loads stores
    cas w0, w1, [x2]             | ATOMIC            |  4 | loads stores
    swpab w0, w1, [x2]           | ATOMIC            |  4 | loads stores
    ldapr x0, [x1]               | NONE              |  8 | loads
    dc cvap, x0                  | SYSTEM            |  8 |
    ld1 {v0.4s, v1.4s}, [x0]     | NONE              | 16 | loads
    ld2 {v0.4s, v1.4s}, [x0]     | VECTOR_PERMUTE    | 16 | loads
    ld1r {v0.8b}, [x0]           | VECTOR_PERMUTE    |  8 | loads
    ld1 {v0.s}[1], [x0]          | VECTOR_PERMUTE    |  8 | loads
    st1 {v0.16b}, [x0], #16      | NONE              | 16 | stores
    st4 {v0.8b-v3.8b}, [x0], x1  | VECTOR_PERMUTE    |  8 | stores
    st1 {v0.s}[3], [x0]          | VECTOR_PERMUTE    | 16 | stores
    fmov d0, d1                  | FP_MOVE           |  8 | eliminable_move
    mov v0.16b, v1.16b           | FP_MOVE           | 16 | eliminable_move
    fmov s0, #1.0                | VECTOR_CONSTANT   |  4 |
    movi v0.2d, #0               | VECTOR_CONSTANT   | 16 |
    fabs d0, d1                  | FP_LOGIC          |  8 |
    fneg v0.4s, v1.4s            | FP_LOGIC          | 16 |
    fadd s0, s1, s2              | FP_ADD            |  4 |
    fsub v0.2d, v1.2d, v2.2d     | FP_ADD            | 16 |
    fabd d0, d1, d2              | FP_ADD            |  8 |
    fmul d0, d1, d2              | FP_MUL            |  8 |
    fnmul s0, s1, s2             | FP_MUL            |  4 |
    fmul v0.2s, v1.2s, v2.2s     | FP_MUL            |  8 |
    fmul v0.2d, v1.2d, v2.d[1]   | FP_MUL            | 16 |
    fmadd d0, d1, d2, d3         | FP_MUL_ADD        |  8 |
    fmla v0.4s, v1.4s, v2.4s     | FP_MUL_ADD        | 16 |
    fmla s0, s1, v2.s[1]         | FP_MUL_ADD        |  4 |
    frecps d0, d1, d2            | FP_MUL_ADD        |  8 |
    fdiv s0, s1, s2              | FP_DIV32          |  4 |
    fdiv d0, d1, d2              | FP_DIV64          |  8 |
    fdiv h0, h1, h2              | FP_DIV32          |  4 |
    fsqrt h0, h1                 | FP_SQRT32         |  4 |
    fadd h0, h1, h2              | FP_ADD            |  4 |
    fmadd h0, h1, h2, h3         | FP_MUL_ADD        |  4 |
    fcmp h0, h1                  | FP_COMPARE_FLAGS  |  4 |
    fcvtzs x0, h1                | FP_TO_GPR         |  8 |
    fmov w0, h1                  | MOVE_FROM_VECTOR  |  4 |
    fsqrt s0, s1                 | FP_SQRT32         |  4 |
    fsqrt d0, d1                 | FP_SQRT64         |  8 |
    fdiv v0.4s, v1.4s, v2.4s     | VECTOR_DIV32      | 16 |
    fdiv v0.2d, v1.2d, v2.2d     | VECTOR_DIV64      | 16 |
    fdiv v0.8h, v1.8h, v2.8h     | VECTOR_DIV32      | 16 |
    fsqrt v0.4h, v1.4h           | VECTOR_SQRT32     |  8 |
    fadd v0.8h, v1.8h, v2.8h     | FP_ADD            | 16 |
    faddp h0, v1.2h              | FP_HORIZONTAL     |  4 |
    fmaxv h0, v1.8h              | FP_REDUCE         | 16 |
    fmla v0.8h, v1.8h, v2.h[7]   | FP_MUL_ADD        | 16 |
    fcvtzs v0.8h, v1.8h          | VECTOR_CONVERT_4  | 16 |
    fcvtzs h0, h1                | FP_TO_INT         |  4 |
    scvtf v0.4h, v1.4h, #3       | VECTOR_CONVERT_4  |  8 |
    fmov v0.8h, #1.0             | VECTOR_CONSTANT   | 16 |
    sqrdmlah v0.4s, v1.4s, v2.4s | VECTOR_MUL_ADD    | 16 |
    sqrdmlsh s0, s1, v2.s[3]     | VECTOR_MUL_ADD    |  4 |
    sdot v0.4s, v1.16b, v2.16b   | VECTOR_DOT        | 16 |
    udot v0.2s, v1.8b, v2.4b[3]  | VECTOR_DOT        |  8 |
    fsqrt v0.2s, v1.2s           | VECTOR_SQRT32     |  8 |
    fsqrt v0.2d, v1.2d           | VECTOR_SQRT64     | 16 |
    fcmeq v0.4s, v1.4s, v2.4s    | FP_COMPARE        | 16 |
    fcmgt d0, d1, #0.0           | FP_COMPARE        |  8 |
    facge v0.2d, v1.2d, v2.2d    | FP_COMPARE        | 16 |
    fcmp d0, d1                  | FP_COMPARE_FLAGS  |  8 |
    fccmpe s0, s1, #0, ne        | FP_COMPARE_FLAGS  |  4 |
    fmax d0, d1, d2              | FP_MINMAX         |  8 |
    fminnm v0.4s, v1.4s, v2.4s   | FP_MINMAX         | 16 |
    fcsel d0, d1, d2, ne         | FP_SELECT         |  8 |
    frintm d0, d1                | FP_ROUND          |  8 |
    frintx v0.2d, v1.2d          | FP_ROUND          | 16 |
    frintz v0.4s, v1.4s          | VECTOR_CONVERT_4  | 16 |
    fcvt d0, s1                  | FP_CONVERT        |  4 |
    fcvtl v0.2d, v1.2s           | FP_CONVERT        |  8 |
    fcvtn v0.2s, v1.2d           | FP_CONVERT        |  8 |
    frecpe v0.2s, v1.2s          | FP_ESTIMATE       |  8 |
    frsqrte v0.4s, v1.4s         | VECTOR_CONVERT_4  | 16 |
    fcvtzs d0, d1                | FP_TO_INT         |  8 |
    fcvtas v0.2s, v1.2s          | FP_TO_INT         |  8 |
    fcvtzu v0.4s, v1.4s          | VECTOR_CONVERT_4  | 16 |
    fcvtzs v0.4s, v1.4s, #3      | VECTOR_CONVERT_4  | 16 |
    scvtf v0.2d, v1.2d           | INT_TO_FP         | 16 |
    ucvtf s0, s1                 | INT_TO_FP         |  4 |
    scvtf v0.4s, v1.4s           | VECTOR_CONVERT_4  | 16 |
    fcvtzs x0, d1                | FP_TO_GPR         |  8 |
    fcvtau w0, s1                | FP_TO_GPR         |  4 |
    fcvtzs x0, d1, #3            | FP_TO_GPR         |  8 |
    scvtf d0, x1                 | GPR_TO_FP         |  8 |
    ucvtf s0, w1, #3             | GPR_TO_FP         |  4 |
    fmov x0, d1                  | MOVE_FROM_VECTOR  |  8 |
    fmov x0, v1.d[1]             | MOVE_FROM_VECTOR  |  8 |
    fmov s0, w1                  | MOVE_TO_VECTOR    |  4 |
    dup v0.4s, w1                | MOVE_TO_VECTOR    | 16 |
    fmov v0.d[1], x1             | VECTOR_INSERT     |  8 |
    mov v0.s[1], w1              | VECTOR_INSERT     | 16 |
    umov w0, v1.b[3]             | VECTOR_EXTRACT    |  8 |
    mov x0, v1.d[0]              | VECTOR_EXTRACT    | 16 |
    smov x0, v1.h[3]             | VECTOR_EXTRACT    | 16 |
    faddp v0.4s, v1.4s, v2.4s    | FP_HORIZONTAL     | 16 |
    faddp d0, v1.2d              | FP_HORIZONTAL     |  8 |
    fmaxnmv s0, v1.4s            | FP_REDUCE         | 16 |
    fmaxp s0, v1.2s              | FP_MINMAX         |  4 |
    add v0.4s, v1.4s, v2.4s      | VECTOR_ALU        | 16 |
    sub d0, d1, d2               | VECTOR_ALU        |  8 |
    uabd v0.8b, v1.8b, v2.8b     | VECTOR_ALU        |  8 |
    neg v0.4s, v1.4s             | VECTOR_ALU        | 16 |
    saddl v0.4s, v1.4h, v2.4h    | VECTOR_ALU        | 16 |
    and v0.8b, v1.8b, v2.8b      | VECTOR_LOGIC      |  8 |
    orr v0.8b, v1.8b, v2.8b      | VECTOR_LOGIC      |  8 |
    eor v0.16b, v1.16b, v2.16b   | VECTOR_LOGIC      | 16 |
    mvn v0.16b, v1.16b           | VECTOR_LOGIC      | 16 |
    bic v0.8h, #3                | VECTOR_LOGIC      | 16 |
    orr v0.4s, #3, lsl #8        | VECTOR_LOGIC      | 16 |
    bsl v0.16b, v1.16b, v2.16b   | VECTOR_BLEND      | 16 |
    shl v0.4s, v1.4s, #3         | VECTOR_SHIFT      | 16 |
    ushr d0, d1, #3              | VECTOR_SHIFT      |  8 |
    sli v0.2d, v1.2d, #3         | VECTOR_SHIFT      | 16 |
    shrn v0.8b, v1.8h, #3        | VECTOR_SHIFT      |  8 |
    ushl v0.4s, v1.4s, v2.4s     | VECTOR_SHIFT_VARIABLE | 16 |
    srshl v0.4s, v1.4s, v2.4s    | VECTOR_SHIFT_COMPLEX  | 16 |
    sqshrn v0.8b, v1.8h, #3      | VECTOR_SHIFT_COMPLEX  |  8 |
    sqxtn v0.8b, v1.8h           | VECTOR_SHIFT_COMPLEX  |  8 |
    urshr v0.4s, v1.4s, #3       | VECTOR_SHIFT_COMPLEX  | 16 |
    ssra v0.4s, v1.4s, #3        | VECTOR_ACCUMULATE | 16 |
    uaba v0.4s, v1.4s, v2.4s     | VECTOR_ACCUMULATE | 16 |
    uadalp v0.4s, v1.8h          | VECTOR_ACCUMULATE | 16 |
    mul v0.4s, v1.4s, v2.4s      | VECTOR_MUL        | 16 |
    sqdmulh v0.4h, v1.4h, v2.h[1]| VECTOR_MUL        |  8 |
    mla v0.8b, v1.8b, v2.8b      | VECTOR_MUL_ADD    |  8 |
    mls v0.4s, v1.4s, v2.s[1]    | VECTOR_MUL_ADD    | 16 |
    smull v0.4s, v1.4h, v2.4h    | VECTOR_MUL_LONG   | 16 |
    umlal2 v0.4s, v1.8h, v2.8h   | VECTOR_MUL_ADD_LONG   | 16 |
    sqdmlsl v0.4s, v1.4h, v2.h[1]| VECTOR_MUL_ADD_LONG   | 16 |
    pmul v0.8b, v1.8b, v2.8b     | VECTOR_MUL_POLYNOMIAL |  8 |
    pmull v0.8h, v1.8b, v2.8b    | VECTOR_MUL_POLYNOMIAL | 16 |
    pmull2 v0.1q, v1.2d, v2.2d   | CARRYLESS_MUL     | 16 |
    cmeq v0.16b, v1.16b, #0      | VECTOR_COMPARE    | 16 |
    cmhi v0.16b, v1.16b, v2.16b  | VECTOR_COMPARE    | 16 |
    smax v0.4s, v1.4s, v2.4s     | VECTOR_MINMAX     | 16 |
    uminp v0.16b, v1.16b, v2.16b | VECTOR_MINMAX     | 16 |
    addp v0.16b, v1.16b, v2.16b  | VECTOR_PAIRWISE   | 16 |
    uaddlp v0.8h, v1.16b         | VECTOR_PAIRWISE   | 16 |
    zip1 v0.4s, v1.4s, v2.4s     | VECTOR_PERMUTE    | 16 |
    ext v0.16b, v1.16b, v2.16b, #3 | VECTOR_PERMUTE  | 16 |
    dup v0.4s, v1.s[0]           | VECTOR_PERMUTE    | 16 |
    mov v0.s[1], v1.s[0]         | VECTOR_PERMUTE    | 16 |
    rev64 v0.4s, v1.4s           | VECTOR_PERMUTE    | 16 |
    rbit v0.16b, v1.16b          | VECTOR_PERMUTE    | 16 |
    tbl v0.16b, {v1.16b}, v2.16b | VECTOR_TABLE      | 16 |
    tbx v0.8b, {v1.16b}, v2.8b   | VECTOR_TABLE      |  8 |
    tbl v0.16b, {v1.16b, v2.16b}, v3.16b       | VECTOR_TABLE_PAIR | 16 |
    tbl v0.16b, {v1.16b-v4.16b}, v5.16b        | VECTOR_TABLE_LONG | 16 |
    xtn v0.8b, v1.8h             | VECTOR_PACK       |  8 |
    sxtl v0.8h, v1.8b            | VECTOR_WIDEN      |  8 |
    shll v0.8h, v1.8b, #8        | VECTOR_WIDEN      |  8 |
    addv s0, v1.4s               | VECTOR_REDUCE     | 16 |
    umaxv h0, v1.8h              | VECTOR_REDUCE_8   | 16 |
    uminv b0, v1.8b              | VECTOR_REDUCE_8   |  8 |
    uaddlv h0, v1.16b            | VECTOR_REDUCE_16  | 16 |
    cnt v0.8b, v1.8b             | VECTOR_COUNT      |  8 |
    clz v0.4s, v1.4s             | VECTOR_COUNT      | 16 |
    uqadd v0.4s, v1.4s, v2.4s    | VECTOR_SATURATE   | 16 |
    urhadd v0.16b, v1.16b, v2.16b| VECTOR_SATURATE   | 16 |
    addhn2 v0.16b, v1.8h, v2.8h  | VECTOR_SATURATE   | 16 |
    aese v0.16b, v1.16b          | AES               | 16 | aes_round
    aesmc v0.16b, v0.16b         | AES_MIX           | 16 | fuses_with_aes_round
    aesmc v0.16b, v1.16b         | AES_MIX           | 16 |
    sha1c q0, s1, v2.4s          | SHA1              | 16 |
    sha1su0 v0.4s, v1.4s, v2.4s  | SHA_SCHEDULE      | 16 |
    sha1h s0, s1                 | SHA_SCHEDULE      |  8 |
    sha256h2 q0, q1, v2.4s       | SHA256            | 16 |
    sha256su0 v0.4s, v1.4s       | SHA_SCHEDULE      | 16 |
    sha256su1 v0.4s, v1.4s, v2.4s| SHA_SCHEDULE      | 16 |
"""


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in CLASSES.strip().splitlines()]


def decoded(source: str, folder: Path) -> list[dict[str, Any]]:
    architecture = ".arch armv8.2-a+crypto+fp16+dotprod+rcpc\n"
    return timed_decode("aarch64", 0, assemble("aarch64", architecture + source, folder))


def test_instructions_have_the_class_and_width_of_their_row(tmp_path: Path) -> None:
    table = rows()
    ops = decoded("\n".join(row[0] for row in table), tmp_path)
    assert len(ops) == len(table)
    found = [
        [row[0], OpClass(op["op_class"]).name, str(op["width_bytes"]), " ".join(sorted(op["flags"]))]
        for row, op in zip(table, ops, strict=True)
    ]
    assert found == [[row[0], row[1], row[2], " ".join(sorted(row[3].split()))] for row in table]


def test_every_arm_class_has_a_row() -> None:
    without = {
        "STRING",
        "LEA",
        "LEA_COMPLEX",
        "ROTATE_CARRY",
        "BIT_SCAN",
        "BIT_TEST",
        "PARALLEL_BITS",
        "EXCHANGE",
        "X87_MOVE",
        "X87_ADD",
        "X87_MUL",
        "X87_DIV",
        "X87_SPECIAL",
        "LEA_SCALED",
        "SHIFT_BY_COUNT",
        "SELECT_TWO_FLAGS",
        "BIT_LOWEST",
        "BRANCH_COUNT",
        "PAUSE",
        "VECTOR_COMPARE64",
        "VECTOR_TEST",
        "VECTOR_STRING",
        "FP_DOT",
        "AES_KEY",
        "X87_CONVERT",
        "X87_COMPARE",
        "X87_SELECT",
        "X87_CONTROL",
        "DIV_SIGNED64",
    }  # x86's
    assert {member.name for member in OpClass} - {row[1] for row in rows()} == without


@pytest.mark.parametrize(
    ("instruction", "sources", "addresses", "destinations", "write_back", "accumulator"),
    [
        ("add sp, sp, #16", [STACK], [], [STACK], None, None),
        ("cmp x1, x2", [1, 2], [], [FLAGS], None, None),
        ("adds xzr, x1, x2", [1, 2], [], [FLAGS], None, None),
        ("csel x0, x1, x2, ne", [1, 2, FLAGS], [], [0], None, None),
        ("madd x0, x1, x2, x3", [1, 2, 3], [], [0], None, 3),
        ("madd x0, x1, x2, x1", [1, 2], [], [0], None, None),  # the addend is a factor, too: it cannot come late
        ("mul x0, x1, x2", [1, 2], [], [0], None, None),
        ("blr x3", [3], [], [30], None, None),
        ("ldr x0, [sp, #16]!", [], [STACK], [0], STACK, None),
        ("ldr x0, [x1, x2]", [], [1, 2], [0], None, None),
        ("ldp x0, x1, [x2], #16", [], [2], [0, 1], 2, None),
        ("stp x0, xzr, [x2, #-16]!", [0], [2], [], 2, None),
        ("str q3, [x2, w4, uxtw]", [VECTOR + 3], [2, 4], [], None, None),
        ("stxr w0, x1, [x2]", [1], [2], [0], None, None),
        ("ldadd x0, x1, [x2]", [0], [2], [1], None, None),
        ("cas x0, x1, [x2]", [0, 1], [2], [0], None, None),
        ("ld4 {v30.4s, v31.4s, v0.4s, v1.4s}, [x0], x1", [], [0, 1], [64, 65, 34, 35], 0, None),
        ("ld1 {v0.s}[1], [x0]", [VECTOR], [0], [VECTOR], None, None),
        ("fmadd d0, d1, d2, d3", [35, 36, 37], [], [34], None, 37),
        ("fmla v0.8h, v1.8h, v15.h[7]", [35, 34, 49], [], [34], None, 34),
        ("udot v0.2s, v1.8b, v31.4b[3]", [35, 34, 65], [], [34], None, 34),
        ("fmla v0.4s, v1.4s, v2.s[1]", [35, 36, 34], [], [34], None, 34),
        ("mla v0.4h, v1.4h, v15.h[7]", [35, 49, 34], [], [34], None, 34),
        ("bsl v0.16b, v1.16b, v2.16b", [35, 36, 34], [], [34], None, None),
        ("tbx v0.16b, {v31.16b, v0.16b}, v3.16b", [37, 65, 34], [], [34], None, None),
        ("xtn2 v0.16b, v1.8h", [35, 34], [], [34], None, None),
        ("xtn v0.8b, v1.8h", [35], [], [34], None, None),
        ("movi v0.4s, #1", [], [], [34], None, None),
        ("orr v0.4s, #1", [34], [], [34], None, None),
        ("mrs x0, fpsr", [FP_CONTROL], [], [0], None, None),
        ("msr nzcv, x0", [0], [], [FLAGS], None, None),
    ],
)  # fmt: skip
def test_registers_have_their_roles(
    instruction: str,
    sources: list[int],
    addresses: list[int],
    destinations: list[int],
    write_back: int | None,
    accumulator: int | None,
    tmp_path: Path,
) -> None:
    (op,) = decoded(instruction, tmp_path)
    assert sorted(op["sources"]) == sorted(sources)
    assert op["address_sources"] == addresses
    assert op["destinations"] == destinations
    assert op["write_back"] == write_back
    assert op["accumulator"] == accumulator


@pytest.mark.parametrize(
    ("instruction", "registers"),
    [("ldr x0, [x1]", 1), ("ldp x0, x1, [x2]", 2), ("ldp w0, w1, [x2]", 1), ("ldp q0, q1, [x2]", 2),
     ("ldpsw x0, x1, [x2]", 1), ("ld3 {v0.4s-v2.4s}, [x0]", 3), ("ld1 {v0.4s-v3.4s}, [x0]", 4)],
)  # fmt: skip
def test_loads_say_how_many_registers_they_fill(instruction: str, registers: int, tmp_path: Path) -> None:
    (op,) = decoded(instruction, tmp_path)
    assert op["lanes_loaded"] == registers


# Where capstone 5.0 is wrong: it names the registers, but takes what is written for read, or the other way round ...
WRONG_ROLES = {
    "asr lsl lsr sbfiz sbfx sxtb sxth sxtw ubfiz ubfx": "the destination is said to be read",
    "mvni fmov sshr ushr ld1 ld1r": "the destination is said to be read",
    "bic": "of an immediate, on vectors: the destination is not said to be read",
    "cmp cmn tst adds": "the first operand is said to be written instead of read, or the other way round",
}  # fmt: skip
# ... or it names one too many (+) or does not name it (-).
WRONG_REGISTERS = {
    "cbz cbnz": ("+", {FLAGS}, "these do not look at the flags"),
    "mrs": ("-", {FP_CONTROL}, "reads FPCR or FPSR"),
    "msr": ("-", {FP_CONTROL}, "writes FPCR or FPSR"),
    "ret": ("-", {30}, "RET without an operand reads X30"),
    "cas casa casl casal ldadd ldadda ldaddal ldaddl ldclr ldclrl ldeorl ldset ldseta ldsetl swp swpa swpl": (
        "-",
        set(range(31)),
        "the operands besides the address",
    ),
    "dc": ("-", set(range(31)), "reads the address"),
    "svc": ("+", {STACK, 30}, "the kernel's business"),
    "xpaclri": ("+", {30}, "a hint that the modelled core ignores"),
}


def register_number(name: str) -> int | None:
    fixed = {"xzr": None, "wzr": None, "sp": STACK, "wsp": STACK, "nzcv": FLAGS, "fp": 29, "lr": 30}
    if name in fixed:
        return fixed[name]
    match = re.fullmatch(r"([xwvbhsdq])(\d+)", name)
    assert match, name
    return int(match[2]) + (0 if match[1] in "xw" else VECTOR)


# Instructions of the libraries that the engine's Cortex-A72 does not have; to the models they are of class SYSTEM.
OTHER_CORES = {
    "scalable vectors": "ld1b st1b whilelo cntb ptrue",
    "tagging": "ldg stg st2g stzg stz2g irg gmi",
    "memory copies": "cpyp cpym cpye cpyfp cpyfm cpyfe setp setm sete",
}
SYSTEM = "mrs msr svc brk dc udf"


def names(table: dict[str, Any]) -> set[str]:
    return {name for key in table for name in key.split()}


def expected_union(mnemonic: str, union: set[int], ours: set[int]) -> set[int]:
    """The registers that an instruction names, from capstone's list `union`, corrected by WRONG_REGISTERS."""
    for key, (sign, registers, _) in WRONG_REGISTERS.items():
        if mnemonic in key.split():
            return union - registers if sign == "+" else union | (registers & ours)
    return union


@pytest.mark.parametrize("library", ["lib/aarch64-linux-gnu/libc.so.6", "lib/aarch64-linux-gnu/libm.so.6"])
def test_registers_agree_with_capstone(library: str) -> None:
    with (require.debian_arm64("libc6") / library).open("rb") as stream:
        code = ELFFile(stream).get_section_by_name(".text").data()
    disassembler = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    disassembler.detail = True
    wrong_roles, wrong_registers = names(WRONG_ROLES), names(WRONG_REGISTERS)
    other_cores = {name for listed in OTHER_CORES.values() for name in listed.split()}
    wrong, compared = [], 0
    for word in sorted({code[at : at + 4] for at in range(0, len(code), 4)}):
        instruction = next(disassembler.disasm(word, 0), None)
        (op,) = timed_decode("aarch64", 0, word)
        is_system = op["op_class"] == OpClass.SYSTEM
        scalable = instruction is not None and re.match(r"z\d", instruction.op_str)
        if instruction is None or scalable or instruction.mnemonic in other_cores:
            if not is_system:
                wrong.append(f"{word.hex()}: {OpClass(op['op_class']).name}")
            continue
        compared += 1
        mnemonic = instruction.mnemonic
        read, written = (
            {register_number(disassembler.reg_name(register)) for register in registers} - {None}
            for registers in instruction.regs_access()
        )
        ours_read = {*op["sources"], *op["address_sources"]}
        ours_written = {*op["destinations"], op["write_back"]} - {None}
        if mnemonic in wrong_roles:
            right = read | written == ours_read | ours_written
        elif mnemonic in wrong_registers:
            ours = ours_read | ours_written
            right = expected_union(mnemonic, read | written, ours) == ours
        else:
            right = (read, written) == (ours_read, ours_written)
        if not right or is_system != (mnemonic in SYSTEM.split() and "stores" not in op["flags"]):
            wrong.append(f"{mnemonic} {instruction.op_str}: reads {sorted(ours_read)} writes {sorted(ours_written)}")
    assert compared > 10_000
    assert wrong == []
