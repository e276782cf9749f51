// The model gear: every instruction that retires is told to the pipeline, with its data addresses.
//
// A block is entered: its addresses are found from its registers. It is consumed later, when it is known how much of it
// has retired, and where its branch went. While nothing can become due, entered blocks are logged (VisitLog), and up to
// two thousand instructions' worth are consumed at once; else a block is consumed when the next one is entered, or the
// engine stops (Visit). Only when something may become due inside a block is it consumed before it runs, to find the
// instruction at which the engine has to stop. All ways tell the models the same.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

namespace {

// The most often that one instruction fires one modelled probe.
constexpr uint64_t EVENTS_OF_AN_INSTRUCTION = 64;
// How often the hook asks whether a plain block can have an entry of its own.
constexpr int32_t RUNS_BETWEEN_LOOKS = 16;
// Fewer are not worth a log.
constexpr uint64_t LEAST_LOGGED_INSTRUCTIONS = 8;

}  // namespace

void Core::on_block_modelled(uc_engine*, uint64_t address, uint32_t size, void* user) {
    VisitLog& log = *static_cast<VisitLog*>(user);
    Core& core = *log.core;
    Block* const previous = *log.previous;
    const bool departs = address != previous->end;
    if (core.follows_branches_) [[unlikely]]
        previous->departures += departs;
    const uint64_t tag = BlockTable::tag(address, size);
    Block* block = previous->successors[departs];
    if (block->tag != tag) [[unlikely]]
        block = previous->successors[departs] = core.blocks_.cached(address);
    const uint64_t room = log.room - block->cost;
    // Nothing but jumps from here, so that the host has no registers to save.
    if (block->tag != tag || room & EXHAUSTED || !block->plain || block->runs % RUNS_BETWEEN_LOOKS == 0) [[unlikely]]
        return core.log_otherwise(address, size, __builtin_return_address(0));
    // What will be wanted next, while the engine runs this one.
    __builtin_prefetch(block->successors[0]);
    __builtin_prefetch(block->successors[1]);
    uint64_t* const found = log.found_end;
    *log.end++ = {block->prepared, address};
    log.found_end = found + block->sites;
    log.room = room;
    *log.previous = block;
    ++block->runs;
    core.model_->addresses->enter_by(block->enter, found);
}

// A block that may yet fit into the log, if there is one. `return_address`: of the hook, if it was called itself.
void Core::log_otherwise(uint64_t address, uint32_t size, const void* return_address) {
    VisitLog& log = model_->log;
    if (calls_) {
        give_back(log.room, log.held);
        follow_calls(address, size);
    }
    Block& block = *blocks_.cached(address);
    const bool fits = block.tag == BlockTable::tag(address, size) && !((log.room - block.cost_behind_look) & EXHAUSTED);
    // With a transfer, each run comes here until it has been.
    const bool is_asked = block.transfer == Transfer::NONE || block.runs % RUNS_BETWEEN_LOOKS == 0;
    if (fits && return_address && block.plain && block.runs && is_asked) make_known(block, return_address);
    if (!fits || !(log_found(block) || log_called(block))) visit(address, size);
}

// Logs a block that fits, if its addresses can be found.
bool Core::log_found(Block& block) {
    Model& model = *model_;
    if (!model.addresses->known_at_entry(block.modelled->slice)) return false;  // perhaps since its function was made
    uint64_t* found = nullptr;
    if (block.enter) found = model.addresses->enter_by(block.enter, model.log.found_end);
    if (!found) found = model.addresses->enter_at_once(block.modelled->slice, model.log.found_end);
    if (!found) return false;
    log(block, found);
    return true;
}

// Logs a block that fits, if its addresses come while it runs.
bool Core::log_called(Block& block) {
    Model& model = *model_;
    check_log(model.log.end);
    uint64_t* found = model.addresses->enter_in_place(block.modelled->slice, model.log.found_end);
    if (!found) return false;
    model.log.called = model.log.end;
    log(block, found);
    return true;
}

// A block that fits, whose addresses have been found, or are to come, up to there.
void Core::log(Block& block, uint64_t* found_end) {
    VisitLog& log = model_->log;
    *log.end++ = {block.prepared, block.address};
    log.found_end = found_end;
    log.room -= block.cost_behind_look;
    begin_run(block);
    if (calls_ && (block.transfer != Transfer::NONE || calls_->expects_jump())) hold(log.room, log.held);
}

