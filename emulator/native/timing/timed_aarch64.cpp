// AArch64 instructions as the timing models see them: branches, system and integer instructions.
//
// The rows follow the Arm ARM (DDI 0487), "A64 instruction set encoding". Dependencies through FPCR and FPSR count only
// where an instruction names them: cores rename or forward the rounding mode and collect the flags without waiting.
#include "timing/timed_aarch64.hpp"

#include <algorithm>
#include <cstring>

namespace perfemu {
namespace aarch64 {
namespace {

using namespace role;

void compare(TimedOp& op, uint32_t word) {
    op.compares = true;
    op.compare_only = field(word, 0, 5) == 31;
}

// Shifts by nothing are none; ADD by LSL up to 4 is cheaper than other shifts on most cores.
void shifted_arithmetic(TimedOp& op, uint32_t word) {
    uint32_t amount = field(word, 10, 6);
    bool left = field(word, 22, 2) == 0;
    if (amount == 0)
        op.op_class = OpClass::ALU;
    else if (left && amount <= 4)
        op.op_class = OpClass::ALU_LSL;
    if (field(word, 29, 1)) compare(op, word);
}

void extended_arithmetic(TimedOp& op, uint32_t word) {
    if (field(word, 29, 1)) compare(op, word);
}

void shifted_logic(TimedOp& op, uint32_t word) {
    if (field(word, 10, 6) == 0) op.op_class = OpClass::ALU;
    if (field(word, 29, 2) == 3) compare(op, word);
}

// ORR Rd, XZR, Rm is MOV.
void move(TimedOp& op, uint32_t word) {
    op.op_class = field(word, 16, 5) == 31 ? OpClass::ZERO : OpClass::MOVE;
    op.eliminable_move = op.op_class == OpClass::MOVE;
}

void move_wide(TimedOp& op, uint32_t word) {
    if (field(word, 5, 16) == 0 && field(word, 29, 2) == 2) op.op_class = OpClass::ZERO;
}

// ORR Rd, XZR, #imm is MOV.
void logic_immediate(TimedOp& op, uint32_t word) {
    if (field(word, 5, 5) == 31) op.op_class = OpClass::CONSTANT;
}

// SXTB ... UXTW: from bit 0 on, as many as a smaller register has.
void extend(TimedOp& op, uint32_t word) {
    uint32_t first = field(word, 16, 6), last = field(word, 10, 6);
    if (first == 0 && (last == 7 || last == 15 || last == 31)) op.op_class = OpClass::EXTEND;
}

void extract(TimedOp& op, uint32_t word) {
    if (field(word, 5, 5) == field(word, 16, 5)) op.op_class = OpClass::ROTATE;
}

void conditional_compare(TimedOp& op, uint32_t word) {
    bool immediate = field(word, 11, 1);
    if (!immediate) add(op.sources, general(field(word, 16, 5)));
}

void multiply_add(TimedOp& op, uint32_t word) {
    bool wide = field(word, 31, 1) && field(word, 21, 3) == 0;
    bool adds = field(word, 10, 5) != 31;
    if (!adds)
        op.op_class = wide ? OpClass::MUL64 : OpClass::MUL32;
    else
        op.op_class = wide ? OpClass::MUL_ADD64 : OpClass::MUL_ADD32;
}

void divide(TimedOp& op, uint32_t word) { op.op_class = field(word, 31, 1) ? OpClass::DIV64 : OpClass::DIV32; }

void fuse_with_compare(TimedOp& op, uint32_t) { op.fuses_with_compare = true; }

constexpr Row ROWS[] = {
    // branches
    {0xfc000000, 0x14000000, OpClass::BRANCH, 0, BranchKind::DIRECT},                                 // B
    {0xfc000000, 0x94000000, OpClass::CALL, LINK, BranchKind::CALL},                                  // BL
    {0xff000010, 0x54000000, OpClass::BRANCH, FLAGS_IN, BranchKind::CONDITIONAL, fuse_with_compare},  // B.cond
    {0x7e000000, 0x34000000, OpClass::BRANCH, RD_X | BY_SF, BranchKind::CONDITIONAL},                 // CBZ, CBNZ
    {0x7e000000, 0x36000000, OpClass::BRANCH, RD_X | BY_SF, BranchKind::CONDITIONAL},                 // TBZ, TBNZ
    {0xfffffc1f, 0xd65f0000, OpClass::RETURN, N_X, BranchKind::RETURN},                               // RET
    {0xfffffc1f, 0xd63f0000, OpClass::CALL, N_X | LINK, BranchKind::INDIRECT_CALL},                   // BLR
    {0xfffffc1f, 0xd61f0000, OpClass::BRANCH_INDIRECT, N_X, BranchKind::INDIRECT},                    // BR
    // immediate
    {0x1f000000, 0x10000000, OpClass::CONSTANT, D_X},                                                   // ADR, ADRP
    {0x3f800000, 0x11000000, OpClass::ALU, N_SP | D_SP | BY_SF},                                        // ADD, SUB
    {0x3f800000, 0x31000000, OpClass::ALU, N_SP | D_X | FLAGS_OUT | BY_SF, BranchKind::NONE, compare},  // ADDS, SUBS
    {0x7f800000, 0x32000000, OpClass::ALU, N_X | D_SP | BY_SF, BranchKind::NONE, logic_immediate},      // ORR
    {0x7f800000, 0x12000000, OpClass::ALU, N_X | D_SP | BY_SF},                                         // AND
    {0x7f800000, 0x52000000, OpClass::ALU, N_X | D_SP | BY_SF},                                         // EOR
    {0x7f800000, 0x72000000, OpClass::ALU, N_X | D_X | FLAGS_OUT | BY_SF, BranchKind::NONE, compare},   // ANDS
    {0x7f800000, 0x72800000, OpClass::ALU, D_X | RD_X | BY_SF},                                         // MOVK
    {0x7f800000, 0x12800000, OpClass::CONSTANT, D_X | BY_SF},                                           // MOVN
    {0x7f800000, 0x52800000, OpClass::CONSTANT, D_X | BY_SF, BranchKind::NONE, move_wide},              // MOVZ
    {0x7f800000, 0x33000000, OpClass::BITFIELD, D_X | RD_X | N_X | BY_SF},                              // BFM
    {0x3f800000, 0x13000000, OpClass::SHIFT, D_X | N_X | BY_SF, BranchKind::NONE, extend},              // SBFM, UBFM
    {0x7fa00000, 0x13800000, OpClass::SHIFT_DOUBLE, D_X | N_X | M_X | BY_SF, BranchKind::NONE, extract},
    // register
    {0x7fe0ffe0, 0x2a0003e0, OpClass::MOVE, D_X | M_X | BY_SF, BranchKind::NONE, move},  // MOV
    {0x7f000000, 0x6a000000, OpClass::ALU_SHIFTED, D_X | N_X | M_X | FLAGS_OUT | BY_SF, BranchKind::NONE,
     shifted_logic},  // ANDS
    {0x1f000000, 0x0a000000, OpClass::LOGIC_SHIFTED, D_X | N_X | M_X | BY_SF, BranchKind::NONE,
     shifted_logic},  // AND ...
    {0x3f200000, 0x0b000000, OpClass::ALU_SHIFTED, D_X | N_X | M_X | BY_SF, BranchKind::NONE,
     shifted_arithmetic},  // ADD, SUB
    {0x3f200000, 0x2b000000, OpClass::ALU_SHIFTED, D_X | N_X | M_X | FLAGS_OUT | BY_SF, BranchKind::NONE,
     shifted_arithmetic},                                                       // ADDS
    {0x3fe00000, 0x0b200000, OpClass::ALU_SHIFTED, D_SP | N_SP | M_X | BY_SF},  // ADD
    {0x3fe00000, 0x2b200000, OpClass::ALU_SHIFTED, D_X | N_SP | M_X | FLAGS_OUT | BY_SF, BranchKind::NONE,
     extended_arithmetic},                                                                         // ADDS
    {0x3fe0fc00, 0x1a000000, OpClass::ALU_CARRY, D_X | N_X | M_X | FLAGS_IN | BY_SF},              // ADC
    {0x3fe0fc00, 0x3a000000, OpClass::ALU_CARRY, D_X | N_X | M_X | FLAGS_IN | FLAGS_OUT | BY_SF},  // ADCS
    {0x3fe00410, 0x3a400000, OpClass::FLAGS, N_X | FLAGS_IN | FLAGS_OUT | BY_SF, BranchKind::NONE,
     conditional_compare},                                                          // CCMP
    {0x3fe00800, 0x1a800000, OpClass::SELECT, D_X | N_X | M_X | FLAGS_IN | BY_SF},  // CSEL
    {0x7fe0f800, 0x1ac00800, OpClass::DIV64, D_X | N_X | M_X | BY_SF, BranchKind::NONE, divide},
    {0x7fe0f000, 0x1ac02000, OpClass::SHIFT_VARIABLE, D_X | N_X | M_X | BY_SF},  // LSLV
    {0x7fe0e000, 0x1ac04000, OpClass::CRC, D_X | N_X | M_X | BY_SF},             // CRC32
    {0x7ffffc00, 0x5ac00000, OpClass::BIT_REVERSE, D_X | N_X | BY_SF},           // RBIT
    {0x7ffff000, 0x5ac00000, OpClass::BYTE_REVERSE, D_X | N_X | BY_SF},          // REV
    {0x7ffff800, 0x5ac01000, OpClass::BIT_COUNT, D_X | N_X | BY_SF},             // CLZ, CLS
    {0xffe08000, 0x9b400000, OpClass::MUL_HIGH, D_X | N_X | M_X},                // SMULH
    {0xffe08000, 0x9bc00000, OpClass::MUL_HIGH, D_X | N_X | M_X},                // UMULH
    {0x7fe00000, 0x1b000000, OpClass::MUL64, D_X | N_X | M_X | A_X | BY_SF, BranchKind::NONE, multiply_add},  // MADD
    {0xff600000, 0x9b200000, OpClass::MUL32, D_X | N_X | M_X | A_X, BranchKind::NONE, multiply_add},          // SMADDL
    // system
    {0xfffff01f, 0xd503201f, OpClass::NOP},                       // NOP and other hints
    {0xfffff0ff, 0xd503305f, OpClass::BARRIER},                   // CLREX
    {0xfffff0ff, 0xd50330bf, OpClass::BARRIER},                   // DMB
    {0xfffff0ff, 0xd503309f, OpClass::BARRIER, SERIALIZES},       // DSB
    {0xfffff0ff, 0xd50330df, OpClass::SERIALIZE, SERIALIZES},     // ISB
    {0xffffffe0, 0xd53b4200, OpClass::SYSTEM, D_X | FLAGS_IN},    // MRS NZCV
    {0xffffffe0, 0xd51b4200, OpClass::SYSTEM, RD_X | FLAGS_OUT},  // MSR NZCV
    {0xffffffc0, 0xd53b4400, OpClass::SYSTEM, D_X | FPCR_IN},     // MRS FPCR, FPSR
    {0xffffffc0, 0xd51b4400, OpClass::SYSTEM, RD_X | FPCR_OUT},   // MSR FPCR, FPSR
    {0xfff00000, 0xd5300000, OpClass::SYSTEM, D_X},               // MRS
    {0xfff00000, 0xd5100000, OpClass::SYSTEM, RD_X},              // MSR
    {0xfff80000, 0xd5280000, OpClass::SYSTEM, D_X},               // SYSL
    {0xfff80000, 0xd5080000, OpClass::SYSTEM, RD_X},              // SYS: IC, DC, AT
    {0xff000000, 0xd4000000, OpClass::SYSTEM, SERIALIZES},        // SVC, BRK, HLT
};

uint8_t operand_width(uint32_t roles, uint32_t word) {
    if (roles & WIDE) return 16;
    if (roles & BY_SF) return field(word, 31, 1) ? 8 : 4;
    bool scalar = field(word, 28, 1);
    if (roles & BY_Q && !scalar) return field(word, 30, 1) ? 16 : 8;
    if (roles & (BY_TYPE | BY_Q)) return field(word, 22, 1) ? 8 : 4;
    return 8;
}

}  // namespace

const Row* find(std::span<const Row> rows, uint32_t word) {
    for (const Row& row : rows)
        if ((word & row.mask) == row.value) return &row;
    return nullptr;
}

void apply(const Row& row, uint32_t word, TimedOp& op) {
    using timed_register::NONE;
    uint32_t roles = row.roles, d = field(word, 0, 5), n = field(word, 5, 5), m = field(word, 16, 5),
             a = field(word, 10, 5);
    op.op_class = row.op_class;
    op.branch = row.branch;
    op.width_bytes = operand_width(roles, word);
    op.serializes = roles & SERIALIZES;
    if (roles & N_X) add(op.sources, general(n));
    if (roles & N_SP) add(op.sources, general_or_stack(n));
    if (roles & N_V) add(op.sources, vector(n));
    if (roles & M_X) add(op.sources, general(m));
    if (roles & M_V) add(op.sources, vector(m));
    uint8_t addend = roles & A_X ? general(a) : roles & A_V ? vector(a) : roles & ADDEND_D ? vector(d) : NONE;
    if (std::ranges::find(op.sources, addend) == op.sources.end()) op.accumulator = addend;
    add(op.sources, addend);
    if (roles & RD_X) add(op.sources, general(d));
    if (roles & RD_V || (roles & UPPER_HALF && field(word, 30, 1))) add(op.sources, vector(d));
    if (roles & FLAGS_IN) add(op.sources, timed_register::FLAGS);
    if (roles & FPCR_IN) add(op.sources, timed_register::FP_CONTROL);
    if (roles & D_X) add(op.destinations, general(d));
    if (roles & D_SP) add(op.destinations, general_or_stack(d));
    if (roles & D_V) add(op.destinations, vector(d));
    if (roles & LINK) add(op.destinations, general(30));
    if (roles & FLAGS_OUT) add(op.destinations, timed_register::FLAGS);
    if (roles & FPCR_OUT) add(op.destinations, timed_register::FP_CONTROL);
    if (row.adjust) row.adjust(op, word);
}

namespace {

class Decoder final : public TimedDecoder {
  public:
    std::vector<TimedOp> decode(uint64_t, std::span<const uint8_t> bytes) override {
        std::vector<TimedOp> ops(bytes.size() / 4);
        for (size_t i = 0; i < ops.size(); i++) {
            uint32_t word;
            std::memcpy(&word, bytes.data() + 4 * i, 4);
            ops[i].offset = static_cast<uint16_t>(4 * i);
            ops[i].length = 4;
            decode_one(word, ops[i]);
        }
        return ops;
    }

  private:
    static void decode_one(uint32_t word, TimedOp& op) {
        constexpr uint32_t MEMORY_MASK = 0x0a000000, MEMORY = 0x08000000, VECTOR_MASK = 0x0e000000, VECTOR = 0x0e000000;
        constexpr uint32_t ZERO_MASK = 0xffffffe0, DC_ZVA = 0xd50b7420;
        op.op_class = OpClass::SYSTEM;
        if ((word & ZERO_MASK) == DC_ZVA) {
            op.op_class = OpClass::NONE;
            op.stores = true;
            add(op.address_sources, general(field(word, 0, 5)));
        } else if ((word & MEMORY_MASK) == MEMORY) {
            decode_memory(word, op);
        } else if (const Row* row = find((word & VECTOR_MASK) == VECTOR ? vector_rows() : ROWS, word)) {
            apply(*row, word, op);
        }
    }
};

}  // namespace
}  // namespace aarch64

std::unique_ptr<TimedDecoder> make_timed_aarch64() { return std::make_unique<aarch64::Decoder>(); }

}  // namespace perfemu
