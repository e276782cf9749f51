// What the micro-operations compute.
#pragma once

#include <bit>
#include <cstdint>

#include "slice/slice.hpp"

namespace perfemu::slice {

// N, Z, C, V from bit 3 down, as A64's NZCV has them in its highest bits.
struct FlagBits {
    bool negative, zero, carry, overflow;
};

inline bool holds(Condition condition, FlagBits flags) {
    switch (condition) {
        case Condition::EQUAL: return flags.zero;
        case Condition::NOT_EQUAL: return !flags.zero;
        case Condition::CARRY_SET: return flags.carry;
        case Condition::CARRY_CLEAR: return !flags.carry;
        case Condition::MINUS: return flags.negative;
        case Condition::PLUS: return !flags.negative;
        case Condition::OVERFLOW_SET: return flags.overflow;
        case Condition::OVERFLOW_CLEAR: return !flags.overflow;
        case Condition::HIGHER: return flags.carry && !flags.zero;
        case Condition::LOWER_OR_SAME: return !flags.carry || flags.zero;
        case Condition::GREATER_OR_EQUAL: return flags.negative == flags.overflow;
        case Condition::LESS: return flags.negative != flags.overflow;
        case Condition::GREATER: return !flags.zero && flags.negative == flags.overflow;
        case Condition::LESS_OR_EQUAL: return flags.zero || flags.negative != flags.overflow;
        case Condition::ALWAYS: return true;
    }
    return true;
}

template <typename Unsigned>
FlagBits flags_of_subtraction(Unsigned a, Unsigned b) {
    constexpr unsigned SIGN = 8 * sizeof(Unsigned) - 1;
    Unsigned difference = a - b;
    return {static_cast<bool>(difference >> SIGN), difference == 0, a >= b,
            static_cast<bool>(((a ^ b) & (a ^ difference)) >> SIGN)};
}

template <typename Unsigned>
FlagBits flags_of_addition(Unsigned a, Unsigned b) {
    constexpr unsigned SIGN = 8 * sizeof(Unsigned) - 1;
    Unsigned sum = a + b;
    return {static_cast<bool>(sum >> SIGN), sum == 0, sum < a, static_cast<bool>((~(a ^ b) & (a ^ sum)) >> SIGN)};
}

template <typename Unsigned>
FlagBits flags_of_and(Unsigned a, Unsigned b) {
    Unsigned both = a & b;
    return {static_cast<bool>(both >> (8 * sizeof(Unsigned) - 1)), both == 0, false, false};
}

template <typename Unsigned, typename Signed>
uint64_t evaluate_in(Operation operation, Condition condition, Unsigned a, Unsigned b) {
    constexpr unsigned BITS = 8 * sizeof(Unsigned);
    auto amount = static_cast<unsigned>(b % BITS);
    auto is = [&](FlagBits flags) -> uint64_t { return holds(condition, flags); };
    switch (operation) {
        case Operation::SHIFT_LEFT: return a << amount;
        case Operation::SHIFT_RIGHT: return a >> amount;
        case Operation::SHIFT_RIGHT_SIGNED: return static_cast<Unsigned>(static_cast<Signed>(a) >> amount);
        case Operation::ROTATE_RIGHT: return std::rotr(a, static_cast<int>(amount));
        case Operation::DIVIDE: return b ? a / b : 0;
        case Operation::DIVIDE_SIGNED:
            if (b == 0) return 0;
            if (static_cast<Signed>(b) == -1) return Unsigned{0} - a;  // also of the lowest number
            return static_cast<Unsigned>(static_cast<Signed>(a) / static_cast<Signed>(b));
        case Operation::COUNT_LEADING_ZEROS: return static_cast<unsigned>(std::countl_zero(a));
        case Operation::REVERSE_BITS: {
            Unsigned reversed = 0;
            for (unsigned i = 0; i < BITS; i++) reversed |= (a >> i & 1) << (BITS - 1 - i);
            return reversed;
        }
        case Operation::REVERSE_BYTES: {
            Unsigned reversed = 0;
            for (unsigned i = 0; i < BITS; i += 8) reversed |= (a >> i & 0xff) << (BITS - 8 - i);
            return reversed;
        }
        case Operation::CONDITION_SUBTRACT: return is(flags_of_subtraction(a, b));
        case Operation::CONDITION_ADD: return is(flags_of_addition(a, b));
        case Operation::CONDITION_AND: return is(flags_of_and(a, b));
        default: return 0;
    }
}

// The operations but for CONDITION_ENTRY and those that touch memory.
inline uint64_t evaluate(Operation operation, Width width, uint8_t left, uint8_t right, Condition condition, uint64_t a,
                         uint64_t b, uint64_t c) {
    __extension__ typedef unsigned __int128 Product;
    __extension__ typedef __int128 SignedProduct;
    uint64_t result = 0;
    switch (operation) {
        case Operation::ADD: result = a + b; break;
        case Operation::SUBTRACT: result = a - b; break;
        case Operation::AND: result = a & b; break;
        case Operation::OR: result = a | b; break;
        case Operation::XOR: result = a ^ b; break;
        case Operation::AND_NOT: result = a & ~b; break;
        case Operation::OR_NOT: result = a | ~b; break;
        case Operation::XOR_NOT: result = a ^ ~b; break;
        case Operation::EXTRACT: result = a << left >> right; break;
        case Operation::EXTRACT_SIGNED: result = static_cast<uint64_t>(static_cast<int64_t>(a << left) >> right); break;
        case Operation::MULTIPLY_ADD: result = a * b + c; break;
        case Operation::MULTIPLY_SUBTRACT: result = c - a * b; break;
        case Operation::MULTIPLY_LONG: return uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b);
        case Operation::MULTIPLY_LONG_SIGNED:
            return static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
        case Operation::MULTIPLY_HIGH: return static_cast<uint64_t>(Product{a} * b >> 64);
        case Operation::MULTIPLY_HIGH_SIGNED:
            return static_cast<uint64_t>(SignedProduct{static_cast<int64_t>(a)} * static_cast<int64_t>(b) >> 64);
        case Operation::SELECT: result = c ? a : b; break;
        default:
            result = width == Width::BITS_64
                         ? evaluate_in<uint64_t, int64_t>(operation, condition, a, b)
                         : evaluate_in<uint32_t, int32_t>(operation, condition, static_cast<uint32_t>(a),
                                                          static_cast<uint32_t>(b));
    }
    return width == Width::BITS_64 ? result : static_cast<uint32_t>(result);
}

}  // namespace perfemu::slice
