// Calls: the task's call stack follows what blocks end with. Where nobody has asked for it, no block is looked at.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

namespace {

constexpr uint64_t RETURN_ADDRESS = 8;  // bytes on x86's stack

uint64_t pushed_by_calls(const Isa& isa) { return isa.engine_arch() == UC_ARCH_X86 ? RETURN_ADDRESS : 0; }

// BL, BLR and BLRA*.
bool is_call_a64(uint32_t word) { return word >> 26 == 0b100101 || (word & 0xFEFFF000) == 0xD63F0000; }

// Whether CALL's bytes may stand before the last of these: E8 with its displacement, or FF /2 with its operand's.
bool ends_with_call_x86(std::span<const uint8_t> code) {
    auto at = [&](size_t from_end) -> int { return from_end <= code.size() ? code[code.size() - from_end] : -1; };
    if (at(5) == 0xE8) return true;
    constexpr size_t LENGTHS[] = {2, 3, 4, 6, 7};
    return std::ranges::any_of(LENGTHS,
                               [&](size_t length) { return at(length) == 0xFF && (at(length - 1) >> 3 & 7) == 2; });
}

bool is_branch_to_link(std::span<const uint8_t> code) {
    constexpr uint8_t BR_X30[] = {0xC0, 0x03, 0x1F, 0xD6};
    return std::ranges::equal(code, BR_X30);
}

// MOV and ADD (extended register) that write SP, where it does not come from X29.
bool sets_stack_pointer_a64(std::span<const uint8_t> code) {
    constexpr uint32_t SP = 31, FP = 29;
    uint32_t word;
    std::memcpy(&word, code.data(), sizeof word);
    const uint32_t from = word >> 5 & 31, into = word & 31;
    if (into != SP) return false;
    if ((word & 0xFFFFFC00) == 0x91000000) return from != SP && from != FP;  // ADD SP, Xn, #0
    return (word & 0xFFE00000) == 0x8B200000;
}

// MOV, LEA and XCHG that write RSP, where it does not come from RSP or RBP; POP RSP.
bool sets_stack_pointer_x86(std::span<const uint8_t> code) {
    constexpr unsigned RSP = 4, RBP = 5;
    const bool rex = code[0] >> 4 == 4;
    const size_t begin = rex;
    const unsigned high_reg = rex ? code[0] >> 2 & 1u : 0, high_rm = rex ? code[0] & 1u : 0;
    if (code.size() < begin + 1) return false;
    if (code[begin] == 0x5C && !high_rm) return true;
    if (code.size() < begin + 2) return false;
    const unsigned modrm = code[begin + 1], reg = high_reg << 3 | (modrm >> 3 & 7), rm = high_rm << 3 | (modrm & 7);
    const bool is_register = modrm >> 6 == 3;
    switch (code[begin]) {
        case 0x89: return is_register && rm == RSP && reg != RBP;
        case 0x8B: return reg == RSP && !(is_register && rm == RBP);
        case 0x8D: return reg == RSP && rm != RBP && !(rm == RSP && (code[begin + 2] & 7) == RSP);
        case 0x87: return reg == RSP || (is_register && rm == RSP);
        default: return false;
    }
}

}  // namespace

void Core::keep_calls() {
    if (guest_tables_) throw std::invalid_argument("calls of a guest's own kernel are not followed");
    if (!calls_at_.file) calls_at_.file = RegisterFile::locate(engine_, isa_->engine_arch());
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    constexpr unsigned RSP = 4;
    if (calls_at_.file) calls_at_.sp = calls_at_.file->registers[arm ? slice::A64_STACK : RSP];
    calls_ = std::make_shared<CallStack>(pushed_by_calls(*isa_));
}

void Core::begin_calls() {
    if (calls_) calls_ = std::make_shared<CallStack>(pushed_by_calls(*isa_));
}

uint64_t Core::read_stack_pointer() const {
    return read_register(engine_, isa_->engine_arch() == UC_ARCH_X86 ? UC_X86_REG_RSP : UC_ARM64_REG_SP);
}

std::vector<uint64_t> Core::call_chain(unsigned limit) const {
    return calls_ ? calls_->chain(read_stack_pointer(), limit) : std::vector<uint64_t>();
}

Transfer Core::transfer_of(const Op& op, std::span<const uint8_t> code) const {
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    switch (branch_kind(op.probes)) {
        case BranchKind::CALL:
        case BranchKind::INDIRECT_CALL: return Transfer::CALL;
        case BranchKind::RETURN: return Transfer::RETURN;
        case BranchKind::INDIRECT: return arm && is_branch_to_link(code) ? Transfer::RETURN : Transfer::JUMP;
        case BranchKind::NONE: break;
        default: return Transfer::NONE;
    }
    const bool moves = arm ? sets_stack_pointer_a64(code) : sets_stack_pointer_x86(code);
    return moves ? Transfer::MOVES_STACK : Transfer::NONE;
}