void Core::open_log(uint64_t most_instructions) {
    const uint64_t instructions = std::min<uint64_t>(static_cast<uint32_t>(budget_), most_instructions);
    model_->log.room = (budget_ & ~uint64_t{UINT32_MAX}) | instructions;
    budget_ -= model_->log.room;
}

void Core::end_log() {
    budget_ += std::exchange(model_->log.room, 0) + std::exchange(model_->log.held, 0);
    model_->log.clear();
}

// A block that cannot be logged as things are.
void Core::visit(uint64_t address, uint32_t size) {
    Model& model = *model_;
    VisitLog& log = model.log;
    if (blocks_stale_) {
        close_log();  // perhaps it has stored into itself, and did not come to its end
    } else if (!log.empty()) {
        check_log(log.end);
        *log.end = {nullptr, address};
        retire_log(log.size());
        end_log();
    } else if (model.visit.block && !model.visit.block->special && !stepping_) {
        finish_visit(address);
    }
    Block* block = blocks_.cached(address);
    const uint64_t budget = budget_ - block->cost_behind_look;
    if (block->tag != BlockTable::tag(address, size) || budget & EXHAUSTED || model.visit.block) {
        consider(address, size);
        return;
    }
    const uint32_t instructions = static_cast<uint32_t>(block->cost_behind_look);
    const uint64_t loggable = loggable_instructions();
    if (loggable >= std::max<uint64_t>(instructions, LEAST_LOGGED_INSTRUCTIONS)) {
        open_log(loggable);
        if (log_found(*block)) return;
        end_log();
    }
    if (near(instructions) && due()) {
        consider(address, size);
        return;
    }
    if (!enter(*block)) return;
    budget_ = budget;
    begin_run(*block);
}

// Whether the engine has told all addresses of the logged blocks before `running`, which need not have run to its end.
void Core::check_log(const RunBlock* running) {
    const Model& model = *model_;
    if (!model.log.called || model.log.called == running || model.addresses->found_all()) return;
    lost_addresses_ = true;
    exit(Exit::EXCEPTION);
}

// The engine has stopped somewhere in or behind the last logged block: that becomes the visited one.
void Core::close_log() {
    Model& model = *model_;
    VisitLog& log = model.log;
    if (log.empty()) return;
    const RunBlock& last = log.end[-1];
    check_log(&last);
    const size_t before = log.size() - 1;
    if (before > 0) retire_log(before);
    std::copy_n(log.found_end - last.block->sites, last.block->sites, model.found.data());
    model.visit = {.block = previous_};
    end_log();
}

// The block is about to run as a whole. False: the engine has to come again.
bool Core::enter(Block& block) {
    Model& model = *model_;
    if (!model.addresses->enter(block.modelled->slice, model.found.data())) return forget_departure();
    model.visit = {.block = &block};
    return runs_alone(block) || !near(block.instructions()) || consume_ahead(block);
}

// The engine comes to this block again: where the one before went has been counted. Always false.
bool Core::forget_departure() {
    previous_ = &none_;
    return false;
}

// One iteration of a REP is about to run.
bool Core::enter_iteration(Block& block) {
    if (!model_->addresses->enter(block.modelled->slice, model_->found.data())) return forget_departure();
    model_->visit = {.block = &block, .iteration = true};
    return true;
}

// How many instructions may be logged before anything can become due.
uint64_t Core::loggable_instructions() {
    const Model& model = *model_;
    const uint64_t cycle = model.pipeline->cycle();
    if (model.tracing || attributes_models() || cycle >= model.due_cycle) return 0;
    const uint64_t undue = (model.due_cycle - cycle - 1) / model.cycles_of_an_instruction;
    return std::min<uint64_t>(
        {undue, path_listeners_.room(), uneventful_instructions(VisitLog::INSTRUCTIONS), VisitLog::INSTRUCTIONS});
}

// Whether something may become due within so many instructions.
bool Core::near(uint64_t instructions) {
    const Model& model = *model_;
    if (model.pipeline->cycle() + instructions * model.cycles_of_an_instruction >= model.due_cycle) return true;
    return near_in_events(instructions);
}

bool Core::near_in_events(uint64_t instructions) { return instructions > uneventful_instructions(instructions); }

// How many may retire, at least, before a counter on modelled occurrences can wrap. What has been counted is looked at
// again only if it may be fewer than `wanted`.
uint64_t Core::uneventful_instructions(uint64_t wanted) {
    Model& model = *model_;
    if (model.targets.empty()) return ~uint64_t{0};
    const uint64_t now = retired();
    if (model.uneventful_until < now + wanted) {
        uint64_t events = ~uint64_t{0};
        for (const Model::Target& target : model.targets)
            events = std::min(events, target.sum - std::min(target.sum, sum(target.probes)));
        model.uneventful_until = now + (std::max<uint64_t>(events, 1) - 1) / EVENTS_OF_AN_INSTRUCTION;
    }
    return model.uneventful_until - now;
}

