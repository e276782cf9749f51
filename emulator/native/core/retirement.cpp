// Listeners: who is told of branches, and of instructions that were selected.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/ending_branch.hpp"
#include "core/model.hpp"
#include "core/retirement.hpp"

namespace perfemu {

static constexpr uint64_t MOST_EVENTS_OF_ONE = 64;  // instruction, as in visits.cpp

// A level that does not answer asks the next one: where that fires nothing, it is memory. With [page_walk]
// reads_entries an access whose page walk has asked L2 counts as one that has.
MemoryLevel level_that_answered(ProbeMask fired) {
    constexpr ProbeMask ACCESSED = mask(Probe::L1D_ACCESS_LOAD, Probe::L1D_ACCESS_STORE);
    constexpr struct {
        ProbeMask probes;
        MemoryLevel level;
    } FARTHEST_FIRST[] = {
        {mask(Probe::FETCHED_HIT, Probe::FETCHED_HITM), MemoryLevel::OTHER_CORE},
        {mask(Probe::LL_REFILL_LOAD, Probe::LL_REFILL_STORE), MemoryLevel::MEMORY},
        {mask(Probe::LL_ACCESS_LOAD, Probe::LL_ACCESS_STORE), MemoryLevel::LAST},
        {mask(Probe::L2_REFILL_LOAD, Probe::L2_REFILL_STORE), MemoryLevel::MEMORY},
        {mask(Probe::L2_ACCESS_LOAD, Probe::L2_ACCESS_STORE), MemoryLevel::L2},
        {mask(Probe::L1D_REFILL_LOAD, Probe::L1D_REFILL_STORE), MemoryLevel::MEMORY},
        {ACCESSED, MemoryLevel::L1},
    };
    for (const auto& row : FARTHEST_FIRST)
        if (fired & row.probes) return row.level;
    return MemoryLevel::NONE;
}

void Core::listen(RetirementListener& listener) {
    path_listeners_.add(listener);
    if (!model_) follow_branches();
}

void Core::select(RetirementListener& listener, ProbeMask probes, uint64_t distance, LevelMask levels) {
    if (!distance) throw std::invalid_argument("one of no instructions cannot be selected");
    if (!probes) throw std::invalid_argument("what selects is an event");
    if (probes & bit(Probe::CYCLES) && probes != bit(Probe::CYCLES))
        throw std::invalid_argument("what selects is an event of instructions, or cycles alone");
    watch(probes);
    const uint64_t now = sum(probes, levels);
    selections_.push_back({&listener, probes, now + std::min(distance, ~now), levels});
    drop_budget();
    undue_until_ = 0;
}

void Core::stop_listening(const RetirementListener& listener) {
    path_listeners_.remove(listener);
    std::erase_if(selections_, [&](const Selection& selection) { return selection.listener == &listener; });
}

// ---- the path

// A run has ended so. Most exits say by themselves that the path has left user mode. Those that are only the machine's
// way of working, such as the end of a turn, turn out to have been an interrupt if another task executes next, or this
// one somewhere else.
void Core::leave_path(Exit found) {
    if (!path_listeners_.end_run(linear_pc(), cycles())) {
        if (found == Exit::OVERFLOW) interrupt_path();
        return;
    }
    const bool hides_exit = found == Exit::OVERFLOW && pending_exit_ != Exit::NONE;
    switch (hides_exit ? pending_exit_ : found) {
        case Exit::SYSCALL: return path_listeners_.leave(Leaving::SYSTEM_CALL);
        case Exit::EXCEPTION: {
            const bool is_int3 = isa_->engine_arch() == UC_ARCH_X86 && exception_ == Exception::BREAKPOINT;
            if (is_int3) return path_listeners_.leave(Leaving::SOFTWARE_INTERRUPT, last_retired_pc_);
            return path_listeners_.leave(Leaving::FAULT);
        }
        case Exit::FAULT: return path_listeners_.leave(Leaving::FAULT);
        case Exit::OVERFLOW: return path_listeners_.leave(Leaving::INTERRUPT);
        default: return;
    }
}

// The block that was entered last has run to its end, and execution goes on at `next`.
void Core::tell_departure(uint64_t next, uint32_t size) {
    const Block& left = *previous_;
    if (left.ending == BranchKind::NONE || model_) return;  // with models, blocks are told of as they are consumed
    // A store into its own block has ended that before its branch.
    const bool begins_anew = next == left.address && size == left.size;
    if (left.contains(next) && !begins_anew && isa_->engine_arch() == UC_ARCH_X86 &&
        interrupts_store(next, block_at(next, size)))
        return;
    RetiredBranch branch = branch_before(left.end, left.ending, left.ending_length, left.frames.level, next);
    branch.cycle = skipped_ + retired() + elapsed_;
    path_listeners_.tell(branch);
}

// The instruction is the first of its block, which has been counted as a whole, or is being stepped.
void Core::trace_written(uint64_t value, unsigned bytes) {
    if (path_listeners_.empty()) return;
    const uint64_t pc = stepping_ ? stepped_->address : model_ ? model_->visit.block->address : previous_->address;
    TraceWrite written{.pc = pc, .value = value, .bytes = static_cast<uint8_t>(bytes)};
    if (model_) {  // it is consumed later
        trace_write_ = written;
        return;
    }
    written.cycle = stepping_ ? cycles() + 1 : cycles() + 1 - previous_->ops.size();
    path_listeners_.tell(written);
}

// A far transfer has come to where PC is.
void Core::tell_far(uint64_t from, Level level, bool by_gate) {
    path_listeners_.tell(FarTransfer{.from = from,
                                     .to = linear_pc(),
                                     .cycle = cycles(),
                                     .from_level = level,
                                     .to_level = level_,
                                     .by_gate = by_gate,
                                     .code_bits = code_bits()});
}

void Core::tell_branch(const Op& op, uint64_t pc, uint64_t next, bool mispredicted, Level level) {
    const BranchKind kind = branch_kind(op.probes);
    if (kind == BranchKind::NONE || op.trap == Trap::SYSTEM) return;  // of those, far transfers are told as such
    const bool taken = kind != BranchKind::CONDITIONAL || next != pc + op.length;
    path_listeners_.tell(RetiredBranch{pc, next, cycles(), kind, taken, mispredicted, op.length, level});
}

// The first so many logged blocks.
void Core::retire_log(size_t blocks) {
    Model& model = *model_;
    const RunBlock* const run = model.log.blocks.get();
    if (path_listeners_.empty()) {
        model.pipeline->retire_all({run, blocks + 1}, model.log.found.get());
        return;
    }
    const uint64_t* found = model.log.found.get();
    size_t retired = 0;
    for (size_t i = path_listeners_.begin_log(run, blocks); i < blocks; i++) {
        RetiredBranch branch = logged_branch(run + i);
        if (!path_listeners_.wanted(i, branch)) continue;
        if (retired != i) found = retire_logged(retired, i, found);
        const uint64_t mispredicted = mispredictions();
        model.pipeline->retire_whole(*run[i].block, found, run[i + 1].address);
        found += run[i].block->sites;
        retired = i + 1;
        branch.mispredicted = mispredictions() != mispredicted;
        branch.cycle = skipped_ + model.pipeline->cycle();
        path_listeners_.tell_hearers(branch);
    }
    retire_logged(retired, blocks, found);
}

// The logged blocks [first, last), whose addresses begin at `found`. Returns where those of the next begin.
const uint64_t* Core::retire_logged(size_t first, size_t last, const uint64_t* found) {
    if (first == last) return found;
    const RunBlock* const run = model_->log.blocks.get();
    if (last - first == 1) {
        model_->pipeline->retire_whole(*run[first].block, found, run[last].address);
    } else {
        model_->pipeline->retire_all({run + first, last - first + 1}, found);
    }
    for (size_t i = first; i < last; i++) found += run[i].block->sites;
    return found;
}

// ---- selections

// Before an instruction is told to the models. Nothing is noted, which takes longer than many instructions, where it is
// none that can be selected: of cycles any will do.
void Core::begin_observation() {
    Model& model = *model_;
    observed_cycle_ = UNOBSERVED;
    auto is_near = [this](const Selection& selection) {
        return selection.probes != bit(Probe::CYCLES) &&
               sum(selection.probes, selection.levels) + MOST_EVENTS_OF_ONE >= selection.due;
    };
    if (std::none_of(selections_.begin(), selections_.end(), is_near)) return;
    model.pipeline->settle_executed();
    observed_from_ = totals_;
    observed_cycle_ = model.pipeline->cycle();
}

// Behind it: what it was. `number`: in the visited block.
void Core::end_observation(unsigned number, uint64_t next) {
    Model& model = *model_;
    if (observed_cycle_ == UNOBSERVED) return;
    const Block& block = *model.visit.block;
    const Op& op = block.ops[number];
    observe_timed(op, block.address + op.offset,
                  number + 1 < block.ops.size() ? block.address + block.ops[number + 1].offset : next);
    if (model.visit.iteration) observed_.fired = (observed_.fired & ~op.probes) | op.iteration_probes;
    std::span<const AccessSite> sites = block.modelled->slice.sites();
    for (size_t i = 0; i < sites.size(); i++) {
        if (sites[i].op != number) continue;
        observed_.address = model.found[i];
        observed_.size = sites[i].size;
        observed_.address_known = true;
        return;
    }
}

// All but its access, of one that has been told to the models since `begin_observation`.
void Core::observe_timed(const Op& op, uint64_t pc, uint64_t next) {
    Model& model = *model_;
    model.pipeline->settle_executed();
    observe(op, pc, next);
    observed_.cycles = model.pipeline->cycle() - observed_cycle_;
    const Pipeline::Stages stages = model.pipeline->last_stages();
    observed_.dispatched = skipped_ + stages.dispatched;
    observed_.issued = skipped_ + stages.issued;
    observed_.completed = skipped_ + stages.completed;
    for (unsigned probe = DECODED_PROBES; probe < PROBE_COUNT; probe++)
        if (totals_[probe] != observed_from_[probe]) observed_.fired |= ProbeMask{1} << probe;
    note_times();
}

// Of what it had to wait for: its load before its store, and those before its fetch.
void Core::note_times() {
    constexpr struct {
        ProbeMask probes;
        Request kind;
    } FIRST[] = {
        {mask(Probe::L1D_REFILL_LOAD, Probe::DTLB_REFILL_LOAD), Request::LOAD},
        {mask(Probe::L1D_REFILL_STORE, Probe::DTLB_REFILL_STORE), Request::STORE},
        {mask(Probe::L1I_REFILL, Probe::ITLB_REFILL), Request::FETCH},
    };
    for (const auto& row : FIRST) {
        if (!(observed_.fired & row.probes)) continue;
        const MemorySystem::Times& times = model_->memory.last_times(row.kind);
        observed_.walked = times.translated - times.asked;
        observed_.waited = times.ready - times.translated;
        return;
    }
}

// What is known of an instruction without models.
void Core::observe(const Op& op, uint64_t pc, uint64_t next) {
    observed_ = {.pc = pc, .next = next, .cycle = cycles(), .cycles = 1, .fired = op.probes};
    observed_.dispatched = observed_.issued = observed_.completed = observed_.cycle;
    observed_.branch = branch_kind(op.probes);
    if (op.conditional && next != pc + op.length) observed_.fired |= mask(Probe::BR_COND_TAKEN, Probe::BR_TAKEN);
}

// A REP that has retired did so behind its last iteration, in one step.
void Core::observe_behind(const RetiredOp& iteration) {
    observed_.fired |= iteration.fired;
    observed_.dispatched = iteration.dispatched;
    observed_.issued = iteration.issued;
    observed_.completed = std::max(observed_.completed, iteration.completed);
    observed_.walked = iteration.walked;
    observed_.waited = iteration.waited;
}

// Tells of the instruction that was observed last, if a selection has come to it. Whether somebody wants the core to
// stop.
bool Core::choose() {
    bool interrupts = false, chosen = false;
    choices_++;
    for (Selection& selection : selections_) {
        const uint64_t now = sum(selection.probes, selection.levels);
        if (now < selection.due) continue;
        if (model_ && observed_cycle_ == UNOBSERVED) observe(Op{}, last_retired_pc_, linear_pc());
        observed_.choice = choices_;
        if (selection.listener->wants_class) observed_.op_class = class_of(observed_.pc);
        const Reaction reaction = selection.listener->selected(observed_);
        interrupts |= reaction.interrupts;
        chosen = true;
        if (!reaction.distance) {
            selection.listener = nullptr;
        } else if (reaction.probes && reaction.probes != selection.probes) {
            selection.probes = reaction.probes;
            selection.due = sum(selection.probes, selection.levels) + reaction.distance;
        } else {
            selection.due = std::max((reaction.from_now ? now : selection.due) + reaction.distance, now + 1);
        }
    }
    if (chosen) {
        std::erase_if(selections_, [](const Selection& selection) { return !selection.listener; });
        drop_budget();
    }
    return interrupts;
}

std::optional<uint64_t> Core::physical(uint64_t address) const {
    const Page page = space_->lookup(isa_->untagged(address));
    if (!page.present) return std::nullopt;
    return page.frame * PAGE_SIZE + (address & PAGE_MASK);
}

OpClass Core::class_of(uint64_t pc) {
    if (!decoder_) decoder_ = TimedDecoder::make(isa_->name());
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    std::span<const uint8_t> code = std::span(bytes).first(read_code(pc, bytes));
    return code.empty() ? OpClass::NONE : decoder_->decode(pc, code)[0].op_class;
}

}  // namespace perfemu
