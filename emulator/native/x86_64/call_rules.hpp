// x86-64's calls, returns, and what sets its stack pointer.
#pragma once

#include "ops/call_rules.hpp"

namespace perfemu::x86_64 {

class CallRules final : public perfemu::CallRules {
  public:
    uint8_t stack_pointer() const override;
    std::optional<uint8_t> link_register() const override { return {}; }
    uint64_t pushed() const override { return 8; }
    Transfer transfer(const Op& op, std::span<const uint8_t> code) const override;
    Transfer transfer_of_block(Transfer last, bool moves_stack, bool interruptible) const override;
    bool awaits_jump_behind(const Op& op) const override;
    size_t shortest_call() const override { return 2; }
    bool ends_with_call(std::span<const uint8_t> code) const override;
};

}  // namespace perfemu::x86_64
