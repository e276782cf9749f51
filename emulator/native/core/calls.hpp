// Calls: the call stack of what executes follows what its blocks end with. A core has one if somebody asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/block.hpp"
#include "core/call_stack.hpp"
#include "engine/register_file.hpp"
#include "isa/isa.hpp"
#include "ops/call_rules.hpp"

namespace perfemu {

class Calls {
  public:
    Calls(uc_engine* engine, const Isa& isa, ReadMemory read);

    // The task's that executes. It belongs to the registers.
    const std::shared_ptr<CallStack>& stack() const { return stack_; }
    void set_stack(std::shared_ptr<CallStack> stack) { stack_ = std::move(stack); }
    // What executes is another program: it has no callers.
    void begin() { stack_ = std::make_shared<CallStack>(rules_.pushed()); }

    // Of a block that is being decoded, whose bytes are there: what it does with call stacks.
    void note_transfer(Block& block) const;

    // The block has come to its end, and execution goes on at `next`. False: not as behind most; see `land`. Nothing
    // but this is done behind each block: it calls nobody.
    bool follow(const Block& block, uint64_t next) {
        return block.transfer == Transfer::NONE || follow_transfer(block, next);
    }
    // ... whose transfer is not NONE.
    bool follow_transfer(const Block& block, uint64_t next) {
        const uint64_t* const stack_pointer = stack_pointer_.at;
        if (!stack_pointer) [[unlikely]]
            return false;
        CallStack& stack = *stack_;
        if (block.transfer == Transfer::CALL) return stack.call(block.end, *stack_pointer);
        return block.transfer == Transfer::RETURN && stack.returns(next, *stack_pointer);
    }
    void land(const Block& block, uint64_t next);
    // An instruction that was stepped.
    void follow_step(const Op& op, uint64_t pc, uint64_t next);
    // Whether `land` has to hear of the next block, whatever that does.
    bool expects_jump() const { return stack_->expects_jump(); }

    // As CallStack::chain.
    std::vector<uint64_t> chain(unsigned limit) const { return stack_->chain(stack_pointer(), limit); }

  private:
    Transfer expected_behind(Transfer transfer, const Op& op);
    void arrive(Transfer by, uint64_t end, uint64_t next);
    bool is_behind_call(uint64_t address) const;
    // One of the slices' entry registers.
    struct Register {
        int engine_number = 0;
        const uint64_t* at = nullptr;  // where the engine keeps it; null: it is asked
    };
    Register find(uint8_t number, uc_arch arch) const;
    uint64_t read(const Register& from) const { return from.at ? *from.at : ask(from.engine_number); }
    uint64_t ask(int engine_number) const;
    uint64_t stack_pointer() const { return read(stack_pointer_); }

    // What most calls and returns touch, on one cache line.
    Register stack_pointer_;
    std::shared_ptr<CallStack> stack_;
    uc_engine* engine_;
    const CallRules& rules_;
    ReadMemory read_memory_;
    std::optional<RegisterFile> file_;
    std::optional<Register> link_register_;
};

}  // namespace perfemu