// Tells the models of the block before it runs, if something may become due in it. False: it will be stepped.
bool Core::consume_ahead(Block& block) {
    Model& model = *model_;
    bool foreseeable = model.addresses->known_at_entry(block.modelled->slice) && !must_compare(block) &&
                       !block.changes && !block.ops[0].writes_trace && !may_raise(block) && !may_fault(block);
    if (!foreseeable) {
        if (!near(block.ops.size())) return true;
        model.visit = {};
        begin_stepping(block);
        return false;
    }
    unsigned last = static_cast<unsigned>(block.ops.size()) - block.modelled->ends_with_branch;
    if (!near_in_events(block.ops.size())) {
        consume(last, block.end, model.due_cycle);
    } else {
        while (model.visit.first < last && !due()) consume(model.visit.first + 1, block.end, Pipeline::NO_LIMIT);
    }
    if (!due()) return true;
    model.steps_ahead = model.visit.first;
    begin_stepping(block);
    return false;
}

// Whether an instruction of the block may raise an exception, as the processor is now. It is stepped then.
bool Core::may_raise(const Block& block) const {
    const ModelledBlock& modelled = *block.modelled;
    if (!modelled.ends_with_branch) return true;  // what the engine cannot translate is a block's last
    if (modelled.raises & (RAISES_IN_USER_MODE | RAISES_BY_VALUES)) return true;
    return modelled.raises & RAISES_ON_VECTORS && isa_->raises_on_vectors(engine_, model_->addresses->register_file());
}

// Whether an access of the entered block would not find its page, or would be refused for its address; or might be a
// store into the block itself, which ends it.
bool Core::may_fault(const Block& block) const {
    std::span<const AccessSite> sites = block.modelled->slice.sites();
    for (size_t i = 0; i < sites.size(); i++) {
        // A kernel of the guest's may want alignment of all.
        const bool wants_alignment = guest_tables_ || block.ops[sites[i].op].raises & RAISES_UNALIGNED;
        if (wants_alignment && !isa_->aligned(sites[i], model_->found[i])) return true;
        uint64_t first = model_->found[i] & ~PAGE_MASK, last = (model_->found[i] + sites[i].size - 1) & ~PAGE_MASK;
        for (uint64_t page = first;; page += PAGE_SIZE) {
            const Page found = space_->lookup(isa_->untagged(page));
            if (!found.present || !(found.protection & (sites[i].store ? WRITE : READ))) return true;
            if (watches_page(isa_->untagged(page))) return true;
            if (sites[i].store && (found.frame == block.frames.first || found.frame == block.frames.last)) return true;
            if (page == last) break;
        }
    }
    return false;
}

// Tells the models of the visited block's instructions up to `last`, behind which execution goes on at `next`.
void Core::consume(unsigned last, uint64_t next, uint64_t limit) {
    if (trace_write_) [[unlikely]] {  // by the first of them
        TraceWrite written = *std::exchange(trace_write_, std::nullopt);
        limit = std::min(limit, Pipeline::NO_LIMIT - 1);
        consume(1, next, limit);
        written.cycle = cycles();
        path_listeners_.tell(written);
        if (last == 1) return;
    }
    Model& model = *model_;
    Visit& visit = model.visit;
    const ModelledBlock& block = *visit.block->modelled;
    unsigned first = visit.first;
    if (!model.addresses->found_until(block.slice, last)) [[unlikely]] {
        lost_addresses_ = true;
        exit(Exit::EXCEPTION);
    }
    const bool observes = !selections_.empty() && last - first == 1;
    // Executed, not recalled: its stages are to be known; or it is half a block, which is not worth to be remembered.
    if (observes || stepping_) [[unlikely]]
        limit = std::min(limit, Pipeline::NO_LIMIT - 1);
    if (observes) [[unlikely]] {
        begin_observation();
    } else if (!selections_.empty()) {
        forget_observation();
    }
    if (attributes_models()) [[unlikely]] {
        bool due = false;
        while (visit.first < last && !due) {
            const unsigned op = visit.first;
            visit.first = model.pipeline->retire(*block.prepared, model.found.data(), op, op + 1, next, limit);
            due = model.pipeline->cycle() >= limit;
            attribute_models(visit.block->address + visit.block->ops[op].offset);
        }
    } else {
        visit.first = model.pipeline->retire(*block.prepared, model.found.data(), first, last, next, limit);
    }
    if (observes) [[unlikely]]
        end_observation(first, next);
    if (model.tracing && !visit.block->ops[0].repeated) trace(first, visit.first);
}

