#include "core/register_state.hpp"

#include <stdexcept>
#include <string>

#include "engine/exclusive_monitor.hpp"

namespace perfemu {

static void check(uc_err error, const char* call) {
    if (error != UC_ERR_OK) throw std::runtime_error(std::string(call) + ": " + uc_strerror(error));
}

RegisterState::RegisterState(const Core& core) : arch_(core.isa().engine_arch()) {
    perfemu::check(uc_context_alloc(core.engine(), &context_), "uc_context_alloc");
}

RegisterState::~RegisterState() { uc_context_free(context_); }

void RegisterState::check(const Core& core) const {
    if (core.isa().engine_arch() != arch_) throw std::invalid_argument("the registers are another ISA's");
    if (core.owes_exit()) throw std::logic_error("the core owes an exit: its registers cannot change hands");
}

void RegisterState::save(const Core& core) {
    check(core);
    passed_breakpoint_ = core.passed_breakpoint();
    passed_access_ = core.passed_access();
    nmi_ = core.waiting_nmi();
    shadowed_ = core.is_shadowed();
    if (const Calls* calls = core.calls()) calls_ = calls->stack();
    perfemu::check(uc_context_save(core.engine(), context_), "uc_context_save");
    if (arch_ != UC_ARCH_ARM64) return;
    open_ = monitor_open(context_);
    if (open_) close_monitor(context_);
}

void RegisterState::restore(Core& core) const {
    check(core);
    core.interrupt_path();
    perfemu::check(uc_context_restore(core.engine(), context_), "uc_context_restore");
    core.pass_breakpoint(passed_breakpoint_);
    core.pass_access(passed_access_);
    core.set_waiting(nmi_, shadowed_);
    if (Calls* calls = core.calls(); calls && calls_) calls->set_stack(calls_);
}

bool exclusive_open(const Core& core) {
    if (core.isa().engine_arch() != UC_ARCH_ARM64) return false;
    RegisterState state(core);
    state.save(core);
    return state.exclusive_open();
}

void close_exclusive(Core& core) {
    if (core.isa().engine_arch() != UC_ARCH_ARM64) return;
    RegisterState state(core);
    state.save(core);
    if (state.exclusive_open()) state.restore(core);
}

}  // namespace perfemu
