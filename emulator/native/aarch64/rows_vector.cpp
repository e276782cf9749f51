// Scalar floating point, Advanced SIMD and cryptography. Arm ARM DDI 0487, "Data processing (scalar floating-point and
// Advanced SIMD)".
#include "aarch64/row.hpp"

namespace perfemu::aarch64 {
namespace {

using namespace effect;
using enum OpClass;

constexpr unsigned QUAD_BIT = 30;

bool is_scalar(uint32_t word) { return bit_of(word, 28); }
bool four_lanes_of_32(uint32_t word) { return !is_scalar(word) && bit_of(word, QUAD_BIT) && !bit_of(word, 22); }

// Puts a vector register into the first free place of the sources.
void add_source(TimedOp& op, uint32_t number) {
    const auto reg = static_cast<uint8_t>(timed_register::VECTOR + number % 32);
    for (uint8_t& place : op.sources) {
        if (place == reg) return;
        if (place != timed_register::NONE) continue;
        place = reg;
        return;
    }
}

void aes_round(TimedOp& op, uint32_t) { op.aes_round = true; }

// Cores fuse AESE Vn, Vm with AESMC Vn, Vn.
void aes_mix(TimedOp& op, uint32_t word) { op.fuses_with_aes_round = rd(word) == rn(word); }

void eliminable(TimedOp& op, uint32_t) { op.eliminable_move = true; }

// ORR Vd, Vn, Vn is MOV.
void logic_or(TimedOp& op, uint32_t word) {
    if (rn(word) != rm(word)) return;
    op.op_class = FP_MOVE;
    op.eliminable_move = true;
}

void convert(TimedOp& op, uint32_t word) {
    if (four_lanes_of_32(word)) op.op_class = VECTOR_CONVERT_4;
}

// Of halves the guides say the same as of Q registers of 32-bit elements, or worse.
void convert_halves(TimedOp& op, uint32_t word) {
    if (!is_scalar(word)) op.op_class = VECTOR_CONVERT_4;
}

// The element's size of a shift by an immediate is the highest bit set in immh: 0100 is 32, 1000 is 64.
void convert_fixed_point(TimedOp& op, uint32_t word) {
    const bool wide = bit_of(word, 22);
    if (!wide && !is_scalar(word) && bit_of(word, QUAD_BIT)) op.op_class = VECTOR_CONVERT_4;
}

void divide(TimedOp& op, uint32_t word) { op.op_class = bit_of(word, 22) ? VECTOR_DIV64 : VECTOR_DIV32; }
void square_root(TimedOp& op, uint32_t word) { op.op_class = bit_of(word, 22) ? VECTOR_SQRT64 : VECTOR_SQRT32; }

// ptype: 00 single, 01 double, 11 half
constexpr uint32_t DOUBLE = 1;
void divide_scalar(TimedOp& op, uint32_t word) { op.op_class = field(word, 22, 2) == DOUBLE ? FP_DIV64 : FP_DIV32; }
void square_root_scalar(TimedOp& op, uint32_t word) {
    op.op_class = field(word, 22, 2) == DOUBLE ? FP_SQRT64 : FP_SQRT32;
}

void reduce(TimedOp& op, uint32_t word) {
    const unsigned lanes = (bit_of(word, QUAD_BIT) ? 16U : 8U) >> field(word, 22, 2);
    if (lanes >= 8) op.op_class = lanes == 8 ? VECTOR_REDUCE_8 : VECTOR_REDUCE_16;
}

void polynomial_long(TimedOp& op, uint32_t word) {
    if (field(word, 22, 2) == 0) op.op_class = VECTOR_MUL_POLYNOMIAL;
}

// TBL and TBX of one to four registers in a row.
void table(TimedOp& op, uint32_t word) {
    const uint32_t registers = field(word, 13, 2) + 1;
    const bool keeps = bit_of(word, 12);  // TBX
    for (uint32_t i = 0; i < registers; i++) add_source(op, rn(word) + i);
    if (keeps) add_source(op, rd(word));
    if (registers == 2 && !keeps)
        op.op_class = VECTOR_TABLE_PAIR;
    else if (registers > 1)
        op.op_class = VECTOR_TABLE_LONG;
}

void compare_registers(TimedOp& op, uint32_t word) {
    const bool with_zero = bit_of(word, 3);
    if (!with_zero) add_source(op, rm(word));
}

// An element of 16 bits is of one of V0..V15.
void by_element(TimedOp& op, uint32_t word) {
    const bool halves = field(word, 22, 2) == 1;
    add_source(op, field(word, 16, halves ? 4 : 5));
}
void by_element_fp(TimedOp& op, uint32_t word) { add_source(op, rm(word)); }
void by_element_half(TimedOp& op, uint32_t word) { add_source(op, field(word, 16, 4)); }

// Rows of one encoding group; `u` is bit 29, `a` bit 23. Scalar and vector forms (bit 28) are the same but for the
// width.
using Name = std::string_view;
constexpr uint32_t ANY = 2;  // of a bit: either
constexpr uint32_t mask_of(uint32_t bit, unsigned number) { return bit == ANY ? 0 : 1U << number; }
constexpr uint32_t value_of(uint32_t bit, unsigned number) { return bit == ANY ? 0 : bit << number; }
constexpr uint32_t BINARY = D_V | N_V | M_V | BY_Q, UNARY = D_V | N_V | BY_Q;

constexpr Row same(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = BINARY) {
    return {0x8f20fc00 | mask_of(u, 29), 0x0e200400 | value_of(u, 29) | opcode << 11, name, op_class, effects};
}
constexpr Row with_a(Row row, uint32_t a) {
    row.mask |= mask_of(a, 23);
    row.value |= value_of(a, 23);
    return row;
}
constexpr Row same_fp(uint32_t u, uint32_t a, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = BINARY) {
    return with_a(same(u, opcode, name, op_class, effects), a);
}
constexpr Row different(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects) {
    return {0x8f20fc00 | mask_of(u, 29), 0x0e200000 | value_of(u, 29) | opcode << 12, name, op_class, effects};
}
constexpr Row misc(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    return {0x8f3ffc00 | mask_of(u, 29), 0x0e200800 | value_of(u, 29) | opcode << 12, name, op_class, effects};
}
constexpr Row misc_fp(uint32_t u, uint32_t a, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    return with_a(misc(u, opcode, name, op_class, effects), a);
}
constexpr Row across(uint32_t scalar, uint32_t opcode, Name name, OpClass op_class) {
    const uint32_t form = scalar ? 1 << 30 | 1 << 28 : 0;
    return {0x9f3ffc00 | form, 0x0e300800 | form | opcode << 12, name, op_class, UNARY};
}
constexpr Row across_fp(uint32_t scalar, uint32_t opcode, Name name, OpClass op_class) {
    Row row = across(scalar, opcode, name, op_class);
    row.mask |= 1 << 29;
    row.value |= 1 << 29;
    return row;
}
constexpr Row shift(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    return {0x8f80fc00 | mask_of(u, 29), 0x0f000400 | value_of(u, 29) | opcode << 11, name, op_class, effects};
}
constexpr Row element(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    const Row row{0x8f00f400 | mask_of(u, 29), 0x0f000000 | value_of(u, 29) | opcode << 12, name, op_class, effects};
    return row.adjusted(by_element);
}
constexpr Row element_fp(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    return with_a(element(u, opcode, name, op_class, effects), 1).adjusted(by_element_fp);
}

// The same of half precision, where that is encoded apart. Arm ARM, FEAT_FP16.
constexpr Row same_half(uint32_t u, uint32_t a, uint32_t opcode, Name name, OpClass op_class,
                        uint32_t effects = BINARY) {
    const Row row{0x8f60fc00 | mask_of(u, 29), 0x0e400400 | value_of(u, 29) | opcode << 11, name, op_class, effects};
    return with_a(row, a).needs(Feature::FP16);
}
constexpr Row misc_half(uint32_t u, uint32_t a, uint32_t opcode, Name name, OpClass op_class) {
    const Row row{0x8f7ffc00 | mask_of(u, 29), 0x0e780800 | value_of(u, 29) | opcode << 12, name, op_class, UNARY};
    return with_a(row, a).needs(Feature::FP16);
}
constexpr Row across_half(uint32_t scalar, uint32_t opcode, Name name, OpClass op_class) {
    Row row = across(scalar, opcode, name, op_class);
    row.mask |= 1 << 29 | 1 << 22;
    return row.needs(Feature::FP16);
}
constexpr Row element_half(uint32_t u, uint32_t opcode, Name name, OpClass op_class, uint32_t effects = UNARY) {
    const Row row{0x8fc0f400 | mask_of(u, 29), 0x0f000000 | value_of(u, 29) | opcode << 12, name, op_class, effects};
    return row.adjusted(by_element_half).needs(Feature::FP16);
}

constexpr uint32_t SCALAR2 = D_V | N_V | M_V | BY_TYPE, SCALAR1 = D_V | N_V | BY_TYPE;
constexpr uint32_t ACCUMULATE = ADDEND_D | BINARY, ACCUMULATE1 = ADDEND_D | UNARY;
constexpr uint32_t LONG = D_V | N_V | M_V | WIDE, ACCUMULATE_LONG = ADDEND_D | LONG;
constexpr uint32_t ELEMENT_LONG = D_V | N_V | WIDE;

// Scalar floating point that has a ptype (bits 23:22): of single and double precision, and of half.
constexpr Row OF_ALL_PRECISIONS[] = {
    // between general and floating point registers: rmode in 20:19, opcode in 18:16
    {0x7f3efc00, 0x1e220000, "SCVTF", GPR_TO_FP, D_V | N_X | BY_SF},   // UCVTF
    {0x7f26fc00, 0x1e200000, "FCVTNS", FP_TO_GPR, D_X | N_V | BY_SF},  // FCVTPS, FCVTMS, FCVTZS; unsigned
    {0x7f3efc00, 0x1e240000, "FCVTAS", FP_TO_GPR, D_X | N_V | BY_SF},  // FCVTAU
    {0x7f3e0000, 0x1e020000, "SCVTF", GPR_TO_FP, D_V | N_X | BY_SF},   // of fixed point
    {0x7f3e0000, 0x1e180000, "FCVTZS", FP_TO_GPR, D_X | N_V | BY_SF},
    Row{0xff3ffc00, 0x1e204000, "FMOV", FP_MOVE, SCALAR1}.adjusted(eliminable),
    {0xff3ffc00, 0x1e20c000, "FABS", FP_LOGIC, SCALAR1},
    {0xff3ffc00, 0x1e214000, "FNEG", FP_LOGIC, SCALAR1},
    Row{0xff3ffc00, 0x1e21c000, "FSQRT", FP_SQRT64, SCALAR1}.adjusted(square_root_scalar),
    {0xff3c7c00, 0x1e244000, "FRINTN", FP_ROUND, SCALAR1},  // FRINTP ... FRINTI
    Row{0xff203c07, 0x1e202000, "FCMP", FP_COMPARE_FLAGS, N_V | FLAGS_OUT | BY_TYPE}.adjusted(compare_registers),
    {0xff201fe0, 0x1e201000, "FMOV", VECTOR_CONSTANT, D_V | BY_TYPE},
    {0xff200c00, 0x1e200400, "FCCMP", FP_COMPARE_FLAGS, N_V | M_V | FLAGS_IN | FLAGS_OUT | BY_TYPE},
    {0xff200c00, 0x1e200c00, "FCSEL", FP_SELECT, D_V | N_V | M_V | FLAGS_IN | BY_TYPE},
    {0xff207c00, 0x1e200800, "FMUL", FP_MUL, SCALAR2},  // FNMUL
    Row{0xff20fc00, 0x1e201800, "FDIV", FP_DIV64, SCALAR2}.adjusted(divide_scalar),
    {0xff20ec00, 0x1e202800, "FADD", FP_ADD, SCALAR2},     // FSUB
    {0xff20cc00, 0x1e204800, "FMAX", FP_MINMAX, SCALAR2},  // FMIN, FMAXNM, FMINNM
    {0xff000000, 0x1f000000, "FMADD", FP_MUL_ADD, D_V | N_V | M_V | A_V | BY_TYPE},
};

constexpr Row SCALAR[] = {
    {0xff3e7c00, 0x1e224000, "FCVT", FP_CONVERT, SCALAR1},  // half precision included
    {0xfffffc00, 0x1e270000, "FMOV", MOVE_TO_VECTOR, D_V | N_X | BY_SF},
    {0xfffffc00, 0x9e670000, "FMOV", MOVE_TO_VECTOR, D_V | N_X | BY_SF},
    {0xfffffc00, 0x9eaf0000, "FMOV", VECTOR_INSERT, D_V | RD_V | N_X},  // Vd.D[1]
    {0xfffffc00, 0x1e260000, "FMOV", MOVE_FROM_VECTOR, D_X | N_V | BY_SF},
    {0xfffffc00, 0x9e660000, "FMOV", MOVE_FROM_VECTOR, D_X | N_V | BY_SF},
    {0xfffffc00, 0x9eae0000, "FMOV", MOVE_FROM_VECTOR, D_X | N_V | BY_SF},  // Vn.D[1]
    Row{0x7ffffc00, 0x1ee70000, "FMOV", MOVE_TO_VECTOR, D_V | N_X | BY_SF}.needs(Feature::FP16),
    Row{0x7ffffc00, 0x1ee60000, "FMOV", MOVE_FROM_VECTOR, D_X | N_V | BY_SF}.needs(Feature::FP16),
};

constexpr Row VECTOR[] = {
    // cryptography
    Row{0xffffec00, 0x4e284800, "AESE", AES, D_V | RD_V | N_V | WIDE}.adjusted(aes_round),  // AESD
    Row{0xffffec00, 0x4e286800, "AESMC", AES_MIX, D_V | N_V | WIDE}.adjusted(aes_mix),      // AESIMC
    {0xffe0fc00, 0x5e003000, "SHA1SU0", SHA_SCHEDULE, D_V | RD_V | N_V | M_V | WIDE},
    {0xffe0cc00, 0x5e000000, "SHA1C", SHA1, D_V | RD_V | N_V | M_V | WIDE},      // SHA1P, SHA1M
    {0xffe0ec00, 0x5e004000, "SHA256H", SHA256, D_V | RD_V | N_V | M_V | WIDE},  // SHA256H2
    {0xffe0fc00, 0x5e006000, "SHA256SU1", SHA_SCHEDULE, D_V | RD_V | N_V | M_V | WIDE},
    {0xfffffc00, 0x5e280800, "SHA1H", SHA_SCHEDULE, D_V | N_V},
    {0xffffcc00, 0x5e280800, "SHA1SU1", SHA_SCHEDULE, D_V | RD_V | N_V | WIDE},  // SHA256SU0
    // three registers of the same size
    same(ANY, 0x00, "SHADD", VECTOR_SATURATE),
    same(ANY, 0x01, "SQADD", VECTOR_SATURATE),
    same(ANY, 0x02, "SRHADD", VECTOR_SATURATE),
    Row{0xbfe0fc00, 0x0ea01c00, "ORR", VECTOR_LOGIC, BINARY}.adjusted(logic_or),
    {0xbfe0fc00, 0x2e201c00, "EOR", VECTOR_LOGIC, BINARY},
    same(0, 0x03, "AND", VECTOR_LOGIC),                 // BIC, ORN
    same(1, 0x03, "BSL", VECTOR_BLEND, BINARY | RD_V),  // BIT, BIF
    same(ANY, 0x04, "SHSUB", VECTOR_SATURATE),
    same(ANY, 0x05, "SQSUB", VECTOR_SATURATE),
    same(ANY, 0x06, "CMGT", VECTOR_COMPARE),  // CMHI
    same(ANY, 0x07, "CMGE", VECTOR_COMPARE),  // CMHS
    same(ANY, 0x08, "SSHL", VECTOR_SHIFT_VARIABLE),
    same(ANY, 0x09, "SQSHL", VECTOR_SHIFT_COMPLEX),
    same(ANY, 0x0a, "SRSHL", VECTOR_SHIFT_COMPLEX),
    same(ANY, 0x0b, "SQRSHL", VECTOR_SHIFT_COMPLEX),
    same(ANY, 0x0c, "SMAX", VECTOR_MINMAX),
    same(ANY, 0x0d, "SMIN", VECTOR_MINMAX),
    same(ANY, 0x0e, "SABD", VECTOR_ALU),
    same(ANY, 0x0f, "SABA", VECTOR_ACCUMULATE, ACCUMULATE),
    same(ANY, 0x10, "ADD", VECTOR_ALU),                  // SUB
    same(ANY, 0x11, "CMTST", VECTOR_COMPARE),            // CMEQ
    same(ANY, 0x12, "MLA", VECTOR_MUL_ADD, ACCUMULATE),  // MLS
    same(0, 0x13, "MUL", VECTOR_MUL),
    same(1, 0x13, "PMUL", VECTOR_MUL_POLYNOMIAL),
    same(ANY, 0x14, "SMAXP", VECTOR_MINMAX),
    same(ANY, 0x15, "SMINP", VECTOR_MINMAX),
    same(ANY, 0x16, "SQDMULH", VECTOR_MUL),  // SQRDMULH
    same(0, 0x17, "ADDP", VECTOR_PAIRWISE),
    same(0, 0x18, "FMAXNM", FP_MINMAX),             // FMINNM
    same(1, 0x18, "FMAXNMP", FP_MINMAX),            // FMINNMP
    same(0, 0x19, "FMLA", FP_MUL_ADD, ACCUMULATE),  // FMLS
    same(0, 0x1a, "FADD", FP_ADD),                  // FSUB
    same_fp(1, 0, 0x1a, "FADDP", FP_HORIZONTAL),
    same_fp(1, 1, 0x1a, "FABD", FP_ADD),
    same(ANY, 0x1b, "FMULX", FP_MUL),      // FMUL
    same(ANY, 0x1c, "FCMEQ", FP_COMPARE),  // FCMGE, FCMGT
    same(1, 0x1d, "FACGE", FP_COMPARE),    // FACGT
    same(ANY, 0x1e, "FMAX", FP_MINMAX),    // FMIN, FMAXP, FMINP
    same(0, 0x1f, "FRECPS", FP_MUL_ADD),   // FRSQRTS: 2 - a*b
    same(1, 0x1f, "FDIV", VECTOR_DIV64).adjusted(divide),
    // three registers of different sizes
    different(ANY, 0x0, "SADDL", VECTOR_ALU, LONG),
    different(ANY, 0x1, "SADDW", VECTOR_ALU, LONG),
    different(ANY, 0x2, "SSUBL", VECTOR_ALU, LONG),
    different(ANY, 0x3, "SSUBW", VECTOR_ALU, LONG),
    different(ANY, 0x4, "ADDHN", VECTOR_SATURATE, LONG | UPPER_HALF),
    different(ANY, 0x5, "SABAL", VECTOR_ACCUMULATE, ACCUMULATE_LONG),
    different(ANY, 0x6, "SUBHN", VECTOR_SATURATE, LONG | UPPER_HALF),
    different(ANY, 0x7, "SABDL", VECTOR_ALU, LONG),
    different(ANY, 0x8, "SMLAL", VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),
    different(0, 0x9, "SQDMLAL", VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),
    different(ANY, 0xa, "SMLSL", VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),
    different(0, 0xb, "SQDMLSL", VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),
    different(ANY, 0xc, "SMULL", VECTOR_MUL_LONG, LONG),
    different(0, 0xd, "SQDMULL", VECTOR_MUL_LONG, LONG),
    different(0, 0xe, "PMULL", CARRYLESS_MUL, LONG).adjusted(polynomial_long),
    // one register
    misc(ANY, 0x00, "REV64", VECTOR_PERMUTE),  // REV32
    misc(0, 0x01, "REV16", VECTOR_PERMUTE),
    misc(ANY, 0x02, "SADDLP", VECTOR_PAIRWISE),
    misc(ANY, 0x03, "SUQADD", VECTOR_SATURATE, UNARY | RD_V),
    misc(ANY, 0x04, "CLS", VECTOR_COUNT),  // CLZ
    misc(0, 0x05, "CNT", VECTOR_COUNT),
    {0xbffffc00, 0x2e605800, "RBIT", VECTOR_PERMUTE, UNARY},
    misc(1, 0x05, "NOT", VECTOR_LOGIC),
    misc(ANY, 0x06, "SADALP", VECTOR_ACCUMULATE, ACCUMULATE1),
    misc(ANY, 0x07, "SQABS", VECTOR_SATURATE),  // SQNEG
    misc(ANY, 0x08, "CMGT", VECTOR_COMPARE),    // CMGE zero
    misc(ANY, 0x09, "CMEQ", VECTOR_COMPARE),    // CMLE zero
    misc(0, 0x0a, "CMLT", VECTOR_COMPARE),      // zero
    misc(ANY, 0x0b, "ABS", VECTOR_ALU),         // NEG
    misc(0, 0x12, "XTN", VECTOR_PACK, UNARY | UPPER_HALF),
    misc(1, 0x12, "SQXTUN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),
    misc(1, 0x13, "SHLL", VECTOR_WIDEN),
    misc(ANY, 0x14, "SQXTN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),
    misc_fp(ANY, 1, 0x0c, "FCMGT", FP_COMPARE),                      // FCMGE zero
    misc_fp(ANY, 1, 0x0d, "FCMEQ", FP_COMPARE),                      // FCMLE zero
    misc_fp(0, 1, 0x0e, "FCMLT", FP_COMPARE),                        // zero
    misc_fp(ANY, 1, 0x0f, "FABS", FP_LOGIC),                         // FNEG
    misc_fp(ANY, 0, 0x16, "FCVTN", FP_CONVERT, UNARY | UPPER_HALF),  // FCVTXN
    misc_fp(0, 0, 0x17, "FCVTL", FP_CONVERT),
    misc(ANY, 0x18, "FRINTN", FP_ROUND).adjusted(convert),
    misc(ANY, 0x19, "FRINTM", FP_ROUND).adjusted(convert),
    misc(ANY, 0x1a, "FCVTNS", FP_TO_INT).adjusted(convert),
    misc(ANY, 0x1b, "FCVTMS", FP_TO_INT).adjusted(convert),
    misc_fp(ANY, 0, 0x1c, "FCVTAS", FP_TO_INT).adjusted(convert),
    misc_fp(ANY, 1, 0x1c, "URECPE", FP_ESTIMATE).adjusted(convert),  // URSQRTE
    misc_fp(ANY, 0, 0x1d, "SCVTF", INT_TO_FP).adjusted(convert),
    misc_fp(ANY, 1, 0x1d, "FRECPE", FP_ESTIMATE).adjusted(convert),  // FRSQRTE
    misc_fp(0, 1, 0x1f, "FRECPX", FP_ESTIMATE),
    misc_fp(1, 1, 0x1f, "FSQRT", VECTOR_SQRT64).adjusted(square_root),
    // all lanes into one
    across(0, 0x03, "SADDLV", VECTOR_REDUCE).adjusted(reduce),
    across(0, 0x0a, "SMAXV", VECTOR_REDUCE).adjusted(reduce),
    across(0, 0x1a, "SMINV", VECTOR_REDUCE).adjusted(reduce),
    across(0, 0x1b, "ADDV", VECTOR_REDUCE).adjusted(reduce),
    across_fp(0, 0x0c, "FMAXNMV", FP_REDUCE),    // FMINNMV
    across_fp(0, 0x0f, "FMAXV", FP_REDUCE),      // FMINV
    across(1, 0x1b, "ADDP", VECTOR_PAIRWISE),    // of a pair
    across_fp(1, 0x0d, "FADDP", FP_HORIZONTAL),  // of a pair
    across_fp(1, 0x0c, "FMAXNMP", FP_MINMAX),    // of a pair
    across_fp(1, 0x0f, "FMAXP", FP_MINMAX),      // of a pair
    // lanes
    {0xafe0fc00, 0x0e000400, "DUP", VECTOR_PERMUTE, UNARY},                    // of a lane
    {0xbfe0fc00, 0x0e000c00, "DUP", MOVE_TO_VECTOR, D_V | N_X | BY_Q},         // of a general register
    {0xbfe0fc00, 0x0e001c00, "INS", VECTOR_INSERT, D_V | RD_V | N_X | BY_Q},   // from a general register
    {0xbfe0ec00, 0x0e002c00, "SMOV", VECTOR_EXTRACT, D_X | N_V | BY_Q},        // UMOV
    {0xffe08400, 0x6e000400, "INS", VECTOR_PERMUTE, D_V | RD_V | N_V | BY_Q},  // of a lane
    {0xbf208c00, 0x0e000800, "UZP", VECTOR_PERMUTE, BINARY},                   // TRN, ZIP
    Row{0xbfe08c00, 0x0e000000, "TBL", VECTOR_TABLE, D_V | M_V | BY_Q}.adjusted(table),
    {0xbfe08400, 0x2e000000, "EXT", VECTOR_PERMUTE, BINARY},
    // immediates: the destination stays in part where cmode is odd and below 12
    {0x9ff89c00, 0x0f001400, "ORR", VECTOR_LOGIC, D_V | RD_V | BY_Q},  // BIC: cmode 0xx1
    {0x9ff8dc00, 0x0f009400, "ORR", VECTOR_LOGIC, D_V | RD_V | BY_Q},  // ... cmode 10x1
    {0x9ff80c00, 0x0f000400, "MOVI", VECTOR_CONSTANT, D_V | BY_Q},     // MVNI, FMOV
    // shifts by an immediate
    shift(ANY, 0x00, "SSHR", VECTOR_SHIFT),
    shift(ANY, 0x02, "SSRA", VECTOR_ACCUMULATE, ACCUMULATE1),
    shift(ANY, 0x04, "SRSHR", VECTOR_SHIFT_COMPLEX),
    shift(ANY, 0x06, "SRSRA", VECTOR_ACCUMULATE, ACCUMULATE1),
    shift(1, 0x08, "SRI", VECTOR_SHIFT, UNARY | RD_V),
    shift(0, 0x0a, "SHL", VECTOR_SHIFT),
    shift(1, 0x0a, "SLI", VECTOR_SHIFT, UNARY | RD_V),
    shift(1, 0x0c, "SQSHLU", VECTOR_SHIFT_COMPLEX),
    shift(ANY, 0x0e, "SQSHL", VECTOR_SHIFT_COMPLEX),
    shift(0, 0x10, "SHRN", VECTOR_SHIFT, UNARY | UPPER_HALF),
    shift(1, 0x10, "SQSHRUN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),
    shift(ANY, 0x11, "RSHRN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),  // SQRSHRUN
    shift(ANY, 0x12, "SQSHRN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),
    shift(ANY, 0x13, "SQRSHRN", VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),
    shift(ANY, 0x14, "SSHLL", VECTOR_WIDEN),
    shift(ANY, 0x1c, "SCVTF", INT_TO_FP).adjusted(convert_fixed_point),
    shift(ANY, 0x1f, "FCVTZS", FP_TO_INT).adjusted(convert_fixed_point),
    // by an element
    element(1, 0x0, "MLA", VECTOR_MUL_ADD, ACCUMULATE1),
    element(1, 0x4, "MLS", VECTOR_MUL_ADD, ACCUMULATE1),
    element(ANY, 0x2, "SMLAL", VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),
    element(0, 0x3, "SQDMLAL", VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),
    element(ANY, 0x6, "SMLSL", VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),
    element(0, 0x7, "SQDMLSL", VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),
    element(0, 0x8, "MUL", VECTOR_MUL),
    element(ANY, 0xa, "SMULL", VECTOR_MUL_LONG, ELEMENT_LONG),
    element(0, 0xb, "SQDMULL", VECTOR_MUL_LONG, ELEMENT_LONG),
    element(0, 0xc, "SQDMULH", VECTOR_MUL),
    element(0, 0xd, "SQRDMULH", VECTOR_MUL),
    element_fp(0, 0x1, "FMLA", FP_MUL_ADD, ACCUMULATE1),
    element_fp(0, 0x5, "FMLS", FP_MUL_ADD, ACCUMULATE1),
    element_fp(ANY, 0x9, "FMUL", FP_MUL),  // FMULX
};

// Of which half precision is encoded apart, and what Armv8.1 and 8.2 add.
constexpr Row LATER[] = {
    same_half(ANY, ANY, 0, "FMAXNM", FP_MINMAX),  // FMINNM, FMAXNMP, FMINNMP
    same_half(0, ANY, 1, "FMLA", FP_MUL_ADD, ACCUMULATE),
    same_half(0, ANY, 2, "FADD", FP_ADD),
    same_half(1, 0, 2, "FADDP", FP_HORIZONTAL),
    same_half(1, 1, 2, "FABD", FP_ADD),
    same_half(ANY, 0, 3, "FMULX", FP_MUL),  // FMUL
    same_half(0, 0, 4, "FCMEQ", FP_COMPARE),
    same_half(1, ANY, 4, "FCMGE", FP_COMPARE),   // FCMGT
    same_half(1, ANY, 5, "FACGE", FP_COMPARE),   // FACGT
    same_half(ANY, ANY, 6, "FMAX", FP_MINMAX),   // FMIN, FMAXP, FMINP
    same_half(0, ANY, 7, "FRECPS", FP_MUL_ADD),  // FRSQRTS
    same_half(1, 0, 7, "FDIV", VECTOR_DIV32),
    misc_half(ANY, 1, 0x0c, "FCMGT", FP_COMPARE),  // FCMGE zero
    misc_half(ANY, 1, 0x0d, "FCMEQ", FP_COMPARE),  // FCMLE zero
    misc_half(0, 1, 0x0e, "FCMLT", FP_COMPARE),    // zero
    misc_half(ANY, 1, 0x0f, "FABS", FP_LOGIC),     // FNEG
    misc_half(ANY, ANY, 0x18, "FRINTN", FP_ROUND).adjusted(convert_halves),
    misc_half(ANY, ANY, 0x19, "FRINTM", FP_ROUND).adjusted(convert_halves),
    misc_half(ANY, ANY, 0x1a, "FCVTNS", FP_TO_INT).adjusted(convert_halves),
    misc_half(ANY, ANY, 0x1b, "FCVTMS", FP_TO_INT).adjusted(convert_halves),
    misc_half(ANY, 0, 0x1c, "FCVTAS", FP_TO_INT).adjusted(convert_halves),
    misc_half(ANY, 0, 0x1d, "SCVTF", INT_TO_FP).adjusted(convert_halves),
    misc_half(ANY, 1, 0x1d, "FRECPE", FP_ESTIMATE).adjusted(convert_halves),  // FRSQRTE
    misc_half(0, 1, 0x1f, "FRECPX", FP_ESTIMATE),
    misc_half(1, 1, 0x1f, "FSQRT", VECTOR_SQRT32),
    across_half(0, 0x0c, "FMAXNMV", FP_REDUCE),  // FMINNMV
    across_half(0, 0x0f, "FMAXV", FP_REDUCE),    // FMINV
    across_half(1, 0x0d, "FADDP", FP_HORIZONTAL),
    across_half(1, 0x0c, "FMAXNMP", FP_MINMAX),
    across_half(1, 0x0f, "FMAXP", FP_MINMAX),
    element_half(0, 0x1, "FMLA", FP_MUL_ADD, ACCUMULATE1),
    element_half(0, 0x5, "FMLS", FP_MUL_ADD, ACCUMULATE1),
    element_half(ANY, 0x9, "FMUL", FP_MUL),  // FMULX
    Row{0x8ff0fc00, 0x0f10e400, "SCVTF", INT_TO_FP, UNARY}
        .adjusted(convert_halves)
        .needs(Feature::FP16),  // fixed point
    Row{0x8ff0fc00, 0x0f10fc00, "FCVTZS", FP_TO_INT, UNARY}.adjusted(convert_halves).needs(Feature::FP16),
    Row{0xbff8fc00, 0x0f00fc00, "FMOV", VECTOR_CONSTANT, D_V | BY_Q}.needs(Feature::FP16),
    Row{0xaf20fc00, 0x2e008400, "SQRDMLAH", VECTOR_MUL_ADD, ACCUMULATE}.needs(Feature::ASIMDRDM),
    Row{0xaf20fc00, 0x2e008c00, "SQRDMLSH", VECTOR_MUL_ADD, ACCUMULATE}.needs(Feature::ASIMDRDM),
    element(1, 0xd, "SQRDMLAH", VECTOR_MUL_ADD, ACCUMULATE1).needs(Feature::ASIMDRDM),
    element(1, 0xf, "SQRDMLSH", VECTOR_MUL_ADD, ACCUMULATE1).needs(Feature::ASIMDRDM),
    Row{0x9fe0fc00, 0x0e809400, "SDOT", VECTOR_DOT, ACCUMULATE}.needs(Feature::ASIMDDP),  // UDOT
    Row{0x9fc0f400, 0x0f80e000, "SDOT", VECTOR_DOT, ACCUMULATE1}.adjusted(by_element_fp).needs(Feature::ASIMDDP),
};

constexpr uint32_t PTYPE = 3 << 22, HALF = 3 << 22, NOT_DOUBLE_OR_SINGLE = 1 << 23;

// Scalar forms have bit 30 as well as bit 28.
constexpr uint32_t SCALAR_BITS = 1 << 30 | 1 << 28;

void add_vector_and_scalar(std::vector<Row>& rows, Row row) {
    const bool both = !(row.mask & SCALAR_BITS);
    if (both) {
        Row scalar = row;
        scalar.mask |= SCALAR_BITS;
        scalar.value |= SCALAR_BITS;
        rows.push_back(scalar);
        row.mask |= 1 << 28;
    }
    rows.push_back(row);
}

Row of_single_and_double(Row row) {
    row.mask |= NOT_DOUBLE_OR_SINGLE;
    return row;
}

Row of_half(Row row) {
    row.mask |= PTYPE;
    row.value |= HALF;
    return row.needs(Feature::FP16);
}

}  // namespace

std::vector<Row> vector_rows() {
    std::vector<Row> rows;
    for (const Row& row : LATER) add_vector_and_scalar(rows, row);
    for (const Row& row : OF_ALL_PRECISIONS) {
        rows.push_back(of_single_and_double(row));
        rows.push_back(of_half(row));
    }
    rows.insert(rows.end(), std::begin(SCALAR), std::end(SCALAR));
    for (const Row& row : VECTOR) add_vector_and_scalar(rows, row);
    return rows;
}

}  // namespace perfemu::aarch64
