// MMX and SSE to SSE4.2, AES, PCLMULQDQ: what the engine executes of vectors. Operands: Intel SDM volume 2.
#include "x86_64/dataflow.hpp"
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;
using Flow = InstructionDataflow;

constexpr unsigned PACKED = NP | P66, SCALARS = PF3 | PF2;

// Moves; to and from memory they are a load or a store.
constexpr Row MOVES[] = {
    {two(0x10).with(PACKED), "MOVUPS", {Vx, Wx}, FP_MOVE, WRITE, PLAIN},
    {two(0x11).with(PACKED), "MOVUPS", {Wx, Vx}, FP_MOVE, WRITE, PLAIN},
    {two(0x28).with(PACKED), "MOVAPS", {Vx, Wx}, FP_MOVE, WRITE, PLAIN},
    {two(0x29).with(PACKED), "MOVAPS", {Wx, Vx}, FP_MOVE, WRITE, PLAIN},
    {two(0x6f).with(P66 | PF3), "MOVDQA", {Vx, Wx}, FP_MOVE, WRITE, PLAIN},
    {two(0x7f).with(P66 | PF3), "MOVDQA", {Wx, Vx}, FP_MOVE, WRITE, PLAIN},
    {two(0xf0).with(PF2).memory(), "LDDQU", {Vx, Wx}, NONE, WRITE},
    {three_38(0x2a).with(P66).memory(), "MOVNTDQA", {Vx, Wx}, NONE, WRITE},
    {two(0xe7).with(PACKED).memory(), "MOVNTDQ", {QW, PV}, NONE, WRITE},
    {two(0x2b).with(PACKED).memory(), "MOVNTPS", {Wx, Vx}, NONE, WRITE},
    {two(0xf7).with(PACKED).registers(),
     "MASKMOVDQU",
     {PV, QW},
     VECTOR_BLEND,
     READ,
     DESTINATION_INDEX | STORES | MICROCODED,
     &Flow::masked_store},
    {two(0x10).with(SCALARS).memory(), "MOVSS", {Vx, Wf}, NONE, WRITE},
    {two(0x10).with(SCALARS).registers(), "MOVSS", {Vx, Wf}, VECTOR_PERMUTE, WRITE, MERGES},
    {two(0x11).with(SCALARS).memory(), "MOVSS", {Wf, Vx}, NONE, WRITE},
    {two(0x11).with(SCALARS).registers(), "MOVSS", {Wf, Vx}, VECTOR_PERMUTE, WRITE, MERGES},
    {two(0x6f).with(NP), "MOVQ", {P, Q}, VECTOR_LOGIC, WRITE, DOUBLE | PLAIN},
    {two(0x7f).with(NP), "MOVQ", {Q, P}, VECTOR_LOGIC, WRITE, DOUBLE | PLAIN},
    {two(0x7e).with(PF3), "MOVQ", {Vx, Wq}, VECTOR_LOGIC, WRITE, DOUBLE | PLAIN},
    {two(0xd6).with(P66), "MOVQ", {Wq, Vx}, VECTOR_LOGIC, WRITE, DOUBLE | PLAIN},
    {two(0x6e).with(PACKED), "MOVD", {PV, Ey}, MOVE_TO_VECTOR, WRITE, PLAIN},
    {two(0x7e).with(PACKED), "MOVD", {Ey, PV}, MOVE_FROM_VECTOR, WRITE, PLAIN},
    {two(0xd6).with(PF3).registers(), "MOVQ2DQ", {Vx, Q}, VECTOR_LOGIC, WRITE},
    {two(0xd6).with(PF2).registers(), "MOVDQ2Q", {P, Wx}, VECTOR_LOGIC, WRITE},
    {two(0x12).with(NP).registers(), "MOVHLPS", {Vx, Wx}, VECTOR_PERMUTE, UPDATE},
    {two(0x16).with(NP).registers(), "MOVLHPS", {Vx, Wx}, VECTOR_PERMUTE, UPDATE},
    {two(0x12).with(PACKED).memory(), "MOVLPS", {Vx, Wq}, VECTOR_PERMUTE, WRITE, MERGES | DOUBLE},
    {two(0x16).with(PACKED).memory(), "MOVHPS", {Vx, Wq}, VECTOR_PERMUTE, WRITE, MERGES | DOUBLE},
    {two(0x13).with(PACKED).memory(), "MOVLPS", {Wq, Vx}, NONE, WRITE, DOUBLE},
    {two(0x17).with(PACKED).memory(), "MOVHPS", {Wq, Vx}, NONE, WRITE, DOUBLE},
    {two(0x12).with(PF2), "MOVDDUP", {Vx, Wq}, VECTOR_PERMUTE, WRITE, PLAIN},
    {two(0x12).with(PF3), "MOVSLDUP", {Vx, Wx}, VECTOR_PERMUTE, WRITE, PLAIN},
    {two(0x16).with(PF3), "MOVSHDUP", {Vx, Wx}, VECTOR_PERMUTE, WRITE, PLAIN},
    {two(0x50).with(PACKED).registers(), "MOVMSKPS", {Gd, Wx}, MOVE_FROM_VECTOR, WRITE},
    {two(0xd7).with(PACKED).registers(), "PMOVMSKB", {Gd, QW}, MOVE_FROM_VECTOR, WRITE},
    {two(0xc4).with(PACKED), "PINSRW", {PV, Em, Ib}, VECTOR_INSERT, UPDATE},
    {two(0xc5).with(PACKED).registers(), "PEXTRW", {Gd, QW, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x14).with(P66).memory(), "PEXTRB", {Eb, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x15).with(P66).memory(), "PEXTRW", {Ew, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x14).with(P66).registers(), "PEXTRB", {Ed, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x15).with(P66).registers(), "PEXTRW", {Ed, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x16).with(P66), "PEXTRD", {Ey, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x17).with(P66), "EXTRACTPS", {Ed, Vx, Ib}, VECTOR_EXTRACT, WRITE},
    {three_3a(0x20).with(P66), "PINSRB", {Vx, Eb, Ib}, VECTOR_INSERT, UPDATE},
    {three_3a(0x21).with(P66), "INSERTPS", {Vx, Wd, Ib}, VECTOR_PERMUTE, UPDATE},
    {three_3a(0x22).with(P66), "PINSRD", {Vx, Ey, Ib}, VECTOR_INSERT, UPDATE},
};

