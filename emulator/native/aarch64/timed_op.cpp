// A64 as the timing models see it.
#include <algorithm>
#include <cstring>

#include "aarch64/memory_operand.hpp"
#include "aarch64/row.hpp"

namespace perfemu {
namespace aarch64 {
namespace {

using timed_register::NONE;

// Registers that take part are put into the first free places.
template <size_t N>
void add(std::array<uint8_t, N>& places, uint8_t reg) {
    if (reg == NONE) return;
    for (uint8_t& place : places) {
        if (place == reg) return;
        if (place == NONE) {
            place = reg;
            return;
        }
    }
}

uint8_t general(uint32_t number) {
    return number == ZERO_REGISTER ? NONE : static_cast<uint8_t>(timed_register::GENERAL + number);
}
uint8_t general_or_stack(uint32_t number) {
    return number == ZERO_REGISTER ? timed_register::STACK : static_cast<uint8_t>(timed_register::GENERAL + number);
}
uint8_t vector(uint32_t number) { return static_cast<uint8_t>(timed_register::VECTOR + number % 32); }

uint8_t operand_width(const Row& row, uint32_t word) {
    using namespace effect;
    const bool scalar = bit_of(word, 28);
    if (row.has(WIDE)) return 16;
    if (row.has(BY_SF)) return bit_of(word, 31) ? 8 : 4;
    if (row.has(BY_Q) && !scalar) return bit_of(word, 30) ? 16 : 8;
    if (row.has(BY_TYPE | BY_Q)) return row.feature != Feature::FP16 && bit_of(word, 22) ? 8 : 4;
    return 8;
}

void read_registers(const Row& row, uint32_t word, TimedOp& op) {
    using namespace effect;
    const uint32_t d = rd(word), n = rn(word), m = rm(word), a = ra(word);
    if (row.has(N_X)) add(op.sources, general(n));
    if (row.has(N_SP)) add(op.sources, general_or_stack(n));
    if (row.has(N_V)) add(op.sources, vector(n));
    if (row.has(M_X)) add(op.sources, general(m));
    if (row.has(M_V)) add(op.sources, vector(m));
    const uint8_t addend = row.has(A_X) ? general(a) : row.has(A_V) ? vector(a) : row.has(ADDEND_D) ? vector(d) : NONE;
    if (std::ranges::find(op.sources, addend) == op.sources.end()) op.accumulator = addend;
    add(op.sources, addend);
    if (row.has(RD_X)) add(op.sources, general(d));
    const bool keeps_half = row.has(UPPER_HALF) && bit_of(word, 30);
    if (row.has(RD_V) || keeps_half) add(op.sources, vector(d));
    if (row.has(FLAGS_IN)) add(op.sources, timed_register::FLAGS);
    if (row.has(FPCR_IN)) add(op.sources, timed_register::FP_CONTROL);
}

void write_registers(const Row& row, uint32_t word, TimedOp& op) {
    using namespace effect;
    if (row.has(D_X)) add(op.destinations, general(rd(word)));
    if (row.has(D_SP)) add(op.destinations, general_or_stack(rd(word)));
    if (row.has(D_V)) add(op.destinations, vector(rd(word)));
    if (row.has(LINK)) add(op.destinations, general(LINK_REGISTER));
    if (row.has(FLAGS_OUT)) add(op.destinations, timed_register::FLAGS);
    if (row.has(FPCR_OUT)) add(op.destinations, timed_register::FP_CONTROL);
}

void add_address_sources(const Row& row, const MemoryOperand& operand, TimedOp& op) {
    if (row.addressing == Addressing::LITERAL) return;
    const bool zero_based = row.addressing == Addressing::CACHE_LINE;
    const uint8_t base = zero_based ? general(operand.base) : general_or_stack(operand.base);
    add(op.address_sources, base);
    if (operand.writes_back) op.write_back = base;
    if (operand.indexed || operand.steps_by_register) add(op.address_sources, general(operand.index));
    op.complex_address = operand.indexed && (operand.shift == 1 || operand.shift == 4);
}

void access_memory(const Row& row, uint32_t word, TimedOp& op) {
    const MemoryOperand operand = memory_operand(row, word);
    auto numbered = [&operand](uint8_t number) { return operand.vector ? vector(number) : general(number); };
    op.loads = row.has(effect::LOADS);
    op.stores = row.has(effect::STORES);
    op.prefetches = row.has(effect::PREFETCHES);
    op.width_bytes = operand.result_bytes;
    op.lanes_loaded = op.loads ? operand.lanes : 1;
    add_address_sources(row, operand, op);
    for (uint8_t number : operand.stored) add(op.sources, numbered(number));
    if (row.has(effect::MERGES))
        for (uint8_t number : operand.loaded) add(op.sources, numbered(number));
    for (uint8_t number : operand.loaded) add(op.destinations, numbered(number));
    add(op.destinations, general(operand.status));
}

void read(uint32_t word, TimedOp& op) {
    const Row* row = row_of(word);
    op.op_class = row ? row->op_class : OpClass::SYSTEM;
    if (!row) return;
    op.branch = row->branch;
    op.width_bytes = operand_width(*row, word);
    op.serializes = row->has(effect::SERIALIZES);
    read_registers(*row, word, op);
    write_registers(*row, word, op);
    if (row->addressing != Addressing::NONE) access_memory(*row, word, op);
    if (row->adjust) row->adjust(op, word);
}

class Decoder final : public TimedDecoder {
  public:
    std::vector<TimedOp> decode(uint64_t, std::span<const uint8_t> bytes) override {
        std::vector<TimedOp> ops(bytes.size() / sizeof(uint32_t));
        for (size_t i = 0; i < ops.size(); i++) {
            uint32_t word;
            std::memcpy(&word, bytes.data() + sizeof word * i, sizeof word);
            ops[i].offset = static_cast<uint16_t>(sizeof word * i);
            ops[i].length = sizeof word;
            read(word, ops[i]);
        }
        return ops;
    }
};

}  // namespace
}  // namespace aarch64

std::unique_ptr<TimedDecoder> make_timed_aarch64() { return std::make_unique<aarch64::Decoder>(); }

}  // namespace perfemu
