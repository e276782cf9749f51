#include "core/calls.hpp"

#include <algorithm>
#include <array>

#include "engine/registers.hpp"

namespace perfemu {

Calls::Calls(uc_engine* engine, const Isa& isa, ReadMemory read)
    : engine_(engine), rules_(isa.call_rules()), read_memory_(std::move(read)),
      file_(RegisterFile::locate(engine, isa.engine_arch())) {
    stack_pointer_ = find(rules_.stack_pointer(), isa.engine_arch());
    if (const auto link = rules_.link_register()) link_register_ = find(*link, isa.engine_arch());
    begin();
}

Calls::Register Calls::find(uint8_t number, uc_arch arch) const {
    const EntryRegister& found = *std::ranges::find(entry_registers(arch), number, &EntryRegister::number);
    return {.engine_number = found.engine_number, .at = file_ ? file_->registers[number] : nullptr};
}

uint64_t Calls::ask(int engine_number) const { return read_register(engine_, engine_number); }

void Calls::note_transfer(Block& block) const {
    bool moves = false;
    for (Op& op : block.ops) {
        if (op.length && op.offset + op.length <= block.bytes.size())
            op.transfer = rules_.transfer(op, std::span(block.bytes).subspan(op.offset, op.length));
        moves |= op.transfer == Transfer::MOVES_STACK;
    }
    const bool interruptible = block.changeable && block.ops.size() > 1;
    block.transfer = rules_.transfer_of_block(block.ops.back().transfer, moves, interruptible);
}

// Where the stack pointer has been set, and the next jump is awaited: what the instruction does, or the block that ends
// with it.
Transfer Calls::expected_behind(Transfer transfer, const Op& op) {
    if (!rules_.awaits_jump_behind(op)) stack_->expect_jump(false);
    return op.transfer == Transfer::JUMP ? Transfer::LEAVES_STACK : transfer;
}

// A block that ends with a return that is not the last call's, or otherwise so that it is not clear who has called.
void Calls::land(const Block& block, uint64_t next) {
    if (block.ops.empty()) return;
    Transfer by = block.transfer;
    if (stack_->expects_jump()) by = expected_behind(by, block.ops.back());
    if (by == Transfer::UNSURE) {
        by = block.ops.back().transfer;
        if (by == Transfer::JUMP) by = Transfer::LEAVES_STACK;
    }
    if (by != Transfer::NONE) arrive(by, block.end, next);
}

void Calls::follow_step(const Op& op, uint64_t pc, uint64_t next) {
    const Transfer by = stack_->expects_jump() ? expected_behind(op.transfer, op) : op.transfer;
    if (by != Transfer::NONE && by != Transfer::JUMP) arrive(by, pc + op.length, next);
}

// Behind an instruction that ends at `end`.
void Calls::arrive(Transfer by, uint64_t end, uint64_t next) {
    const uint64_t sp = stack_pointer();
    if (by == Transfer::CALL) {
        if (!stack_->call(end, sp)) stack_->call_elsewhere(end, sp);
        return;
    }
    if (by == Transfer::MOVES_STACK) {
        stack_->expect_jump(true);
        return;
    }
    if (by == Transfer::RETURN && stack_->returns(next, sp)) return;
    stack_->land({.by = by,
                  .pc = next,
                  .stack_pointer = sp,
                  .is_behind_call = is_behind_call(next),
                  .link_register = link_register_ ? read(*link_register_) : 0,
                  .read = read_memory_});
}

bool Calls::is_behind_call(uint64_t address) const {
    std::array<uint8_t, CallRules::LONGEST_CALL> bytes{};
    // The longest call may begin in a page that is not there.
    for (size_t size : {CallRules::LONGEST_CALL, rules_.shortest_call()}) {
        const std::span<uint8_t> code = std::span(bytes).first(size);
        if (address >= size && read_memory_(address - size, code) == size) return rules_.ends_with_call(code);
    }
    return false;
}

}  // namespace perfemu
