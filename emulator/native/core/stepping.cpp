// Stepping: the way to a point inside a block, one instruction at a time.
#include <algorithm>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

void Core::begin_stepping(Block& block) { begin_stepping(block.address, block.end); }

void Core::begin_stepping(uint64_t address, uint64_t end) {
    drop_budget();
    stepping_ = true;
    stepping_end_ = end;
    previous_ = &none_;
    isa_->set_stepping(engine_, true);
    redispatch(address);
}

// Whether the engine, translating a block at `pc`, has looked into a page that its first instruction does not touch.
bool Core::fetched_ahead(uint64_t pc) {
    uint64_t page_end = (pc & ~PAGE_MASK) + PAGE_SIZE;
    if (fault_address_ < page_end) return false;
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    size_t size = read_code(pc, std::span(bytes).first(std::min<uint64_t>(bytes.size(), page_end - pc)));
    std::vector<Op> ops = isa_->decode(pc, std::span(bytes).first(size), level_);
    return !ops.empty() && ops[0].trap != Trap::UNDEFINED;  // one that crosses into the next page looks like that here
}

void Core::end_stepping() {
    stepping_ = false;
    stepped_ = nullptr;
    isa_->set_stepping(engine_, false);
}

// Leaves the present translation before it runs, for one that fits the present mode.
void Core::redispatch(uint64_t address) { set_linear_pc(address); }

bool Core::must_step(const Block& block) {
    const Op& op = block.ops[0];
    if ((model_ && near(1)) || debugging_.passes) return true;
    return !fits(block) || op.repeat_may_end_early || (op.iteration_probes & armed_events_ && !undue());
}

// Before a single instruction runs.
void Core::consider_step(Block& block) {
    const Op& op = block.ops[0];
    if (breaks_at(block.address)) {
        exit(Exit::BREAKPOINT);
        return;
    }
    if (op.trap != Trap::NONE) {
        trapped_ = op;
        exit(Exit::REGISTER);
        return;
    }
    if (op.acts_for_user) guest_tlb_->follow_user(*guest_tables_);
    if (op.changes) {
        end_stepping();
        redispatch(block.address);
        return;
    }
    if (op.repeated) {
        plan();
        const bool step = must_step(block);
        drop_budget();
        if (!step) {
            end_stepping();
            redispatch(block.address);
            return;
        }
        repeat_count_ = op.repeats(read_register(engine_, UC_X86_REG_RCX));
        if (repeat_count_ && ends_repeating()) return;
    }
    if (model_ && !model_->steps_ahead) {
        if (!model_->addresses->enter(block.modelled->slice, model_->found.data())) return;
        model_->visit = {.block = &block};
    }
    if (op.repeated && repeat_count_) iterations_++;
    stepped_ = &block;
}

// After it has run.
void Core::step_done() {
    uint64_t now = linear_pc();
    const Op& op = stepped_->ops[0];
    const uint64_t at = stepped_->address;
    if (op.repeated && repeat_count_) add_at(at, op.iteration_probes);
    bool repeats = op.repeated && now == at;
    if (model_) finish_step(op, now, repeats);
    if (repeats) {
        if (!model_ && !selections_.empty()) observe(op, at, now);
        slow_since_poll_++;
    } else {
        retire(op, at, now);
    }
    if (!model_ && op.repeated && repeat_count_)
        observed_.fired = (repeats ? 0 : observed_.fired) | op.iteration_probes;
    if (op.shows_masks) isa_->correct_masks(engine_, op.trap_register);
    if (op.pushes_flags) {
        constexpr uint8_t TF_IN_SECOND_BYTE = 1;
        if (uint8_t* host = space_->host(stack_address() + 1)) *host &= static_cast<uint8_t>(~TF_IN_SECOND_BYTE);
    }
    stop_passing();
    stepped_ = nullptr;
    if (model_ && model_->steps_ahead) {  // nothing is due before those are through
        isa_->rearm_stepping(engine_);
    } else if (debugging_.due) {
        exit(processor_ ? Exit::STEP : Exit::WATCHPOINT);
    } else if (take_interrupts()) {
        exit(Exit::OVERFLOW);
    } else if (is_interrupted()) {
        exit(Exit::DEADLINE);  // the next run takes it
    } else if (cycles() >= until_) {
        exit(Exit::DEADLINE);
    } else if (poll_due() && (*poll_)()) {
        exit(Exit::INTERRUPTED);
    } else if (debugging_.steps && !repeats) {
        exit(Exit::STEP);
    } else if (guest_step_is_due()) {
        exit(Exit::SOFTWARE_STEP);
    } else if (!repeats && (now <= at || now >= stepping_end_)) {
        end_stepping();
    } else {
        isa_->rearm_stepping(engine_);
    }
}

// Whether the instruction that is being stepped has not executed yet: on x86 the engine comes again to one that stores
// into its own bytes.
bool Core::comes_again_to_step(uint64_t address) const {
    return isa_->engine_arch() == UC_ARCH_X86 && stepped_ && stepped_->address == address &&
           stepped_->ops[0].probes & bit(Probe::STORE);
}

void Core::forget_step() {
    stepped_ = nullptr;
    if (model_ && !model_->steps_ahead) model_->visit = {};
}

// Before the block at `next`. An instruction that has been stepped there has made no trap: PAUSE, behind which the
// engine leaves its loop instead. False: what is at `next` does not run now.
bool Core::finish_untrapped_step(uint64_t next) {
    step_done();
    if (exit_ != Exit::NONE) return false;
    if (stepping_) return true;
    redispatch(next);
    return false;
}

// The engine has stopped at `now`, behind an instruction that was stepped, and not by its trap: has that retired?
bool Core::retires_untrapped(uint64_t now) const {
    if (exit_ == Exit::SYSCALL || exit_ == Exit::IDLE) return true;
    const bool fetches = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    // INT3, where PC is behind it; PAUSE, behind which there is no page.
    return (exit_ == Exit::EXCEPTION || fetches) && stepped_ && now != stepped_->address;
}

void Core::retire(const Op& op, uint64_t pc, uint64_t next_pc) {
    retired_++;
    add_at(pc, op.probes);
    if (op.conditional && next_pc != pc + op.length) add_at(pc, mask(Probe::BR_COND_TAKEN, Probe::BR_TAKEN));
    if (calls_) calls_->follow_step(op, pc, next_pc);
    last_retired_pc_ = pc;
    if (!model_ && !selections_.empty()) observe(op, pc, next_pc);
    if (!model_ && !path_listeners_.empty()) tell_branch(op, pc, next_pc, false, level_);
}

bool Core::take_interrupts() {
    bool raised = std::exchange(interrupt_requested_, false);
    undue_until_ = 0;
    if (!selections_.empty()) raised |= choose();
    for (auto& bank : banks_) raised |= bank->take_interrupt();
    return raised;
}

}  // namespace perfemu
