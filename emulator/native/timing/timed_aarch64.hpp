// AArch64 for the timing models: rows of encodings, each with the class and the roles of its register fields.
#pragma once

#include <cstdint>
#include <span>

#include "timing/timed_op.hpp"

namespace perfemu::aarch64 {

// What an instruction does with the registers that its fields name: Rd (also Rt) in bits 4:0, Rn in 9:5, Rm in 20:16,
// Ra in 14:10. _X: general, 31 is the zero register; _SP: general, 31 is SP; _V: vector.
namespace role {
static constexpr uint32_t D_X = 1 << 0, D_SP = 1 << 1, D_V = 1 << 2;  // writes Rd
static constexpr uint32_t RD_X = 1 << 3, RD_V = 1 << 4;               // reads Rd
static constexpr uint32_t N_X = 1 << 5, N_SP = 1 << 6, N_V = 1 << 7;  // reads Rn
static constexpr uint32_t M_X = 1 << 8, M_V = 1 << 9;                 // reads Rm
static constexpr uint32_t A_X = 1 << 11, A_V = 1 << 12;  // reads Ra, the addend (none if it is read as a factor, too)
static constexpr uint32_t ADDEND_D = 1 << 13;            // reads Rd (a vector), the addend
static constexpr uint32_t FLAGS_IN = 1 << 14, FLAGS_OUT = 1 << 15;  // NZCV
static constexpr uint32_t FPCR_IN = 1 << 16, FPCR_OUT = 1 << 17;    // FPCR, FPSR, where they are named
static constexpr uint32_t LINK = 1 << 18;                           // writes X30
static constexpr uint32_t BY_SF = 1 << 19, BY_Q = 1 << 20, BY_TYPE = 1 << 21, WIDE = 1 << 22;  // operand width
static constexpr uint32_t UPPER_HALF = 1 << 23;  // with Q, keeps the lower half of Rd
static constexpr uint32_t SERIALIZES = 1 << 24;
}  // namespace role

struct Row {
    uint32_t mask, value;
    OpClass op_class;
    uint32_t roles = 0;
    BranchKind branch = BranchKind::NONE;
    void (*adjust)(TimedOp& op, uint32_t word) = nullptr;  // what other fields change
};

constexpr uint32_t field(uint32_t word, unsigned low, unsigned bits) { return word >> low & ((1U << bits) - 1); }

// Registers that take part are put into the first free places.
template <size_t N>
void add(std::array<uint8_t, N>& places, uint8_t reg) {
    if (reg == timed_register::NONE) return;
    for (uint8_t& place : places) {
        if (place == reg) return;
        if (place == timed_register::NONE) {
            place = reg;
            return;
        }
    }
}

constexpr uint8_t general(uint32_t number) {
    return number == 31 ? timed_register::NONE : static_cast<uint8_t>(timed_register::GENERAL + number);
}
constexpr uint8_t general_or_stack(uint32_t number) {
    return number == 31 ? timed_register::STACK : static_cast<uint8_t>(timed_register::GENERAL + number);
}
constexpr uint8_t vector(uint32_t number) { return static_cast<uint8_t>(timed_register::VECTOR + number % 32); }

// The first row that matches decides.
const Row* find(std::span<const Row> rows, uint32_t word);
void apply(const Row& row, uint32_t word, TimedOp& op);

std::span<const Row> vector_rows();
// Loads and stores; false if the word is none.
bool decode_memory(uint32_t word, TimedOp& op);

}  // namespace perfemu::aarch64
