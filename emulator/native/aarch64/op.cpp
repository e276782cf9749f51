#include "aarch64/op.hpp"

#include <algorithm>
#include <array>

#include "aarch64/system_register.hpp"

namespace perfemu::aarch64 {
namespace {

constexpr ProbeMask RETIRED = mask(Probe::INST_RETIRED, Probe::CYCLES);

// System registers that user mode reaches in the engine itself; all others are for the machine to answer.
constexpr uint16_t encode(uint32_t op0, uint32_t op1, uint32_t crn, uint32_t crm, uint32_t op2) {
    return SystemRegister{op0, op1, crn, crm, op2}.encoding();
}
constexpr std::array EXECUTED_REGISTERS = {
    encode(3, 3, 13, 0, 2),  // TPIDR_EL0
    encode(3, 3, 13, 0, 3),  // TPIDRRO_EL0
    encode(3, 3, 4, 2, 0),   // NZCV
    encode(3, 3, 4, 4, 0),   // FPCR
    encode(3, 3, 4, 4, 1),   // FPSR
    encode(3, 3, 0, 0, 1),   // CTR_EL0
    encode(3, 3, 0, 0, 7),   // DCZID_EL0
};

ProbeMask branch_probes(BranchKind kind) {
    constexpr ProbeMask TRANSFER = mask(Probe::BR_RETIRED, Probe::BR_TAKEN);
    switch (kind) {
        case BranchKind::NONE: return 0;
        case BranchKind::CONDITIONAL: return mask(Probe::BR_RETIRED, Probe::BR_COND, Probe::BR_IMMED);
        case BranchKind::DIRECT: return TRANSFER | bit(Probe::BR_IMMED);
        case BranchKind::CALL: return TRANSFER | mask(Probe::BR_IMMED, Probe::BR_CALL);
        case BranchKind::INDIRECT: return TRANSFER | bit(Probe::BR_INDIRECT);
        case BranchKind::INDIRECT_CALL: return TRANSFER | mask(Probe::BR_INDIRECT, Probe::BR_CALL);
        case BranchKind::RETURN: return TRANSFER | bit(Probe::BR_RETURN);
    }
    return 0;
}

// By the encoding's group: Arm ARM DDI 0487, "A64 Instruction Set Encoding".
ProbeMask group_probes(uint32_t encoding) {
    const bool scalar_floating_point = (encoding & 0x5e000000) == 0x1e000000;
    const bool vector = (encoding & 0x0e000000) == 0x0e000000;
    const bool immediate = (encoding & 0x1c000000) == 0x10000000, registers = (encoding & 0x0e000000) == 0x0a000000;
    if (scalar_floating_point) return bit(Probe::FP_OP);
    if (vector) return bit(Probe::SIMD_OP);
    return immediate || registers ? bit(Probe::INT_OP) : ProbeMask{0};
}

// None for loads, stores, branches and system instructions.
ProbeMask operation_probes(const Row& row) {
    switch (row.op_class) {
        case OpClass::AES:
        case OpClass::AES_MIX:
        case OpClass::SHA1:
        case OpClass::SHA256:
        case OpClass::SHA_SCHEDULE: return bit(Probe::CRYPTO_OP);
        case OpClass::DIV64: return mask(Probe::INT_OP, Probe::DIV_OP);
        case OpClass::MUL32:
        case OpClass::MUL64:
        case OpClass::MUL_HIGH: return mask(Probe::INT_OP, Probe::MUL_OP);
        default: return group_probes(row.value);
    }
}

void trap_system_register(Op& op, uint32_t word, Level level) {
    constexpr uint32_t MASK = 0xffd00000, MOVE = 0xd5100000;                           // 1101 0101 00 L 1 o0 ...
    constexpr uint32_t BRANCH_RECORDS_MASK = 0xffffffdf, BRANCH_RECORDS = 0xd509729f;  // SYS #1, C7, C2, #4 and #5
    constexpr unsigned READS_BIT = 21;
    if ((word & BRANCH_RECORDS_MASK) == BRANCH_RECORDS && level == Level::KERNEL) {
        op.trap_register = static_cast<int8_t>(rd(word));
        op.trap = Trap::MSR;
        op.trap_encoding = static_cast<uint16_t>(field(word, 5, 15));
    }
    if ((word & MASK) != MOVE) return;
    const auto encoding = static_cast<uint16_t>(field(word, 5, 15) | 1 << 15);
    if (std::ranges::find(EXECUTED_REGISTERS, encoding) != EXECUTED_REGISTERS.end()) return;
    const bool reads = bit_of(word, READS_BIT);
    op.trap_register = static_cast<int8_t>(rd(word));
    if (const KernelRegister* reg = level == Level::KERNEL ? kernel_register(encoding) : nullptr) {
        if (!reads) op.changes = reg->changes;
        op.shows_masks = reads && encoding == DAIF.encoding();
        return;
    }
    op.trap = reads ? Trap::MRS : Trap::MSR;
    op.trap_encoding = encoding;
}

// LDTR, STTR and the like: Arm ARM DDI 0487, "Load/store register (unprivileged)".
bool acts_for_user(uint32_t word) { return (word & 0x3b200c00) == 0x38000800; }

// "Instructions with register argument", IC, DC and AT of them, and MRS of what identifies the caches: SCTLR_EL1.UCI,
// UCT and DZE let user mode.
bool is_of_caches(uint32_t word) {
    constexpr uint32_t SYS_CRN_7 = 0xd5087000, MRS_CTR_EL0 = 0xd53b0020, MRS_DCZID_EL0 = 0xd53b00e0;
    return (word & 0xfff8f000) == SYS_CRN_7 || (word & ~31U) == MRS_CTR_EL0 || (word & ~31U) == MRS_DCZID_EL0;
}

// "Load/store exclusive", ordered, compare and swap; "Atomic memory operations".
bool wants_alignment(uint32_t word) { return (word & 0x3f000000) == 0x08000000 || (word & 0x3b200c00) == 0x38200000; }

// "Data Processing -- Scalar Floating-Point and Advanced SIMD", loads and stores with V set, FPCR and FPSR:
// CPACR_EL1.FPEN.
bool uses_vectors(uint32_t word) {
    const bool moves_control = (word & 0xffdfffc0) == 0xd51b4400;
    return (word & 0x0e000000) == 0x0e000000 || (word & 0x0e000000) == 0x0c000000 || moves_control;
}

uint8_t raises(uint32_t word, Level level) {
    uint8_t raises = 0;
    if (level == Level::USER && is_of_caches(word)) raises |= RAISES_IN_USER_MODE;
    if (wants_alignment(word)) raises |= RAISES_UNALIGNED;
    if (uses_vectors(word)) raises |= RAISES_ON_VECTORS;
    return raises;
}

}  // namespace

Op read_op(uint32_t word, Features features, Level level) {
    Op op{.probes = RETIRED, .length = sizeof word};
    const Row* row = row_of(word);
    if (!row || !(features & bit(row->feature)) || (row->kernel_only && level == Level::USER)) {
        op.trap = Trap::UNDEFINED;
        return op;
    }
    op.probes |= row->probes | branch_probes(row->branch) | operation_probes(*row);
    if (row->has(effect::LOADS)) op.probes |= perfemu::bit(Probe::LOAD);
    if (row->has(effect::STORES)) op.probes |= perfemu::bit(Probe::STORE);
    op.conditional = row->branch == BranchKind::CONDITIONAL;
    op.changes = row->changes;
    op.acts_for_user = level == Level::KERNEL && acts_for_user(word);
    op.raises = raises(word, level);
    trap_system_register(op, word, level);
    return op;
}

}  // namespace perfemu::aarch64
