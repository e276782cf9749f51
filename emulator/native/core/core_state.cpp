// A core's state as bytes, for a machine that goes on in another process: of a guest's own kernel.
//
// What is only remembered (blocks, translations, TLBs of the engine) is forgotten before it is saved, and the core that
// saves goes on without it, too: so both find everything anew, in the same order.
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "archive.hpp"
#include "core/core.hpp"
#include "core/model.hpp"
#include "engine/context_bytes.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu {

void Core::rest() {
    if (!guest_tables_) throw std::logic_error("only a core with a guest's own kernel has a state to keep");
    if (gear_ != Gear::DETAILED || ledger_ || !selections_.empty() || !path_listeners_.empty())
        throw std::logic_error("a core that somebody listens to, or that is fast-forwarded, has no state to keep");
    drop_budget();
    undue_until_ = 0;
    drop_blocks();
    if (model_) restart_pipeline();
    guest_tables_->forget();
    fetched_.forget();
    accessed_.forget();
    uc_ctl_flush_tb(engine_);
    flush_tlb();
    refresh_translations();
    if (model_) model_->memory.set_address_space(space_);
}

// What has begun completes, and what has been asked for arrives. Whatever pipelines remember is no state then.
void Core::restart_pipeline() {
    Model& model = *model_;
    model.pipeline->complete();
    model.pipeline->settle();
    const uint64_t done = model.pipeline->cycle(), now = std::max(done, model.memory.last_arrival());
    model.kernel_cycles += now - done;
    model.begin_pipeline(now);
}

void Core::archive(Archive& state) {
    archive_context(engine_, state);
    if (processor_) state(*processor_, nmi_, shadow_at_);
    guest_tables_->archive(state);
    state(retired_, polled_, slow_since_poll_, folded_at_, elapsed_, skipped_, worked_, totals_);
    state.up_to(level_, Level::KERNEL);
    bool has_levels = by_level_ != nullptr;
    state(has_levels);
    if (state.is_loading()) by_level_ = has_levels ? std::make_unique<TotalsByLevel>() : nullptr;
    if (has_levels) state(*by_level_);
    for (auto& bank : banks_) state(*bank);
    state(follows_branches_, followed_from_start_, armed_events_, costed_probes_, interrupt_line_);
    state.expect(are_probes(armed_events_ | costed_probes_));
    archive_exit(state);
    state(debugging_);
    state(passed_breakpoint_, passed_at_);
    if (model_) archive_model(state);
    if (!state.is_loading()) return;
    follow_guest();
    flush_tlb();
    refresh_translations();
    if (model_) model_->memory.set_address_space(space_);
}

void Core::archive_exit(Archive& state) {
    state.up_to(pending_exit_, Exit::NONE);
    state.expect(pending_exit_ == Exit::NONE || pending_exit_ == Exit::SYSCALL || pending_exit_ == Exit::EXCEPTION ||
                 pending_exit_ == Exit::IDLE);
    state(last_retired_pc_, fault_address_);
    state.up_to(fault_access_, FaultAccess::FETCH);
    state.up_to(exception_, Exception::VECTORS);
}

void Core::archive_model(Archive& state) {
    Model& model = *model_;
    uint64_t cycle = model.pipeline->cycle();
    state(model.memory, model.branches, model.kernel_cycles, cycle);
    if (state.is_loading()) model.begin_pipeline(cycle);
}

}  // namespace perfemu
