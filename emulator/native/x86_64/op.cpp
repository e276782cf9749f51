#include "x86_64/op.hpp"

#include <algorithm>

#include "x86_64/row.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr ProbeMask RETIRED = mask(Probe::INST_RETIRED, Probe::CYCLES);

ProbeMask branch_probes(const Row& row, const Operands& operands) {
    constexpr ProbeMask TRANSFER = mask(Probe::BR_RETIRED, Probe::BR_TAKEN);
    const bool direct = operands.count() && operands[0].is_immediate();
    const ProbeMask target = bit(direct ? Probe::BR_IMMED : Probe::BR_INDIRECT);
    const bool conditional = row.op_class == OpClass::BRANCH_COUNT || row.has(effect::BY_CONDITION);
    switch (row.op_class) {
        case OpClass::BRANCH_COUNT:
        case OpClass::BRANCH:
            return conditional ? mask(Probe::BR_RETIRED, Probe::BR_COND, Probe::BR_IMMED) : TRANSFER | target;
        case OpClass::CALL: return TRANSFER | target | bit(Probe::BR_CALL);
        case OpClass::RETURN: return TRANSFER | bit(Probe::BR_RETURN);
        default: return row.has(effect::TRANSFERS) ? TRANSFER : 0;
    }
}

// None for moves and the like.
ProbeMask operation_probes(const Row& row) {
    switch (row.op_class) {
        case OpClass::BARRIER: return bit(Probe::DSB);
        case OpClass::DIV32: return mask(Probe::INT_OP, Probe::DIV_OP);
        case OpClass::MUL32:
        case OpClass::MUL_HIGH: return mask(Probe::INT_OP, Probe::MUL_OP);
        case OpClass::AES:
        case OpClass::AES_KEY:
        case OpClass::AES_MIX:
        case OpClass::CARRYLESS_MUL: return bit(Probe::CRYPTO_OP);
        default: break;
    }
    if (row.has(effect::ON_X87)) return bit(Probe::FP_OP);
    return row.has(effect::ON_VECTORS) ? bit(Probe::SIMD_OP) : 0;
}

// Intel SDM vol. 2, "MOV - Move to/from Control Registers".
bool no_control_register(const Instruction& insn) {
    static constexpr unsigned EXISTING[] = {0, 2, 3, 4, 8};
    const bool control = insn.map == OpcodeMap::TWO_BYTE && (insn.opcode == 0x20 || insn.opcode == 0x22);
    return control && std::find(std::begin(EXISTING), std::end(EXISTING), insn.reg()) == std::end(EXISTING);
}

Trap trap(const Instruction& insn, const Operands& operands, const Directions& memory) {
    constexpr uint8_t INT = 0xcd;
    constexpr int64_t BREAKPOINT_VECTOR = 3;
    const Row& row = *insn.row;
    // Intel SDM vol. 2, LOCK.
    const bool may_lock = row.has(effect::LOCKABLE) && memory.stores;
    if ((insn.locked && !may_lock) || no_control_register(insn)) return Trap::UNDEFINED;
    // The gates of other vectors are the kernel's own, or there are none: a general protection fault.
    const bool interrupts = insn.map == OpcodeMap::ONE_BYTE && insn.opcode == INT;
    if (interrupts && operands[0].immediate != BREAKPOINT_VECTOR) return Trap::PRIVILEGED;
    return row.trap;
}

}  // namespace

Op read_op(std::span<const uint8_t> bytes) { return op_of(read_instruction(bytes), bytes.size()); }

Op op_of(const Instruction& insn, size_t bytes) {
    if (!insn.row)
        return {
            .probes = RETIRED, .length = static_cast<uint8_t>(std::min<size_t>(bytes, 255)), .trap = Trap::UNDEFINED};
    const Row& row = *insn.row;
    const Operands operands(insn);
    const Directions memory = directions(row, operands);
    const ProbeMask accesses =
        (memory.loads ? bit(Probe::LOAD) : 0) | (memory.stores ? bit(Probe::STORE) : ProbeMask{0});

    Op op{
        .probes = RETIRED | branch_probes(row, operands), .length = insn.length, .trap = trap(insn, operands, memory)};
    op.conditional = op.probes & bit(Probe::BR_COND);
    if (row.op_class == OpClass::STRING && insn.repeat) {
        op.repeated = true;
        op.iteration_probes = accesses;
        op.repeat_may_end_early = row.has(effect::FLAGS_OUT);
        op.address_32 = insn.address_32;
        op.address_16 = insn.address_16;
        return op;
    }
    op.probes |= accesses;
    op.updates_memory = memory.updates;
    if (row.has(effect::PREFETCHES)) op.probes |= bit(Probe::SOFTWARE_PREFETCH);
    if (const ProbeMask operation = operation_probes(row))
        op.probes |= operation;
    else if (!(op.probes & bit(Probe::BR_RETIRED)))
        op.probes |= bit(Probe::INT_OP);
    if (row.has(effect::ON_VECTORS)) op.raises |= RAISES_ON_VECTORS | RAISES_UNALIGNED;
    // What sets MXCSR refuses reserved bits, and decides what those behind it raise.
    const bool sets_control = row.has(effect::CONTROL_OUT);
    if (op.probes & mask(Probe::DIV_OP, Probe::FP_OP) || sets_control) op.raises |= RAISES_BY_VALUES;
    const bool exchanges = row.op_class == OpClass::EXCHANGE && operands.in_memory();
    if (insn.locked || exchanges) op.probes |= bit(Probe::LOCKED);
    op.writes_trace = row.has(effect::WRITES_TRACE);
    op.pushes_flags = row.op_class == OpClass::FLAGS && row.has(effect::STORES);
    return op;
}

}  // namespace perfemu::x86_64