// What keeps the upper part of its destination (SQRTSD, CVTSI2SD) does not wait for it here: AMD knows which are zero
// ("XMM merge optimization"), compilers clear the register before, and llvm-mca has it so, too.
constexpr Row FLOATING_POINT[] = {
    {two(0x58), "ADDPS", {Vx, Wf}, FP_ADD, UPDATE},
    {two(0x5c), "SUBPS", {Vx, Wf}, FP_ADD, UPDATE},
    {two(0x59), "MULPS", {Vx, Wf}, FP_MUL, UPDATE},
    {two(0x5d), "MINPS", {Vx, Wf}, FP_MINMAX, UPDATE},
    {two(0x5f), "MAXPS", {Vx, Wf}, FP_MINMAX, UPDATE},
    {two(0xc2), "CMPPS", {Vx, Wf, Ib}, FP_COMPARE, UPDATE},
    {two(0x5e).with(NP), "DIVPS", {Vx, Wx}, VECTOR_DIV32, UPDATE},
    {two(0x5e).with(P66), "DIVPD", {Vx, Wx}, VECTOR_DIV64, UPDATE},
    {two(0x5e).with(PF3), "DIVSS", {Vx, Wf}, FP_DIV32, UPDATE},
    {two(0x5e).with(PF2), "DIVSD", {Vx, Wf}, FP_DIV64, UPDATE},
    {two(0x51).with(NP), "SQRTPS", {Vx, Wx}, VECTOR_SQRT32, WRITE},
    {two(0x51).with(P66), "SQRTPD", {Vx, Wx}, VECTOR_SQRT64, WRITE},
    {two(0x51).with(PF3), "SQRTSS", {Vx, Wf}, FP_SQRT32, WRITE},
    {two(0x51).with(PF2), "SQRTSD", {Vx, Wf}, FP_SQRT64, WRITE},
    {two(0x52).with(NP | PF3), "RSQRTPS", {Vx, Wf}, FP_ESTIMATE, WRITE},
    {two(0x53).with(NP | PF3), "RCPPS", {Vx, Wf}, FP_ESTIMATE, WRITE},
    {two(0xd0).with(P66 | PF2), "ADDSUBPS", {Vx, Wx}, FP_ADD, UPDATE},
    {two(0x7c).with(P66 | PF2), "HADDPS", {Vx, Wx}, FP_HORIZONTAL, UPDATE},
    {two(0x7d).with(P66 | PF2), "HSUBPS", {Vx, Wx}, FP_HORIZONTAL, UPDATE},
    {two(0x2e).with(NP), "UCOMISS", {Vx, Wd}, FP_COMPARE_FLAGS, READ, STATUS | SINGLE},
    {two(0x2e).with(P66), "UCOMISD", {Vx, Wq}, FP_COMPARE_FLAGS, READ, STATUS | DOUBLE},
    {two(0x2f).with(NP), "COMISS", {Vx, Wd}, FP_COMPARE_FLAGS, READ, STATUS | SINGLE},
    {two(0x2f).with(P66), "COMISD", {Vx, Wq}, FP_COMPARE_FLAGS, READ, STATUS | DOUBLE},
    {three_3a(0x08).with(P66), "ROUNDPS", {Vx, Wx, Ib}, FP_ROUND, WRITE},
    {three_3a(0x09).with(P66), "ROUNDPD", {Vx, Wx, Ib}, FP_ROUND, WRITE},
    {three_3a(0x0a).with(P66), "ROUNDSS", {Vx, Wx, Ib}, FP_ROUND, WRITE, SINGLE},
    {three_3a(0x0b).with(P66), "ROUNDSD", {Vx, Wx, Ib}, FP_ROUND, WRITE, DOUBLE},
    {two(0x54).with(PACKED), "ANDPS", {Vx, Wx}, FP_LOGIC, UPDATE},
    {two(0x55).with(PACKED), "ANDNPS", {Vx, Wx}, FP_LOGIC, UPDATE},
    {two(0x56).with(PACKED), "ORPS", {Vx, Wx}, FP_LOGIC, UPDATE},
    {two(0x57).with(PACKED), "XORPS", {Vx, Wx}, FP_LOGIC, UPDATE, ZERO_IDIOM},
    {three_3a(0x40).with(P66), "DPPS", {Vx, Wx, Ib}, FP_DOT, UPDATE},
    {three_3a(0x41).with(P66), "DPPD", {Vx, Wx, Ib}, FP_DOT, UPDATE},
    {two(0xc6).with(PACKED), "SHUFPS", {Vx, Wx, Ib}, VECTOR_PERMUTE, UPDATE},
    {two(0x14).with(PACKED), "UNPCKLPS", {Vx, Wx}, VECTOR_PERMUTE, UPDATE},
    {two(0x15).with(PACKED), "UNPCKHPS", {Vx, Wx}, VECTOR_PERMUTE, UPDATE},
    {three_3a(0x0c).with(P66), "BLENDPS", {Vx, Wx, Ib}, VECTOR_BLEND, UPDATE},
    {three_3a(0x0d).with(P66), "BLENDPD", {Vx, Wx, Ib}, VECTOR_BLEND, UPDATE},
    {three_38(0x14).with(P66), "BLENDVPS", {Vx, Wx}, FP_SELECT, UPDATE, XMM0_IN},
    {three_38(0x15).with(P66), "BLENDVPD", {Vx, Wx}, FP_SELECT, UPDATE, XMM0_IN},
    // conversions; between sizes: FP_CONVERT
    {two(0x2a).with(SCALARS).registers(), "CVTSI2SS", {Vx, Ey}, GPR_TO_FP, WRITE},
    {two(0x2a).with(SCALARS).memory(), "CVTSI2SS", {Vx, Ey}, INT_TO_FP, WRITE},
    {two(0x2c).with(SCALARS), "CVTTSS2SI", {Gy, Wf}, FP_TO_GPR, WRITE},
    {two(0x2d).with(SCALARS), "CVTSS2SI", {Gy, Wf}, FP_TO_GPR, WRITE},
    {two(0x5a).with(PF3), "CVTSS2SD", {Vx, Wd}, FP_CONVERT, WRITE, DOUBLE},
    {two(0x5a).with(PF2), "CVTSD2SS", {Vx, Wq}, FP_CONVERT, WRITE, SINGLE},
    {two(0x5a).with(PACKED), "CVTPS2PD", {Vx, Wx}, FP_CONVERT, WRITE},
    {two(0xe6).with(P66 | PF3 | PF2), "CVTPD2DQ", {Vx, Wx}, FP_CONVERT, WRITE},
    {two(0x2a).with(NP), "CVTPI2PS", {Vx, Q}, FP_CONVERT, WRITE, MERGES},
    {two(0x2a).with(P66), "CVTPI2PD", {Vx, Q}, FP_CONVERT, WRITE},
    {two(0x2c).with(PACKED), "CVTTPS2PI", {P, Wx}, FP_CONVERT, WRITE},
    {two(0x2d).with(PACKED), "CVTPS2PI", {P, Wx}, FP_CONVERT, WRITE},
    {two(0x5b).with(NP), "CVTDQ2PS", {Vx, Wx}, INT_TO_FP, WRITE},
    {two(0x5b).with(P66 | PF3), "CVTPS2DQ", {Vx, Wx}, FP_TO_INT, WRITE},
};

