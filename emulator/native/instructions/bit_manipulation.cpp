#include "instructions/bit_manipulation.hpp"

namespace perfemu {
namespace {

// ZF and SF of the result, and CF; OF is clear.
void set_flags(const Operands& operands, uint64_t result, bool carry) {
    const bool negative = result >> (8 * operands.bytes() - 1) & 1;
    flags_source(operands.environment()) = (carry ? CARRY : 0) | (result ? 0 : ZERO) | (negative ? SIGN : 0);
}

uint64_t low_bits(unsigned count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// The low bits of the source, of which the low byte of VEX.vvvv says how many; CF: more than there are.
void zero_high_bits(const Operands& operands) {
    const uint64_t source = operands.read_source();
    const auto count = static_cast<uint8_t>(operands.read(operands.third()));
    const uint64_t result = source & low_bits(count);
    operands.write(operands.reg(), result);
    set_flags(operands, result, count >= 8 * operands.bytes());
}

// From where on, and how many: the low bytes of VEX.vvvv.
void extract_field(const Operands& operands) {
    const uint64_t source = operands.read_source(), control = operands.read(operands.third());
    const auto start = static_cast<uint8_t>(control), count = static_cast<uint8_t>(control >> 8);
    const uint64_t result = start < 64 ? source >> start & low_bits(count) : 0;
    operands.write(operands.reg(), result);
    flags_source(operands.environment()) = result ? 0 : ZERO;
}

// Of the lowest set bit. They write VEX.vvvv.
template <uint64_t COMPUTE(uint64_t), bool CARRY_OF_ZERO>
void change_lowest(const Operands& operands) {
    const uint64_t source = operands.read_source(), all = low_bits(8 * operands.bytes());
    const uint64_t result = COMPUTE(source) & all;
    operands.write(operands.third(), result);
    set_flags(operands, result, (source == 0) == CARRY_OF_ZERO);
}
uint64_t reset(uint64_t source) { return source & (source - 1); }
uint64_t mask_up_to(uint64_t source) { return source ^ (source - 1); }
uint64_t isolate(uint64_t source) { return source & -source; }

// PDEP: the low bits of the second operand go where the third has its bits. PEXT: the other way.
void deposit(const Operands& operands) {
    uint64_t mask = operands.read_source(), result = 0;
    for (uint64_t bits = operands.read(operands.third()); mask; mask &= mask - 1, bits >>= 1)
        if (bits & 1) result |= mask & -mask;
    operands.write(operands.reg(), result);
}
void extract(const Operands& operands) {
    const uint64_t bits = operands.read(operands.third());
    uint64_t mask = operands.read_source(), result = 0;
    for (unsigned at = 0; mask; mask &= mask - 1, at++)
        if (bits & mask & -mask) result |= uint64_t{1} << at;
    operands.write(operands.reg(), result);
}

constexpr ExecutedRow row(uint8_t opcode, Encoding::Prefix prefix, uint8_t group, bool sets_flags, Execute* execute) {
    return {.map = Encoding::MAP_0F38,
            .opcode = opcode,
            .prefixes = prefix,
            .group = group,
            .vex = true,
            .sets_flags = sets_flags,
            .execute = execute};
}
constexpr ExecutedRow ROWS[] = {
    row(0xf3, Encoding::NONE, 1, true, change_lowest<reset, true>),
    row(0xf3, Encoding::NONE, 2, true, change_lowest<mask_up_to, true>),
    row(0xf3, Encoding::NONE, 3, true, change_lowest<isolate, false>),
    row(0xf5, Encoding::NONE, ExecutedRow::ANY_GROUP, true, zero_high_bits),
    row(0xf5, Encoding::F2, ExecutedRow::ANY_GROUP, false, deposit),
    row(0xf5, Encoding::F3, ExecutedRow::ANY_GROUP, false, extract),
    row(0xf7, Encoding::NONE, ExecutedRow::ANY_GROUP, true, extract_field),
};

}  // namespace

std::span<const ExecutedRow> bit_manipulation_rows() { return ROWS; }

}  // namespace perfemu
