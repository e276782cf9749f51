// Where the path of what executes leaves user mode and enters it: what listeners are told between two runs.
//
// Here the kernel is modelled, so that the path is outside of user mode while the core does not run. Most exits say by
// themselves that it has left. Those that are only the machine's way of working, such as the end of a turn, turn out to
// have been an interrupt if another task executes next, or this one somewhere else.
#include <utility>

#include "core/core.hpp"

namespace perfemu {

void Core::tell_left(Leaving why) {
    if (guest_tables_) return;  // its kernel executes, and the path goes on there
    path_.in_user_mode = false;
    for (RetirementListener* listener : path_listeners_) listener->left({path_.at, path_.cycle, why});
}

void Core::interrupt_path() {
    if (!path_listeners_.empty() && path_.in_user_mode) tell_left(Leaving::INTERRUPT);
}

// The engine is about to run.
void Core::enter_path() {
    const uint64_t now = linear_pc();
    if (path_.in_user_mode && path_.at != now) interrupt_path();
    const std::vector<RetirementListener*> newcomers = std::exchange(newcomers_, {});
    for (RetirementListener* listener : path_.in_user_mode ? newcomers : path_listeners_)
        listener->entered(now, cycles());
    path_.in_user_mode = path_.runs = true;
}

// A run has ended so.
void Core::leave_path(Exit found) {
    if (!std::exchange(path_.runs, false)) {  // nothing has executed
        if (found == Exit::OVERFLOW) interrupt_path();
        return;
    }
    path_.at = linear_pc();
    path_.cycle = cycles();
    const bool hides_exit = found == Exit::OVERFLOW && pending_exit_ != Exit::NONE;
    switch (hides_exit ? pending_exit_ : found) {
        case Exit::SYSCALL: return tell_left(Leaving::SYSTEM_CALL);
        case Exit::EXCEPTION: {
            const bool retires = isa_->engine_arch() == UC_ARCH_X86 && exception_ == Exception::BREAKPOINT;  // INT3
            return tell_left(retires ? Leaving::SYSTEM_CALL : Leaving::FAULT);
        }
        case Exit::FAULT: return tell_left(Leaving::FAULT);
        case Exit::OVERFLOW: return tell_left(Leaving::INTERRUPT);
        default: return;
    }
}

}  // namespace perfemu
