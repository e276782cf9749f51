"""OpClass: what an instruction computes, as far as time is concerned: the rows of a core file's ``[ops]``.

Loads and stores are no classes: every instruction may have them besides its computation. The order is the number; the
native core's header is generated from this file when it is built.
"""

from __future__ import annotations

from enum import IntEnum


class OpClass(IntEnum):
    """The computation of one instruction. What has none, such as a plain load or store, is NONE."""

    NONE = 0  # nothing to compute: loads, stores, PC-relative addresses of jumps
    NOP = 1  # takes a slot, no port
    MOVE = 2  # register to register, 32 or 64 bits: may be eliminated
    ZERO = 3  # dependency-breaking: xor eax, eax; pxor; A64 mov x0, #0 (movi v0.2d, #0 is VECTOR_CONSTANT)
    CONSTANT = 4  # movz, movn, adr, mov r, imm
    ALU = 5  # add, sub, logic, compare: one cycle
    ALU_SHIFTED = 6  # A64 add/logic with a shifted or extended register; the cheaper ones: ALU_LSL, LOGIC_SHIFTED
    ALU_CARRY = 7  # adc, sbb
    SHIFT = 8  # by an immediate; A64 bitfield moves, but for EXTEND and BITFIELD
    SHIFT_VARIABLE = 9
    SHIFT_DOUBLE = 10  # shld, shrd; A64 EXTR
    ROTATE = 11
    ROTATE_CARRY = 12  # rcl, rcr
    BITFIELD = 13  # A64 BFM, bextr
    SELECT = 14  # csel, cmov, setcc
    LEA = 15
    LEA_COMPLEX = 16  # three components, or RIP and index
    BIT_COUNT = 17  # clz, lzcnt, tzcnt, popcnt
    BIT_SCAN = 18  # bsf, bsr
    BIT_TEST = 19  # bt, bts ...
    BYTE_REVERSE = 20  # rev, bswap
    BIT_REVERSE = 21  # rbit
    PARALLEL_BITS = 22  # pdep, pext
    MUL32 = 23
    MUL64 = 24
    MUL_ADD32 = 25  # A64 MADD with an accumulator, SMADDL
    MUL_ADD64 = 26
    MUL_HIGH = 27  # SMULH, UMULH, one-operand mul
    DIV32 = 28
    DIV64 = 29
    CRC = 30
    EXCHANGE = 31  # xchg of registers
    FLAGS = 32  # lahf, sahf, cmc, clc, ccmp
    STRING = 33  # one iteration of movs, stos, cmps ...
    ATOMIC = 34  # locked read-modify-writes, LSE atomics
    EXCLUSIVE = 35  # LDXR, STXR and the like, in addition to the access
    BARRIER = 36
    SERIALIZE = 37  # cpuid, isb
    SYSTEM = 38  # mrs, msr, rdtsc, other slow ones
    BRANCH = 39  # direct jumps, conditional or not
    BRANCH_INDIRECT = 40
    CALL = 41
    RETURN = 42
    # scalar and vector floating point; rows of 32-bit elements and of 64-bit ones where machines differ
    FP_MOVE = 43  # between vector registers, whole: may be eliminated
    FP_LOGIC = 44  # fneg, fabs, andps, xorps
    FP_ADD = 45
    FP_MUL = 46
    FP_MUL_ADD = 47
    FP_DIV32 = 48  # scalar
    FP_DIV64 = 49
    FP_SQRT32 = 50
    FP_SQRT64 = 51
    VECTOR_DIV32 = 52
    VECTOR_DIV64 = 53
    VECTOR_SQRT32 = 54
    VECTOR_SQRT64 = 55
    FP_COMPARE = 56  # result in the vector unit
    FP_COMPARE_FLAGS = 57  # fcmp, ucomisd
    FP_MINMAX = 58
    FP_SELECT = 59
    FP_ROUND = 60
    FP_CONVERT = 61  # between formats, in vector registers
    FP_ESTIMATE = 62  # frecpe, rcpps
    FP_TO_INT = 63  # in vector registers
    INT_TO_FP = 64
    FP_TO_GPR = 65  # with conversion: fcvtzs x0, d0; cvttsd2si
    GPR_TO_FP = 66
    MOVE_FROM_VECTOR = 67  # fmov x0, d0; movq rax, xmm0; umov
    MOVE_TO_VECTOR = 68
    FP_HORIZONTAL = 69  # faddp, haddps
    # vectors of integers
    VECTOR_ALU = 70
    VECTOR_LOGIC = 71
    VECTOR_SHIFT = 72
    VECTOR_SHIFT_VARIABLE = 73
    VECTOR_MUL = 74
    VECTOR_MUL_LONG = 75  # pmulld, 64-bit elements: slow ones
    VECTOR_MUL_ADD = 76
    VECTOR_COMPARE = 77
    VECTOR_MINMAX = 78
    VECTOR_PERMUTE = 79  # zip, uzp, trn, ext, dup, unpack, pshufd
    VECTOR_TABLE = 80  # tbl of one register, pshufb
    VECTOR_TABLE_LONG = 81  # tbl of several
    VECTOR_PACK = 82  # narrowing, packs
    VECTOR_WIDEN = 83  # sxtl, pmovsx
    VECTOR_INSERT = 84  # ins from a general register, pinsr
    VECTOR_EXTRACT = 85  # umov of a lane, pextr, pmovmskb
    VECTOR_BLEND = 86
    VECTOR_REDUCE = 87  # addv, maxv, psadbw
    VECTOR_PAIRWISE = 88  # addp, saddlp, phadd
    VECTOR_COUNT = 89  # cnt, clz of lanes
    VECTOR_SATURATE = 90  # saturating and rounding arithmetic that is slower than VECTOR_ALU
    AES = 91
    AES_MIX = 92
    SHA1 = 93
    SHA256 = 94
    CARRYLESS_MUL = 95
    # x87
    X87_MOVE = 96
    X87_ADD = 97
    X87_MUL = 98
    X87_DIV = 99
    X87_SPECIAL = 100  # fsin, f2xm1, fxsave ...: microcoded
    # what Arm's guides tell apart beyond these
    ALU_LSL = 101  # add, sub with a register shifted left by 1 to 4
    LOGIC_SHIFTED = 102  # and, orr ... with a shifted register, flags not written
    VECTOR_CONSTANT = 103  # movi, fmov of an immediate
    VECTOR_ACCUMULATE = 104  # saba, sadalp, ssra: add to the destination
    VECTOR_SHIFT_COMPLEX = 105  # rounding or saturating shifts, saturating narrowing
    VECTOR_MUL_ADD_LONG = 106  # smlal ...
    VECTOR_MUL_POLYNOMIAL = 107  # pmul, pmull of bytes
    VECTOR_TABLE_PAIR = 108  # tbl of two registers
    VECTOR_REDUCE_8 = 109  # addv, maxv of eight lanes (VECTOR_REDUCE: of four)
    VECTOR_REDUCE_16 = 110
    VECTOR_CONVERT_4 = 111  # conversion, rounding, estimate of four lanes of 32 bits
    FP_REDUCE = 112  # fmaxv
    SHA_SCHEDULE = 113  # sha1h, sha1su0, sha256su0 ...
    # what x86 has beyond these
    LEA_SCALED = 114  # an index scaled by 2, 4, 8, and a base or a displacement, not both
    SHIFT_BY_COUNT = 115  # shl, shr, sar, rol, ror by CL
    SELECT_TWO_FLAGS = 116  # cmova, cmovbe, seta, setbe: by CF and ZF
    BIT_LOWEST = 117  # blsi, blsr, blsmsk, bzhi
    BRANCH_COUNT = 118  # loop, jrcxz
    PAUSE = 119
    VECTOR_COMPARE64 = 120  # pcmpgtq
    VECTOR_TEST = 121  # ptest
    VECTOR_STRING = 122  # pcmpistri ...
    FP_DOT = 123  # dpps, dppd
    AES_KEY = 124  # aeskeygenassist
    X87_CONVERT = 125  # fild, fistp
    X87_COMPARE = 126  # fcom, fucomi
    X87_SELECT = 127  # fcmov
    X87_CONTROL = 128  # fldcw, fnstcw, fnstsw; ldmxcsr, stmxcsr
    DIV_SIGNED64 = 129  # idiv of 64 bits
    EXTEND = 130  # A64 sxtw, uxtb ...: bitfield moves of the lowest 8, 16 or 32 bits
    VECTOR_DOT = 131  # A64 sdot, udot
