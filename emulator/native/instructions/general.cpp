#include "instructions/general.hpp"

#include "instructions/exceptions.hpp"

namespace perfemu {
namespace {

constexpr unsigned RAX = 0;

// Of minuend - subtrahend, in 32 bits.
uint64_t flags_of_difference(uint32_t minuend, uint32_t subtrahend) {
    const uint32_t difference = minuend - subtrahend;
    const uint32_t overflow = (minuend ^ subtrahend) & (minuend ^ difference);
    const bool odd = __builtin_parity(difference & 0xff);
    return (minuend < subtrahend ? CARRY : 0) | (odd ? 0 : PARITY) |
           ((minuend ^ subtrahend ^ difference) & 0x10 ? AUXILIARY : 0) | (difference ? 0 : ZERO) |
           (difference >> 31 ? SIGN : 0) | (overflow >> 31 ? OVERFLOW_FLAG : 0);
}

// RAX is not written where the operands are equal; the destination always is.
void compare_and_exchange(const Operands& operands) {
    const auto accumulator = static_cast<uint32_t>(operands.read(RAX));
    const auto found = static_cast<uint32_t>(operands.read_source());
    const bool equal = accumulator == found;
    const uint64_t replacement = equal ? operands.read(operands.reg()) : found;
    if (operands.in_memory())
        operands.store(4, replacement);
    else if (equal)
        operands.write(operands.source_register(), replacement);
    if (!equal) operands.write(RAX, found);
    flags_source(operands.environment()) = flags_of_difference(accumulator, found);
}

// Intel SDM vol. 2, "WRFSBASE/WRGSBASE": #GP for an address that is not canonical.
template <size_t EnvironmentLayout::* BASE>
void write_base(const Operands& operands) {
    constexpr int ADDRESS_BITS = 48;
    const uint64_t base = operands.read(operands.source_register());
    const auto sign = static_cast<int64_t>(base) >> (ADDRESS_BITS - 1);
    if (sign != 0 && sign != -1)
        raise_exception(operands.environment(), Vector8664::PROTECTION, operands.return_address());
    field<uint64_t>(operands.environment(), environment_layout.*BASE) = base;
}

// It may fault as a load does.
void flush_line(const Operands& operands) { operands.load(1); }

constexpr uint8_t ANY_PREFIX = Encoding::NONE | Encoding::P66 | Encoding::F3 | Encoding::F2;

template <size_t EnvironmentLayout::* BASE>
constexpr ExecutedRow base_row(uint8_t group) {
    return {.map = Encoding::MAP_0F,
            .opcode = 0xae,
            .prefixes = Encoding::F3,
            .group = group,
            .form = ExecutedRow::REGISTER,
            .execute = write_base<BASE>};
}
constexpr ExecutedRow ROWS[] = {
    {.map = Encoding::MAP_0F,
     .opcode = 0xb1,
     .prefixes = ANY_PREFIX,
     .widths = ExecutedRow::BITS_32,
     .sets_flags = true,
     .execute = compare_and_exchange},
    {.map = Encoding::MAP_0F,
     .opcode = 0xae,
     .prefixes = Encoding::NONE,
     .group = 7,
     .form = ExecutedRow::MEMORY,
     .execute = flush_line},
    base_row<&EnvironmentLayout::segment_base_fs>(2),
    base_row<&EnvironmentLayout::segment_base_gs>(3),
};

}  // namespace

std::span<const ExecutedRow> general_rows() { return ROWS; }

}  // namespace perfemu
