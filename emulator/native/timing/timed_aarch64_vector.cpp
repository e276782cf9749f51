// AArch64 scalar floating point, Advanced SIMD and cryptography as the timing models see them. Arm ARM (DDI 0487), "A64
// instruction set encoding", Data processing (scalar floating-point and Advanced SIMD).
#include "timing/timed_aarch64.hpp"

namespace perfemu::aarch64 {
namespace {

using namespace role;
using enum OpClass;

constexpr BranchKind NO_BRANCH = BranchKind::NONE;
constexpr unsigned QUAD_BIT = 30;

bool is_scalar(uint32_t word) { return field(word, 28, 1); }
bool four_lanes_of_32(uint32_t word) { return !is_scalar(word) && field(word, QUAD_BIT, 1) && !field(word, 22, 1); }

void aes_round(TimedOp& op, uint32_t) { op.aes_round = true; }

// Cores fuse AESE Vn, Vm with AESMC Vn, Vn.
void aes_mix(TimedOp& op, uint32_t word) { op.fuses_with_aes_round = field(word, 0, 5) == field(word, 5, 5); }

void eliminable(TimedOp& op, uint32_t) { op.eliminable_move = true; }

// ORR Vd, Vn, Vn is MOV.
void logic_or(TimedOp& op, uint32_t word) {
    if (field(word, 5, 5) != field(word, 16, 5)) return;
    op.op_class = FP_MOVE;
    op.eliminable_move = true;
}

void convert(TimedOp& op, uint32_t word) {
    if (four_lanes_of_32(word)) op.op_class = VECTOR_CONVERT_4;
}

// The element's size of a shift by an immediate is the highest bit set in immh: 0100 is 32, 1000 is 64.
void convert_fixed_point(TimedOp& op, uint32_t word) {
    bool wide = field(word, 22, 1);
    if (!wide && !is_scalar(word) && field(word, QUAD_BIT, 1)) op.op_class = VECTOR_CONVERT_4;
}

void divide(TimedOp& op, uint32_t word) { op.op_class = field(word, 22, 1) ? VECTOR_DIV64 : VECTOR_DIV32; }
void square_root(TimedOp& op, uint32_t word) { op.op_class = field(word, 22, 1) ? VECTOR_SQRT64 : VECTOR_SQRT32; }
void divide_scalar(TimedOp& op, uint32_t word) { op.op_class = field(word, 22, 1) ? FP_DIV64 : FP_DIV32; }
void square_root_scalar(TimedOp& op, uint32_t word) { op.op_class = field(word, 22, 1) ? FP_SQRT64 : FP_SQRT32; }

void reduce(TimedOp& op, uint32_t word) {
    unsigned lanes = (field(word, QUAD_BIT, 1) ? 16U : 8U) >> field(word, 22, 2);
    if (lanes >= 8) op.op_class = lanes == 8 ? VECTOR_REDUCE_8 : VECTOR_REDUCE_16;
}

void polynomial_long(TimedOp& op, uint32_t word) {
    if (field(word, 22, 2) == 0) op.op_class = VECTOR_MUL_POLYNOMIAL;
}

// TBL and TBX of one to four registers in a row.
void table(TimedOp& op, uint32_t word) {
    uint32_t registers = field(word, 13, 2) + 1;
    bool keeps = field(word, 12, 1);  // TBX
    for (uint32_t i = 0; i < registers; i++) add(op.sources, vector(field(word, 5, 5) + i));
    if (keeps) add(op.sources, vector(field(word, 0, 5)));
    if (registers == 2 && !keeps)
        op.op_class = VECTOR_TABLE_PAIR;
    else if (registers > 1)
        op.op_class = VECTOR_TABLE_LONG;
}

void compare_registers(TimedOp& op, uint32_t word) {
    bool with_zero = field(word, 3, 1);
    if (!with_zero) add(op.sources, vector(field(word, 16, 5)));
}

// An element of a 16-bit vector is one of V0..V15.
void by_element(TimedOp& op, uint32_t word) {
    bool halves = field(word, 22, 2) == 1;
    add(op.sources, vector(field(word, 16, halves ? 4 : 5)));
}

void by_element_fp(TimedOp& op, uint32_t word) { add(op.sources, vector(field(word, 16, 5))); }

// Rows of one encoding group; `U` is bit 29. Scalar and vector forms (bit 28) are the same but for the width.
constexpr uint32_t ALL_U = 2;  // either
constexpr uint32_t u_mask(uint32_t u) { return u == ALL_U ? 0 : 1U << 29; }
constexpr uint32_t u_value(uint32_t u) { return u == ALL_U ? 0 : u << 29; }
constexpr uint32_t BINARY = D_V | N_V | M_V | BY_Q, UNARY = D_V | N_V | BY_Q;
using Adjust = void (*)(TimedOp&, uint32_t);

constexpr Row same(uint32_t u, uint32_t opcode, OpClass op_class, uint32_t roles = BINARY, Adjust adjust = nullptr) {
    return {0x8f20fc00 | u_mask(u), 0x0e200400 | u_value(u) | opcode << 11, op_class, roles, NO_BRANCH, adjust};
}
// ... of which bit 23 chooses between two
constexpr Row same_fp(uint32_t u, uint32_t a, uint32_t opcode, OpClass op_class, uint32_t roles = BINARY,
                      Adjust adjust = nullptr) {
    Row row = same(u, opcode, op_class, roles, adjust);
    return {row.mask | 1 << 23, row.value | a << 23, op_class, roles, NO_BRANCH, adjust};
}
constexpr Row different(uint32_t u, uint32_t opcode, OpClass op_class, uint32_t roles, Adjust adjust = nullptr) {
    return {0x8f20fc00 | u_mask(u), 0x0e200000 | u_value(u) | opcode << 12, op_class, roles, NO_BRANCH, adjust};
}
constexpr Row misc(uint32_t u, uint32_t opcode, OpClass op_class, uint32_t roles = UNARY, Adjust adjust = nullptr) {
    return {0x8f3ffc00 | u_mask(u), 0x0e200800 | u_value(u) | opcode << 12, op_class, roles, NO_BRANCH, adjust};
}
constexpr Row misc_fp(uint32_t u, uint32_t a, uint32_t opcode, OpClass op_class, Adjust adjust = nullptr,
                      uint32_t roles = UNARY) {
    Row row = misc(u, opcode, op_class, roles, adjust);
    return {row.mask | 1 << 23, row.value | a << 23, op_class, roles, NO_BRANCH, adjust};
}
constexpr Row across(uint32_t scalar, uint32_t opcode, OpClass op_class, Adjust adjust = nullptr) {
    return {0x9f3ffc00, 0x0e300800 | scalar << 28 | opcode << 12, op_class, UNARY, NO_BRANCH, adjust};
}
constexpr Row shift(uint32_t u, uint32_t opcode, OpClass op_class, uint32_t roles = UNARY, Adjust adjust = nullptr) {
    return {0x8f80fc00 | u_mask(u), 0x0f000400 | u_value(u) | opcode << 11, op_class, roles, NO_BRANCH, adjust};
}
constexpr Row element(uint32_t u, uint32_t opcode, OpClass op_class, uint32_t roles = UNARY,
                      Adjust adjust = by_element) {
    return {0x8f00f400 | u_mask(u), 0x0f000000 | u_value(u) | opcode << 12, op_class, roles, NO_BRANCH, adjust};
}

constexpr uint32_t SCALAR2 = D_V | N_V | M_V | BY_TYPE, SCALAR1 = D_V | N_V | BY_TYPE;
constexpr uint32_t ACCUMULATE = ADDEND_D | BINARY, ACCUMULATE1 = ADDEND_D | UNARY;
constexpr uint32_t LONG = D_V | N_V | M_V | WIDE, ACCUMULATE_LONG = ADDEND_D | LONG;
constexpr uint32_t ELEMENT_LONG = D_V | N_V | WIDE;

constexpr Row ROWS[] = {
    // cryptography
    {0xffffec00, 0x4e284800, AES, D_V | RD_V | N_V | WIDE, NO_BRANCH, aes_round},  // AESE, AESD
    {0xffffec00, 0x4e286800, AES_MIX, D_V | N_V | WIDE, NO_BRANCH, aes_mix},       // AESMC, AESIMC
    {0xffe0fc00, 0x5e003000, SHA_SCHEDULE, D_V | RD_V | N_V | M_V | WIDE},         // SHA1SU0
    {0xffe0cc00, 0x5e000000, SHA1, D_V | RD_V | N_V | M_V | WIDE},                 // SHA1C, SHA1P, SHA1M
    {0xffe0ec00, 0x5e004000, SHA256, D_V | RD_V | N_V | M_V | WIDE},               // SHA256H, SHA256H2
    {0xffe0fc00, 0x5e006000, SHA_SCHEDULE, D_V | RD_V | N_V | M_V | WIDE},         // SHA256SU1
    {0xfffffc00, 0x5e280800, SHA_SCHEDULE, D_V | N_V},                             // SHA1H
    {0xffffcc00, 0x5e280800, SHA_SCHEDULE, D_V | RD_V | N_V | WIDE},               // SHA1SU1, SHA256SU0
    // scalar floating point
    // ... between general and floating point registers: rmode in 20:19, opcode in 18:16
    {0xfffffc00, 0x9eaf0000, VECTOR_INSERT, D_V | RD_V | N_X},    // FMOV Vd.D[1], Xn
    {0x7f27fc00, 0x1e270000, MOVE_TO_VECTOR, D_V | N_X | BY_SF},  // FMOV Dd, Xn
    {0x7f27fc00, 0x1e260000, MOVE_FROM_VECTOR, D_X | N_V | BY_SF},
    {0x7f26fc00, 0x1e220000, GPR_TO_FP, D_V | N_X | BY_SF},  // SCVTF, UCVTF
    {0x7f22fc00, 0x1e200000, FP_TO_GPR, D_X | N_V | BY_SF},  // FCVTNS ... FCVTAU
    {0x7f260000, 0x1e020000, GPR_TO_FP, D_V | N_X | BY_SF},  // fixed point
    {0x7f260000, 0x1e000000, FP_TO_GPR, D_X | N_V | BY_SF},
    {0xff3ffc00, 0x1e204000, FP_MOVE, SCALAR1, NO_BRANCH, eliminable},            // FMOV
    {0xff3ffc00, 0x1e20c000, FP_LOGIC, SCALAR1},                                  // FABS
    {0xff3ffc00, 0x1e214000, FP_LOGIC, SCALAR1},                                  // FNEG
    {0xff3ffc00, 0x1e21c000, FP_SQRT64, SCALAR1, NO_BRANCH, square_root_scalar},  // FSQRT
    {0xff3e7c00, 0x1e224000, FP_CONVERT, SCALAR1},                                // FCVT
    {0xff3c7c00, 0x1e244000, FP_ROUND, SCALAR1},                                  // FRINT*
    {0xff203c00, 0x1e202000, FP_COMPARE_FLAGS, N_V | FLAGS_OUT | BY_TYPE, NO_BRANCH, compare_registers},
    {0xff201c00, 0x1e201000, VECTOR_CONSTANT, D_V | BY_TYPE},                                // FMOV of an immediate
    {0xff200c00, 0x1e200400, FP_COMPARE_FLAGS, N_V | M_V | FLAGS_IN | FLAGS_OUT | BY_TYPE},  // FCCMP
    {0xff200c00, 0x1e200c00, FP_SELECT, D_V | N_V | M_V | FLAGS_IN | BY_TYPE},               // FCSEL
    {0xff207c00, 0x1e200800, FP_MUL, SCALAR2},
    {0xff20fc00, 0x1e201800, FP_DIV64, SCALAR2, NO_BRANCH, divide_scalar},
    {0xff20ec00, 0x1e202800, FP_ADD, SCALAR2},     // FADD, FSUB
    {0xff20cc00, 0x1e204800, FP_MINMAX, SCALAR2},  // FMAX, FMIN, FMAXNM, FMINNM
    {0xff000000, 0x1f000000, FP_MUL_ADD, D_V | N_V | M_V | A_V | BY_TYPE},
    // three registers of the same size
    same(ALL_U, 0x00, VECTOR_SATURATE),                                   // SHADD
    same(ALL_U, 0x01, VECTOR_SATURATE),                                   // SQADD
    same(ALL_U, 0x02, VECTOR_SATURATE),                                   // SRHADD
    {0xbfe0fc00, 0x0ea01c00, VECTOR_LOGIC, BINARY, NO_BRANCH, logic_or},  // ORR
    {0xbfe0fc00, 0x2e201c00, VECTOR_LOGIC, BINARY},                       // EOR
    same(0, 0x03, VECTOR_LOGIC),                                          // AND, BIC, ORN
    same(1, 0x03, VECTOR_BLEND, BINARY | RD_V),                           // BSL, BIT, BIF
    same(ALL_U, 0x04, VECTOR_SATURATE),                                   // SHSUB
    same(ALL_U, 0x05, VECTOR_SATURATE),                                   // SQSUB
    same(ALL_U, 0x06, VECTOR_COMPARE),                                    // CMGT, CMHI
    same(ALL_U, 0x07, VECTOR_COMPARE),                                    // CMGE, CMHS
    same(ALL_U, 0x08, VECTOR_SHIFT_VARIABLE),                             // SSHL
    same(ALL_U, 0x09, VECTOR_SHIFT_COMPLEX),                              // SQSHL
    same(ALL_U, 0x0a, VECTOR_SHIFT_COMPLEX),                              // SRSHL
    same(ALL_U, 0x0b, VECTOR_SHIFT_COMPLEX),                              // SQRSHL
    same(ALL_U, 0x0c, VECTOR_MINMAX),                                     // SMAX
    same(ALL_U, 0x0d, VECTOR_MINMAX),                                     // SMIN
    same(ALL_U, 0x0e, VECTOR_ALU),                                        // SABD
    same(ALL_U, 0x0f, VECTOR_ACCUMULATE, ACCUMULATE),                     // SABA
    same(ALL_U, 0x10, VECTOR_ALU),                                        // ADD, SUB
    same(ALL_U, 0x11, VECTOR_COMPARE),                                    // CMTST, CMEQ
    same(ALL_U, 0x12, VECTOR_MUL_ADD, ACCUMULATE),                        // MLA, MLS
    same(0, 0x13, VECTOR_MUL),                                            // MUL
    same(1, 0x13, VECTOR_MUL_POLYNOMIAL),                                 // PMUL
    same(ALL_U, 0x14, VECTOR_MINMAX),                                     // SMAXP
    same(ALL_U, 0x15, VECTOR_MINMAX),                                     // SMINP
    same(ALL_U, 0x16, VECTOR_MUL),                                        // SQDMULH, SQRDMULH
    same(0, 0x17, VECTOR_PAIRWISE),                                       // ADDP
    same(0, 0x18, FP_MINMAX),                                             // FMAXNM, FMINNM
    same(1, 0x18, FP_MINMAX),                                             // FMAXNMP, FMINNMP
    same(0, 0x19, FP_MUL_ADD, ACCUMULATE),                                // FMLA, FMLS
    same(0, 0x1a, FP_ADD),                                                // FADD, FSUB
    same_fp(1, 0, 0x1a, FP_HORIZONTAL),                                   // FADDP
    same_fp(1, 1, 0x1a, FP_ADD),                                          // FABD
    same(ALL_U, 0x1b, FP_MUL),                                            // FMULX, FMUL
    same(ALL_U, 0x1c, FP_COMPARE),                                        // FCMEQ, FCMGE, FCMGT
    same(1, 0x1d, FP_COMPARE),                                            // FACGE, FACGT
    same(ALL_U, 0x1e, FP_MINMAX),                                         // FMAX, FMIN, FMAXP, FMINP
    same(0, 0x1f, FP_MUL_ADD),                                            // FRECPS, FRSQRTS: 2 - a*b
    same(1, 0x1f, VECTOR_DIV64, BINARY, divide),                          // FDIV
    // three registers of different sizes
    different(ALL_U, 0x0, VECTOR_ALU, LONG),                      // SADDL
    different(ALL_U, 0x1, VECTOR_ALU, LONG),                      // SADDW
    different(ALL_U, 0x2, VECTOR_ALU, LONG),                      // SSUBL
    different(ALL_U, 0x3, VECTOR_ALU, LONG),                      // SSUBW
    different(ALL_U, 0x4, VECTOR_SATURATE, LONG | UPPER_HALF),    // ADDHN
    different(ALL_U, 0x5, VECTOR_ACCUMULATE, ACCUMULATE_LONG),    // SABAL
    different(ALL_U, 0x6, VECTOR_SATURATE, LONG | UPPER_HALF),    // SUBHN
    different(ALL_U, 0x7, VECTOR_ALU, LONG),                      // SABDL
    different(ALL_U, 0x8, VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),  // SMLAL
    different(0, 0x9, VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),      // SQDMLAL
    different(ALL_U, 0xa, VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),  // SMLSL
    different(0, 0xb, VECTOR_MUL_ADD_LONG, ACCUMULATE_LONG),      // SQDMLSL
    different(ALL_U, 0xc, VECTOR_MUL_LONG, LONG),                 // SMULL
    different(0, 0xd, VECTOR_MUL_LONG, LONG),                     // SQDMULL
    different(0, 0xe, CARRYLESS_MUL, LONG, polynomial_long),      // PMULL
    // one register
    misc(ALL_U, 0x00, VECTOR_PERMUTE),                            // REV64, REV32
    misc(0, 0x01, VECTOR_PERMUTE),                                // REV16
    misc(ALL_U, 0x02, VECTOR_PAIRWISE),                           // SADDLP
    misc(ALL_U, 0x03, VECTOR_SATURATE, UNARY | RD_V),             // SUQADD
    misc(ALL_U, 0x04, VECTOR_COUNT),                              // CLS, CLZ
    misc(0, 0x05, VECTOR_COUNT),                                  // CNT
    {0xbffffc00, 0x2e605800, VECTOR_PERMUTE, UNARY},              // RBIT
    misc(1, 0x05, VECTOR_LOGIC),                                  // NOT
    misc(ALL_U, 0x06, VECTOR_ACCUMULATE, ACCUMULATE1),            // SADALP
    misc(ALL_U, 0x07, VECTOR_SATURATE),                           // SQABS, SQNEG
    misc(ALL_U, 0x08, VECTOR_COMPARE),                            // CMGT, CMGE zero
    misc(ALL_U, 0x09, VECTOR_COMPARE),                            // CMEQ, CMLE zero
    misc(0, 0x0a, VECTOR_COMPARE),                                // CMLT zero
    misc(ALL_U, 0x0b, VECTOR_ALU),                                // ABS, NEG
    misc(0, 0x12, VECTOR_PACK, UNARY | UPPER_HALF),               // XTN
    misc(1, 0x12, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),      // SQXTUN
    misc(1, 0x13, VECTOR_WIDEN),                                  // SHLL
    misc(ALL_U, 0x14, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),  // SQXTN
    misc_fp(ALL_U, 1, 0x0c, FP_COMPARE),
    misc_fp(ALL_U, 1, 0x0d, FP_COMPARE),
    misc_fp(0, 1, 0x0e, FP_COMPARE),
    misc_fp(ALL_U, 1, 0x0f, FP_LOGIC),                                 // FABS, FNEG
    misc_fp(ALL_U, 0, 0x16, FP_CONVERT, nullptr, UNARY | UPPER_HALF),  // FCVTN, FCVTXN
    misc_fp(0, 0, 0x17, FP_CONVERT, nullptr),                          // FCVTL
    misc(ALL_U, 0x18, FP_ROUND, UNARY, convert),                       // FRINTN ...
    misc(ALL_U, 0x19, FP_ROUND, UNARY, convert),                       // FRINTM ...
    misc(ALL_U, 0x1a, FP_TO_INT, UNARY, convert),                      // FCVTNS ...
    misc(ALL_U, 0x1b, FP_TO_INT, UNARY, convert),                      // FCVTMS ...
    misc_fp(ALL_U, 0, 0x1c, FP_TO_INT, convert),                       // FCVTAS
    misc_fp(ALL_U, 1, 0x1c, FP_ESTIMATE, convert),                     // URECPE, URSQRTE
    misc_fp(ALL_U, 0, 0x1d, INT_TO_FP, convert),                       // SCVTF
    misc_fp(ALL_U, 1, 0x1d, FP_ESTIMATE, convert),                     // FRECPE, FRSQRTE
    misc_fp(0, 1, 0x1f, FP_ESTIMATE),                                  // FRECPX
    misc_fp(1, 1, 0x1f, VECTOR_SQRT64, square_root),                   // FSQRT
    // all lanes into one
    across(0, 0x03, VECTOR_REDUCE, reduce),  // SADDLV
    across(0, 0x0a, VECTOR_REDUCE, reduce),  // SMAXV
    across(0, 0x1a, VECTOR_REDUCE, reduce),  // SMINV
    across(0, 0x1b, VECTOR_REDUCE, reduce),  // ADDV
    across(0, 0x0c, FP_REDUCE),              // FMAXNMV, FMINNMV
    across(0, 0x0f, FP_REDUCE),              // FMAXV, FMINV
    across(1, 0x1b, VECTOR_PAIRWISE),        // ADDP of a pair
    across(1, 0x0d, FP_HORIZONTAL),          // FADDP of a pair
    across(1, 0x0c, FP_MINMAX),              // FMAXNMP of a pair
    across(1, 0x0f, FP_MINMAX),              // FMAXP of a pair
    // lanes
    {0xafe0fc00, 0x0e000400, VECTOR_PERMUTE, UNARY},                    // DUP of a lane
    {0xbfe0fc00, 0x0e000c00, MOVE_TO_VECTOR, D_V | N_X | BY_Q},         // DUP of a general register
    {0xbfe0fc00, 0x0e001c00, VECTOR_INSERT, D_V | RD_V | N_X | BY_Q},   // INS from a general register
    {0xbfe0ec00, 0x0e002c00, VECTOR_EXTRACT, D_X | N_V | BY_Q},         // SMOV, UMOV
    {0xffe08400, 0x6e000400, VECTOR_PERMUTE, D_V | RD_V | N_V | BY_Q},  // INS of a lane
    {0xbf208c00, 0x0e000800, VECTOR_PERMUTE, BINARY},                   // UZP, TRN, ZIP
    {0xbfe08c00, 0x0e000000, VECTOR_TABLE, D_V | M_V | BY_Q, NO_BRANCH, table},
    {0xbfe08400, 0x2e000000, VECTOR_PERMUTE, BINARY},  // EXT
    // immediates: the destination stays in part where cmode is odd and below 12
    {0x9ff89c00, 0x0f001400, VECTOR_LOGIC, D_V | RD_V | BY_Q},  // ORR, BIC: cmode 0xx1
    {0x9ff8dc00, 0x0f009400, VECTOR_LOGIC, D_V | RD_V | BY_Q},  // ... cmode 10x1
    {0x9ff80400, 0x0f000400, VECTOR_CONSTANT, D_V | BY_Q},      // MOVI, MVNI, FMOV
    // shifts by an immediate
    shift(ALL_U, 0x00, VECTOR_SHIFT),                              // SSHR
    shift(ALL_U, 0x02, VECTOR_ACCUMULATE, ACCUMULATE1),            // SSRA
    shift(ALL_U, 0x04, VECTOR_SHIFT_COMPLEX),                      // SRSHR
    shift(ALL_U, 0x06, VECTOR_ACCUMULATE, ACCUMULATE1),            // SRSRA
    shift(1, 0x08, VECTOR_SHIFT, UNARY | RD_V),                    // SRI
    shift(0, 0x0a, VECTOR_SHIFT),                                  // SHL
    shift(1, 0x0a, VECTOR_SHIFT, UNARY | RD_V),                    // SLI
    shift(1, 0x0c, VECTOR_SHIFT_COMPLEX),                          // SQSHLU
    shift(ALL_U, 0x0e, VECTOR_SHIFT_COMPLEX),                      // SQSHL
    shift(0, 0x10, VECTOR_SHIFT, UNARY | UPPER_HALF),              // SHRN
    shift(1, 0x10, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),      // SQSHRUN
    shift(ALL_U, 0x11, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),  // RSHRN, SQRSHRUN
    shift(ALL_U, 0x12, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),  // SQSHRN
    shift(ALL_U, 0x13, VECTOR_SHIFT_COMPLEX, UNARY | UPPER_HALF),  // SQRSHRN
    shift(ALL_U, 0x14, VECTOR_WIDEN),                              // SSHLL
    shift(ALL_U, 0x1c, INT_TO_FP, UNARY, convert_fixed_point),     // SCVTF
    shift(ALL_U, 0x1f, FP_TO_INT, UNARY, convert_fixed_point),     // FCVTZS
    // by an element
    element(1, 0x0, VECTOR_MUL_ADD, ACCUMULATE1),                       // MLA
    element(1, 0x4, VECTOR_MUL_ADD, ACCUMULATE1),                       // MLS
    element(ALL_U, 0x2, VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),  // SMLAL
    element(0, 0x3, VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),      // SQDMLAL
    element(ALL_U, 0x6, VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),  // SMLSL
    element(0, 0x7, VECTOR_MUL_ADD_LONG, ADDEND_D | ELEMENT_LONG),      // SQDMLSL
    element(0, 0x8, VECTOR_MUL),                                        // MUL
    element(ALL_U, 0xa, VECTOR_MUL_LONG, ELEMENT_LONG),                 // SMULL
    element(0, 0xb, VECTOR_MUL_LONG, ELEMENT_LONG),                     // SQDMULL
    element(0, 0xc, VECTOR_MUL),                                        // SQDMULH
    element(0, 0xd, VECTOR_MUL),                                        // SQRDMULH
    element(0, 0x1, FP_MUL_ADD, ACCUMULATE1, by_element_fp),            // FMLA
    element(0, 0x5, FP_MUL_ADD, ACCUMULATE1, by_element_fp),            // FMLS
    element(ALL_U, 0x9, FP_MUL, UNARY, by_element_fp),                  // FMUL, FMULX
};

}  // namespace

std::span<const Row> vector_rows() { return ROWS; }

}  // namespace perfemu::aarch64