// The visited block has run to its end, and execution goes on at `next`.
void Core::finish_visit(uint64_t next) {
    Model& model = *model_;
    Visit& visit = model.visit;
    if (visit.iteration) {
        if (!selections_.empty()) begin_observation();
        model.pipeline->iterate(*visit.block->modelled->prepared, model.found.data());
        if (!selections_.empty()) end_observation(0, next);
        if (attributes_models()) attribute_models(visit.block->address);
        if (model.uneventful_until) model.uneventful_until--;  // it fires no more than an instruction
        if (model.tracing) trace(0, 1);
    } else {
        const uint64_t mispredicted = mispredictions();
        consume(static_cast<unsigned>(visit.block->ops.size()), next, Pipeline::NO_LIMIT);
        const Op& op = visit.block->ops.back();
        if (!path_listeners_.empty())
            tell_branch(op, visit.block->address + op.offset, next, mispredictions() != mispredicted,
                        visit.block->frames.level);
    }
    visit = {};
}

// The visited block stopped before its instruction `last`, at `next`.
void Core::cut_visit(unsigned last, uint64_t next) {
    if (model_->visit.first < last && !model_->visit.iteration) consume(last, next, Pipeline::NO_LIMIT);
    model_->visit = {};
}

// A single step is through.
void Core::finish_step(const Op& op, uint64_t now, bool repeats) {
    Model& model = *model_;
    if (model.steps_ahead) {
        if (--model.steps_ahead == 0) model.visit = {};
        return;
    }
    Block& block = *model.visit.block;
    if (!op.repeated || !repeat_count_) return finish_visit(now);
    model.visit.iteration = true;
    finish_visit(now);
    if (repeats) return;
    const bool observed = !selections_.empty() && observed_cycle_ != UNOBSERVED;
    const RetiredOp iteration = observed_;
    model.visit = {.block = &block};
    finish_visit(now);
    if (observed) observe_behind(iteration);
}

// The engine has stopped at `now`.
void Core::settle_visit(uint64_t now, bool within_a_block) {
    Visit& visit = model_->visit;
    if (!visit.block) return;
    if (stepping_) {
        if (retires_untrapped(now)) finish_step(stepped_->ops[0], now, false);
        model_->steps_ahead = 0;
        visit = {};
    } else if (within_a_block && visit.iteration && is_guests_step()) {
        Block& block = *visit.block;
        finish_visit(now);
        if (now == block.address) return;
        visit = {.block = &block};
        finish_visit(now);
    } else if (within_a_block && visit.iteration) {
        visit = {};  // it did not happen
    } else if (within_a_block && visit.block->contains(now)) {
        cut_visit(static_cast<unsigned>(visit.block->index_of(now)), now);
    } else {
        finish_visit(now);
    }
}

// An instruction that the machine has answered retires. An access that a device has answered went by no cache, nor did
// those of system instructions: it takes as long as an instruction without one.
void Core::consume_answered(uint64_t at, uint64_t next) {
    if (exit_ == Exit::DEVICE || trapped_.trap == Trap::SYSTEM) {
        if (model_->device_accesses.size() > most_blocks_) model_->device_accesses.clear();
        std::unique_ptr<PreparedBlock>& prepared = model_->device_accesses[at];
        const TimedOp access{.length = trapped_.length};
        if (!prepared) prepared = model_->pipeline->prepare(at, {&access, 1}, {});
        if (!selections_.empty()) begin_observation();
        model_->pipeline->retire(*prepared, nullptr, 0, 1, next, Pipeline::NO_LIMIT);
        if (!selections_.empty() && observed_cycle_ != UNOBSERVED) observe_timed(trapped_, at, next);
        return;
    }
    Block& block = block_at(at, trapped_.length);
    if (!block.modelled) throw std::logic_error("an instruction alone is not modelled");
    model_->visit = {.block = &block};
    finish_visit(next);
}

// Whether a counter on modelled occurrences has wrapped, or the deadline is reached.
bool Core::due() {
    const Model& model = *model_;
    if (model.pipeline->cycle() >= model.due_cycle) return true;
    for (const Model::Target& target : model.targets)
        if (sum(target.probes) >= target.sum) return true;
    return false;
}

}  // namespace perfemu