// Of a block that is being decoded, whose bytes are there.
void Core::note_transfer(Block& block) const {
    bool moves = false;
    for (Op& op : block.ops) {
        if (op.length && op.offset + op.length <= block.bytes.size())
            op.transfer = transfer_of(op, std::span(block.bytes).subspan(op.offset, op.length));
        moves |= op.transfer == Transfer::MOVES_STACK;
    }
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    const Transfer last = block.ops.back().transfer;
    if (last == Transfer::CALL || last == Transfer::RETURN)
        block.transfer = last;
    else if (moves && last == Transfer::JUMP)
        block.transfer = Transfer::LEAVES_STACK;
    else if (moves && arm)
        block.transfer = Transfer::MOVES_STACK;
    if (!arm && block.transfer != Transfer::NONE && block.changeable && block.ops.size() > 1)
        block.transfer = Transfer::UNSURE;
    if (arm) block.is_behind_call = reads_call_before(block.address);
}

// Where the stack pointer has been set, and the next jump is awaited: what the block that was entered last ends with.
Transfer Core::expected_transfer() {
    if (previous_->ops.empty()) return Transfer::NONE;
    return expected_behind(previous_->transfer, previous_->ops.back());
}

// ... with this instruction. On x86 what sets the stack pointer jumps at once.
Transfer Core::expected_behind(Transfer transfer, const Op& op) {
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    const bool transfers = op.transfer != Transfer::NONE && op.transfer != Transfer::MOVES_STACK;
    if (transfers || (!arm && branch_kind(op.probes) != BranchKind::NONE)) calls_->expect_jump(false);
    return op.transfer == Transfer::JUMP ? Transfer::LEAVES_STACK : transfer;
}

// Follows what the block before has ended with, and counts this one if it fits then. False: it has to be considered.
bool Core::counts_following(uint64_t address, uint32_t size) {
    give_back(budget_, held_);
    follow_calls(address, size);
    Block* block = blocks_.cached(address);
    const uint64_t budget = budget_ - block->cost_behind_look;
    if (block->tag != BlockTable::tag(address, size) || budget & EXHAUSTED) return false;
    budget_ = budget;
    begin_run(*block);
    hold(*block, budget_, held_);
    return true;
}

// Whether what lies before this address is a call.
bool Core::reads_call_before(uint64_t address) const {
    std::array<uint8_t, 7> bytes{};
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    const std::span<uint8_t> code = std::span(bytes).first(arm ? 4 : bytes.size());
    if (address < code.size() || read_code(address - code.size(), code) != code.size()) return false;
    if (!arm) return ends_with_call_x86(code);
    uint32_t word;
    std::memcpy(&word, code.data(), sizeof word);
    return is_call_a64(word);
}

// The block that was entered last has ended with a return that is not the last call's, or otherwise so that it is not
// clear who has called. Execution goes on at `next`.
void Core::land(Transfer by, uint64_t next, uint32_t size) {
    if (by == Transfer::UNSURE) {
        if (size && previous_->contains(next) && interrupts_store(next, block_at(next, size))) return;
        by = previous_->ops.back().transfer;
        if (by == Transfer::JUMP) by = Transfer::LEAVES_STACK;
    }
    arrive(by, previous_->end, next, size);
}

// Behind an instruction that ends at `end`.
void Core::arrive(Transfer by, uint64_t end, uint64_t next, uint32_t size) {
    const uint64_t sp = stack_pointer();
    if (by == Transfer::CALL) {
        if (!calls_->call(end, sp)) calls_->call_elsewhere(end, sp);
        return;
    }
    if (by == Transfer::MOVES_STACK) {
        calls_->expect_jump(true);
        return;
    }
    if (by == Transfer::RETURN && calls_->returns(next, sp)) return;
    const bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    const Block* block = blocks_.cached(next);
    const bool is_known = arm && block->tag == BlockTable::tag(next, size);
    calls_->land({.by = by,
                  .pc = next,
                  .stack_pointer = sp,
                  .is_behind_call = is_known ? block->is_behind_call : reads_call_before(next),
                  .link_register = arm ? read_register(engine_, UC_ARM64_REG_X30) : 0});
}

// An instruction that was stepped.
void Core::follow_step(const Op& op, uint64_t pc, uint64_t next) {
    const Transfer by = calls_->expects_jump() ? expected_behind(op.transfer, op) : op.transfer;
    if (by != Transfer::NONE && by != Transfer::JUMP) arrive(by, pc + op.length, next, 0);
}

}  // namespace perfemu
