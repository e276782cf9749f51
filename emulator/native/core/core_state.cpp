// A core's state as bytes, for a machine that goes on in another process: of a guest's own kernel.
//
// What is only remembered (blocks, translations, TLBs of the engine) is forgotten before it is saved, and the core that
// saves goes on without it, too: so both find everything anew, in the same order.
#include <memory>
#include <stdexcept>

#include "archive.hpp"
#include "core/core.hpp"
#include "core/model.hpp"
#include "engine/context_bytes.hpp"

namespace perfemu {

void Core::forget_remembered() {
    if (!guest_tables_ || models_)
        throw std::logic_error("only cores with a guest's own kernel, and no models, have a state to keep");
    if (ledger_ || !selections_.empty() || !path_listeners_.empty())
        throw std::logic_error("a core that somebody listens to has no state to keep");
    drop_budget();
    undue_until_ = 0;
    drop_blocks();
    guest_tables_->forget();
    uc_ctl_flush_tb(engine_);
    uc_ctl_flush_tlb(engine_);
    refresh_translations();
}

void Core::archive(Archive& state) {
    forget_remembered();
    archive_context(engine_, state);
    guest_tables_->archive(state);
    state(retired_, polled_, slow_since_poll_, folded_at_, elapsed_, skipped_, worked_, totals_, level_);
    bool has_levels = by_level_ != nullptr;
    state(has_levels);
    if (state.is_loading()) by_level_ = has_levels ? std::make_unique<TotalsByLevel>() : nullptr;
    if (has_levels) state(*by_level_);
    for (auto& bank : banks_) state(*bank);
    state(follows_branches_, followed_from_start_, armed_events_, costed_probes_, interrupt_line_, pending_exit_);
    state(last_retired_pc_, fault_address_, fault_access_, exception_, fills_until_flush_, flushes_);
    if (!state.is_loading()) return;
    guest_tables_->read_registers(engine_);
    uc_ctl_flush_tlb(engine_);
    refresh_translations();
}

}  // namespace perfemu
