// What an instruction is about to access, for whoever watches data: by the tables' rows, as the registers are now.
#include "x86_64/dataflow.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr unsigned MOST_NESTED = 32, ALL_GENERAL = 8;

// Of the stack: how many values the instruction moves.
unsigned stacked(const Instruction& insn) {
    constexpr uint8_t PUSHA = 0x60, POPA = 0x61, ENTER = 0xc8;
    if (insn.map != OpcodeMap::ONE_BYTE) return 1;
    if (insn.opcode == PUSHA || insn.opcode == POPA) return ALL_GENERAL;
    return insn.opcode == ENTER ? 1 + (insn.second_immediate & (MOST_NESTED - 1)) : 1;
}

}  // namespace

// A bit test of memory goes as far as its register says, by whole operands.
uint64_t Processor::bit_test_offset(const Operands& operands) const {
    const bool tests = insn_->row->dataflow == &InstructionDataflow::bit_test && operands[1].is_register();
    if (!tests) return 0;
    const unsigned bytes = insn_->operand_size(), bits = 8 * bytes;
    const uint64_t index = general(insn_->reg(), bytes) << (64 - bits);
    const int64_t whole = (static_cast<int64_t>(index) >> (64 - bits)) & -int64_t{bits};
    return static_cast<uint64_t>(whole / 8);
}

// Nothing is said of what this processor executes itself. A vector is as long as the engine accesses it.
std::vector<DataAccess> Processor::data_accesses(const Instruction& insn) {
    insn_ = &insn;
    std::vector<DataAccess> found;
    if (!insn.row) return found;
    const Row& row = *insn.row;
    const Operands operands(insn);
    const auto add = [&](uint64_t address, uint64_t bytes, uint8_t kinds) {
        found.push_back({.address = address, .bytes = bytes, .kinds = kinds});
    };
    const bool stores = row.has(effect::STORES), moves_stack = row.has(effect::STACK);
    const unsigned stack_bytes = moves_stack ? stacked(insn) * insn.stack_size() : 0;
    for (unsigned i = 0; i < operands.count(); i++) {
        const Operand& operand = operands[i];
        if (!operand.is_memory() || row.form == Form::ADDRESS) continue;
        if (operand.is_string()) {
            if (has_no_iteration()) continue;
            const bool written = stores && operand.method == AddressingMethod::DESTINATION;
            add(linear_address(operand), operand.size, written ? WRITE : READ);
        } else if (row.form != Form::IMPLICIT) {
            const bool written = i < row.written(), read = !written || row.updates();
            const bool pops = moves_stack && !stores && insn.base() == RSP;  // whose address is of the stack behind it
            add(linear_address(operand) + bit_test_offset(operands) + (pops ? stack_bytes : 0), operand.size,
                static_cast<uint8_t>((read ? READ : 0) | (written ? WRITE : 0)));
        }
    }
    const uint64_t pointer = registers_.general(RSP);
    const Operand by_registers{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::DESTINATION};
    if (moves_stack)
        add(state_.stack_at(stores ? pointer - stack_bytes : pointer), stack_bytes, stores ? WRITE : READ);
    else if (row.dataflow == &InstructionDataflow::leave)
        add(state_.stack_at(registers_.general(RBP)), insn.stack_size(), READ);
    else if (row.dataflow == &InstructionDataflow::table_lookup)
        add(table_entry(), 1, READ);
    else if (found.empty() && stores && row.has(effect::DESTINATION_INDEX))  // masked
        add(linear_address(by_registers), insn.operand_16 ? 16 : 8, WRITE);
    return found;
}

// XLATB's.
uint64_t Processor::table_entry() const {
    const unsigned width = insn_->address_16 ? 2 : insn_->address_32 ? 4 : 8;
    const uint64_t offset = general(RBX, width) + (registers_.general(RAX) & 0xff);
    const unsigned segment = segment_of({.kind = Operand::Kind::MEMORY, .method = AddressingMethod::SOURCE});
    if (in_64()) return offset + (segment >= FS ? registers_.base(segment) : 0);
    return static_cast<uint32_t>(offset + state_.segments[segment].base);
}

}  // namespace perfemu::x86_64
