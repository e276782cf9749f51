// Branches, system instructions, and data processing of general registers.
//
// Dependencies through FPCR and FPSR count only where an instruction names them: cores rename or forward the rounding
// mode and collect the flags without waiting.
#include "aarch64/dataflow.hpp"

namespace perfemu::aarch64 {
namespace {

using namespace effect;
using enum OpClass;
using Flow = InstructionDataflow;

void compare(TimedOp& op, uint32_t word) {
    op.compares = true;
    op.compare_only = rd(word) == ZERO_REGISTER;
}

// Shifts by nothing are none; ADD by LSL up to 4 is cheaper than other shifts on most cores.
void shifted_arithmetic(TimedOp& op, uint32_t word) {
    const uint32_t amount = field(word, 10, 6);
    const bool left = field(word, 22, 2) == 0;
    if (amount == 0)
        op.op_class = ALU;
    else if (left && amount <= 4)
        op.op_class = ALU_LSL;
    if (bit_of(word, 29)) compare(op, word);
}

void shifted_logic(TimedOp& op, uint32_t word) {
    if (field(word, 10, 6) == 0) op.op_class = ALU;
    if (field(word, 29, 2) == 3) compare(op, word);
}

// ORR Rd, XZR, Rm is MOV.
void move(TimedOp& op, uint32_t word) {
    op.op_class = rm(word) == ZERO_REGISTER ? ZERO : MOVE;
    op.eliminable_move = op.op_class == MOVE;
}

void move_wide(TimedOp& op, uint32_t word) {
    if (field(word, 5, 16) == 0) op.op_class = ZERO;
}

// ORR Rd, XZR, #imm is MOV.
void logic_immediate(TimedOp& op, uint32_t word) {
    if (rn(word) == ZERO_REGISTER) op.op_class = CONSTANT;
}

// SXTB ... UXTW: from bit 0 on, as many as a smaller register has.
void extend(TimedOp& op, uint32_t word) {
    const uint32_t first = field(word, 16, 6), last = field(word, 10, 6);
    if (first == 0 && (last == 7 || last == 15 || last == 31)) op.op_class = EXTEND;
}

void extract(TimedOp& op, uint32_t word) {
    if (rn(word) == rm(word)) op.op_class = ROTATE;
}

void multiply_add(TimedOp& op, uint32_t word) {
    const bool wide = bit_of(word, 31) && field(word, 21, 3) == 0, adds = ra(word) != ZERO_REGISTER;
    if (adds)
        op.op_class = wide ? MUL_ADD64 : MUL_ADD32;
    else
        op.op_class = wide ? MUL64 : MUL32;
}

void divide(TimedOp& op, uint32_t word) { op.op_class = bit_of(word, 31) ? DIV64 : DIV32; }

void fuse_with_compare(TimedOp& op, uint32_t) { op.fuses_with_compare = true; }

// To the bit: a word that only looks like a branch is undefined, and must not be taken for a jump to itself.
constexpr Row BRANCHES[] = {
    Row{0xfc000000, 0x14000000, "B", BRANCH}.branches(BranchKind::DIRECT),
    Row{0xfc000000, 0x94000000, "BL", CALL, LINK}.branches(BranchKind::CALL).follows(&Flow::link),
    Row{0xff000010, 0x54000000, "B.cond", BRANCH, FLAGS_IN}
        .branches(BranchKind::CONDITIONAL)
        .adjusted(fuse_with_compare),
    Row{0x7e000000, 0x34000000, "CBZ", BRANCH, RD_X | BY_SF}.branches(BranchKind::CONDITIONAL),  // CBNZ
    Row{0x7e000000, 0x36000000, "TBZ", BRANCH, RD_X | BY_SF}.branches(BranchKind::CONDITIONAL),  // TBNZ
    Row{0xfffffc1f, 0xd65f0000, "RET", RETURN, N_X}.branches(BranchKind::RETURN),
    Row{0xfffffc1f, 0xd63f0000, "BLR", CALL, N_X | LINK}.branches(BranchKind::INDIRECT_CALL).follows(&Flow::link),
    Row{0xfffffc1f, 0xd61f0000, "BR", BRANCH_INDIRECT, N_X}.branches(BranchKind::INDIRECT),
};

constexpr Row SYSTEM_INSTRUCTIONS[] = {
    {0xffe0001f, 0xd4000001, "SVC", SYSTEM, SERIALIZES},
    {0xffe0001f, 0xd4200000, "BRK", SYSTEM, SERIALIZES},
    Row{0xffffffff, 0xd503207f, "WFI", NOP}.changing(CHANGES_MASKS),  // single steps do not reach it
    {0xfffff01f, 0xd503201f, "NOP", NOP},                             // and other hints
    {0xfffff0ff, 0xd503305f, "CLREX", BARRIER},
    Row{0xfffff0ff, 0xd50330bf, "DMB", BARRIER}.fires(Probe::DMB),
    Row{0xfffff0ff, 0xd503309f, "DSB", BARRIER, SERIALIZES}.fires(Probe::DSB),
    Row{0xfffff0ff, 0xd50330df, "ISB", SERIALIZE, SERIALIZES}.fires(Probe::ISB),
    {0xffffffe0, 0xd53b4200, "MRS NZCV", SYSTEM, D_X | FLAGS_IN},
    {0xffffffe0, 0xd51b4200, "MSR NZCV", SYSTEM, RD_X | FLAGS_OUT},
    {0xffffffc0, 0xd53b4400, "MRS FPCR", SYSTEM, D_X | FPCR_IN},  // FPSR
    {0xffffffc0, 0xd51b4400, "MSR FPCR", SYSTEM, RD_X | FPCR_OUT},
    Row{0xffffffe0, 0xd53bd040, "MRS TPIDR_EL0", SYSTEM, D_X}.follows(&Flow::read_thread_pointer),
    Row{0xffffffe0, 0xd51bd040, "MSR TPIDR_EL0", SYSTEM, RD_X}.follows(&Flow::write_thread_pointer),
    {0xfff00000, 0xd5300000, "MRS", SYSTEM, D_X},
    {0xfff00000, 0xd5100000, "MSR", SYSTEM, RD_X},
    // What Linux lets user mode do with caches (SCTLR_EL1.UCI)
    {0xffffffe0, 0xd50b7520, "IC IVAU", SYSTEM, RD_X},
    {0xffffffe0, 0xd50b7a20, "DC CVAC", SYSTEM, RD_X},
    {0xffffffe0, 0xd50b7b20, "DC CVAU", SYSTEM, RD_X},
    // this one may fault in the engine
    Row{0xffffffe0, 0xd50b7c20, "DC CVAP", SYSTEM}.accesses(Addressing::CACHE_LINE).needs(Feature::DCPOP),
    {0xffffffe0, 0xd50b7e20, "DC CIVAC", SYSTEM, RD_X},
};

// What the engine executes where a guest's own kernel does.
constexpr Row KERNEL_INSTRUCTIONS[] = {
    Row{0xffffffff, 0xd69f03e0, "ERET", SYSTEM, SERIALIZES}.of_kernels(CHANGES_LEVEL | CHANGES_MASKS),
    Row{0xfffff000, 0xd5088000, "TLBI", SYSTEM, RD_X | SERIALIZES}.of_kernels(FORGETS_TRANSLATIONS),
    Row{0xfffff000, 0xd5087000, "IC", SYSTEM, RD_X}.of_kernels(),  // DC, AT
    Row{0xffffffdf, 0xd509729f, "BRB IALL", SYSTEM}.of_kernels(),  // INJ; the machine's to answer
    Row{0xfffff0ff, 0xd50040bf, "MSR SPSel", SYSTEM, SERIALIZES}.of_kernels(),
    Row{0xfffff0ff, 0xd500409f, "MSR PAN", SYSTEM, SERIALIZES}.of_kernels(CHANGES_TRANSLATION),
    Row{0xfffff0ff, 0xd500407f, "MSR UAO", SYSTEM, SERIALIZES}.of_kernels(CHANGES_TRANSLATION),
    Row{0xfffff0df, 0xd50340df, "MSR DAIFSet", SYSTEM}.of_kernels(CHANGES_MASKS),  // DAIFClr
};

constexpr Row IMMEDIATES[] = {
    Row{0x1f000000, 0x10000000, "ADR", CONSTANT, D_X}.follows(&Flow::label),                     // ADRP
    Row{0x3f800000, 0x11000000, "ADD", ALU, N_SP | D_SP | BY_SF}.follows(&Flow::add_immediate),  // SUB
    Row{0x3f800000, 0x31000000, "ADDS", ALU, N_SP | D_X | FLAGS_OUT | BY_SF}                     // SUBS
        .adjusted(compare)
        .follows(&Flow::add_immediate),
    Row{0x7f800000, 0x32000000, "ORR", ALU, N_X | D_SP | BY_SF}
        .adjusted(logic_immediate)
        .follows(&Flow::logic_immediate),
    Row{0x7f800000, 0x12000000, "AND", ALU, N_X | D_SP | BY_SF}.follows(&Flow::logic_immediate),
    Row{0x7f800000, 0x52000000, "EOR", ALU, N_X | D_SP | BY_SF}.follows(&Flow::logic_immediate),
    Row{0x7f800000, 0x72000000, "ANDS", ALU, N_X | D_X | FLAGS_OUT | BY_SF}.adjusted(compare).follows(
        &Flow::logic_immediate),
    Row{0x7f800000, 0x72800000, "MOVK", ALU, D_X | RD_X | BY_SF}.follows(&Flow::keep_and_move),
    Row{0x7f800000, 0x12800000, "MOVN", CONSTANT, D_X | BY_SF}.follows(&Flow::move_wide),
    Row{0x7f800000, 0x52800000, "MOVZ", CONSTANT, D_X | BY_SF}.adjusted(move_wide).follows(&Flow::move_wide),
    Row{0x7f800000, 0x33000000, "BFM", BITFIELD, D_X | RD_X | N_X | BY_SF}.follows(&Flow::bit_field),
    Row{0x3f800000, 0x13000000, "SBFM", SHIFT, D_X | N_X | BY_SF}.adjusted(extend).follows(&Flow::bit_field),  // UBFM
    Row{0x7fa00000, 0x13800000, "EXTR", SHIFT_DOUBLE, D_X | N_X | M_X | BY_SF}.adjusted(extract).follows(
        &Flow::extract),
};

constexpr uint32_t BINARY = D_X | N_X | M_X | BY_SF, UNARY = D_X | N_X | BY_SF, TERNARY = BINARY | A_X;

constexpr Row REGISTERS[] = {
    Row{0x7fe0ffe0, 0x2a0003e0, "MOV", MOVE, D_X | M_X | BY_SF}.adjusted(move).follows(&Flow::logic),
    Row{0x7f000000, 0x6a000000, "ANDS", ALU_SHIFTED, BINARY | FLAGS_OUT}
        .adjusted(shifted_logic)
        .follows(&Flow::logic),  // BICS
    Row{0x1f000000, 0x0a000000, "AND", LOGIC_SHIFTED, BINARY}
        .adjusted(shifted_logic)
        .follows(&Flow::logic),  // ORR, EOR ...
    Row{0x3f200000, 0x0b000000, "ADD", ALU_SHIFTED, BINARY}.adjusted(shifted_arithmetic).follows(&Flow::add_shifted),
    Row{0x3f200000, 0x2b000000, "ADDS", ALU_SHIFTED, BINARY | FLAGS_OUT}
        .adjusted(shifted_arithmetic)
        .follows(&Flow::add_shifted),
    Row{0x3fe00000, 0x0b200000, "ADD", ALU_SHIFTED, D_SP | N_SP | M_X | BY_SF}.follows(&Flow::add_extended),
    Row{0x3fe00000, 0x2b200000, "ADDS", ALU_SHIFTED, D_X | N_SP | M_X | FLAGS_OUT | BY_SF}.adjusted(compare).follows(
        &Flow::add_extended),
    {0x3fe0fc00, 0x1a000000, "ADC", ALU_CARRY, BINARY | FLAGS_IN},                      // SBC
    {0x3fe0fc00, 0x3a000000, "ADCS", ALU_CARRY, BINARY | FLAGS_IN | FLAGS_OUT},         // SBCS
    {0x3fe00c10, 0x3a400000, "CCMP", FLAGS, N_X | M_X | FLAGS_IN | FLAGS_OUT | BY_SF},  // CCMN
    {0x3fe00c10, 0x3a400800, "CCMP", FLAGS, N_X | FLAGS_IN | FLAGS_OUT | BY_SF},        // of an immediate
    Row{0x3fe00800, 0x1a800000, "CSEL", SELECT, BINARY | FLAGS_IN}.follows(&Flow::conditional_select),  // CSINC ...
    Row{0x7fe0f800, 0x1ac00800, "UDIV", DIV64, BINARY}.adjusted(divide).follows(&Flow::two_sources),    // SDIV
    Row{0x7fe0f000, 0x1ac02000, "LSLV", SHIFT_VARIABLE, BINARY}.follows(&Flow::two_sources),  // LSRV, ASRV, RORV
    {0x7fe0e000, 0x1ac04000, "CRC32B", CRC, BINARY},                                          // CRC32X, CRC32CB ...
    Row{0x7ffffc00, 0x5ac00000, "RBIT", BIT_REVERSE, UNARY}.follows(&Flow::one_source),
    Row{0x7ffff000, 0x5ac00000, "REV", BYTE_REVERSE, UNARY}.follows(&Flow::one_source),  // REV16, REV32
    Row{0x7ffff800, 0x5ac01000, "CLZ", BIT_COUNT, UNARY}.follows(&Flow::one_source),     // CLS
    Row{0xffe08000, 0x9b400000, "SMULH", MUL_HIGH, D_X | N_X | M_X}.follows(&Flow::multiply),
    Row{0xffe08000, 0x9bc00000, "UMULH", MUL_HIGH, D_X | N_X | M_X}.follows(&Flow::multiply),
    Row{0x7fe00000, 0x1b000000, "MADD", MUL64, TERNARY}.adjusted(multiply_add).follows(&Flow::multiply),  // MSUB
    Row{0xff600000, 0x9b200000, "SMADDL", MUL32, D_X | N_X | M_X | A_X}  // UMADDL, SMSUBL, UMSUBL
        .adjusted(multiply_add)
        .follows(&Flow::multiply),
};

}  // namespace

std::vector<Row> general_rows() {
    std::vector<Row> rows;
    for (std::span<const Row> part :
         {std::span<const Row>(BRANCHES), std::span<const Row>(SYSTEM_INSTRUCTIONS),
          std::span<const Row>(KERNEL_INSTRUCTIONS), std::span<const Row>(IMMEDIATES), std::span<const Row>(REGISTERS)})
        rows.insert(rows.end(), part.begin(), part.end());
    return rows;
}

}  // namespace perfemu::aarch64
