// Gears: fast-forward to what is of interest, with or without caches and predictors that know what came before.
#include <algorithm>
#include <stdexcept>

#include "core/core.hpp"
#include "core/model.hpp"
#include "timing/warming.hpp"

namespace perfemu {

// The clock goes on from where it was. Blocks are decoded anew, since what is prepared of them is one pipeline's.
void Core::set_gear(Gear gear) {
    if (gear == gear_) return;
    if (!models_) throw std::invalid_argument("a core without models has but one gear");
    drop_budget();
    undue_until_ = 0;
    if (gear_ == Gear::DETAILED) stop_counting_models();
    if (gear_ == Gear::WARMING) forget_uncounted();
    const uint64_t now = cycles() - skipped_;
    drop_blocks();
    const bool hooks_otherwise = (gear == Gear::FUNCTIONAL) != (gear_ == Gear::FUNCTIONAL);
    gear_ = gear;
    model_ = gear == Gear::FUNCTIONAL ? nullptr : models_.get();
    if (hooks_otherwise) {
        uc_hook_del(engine_, block_hook_);
        hook_blocks();
        uc_ctl_flush_tb(engine_);
    }
    if (!model_) {
        if (!path_listeners_.empty()) follow_branches();
        elapsed_ = now - retired_;
        return;
    }
    Model& model = *model_;
    if (gear == Gear::WARMING && !model.warming) model.warming = make_warming(model.memory, model.branches);
    model.pipeline = gear == Gear::WARMING ? model.warming.get() : model.detailed.get();
    model.pipeline->elapse(now - model.pipeline->cycle());
    if (gear == Gear::DETAILED) model.kernel_cycles = now - uncounted_from_.cycles;
}

void Core::stop_counting_models() {
    model_->pipeline->complete();
    if (attributes_models()) attribute_models(ledger_->last_address());
    model_->pipeline->settle();
    uncounted_from_ = {totals_, user_cycles()};
}

// Brings up to date what the models count.
void Core::settle_models() {
    model_->pipeline->settle();
    if (gear_ != Gear::DETAILED) forget_uncounted();
}

void Core::forget_uncounted() {
    constexpr auto FIRST = DECODED_PROBES;  // models fire all that no block tells
    std::copy(uncounted_from_.totals.begin() + FIRST, uncounted_from_.totals.end(), totals_.begin() + FIRST);
}

}  // namespace perfemu