constexpr Row INTEGERS[] = {
    {two(0x70).with(NP), "PSHUFW", {P, Q, Ib}, VECTOR_PERMUTE, WRITE},
    {two(0x70).with(P66 | PF3 | PF2), "PSHUFD", {Vx, Wx, Ib}, VECTOR_PERMUTE, WRITE},
    {three_3a(0x0e).with(P66), "PBLENDW", {Vx, Wx, Ib}, VECTOR_PERMUTE, UPDATE},
    {three_3a(0x0f).with(PACKED), "PALIGNR", {PV, QW, Ib}, VECTOR_PERMUTE, UPDATE},
    {three_3a(0x42).with(P66), "MPSADBW", {Vx, Wx, Ib}, VECTOR_REDUCE, UPDATE},
    {three_38(0x41).with(P66), "PHMINPOSUW", {Vx, Wx}, VECTOR_REDUCE, WRITE},
    {three_38(0x10).with(P66), "PBLENDVB", {Vx, Wx}, FP_SELECT, UPDATE, XMM0_IN},
    {three_38(0x17).with(P66), "PTEST", {Vx, Wx}, VECTOR_TEST, READ, STATUS},
    {three_3a(0x60).with(P66), "PCMPESTRM", {Vx, Wx, Ib}, VECTOR_STRING, READ, STATUS | RAX_IN | RDX_IN | MICROCODED},
    {three_3a(0x61).with(P66),
     "PCMPESTRI",
     {Vx, Wx, Ib},
     VECTOR_STRING,
     READ,
     STATUS | RAX_IN | RDX_IN | RCX_OUT | MICROCODED},
    {three_3a(0x62).with(P66), "PCMPISTRM", {Vx, Wx, Ib}, VECTOR_STRING, READ, STATUS},
    {three_3a(0x63).with(P66), "PCMPISTRI", {Vx, Wx, Ib}, VECTOR_STRING, READ, STATUS | RCX_OUT},
    // extensions of the low part
    {three_38(0x20).with(P66), "PMOVSXBW", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    {three_38(0x21).with(P66), "PMOVSXBD", {Vx, Wd}, VECTOR_WIDEN, WRITE},
    {three_38(0x22).with(P66), "PMOVSXBQ", {Vx, Ww}, VECTOR_WIDEN, WRITE},
    {three_38(0x23).with(P66), "PMOVSXWD", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    {three_38(0x24).with(P66), "PMOVSXWQ", {Vx, Wd}, VECTOR_WIDEN, WRITE},
    {three_38(0x25).with(P66), "PMOVSXDQ", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    {three_38(0x30).with(P66), "PMOVZXBW", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    {three_38(0x31).with(P66), "PMOVZXBD", {Vx, Wd}, VECTOR_WIDEN, WRITE},
    {three_38(0x32).with(P66), "PMOVZXBQ", {Vx, Ww}, VECTOR_WIDEN, WRITE},
    {three_38(0x33).with(P66), "PMOVZXWD", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    {three_38(0x34).with(P66), "PMOVZXWQ", {Vx, Wd}, VECTOR_WIDEN, WRITE},
    {three_38(0x35).with(P66), "PMOVZXDQ", {Vx, Wq}, VECTOR_WIDEN, WRITE},
    // cryptography
    {three_38(0xdb).with(P66), "AESIMC", {Vx, Wx}, AES_MIX, WRITE},
    {three_38(0xdc).with(P66), "AESENC", {Vx, Wx}, AES, UPDATE},
    {three_38(0xdd).with(P66), "AESENCLAST", {Vx, Wx}, AES, UPDATE},
    {three_38(0xde).with(P66), "AESDEC", {Vx, Wx}, AES, UPDATE},
    {three_38(0xdf).with(P66), "AESDECLAST", {Vx, Wx}, AES, UPDATE},
    {three_3a(0xdf).with(P66), "AESKEYGENASSIST", {Vx, Wx, Ib}, AES_KEY, WRITE, MICROCODED},
    {three_3a(0x44).with(P66), "PCLMULQDQ", {Vx, Wx, Ib}, CARRYLESS_MUL, UPDATE},
};

// On MMX or XMM registers; of those behind 0F 38 some on the latter only.
struct Lanes {
    OpcodePattern pattern;
    std::string_view name;
    OpClass op_class;
    Form form = UPDATE;
    uint64_t effects = 0;
    unsigned prefixes = PACKED;
};
constexpr Lanes LANES[] = {
    {two(0x60), "PUNPCKLBW", VECTOR_PERMUTE},
    {two(0x61), "PUNPCKLWD", VECTOR_PERMUTE},
    {two(0x62), "PUNPCKLDQ", VECTOR_PERMUTE},
    {two(0x63), "PACKSSWB", VECTOR_PACK},
    {two(0x64), "PCMPGTB", VECTOR_COMPARE, UPDATE, ZERO_IDIOM},
    {two(0x65), "PCMPGTW", VECTOR_COMPARE, UPDATE, ZERO_IDIOM},
    {two(0x66), "PCMPGTD", VECTOR_COMPARE, UPDATE, ZERO_IDIOM},
    {two(0x67), "PACKUSWB", VECTOR_PACK},
    {two(0x68), "PUNPCKHBW", VECTOR_PERMUTE},
    {two(0x69), "PUNPCKHWD", VECTOR_PERMUTE},
    {two(0x6a), "PUNPCKHDQ", VECTOR_PERMUTE},
    {two(0x6b), "PACKSSDW", VECTOR_PACK},
    {two(0x6c), "PUNPCKLQDQ", VECTOR_PERMUTE, UPDATE, 0, P66},
    {two(0x6d), "PUNPCKHQDQ", VECTOR_PERMUTE, UPDATE, 0, P66},
    {two(0x74), "PCMPEQB", VECTOR_COMPARE, UPDATE, ONES_IDIOM},
    {two(0x75), "PCMPEQW", VECTOR_COMPARE, UPDATE, ONES_IDIOM},
    {two(0x76), "PCMPEQD", VECTOR_COMPARE, UPDATE, ONES_IDIOM},
    {two(0xd1), "PSRLW", VECTOR_SHIFT_VARIABLE},
    {two(0xd2), "PSRLD", VECTOR_SHIFT_VARIABLE},
    {two(0xd3), "PSRLQ", VECTOR_SHIFT_VARIABLE},
    {two(0xd4), "PADDQ", VECTOR_ALU},
    {two(0xd5), "PMULLW", VECTOR_MUL},
    {two(0xd8), "PSUBUSB", VECTOR_SATURATE},
    {two(0xd9), "PSUBUSW", VECTOR_SATURATE},
    {two(0xda), "PMINUB", VECTOR_MINMAX},
    {two(0xdb), "PAND", VECTOR_LOGIC},
    {two(0xdc), "PADDUSB", VECTOR_SATURATE},
    {two(0xdd), "PADDUSW", VECTOR_SATURATE},
    {two(0xde), "PMAXUB", VECTOR_MINMAX},
    {two(0xdf), "PANDN", VECTOR_LOGIC},
    {two(0xe0), "PAVGB", VECTOR_SATURATE},
    {two(0xe1), "PSRAW", VECTOR_SHIFT_VARIABLE},
    {two(0xe2), "PSRAD", VECTOR_SHIFT_VARIABLE},
    {two(0xe3), "PAVGW", VECTOR_SATURATE},
    {two(0xe4), "PMULHUW", VECTOR_MUL},
    {two(0xe5), "PMULHW", VECTOR_MUL},
    {two(0xe8), "PSUBSB", VECTOR_SATURATE},
    {two(0xe9), "PSUBSW", VECTOR_SATURATE},
    {two(0xea), "PMINSW", VECTOR_MINMAX},
    {two(0xeb), "POR", VECTOR_LOGIC},
    {two(0xec), "PADDSB", VECTOR_SATURATE},
    {two(0xed), "PADDSW", VECTOR_SATURATE},
    {two(0xee), "PMAXSW", VECTOR_MINMAX},
    {two(0xef), "PXOR", VECTOR_LOGIC, UPDATE, ZERO_IDIOM},
    {two(0xf1), "PSLLW", VECTOR_SHIFT_VARIABLE},
    {two(0xf2), "PSLLD", VECTOR_SHIFT_VARIABLE},
    {two(0xf3), "PSLLQ", VECTOR_SHIFT_VARIABLE},
    {two(0xf4), "PMULUDQ", VECTOR_MUL},
    {two(0xf5), "PMADDWD", VECTOR_MUL},
    {two(0xf6), "PSADBW", VECTOR_REDUCE},
    {two(0xf8), "PSUBB", VECTOR_ALU, UPDATE, ZERO_IDIOM},
    {two(0xf9), "PSUBW", VECTOR_ALU, UPDATE, ZERO_IDIOM},
    {two(0xfa), "PSUBD", VECTOR_ALU, UPDATE, ZERO_IDIOM},
    {two(0xfb), "PSUBQ", VECTOR_ALU, UPDATE, ZERO_IDIOM},
    {two(0xfc), "PADDB", VECTOR_ALU},
    {two(0xfd), "PADDW", VECTOR_ALU},
    {two(0xfe), "PADDD", VECTOR_ALU},
    {three_38(0x00), "PSHUFB", VECTOR_TABLE},
    {three_38(0x01), "PHADDW", VECTOR_PAIRWISE},
    {three_38(0x02), "PHADDD", VECTOR_PAIRWISE},
    {three_38(0x03), "PHADDSW", VECTOR_PAIRWISE},
    {three_38(0x04), "PMADDUBSW", VECTOR_MUL},
    {three_38(0x05), "PHSUBW", VECTOR_PAIRWISE},
    {three_38(0x06), "PHSUBD", VECTOR_PAIRWISE},
    {three_38(0x07), "PHSUBSW", VECTOR_PAIRWISE},
    {three_38(0x08), "PSIGNB", VECTOR_SATURATE},
    {three_38(0x09), "PSIGNW", VECTOR_SATURATE},
    {three_38(0x0a), "PSIGND", VECTOR_SATURATE},
    {three_38(0x0b), "PMULHRSW", VECTOR_MUL},
    {three_38(0x1c), "PABSB", VECTOR_SATURATE, WRITE},
    {three_38(0x1d), "PABSW", VECTOR_SATURATE, WRITE},
    {three_38(0x1e), "PABSD", VECTOR_SATURATE, WRITE},
    {three_38(0x28), "PMULDQ", VECTOR_MUL, UPDATE, 0, P66},
    {three_38(0x29), "PCMPEQQ", VECTOR_COMPARE, UPDATE, ONES_IDIOM, P66},
    {three_38(0x2b), "PACKUSDW", VECTOR_PACK, UPDATE, 0, P66},
    {three_38(0x37), "PCMPGTQ", VECTOR_COMPARE64, UPDATE, 0, P66},
    {three_38(0x38), "PMINSB", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x39), "PMINSD", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3a), "PMINUW", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3b), "PMINUD", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3c), "PMAXSB", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3d), "PMAXSD", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3e), "PMAXUW", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x3f), "PMAXUD", VECTOR_MINMAX, UPDATE, 0, P66},
    {three_38(0x40), "PMULLD", VECTOR_MUL_LONG, UPDATE, 0, P66},
};

