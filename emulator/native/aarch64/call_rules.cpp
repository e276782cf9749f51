#include "aarch64/call_rules.hpp"

#include <cstring>

#include "ops/branch_kind.hpp"
#include "slice/slice.hpp"

namespace perfemu::aarch64 {

namespace {

constexpr uint32_t BR_X30 = 0xD61F03C0;

uint32_t word_of(std::span<const uint8_t> code) {
    uint32_t word;
    std::memcpy(&word, code.data(), sizeof word);
    return word;
}

// MOV and ADD (extended register) that write SP, where it does not come from X29.
bool sets_stack_pointer(uint32_t word) {
    constexpr uint32_t SP = 31, FP = 29;
    const uint32_t from = word >> 5 & 31, into = word & 31;
    if (into != SP) return false;
    if ((word & 0xFFFFFC00) == 0x91000000) return from != SP && from != FP;  // ADD SP, Xn, #0
    return (word & 0xFFE00000) == 0x8B200000;
}

}  // namespace

uint8_t CallRules::stack_pointer() const { return slice::A64_STACK; }

Transfer CallRules::transfer(const Op& op, std::span<const uint8_t> code) const {
    switch (branch_kind(op.probes)) {
        case BranchKind::CALL:
        case BranchKind::INDIRECT_CALL: return Transfer::CALL;
        case BranchKind::RETURN: return Transfer::RETURN;
        case BranchKind::INDIRECT: return word_of(code) == BR_X30 ? Transfer::RETURN : Transfer::JUMP;
        case BranchKind::NONE: return sets_stack_pointer(word_of(code)) ? Transfer::MOVES_STACK : Transfer::NONE;
        default: return Transfer::NONE;
    }
}

Transfer CallRules::transfer_of_block(Transfer last, bool moves_stack, bool) const {
    if (last == Transfer::CALL || last == Transfer::RETURN) return last;
    if (!moves_stack) return Transfer::NONE;
    return last == Transfer::JUMP ? Transfer::LEAVES_STACK : Transfer::MOVES_STACK;
}

bool CallRules::awaits_jump_behind(const Op& op) const { return !leaves(op.transfer); }

// BL, BLR and BLRA*.
bool CallRules::ends_with_call(std::span<const uint8_t> code) const {
    const uint32_t word = word_of(code.last(sizeof word));
    return word >> 26 == 0b100101 || (word & 0xFEFFF000) == 0xD63F0000;
}

}  // namespace perfemu::aarch64
