// What call stacks are made of: the rules of an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ops/op.hpp"

namespace perfemu {

class CallRules {
  public:
    static constexpr size_t LONGEST_CALL = 7;  // bytes

    virtual ~CallRules() = default;

    // Registers by their numbers among the slices' entry registers.
    virtual uint8_t stack_pointer() const = 0;
    virtual std::optional<uint8_t> link_register() const = 0;
    // The bytes that a call puts onto the stack. None where there is a link register.
    virtual uint64_t pushed() const = 0;
    // What the instruction does, whose bytes these are.
    virtual Transfer transfer(const Op& op, std::span<const uint8_t> code) const = 0;
    // What a block does that ends with `last`, and in which the stack pointer has been set, or not. `interruptible`:
    // perhaps it does not come to its end, as it may store into itself.
    virtual Transfer transfer_of_block(Transfer last, bool moves_stack, bool interruptible) const = 0;
    // Whether the jump to another stack, which is awaited since the stack pointer was set, may still come behind this.
    virtual bool awaits_jump_behind(const Op& op) const = 0;
    // The bytes that a call has at least. Whether there is one whose bytes are the last of these, or may be.
    virtual size_t shortest_call() const = 0;
    virtual bool ends_with_call(std::span<const uint8_t> code) const = 0;

  protected:
    static constexpr bool leaves(Transfer transfer) {
        return transfer != Transfer::NONE && transfer != Transfer::MOVES_STACK;
    }
};

}  // namespace perfemu