// By an immediate.
struct Shift {
    OpcodePattern pattern;
    std::string_view name;
    OpClass op_class = VECTOR_SHIFT;
    unsigned prefixes = PACKED;
};
constexpr Shift SHIFTS[] = {
    {two(0x71) / 2, "PSRLW"}, {two(0x71) / 4, "PSRAW"},
    {two(0x71) / 6, "PSLLW"}, {two(0x72) / 2, "PSRLD"},
    {two(0x72) / 4, "PSRAD"}, {two(0x72) / 6, "PSLLD"},
    {two(0x73) / 2, "PSRLQ"}, {two(0x73) / 3, "PSRLDQ", VECTOR_PERMUTE, P66},
    {two(0x73) / 6, "PSLLQ"}, {two(0x73) / 7, "PSLLDQ", VECTOR_PERMUTE, P66},
};

}  // namespace

std::vector<Row> vector_rows() {
    std::vector<Row> rows;
    for (std::span<const Row> some :
         {std::span<const Row>(MOVES), std::span<const Row>(FLOATING_POINT), std::span<const Row>(INTEGERS)})
        rows.insert(rows.end(), some.begin(), some.end());
    for (const Lanes& lanes : LANES)
        rows.push_back(
            {lanes.pattern.with(lanes.prefixes), lanes.name, {PV, QW}, lanes.op_class, lanes.form, lanes.effects});
    for (const Shift& shift : SHIFTS)
        rows.push_back({shift.pattern.registers().with(shift.prefixes), shift.name, {QW, Ib}, shift.op_class, UPDATE});
    for (Row& row : rows) row.effects |= ON_VECTORS;
    return rows;
}

}  // namespace perfemu::x86_64
