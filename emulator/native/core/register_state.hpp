// The registers of a task that is not on a core: all that the engine keeps of them, vectors included.
#pragma once

#include <unicorn/unicorn.h>

#include "core/core.hpp"

namespace perfemu {

// Belongs to no core: what one core saved, any other of the same ISA may restore.
class RegisterState {
  public:
    explicit RegisterState(const Core& core);
    ~RegisterState();
    RegisterState(const RegisterState&) = delete;
    RegisterState& operator=(const RegisterState&) = delete;

    // Only between runs; what is saved has no open exclusive monitor. A core that owes an exit has no registers of its
    // own to give away or to lose: throws then.
    void save(const Core& core);
    void restore(Core& core) const;
    bool exclusive_open() const { return open_; }

  private:
    void check(const Core& core) const;

    uc_context* context_ = nullptr;
    uc_arch arch_;
    bool open_ = false;  // was, when it was saved
    std::optional<uint64_t> passed_breakpoint_, passed_access_;
    bool nmi_ = false, shadowed_ = false;  // x86
    std::shared_ptr<CallStack> calls_;
};

// Whether the last exclusive load waits for its store: AArch64's local monitor. Never on x86.
bool exclusive_open(const Core& core);
// As an exception return does.
void close_exclusive(Core& core);

}  // namespace perfemu
