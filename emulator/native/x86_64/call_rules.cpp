#include "x86_64/call_rules.hpp"

#include <algorithm>

#include "ops/branch_kind.hpp"

namespace perfemu::x86_64 {

namespace {

constexpr uint8_t STACK_POINTER = 4, FRAME_POINTER = 5;  // RSP, RBP

// MOV, LEA and XCHG that write RSP, where it does not come from RSP or RBP; POP RSP.
bool sets_stack_pointer(std::span<const uint8_t> code) {
    const bool rex = code[0] >> 4 == 4;
    const size_t begin = rex;
    const unsigned high_reg = rex ? code[0] >> 2 & 1u : 0, high_rm = rex ? code[0] & 1u : 0;
    if (code.size() < begin + 1) return false;
    if (code[begin] == 0x5C && !high_rm) return true;
    if (code.size() < begin + 2) return false;
    const unsigned modrm = code[begin + 1], reg = high_reg << 3 | (modrm >> 3 & 7), rm = high_rm << 3 | (modrm & 7);
    const bool is_register = modrm >> 6 == 3;
    switch (code[begin]) {
        case 0x89: return is_register && rm == STACK_POINTER && reg != FRAME_POINTER;
        case 0x8B: return reg == STACK_POINTER && !(is_register && rm == FRAME_POINTER);
        case 0x8D:
            return reg == STACK_POINTER && rm != FRAME_POINTER &&
                   !(rm == STACK_POINTER && (code[begin + 2] & 7) == STACK_POINTER);
        case 0x87: return reg == STACK_POINTER || (is_register && rm == STACK_POINTER);
        default: return false;
    }
}

}  // namespace

uint8_t CallRules::stack_pointer() const { return STACK_POINTER; }

Transfer CallRules::transfer(const Op& op, std::span<const uint8_t> code) const {
    switch (branch_kind(op.probes)) {
        case BranchKind::CALL:
        case BranchKind::INDIRECT_CALL: return Transfer::CALL;
        case BranchKind::RETURN: return Transfer::RETURN;
        case BranchKind::INDIRECT: return Transfer::JUMP;
        case BranchKind::NONE: return sets_stack_pointer(code) ? Transfer::MOVES_STACK : Transfer::NONE;
        default: return Transfer::NONE;
    }
}

// What sets the stack pointer jumps at once.
Transfer CallRules::transfer_of_block(Transfer last, bool moves_stack, bool interruptible) const {
    Transfer transfer = Transfer::NONE;
    if (last == Transfer::CALL || last == Transfer::RETURN) transfer = last;
    if (last == Transfer::JUMP && moves_stack) transfer = Transfer::LEAVES_STACK;
    return transfer != Transfer::NONE && interruptible ? Transfer::UNSURE : transfer;
}

bool CallRules::awaits_jump_behind(const Op& op) const {
    return !leaves(op.transfer) && branch_kind(op.probes) == BranchKind::NONE;
}

// Its bytes may stand there: E8 with its displacement, or FF /2 with its operand's.
bool CallRules::ends_with_call(std::span<const uint8_t> code) const {
    auto at = [&](size_t from_end) -> int { return from_end <= code.size() ? code[code.size() - from_end] : -1; };
    if (at(5) == 0xE8) return true;
    constexpr size_t LENGTHS[] = {2, 3, 4, 6, 7};
    return std::ranges::any_of(LENGTHS,
                               [&](size_t length) { return at(length) == 0xFF && (at(length - 1) >> 3 & 7) == 2; });
}

}  // namespace perfemu::x86_64
