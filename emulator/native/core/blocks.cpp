// Blocks: counting them before they run, decoding them once, and what can happen to their code.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

// In iterations of a REP: what a block costs that is decoded, or whose code may have to be translated again.
static constexpr uint64_t DECODING = 1000;

static constexpr uint64_t NEVER_FITS = uint64_t{1} << 30;  // a cost that sends the block through `consider`

template <bool FOLLOWS_CALLS>
void Core::on_block(uc_engine*, uint64_t address, uint32_t size, void* user) {
    Core& core = *static_cast<Core*>(user);
    if constexpr (FOLLOWS_CALLS) {
        // All that needs others is a jump at the end, so that the host has no registers to save.
        if (core.follows_branches_) [[unlikely]] {
            core.previous_->departures += address != core.previous_->end;
            if (!core.path_listeners_.empty()) return core.count_departed(address, size);
        }
    } else if (core.follows_branches_) [[unlikely]] {
        core.depart(address, size);
    }
    Block* block = core.blocks_.cached(address);
    uint64_t budget = core.budget_ - block->cost;
    if (block->tag == BlockTable::tag(address, size) && !(budget & EXHAUSTED)) [[likely]] {
        if constexpr (FOLLOWS_CALLS) {
            if (core.previous_->transfer != Transfer::NONE) [[unlikely]]
                return core.count_behind_transfer(address, block, budget);
        }
        core.budget_ = budget;
        core.previous_ = block;
        if (block->runs++ == 0) [[unlikely]]
            return core.note_run(block);
        return;
    }
    core.consider(address, size);
}
template void Core::on_block<false>(uc_engine*, uint64_t, uint32_t, void*);
template void Core::on_block<true>(uc_engine*, uint64_t, uint32_t, void*);

// A block that fits, behind one that has ended with a call, a return or the like.
void Core::count_behind_transfer(uint64_t address, Block* block, uint64_t budget) {
    if (!calls_->follow_transfer(*previous_, address)) [[unlikely]]
        return consider(address, block->size);
    budget_ = budget;
    previous_ = block;
    if (block->runs++ == 0) [[unlikely]]
        return note_run(block);
}

// Follows what the block before has ended with, and counts this one if it fits then. False: it has to be considered.
bool Core::counts_following(uint64_t address, uint32_t size) {
    give_back(budget_, held_);
    follow_calls(address, size);
    Block* block = blocks_.cached(address);
    const uint64_t budget = budget_ - block->cost;
    if (block->tag != BlockTable::tag(address, size) || budget & EXHAUSTED) return false;
    budget_ = budget;
    begin_run(*block);
    if (calls_->expects_jump()) hold(budget_, held_);
    return true;
}

// Calls are kept, and somebody hears of the path.
void Core::count_departed(uint64_t address, uint32_t size) {
    tell_departure(address, size);
    Block* block = blocks_.cached(address);
    const uint64_t budget = budget_ - block->cost;
    if (block->tag != BlockTable::tag(address, size) || budget & EXHAUSTED) return consider(address, size);
    if (previous_->transfer != Transfer::NONE) return count_behind_transfer(address, block, budget);
    budget_ = budget;
    begin_run(*block);
}

// Behind the block that was entered last, in whose place this one may have been entered.
void Core::land(uint64_t next, uint32_t size) {
    const bool unsure = size && previous_->transfer == Transfer::UNSURE && previous_->contains(next);
    if (unsure && interrupts_store(next, block_at(next, size))) return;
    calls_->land(*previous_, next);
}

// A block that is new, or does not fit, or is special, or is a single step.
void Core::consider(uint64_t address, uint32_t size) {
    if (calls_ && !model_ && counts_following(address, size)) return;
    if (runs_unchanged(address, size)) return;
    if (comes_again_to_step(address))
        forget_step();
    else if (stepped_ && !finish_untrapped_step(address))
        return;
    if (changes_ && follow_changes(address)) return;
    if (remembers_wrongly(address, size)) {
        flush_tlb();
        forget_departure();
        redispatch(address);
        return;
    }
    if (!stepping_) note_interrupted_store(address, block_at(address, size));
    if (model_ && model_->visit.block && !stepping_) finish_visit(address);
    if (std::exchange(slots_stale_, false) && blocks_.use_slots_of(*space_)) unlink_successors();
    if (std::exchange(blocks_stale_, false) || has_too_many_blocks()) drop_blocks();
    Block& block = block_at(address, size);
    if (std::exchange(translation_stale_, false)) {
        uc_ctl_remove_cache(engine_, address, address + 1);
        forget_departure();
        redispatch(address);
        return;
    }
    if (stepping_) {
        consider_step(block);
        return;
    }
    drop_budget();
    if (must_compare(block)) slow_since_poll_ += DECODING;
    if (poll_due() && (*poll_)()) {
        exit(Exit::INTERRUPTED);
        return;
    }
    if (interrupt_requested_ || (model_ && due())) {
        last_retired_pc_ = previous_->address + (previous_->ops.empty() ? 0 : previous_->ops.back().offset);
        if (take_interrupts()) {
            exit(Exit::OVERFLOW);
            return;
        }
    }
    if (cycles() >= until_ || hook_is_full_) {
        exit(Exit::DEADLINE);
        return;
    }
    if (guest_step_is_due()) {
        exit(Exit::SOFTWARE_STEP);
        return;
    }
    if (breaks_at(block.address)) {
        exit(Exit::BREAKPOINT);
        return;
    }
    if (block.ops[0].trap != Trap::NONE) {
        trapped_ = block.ops[0];
        exit(Exit::REGISTER);
        return;
    }
    if (step_alone(block)) return;
    if (needs_stepping_inside(block) || breaks_inside(block) || (interrupt_line_ && is_shadowed())) {
        begin_stepping(block);
        return;
    }
    if (block.acts_for_user) guest_tlb_->follow_user(*guest_tables_);
    plan();
    if (block.ops[0].repeated) {
        consider_repeat(block);
    } else if (fits(block) || runs_alone(block)) {
        count(block);
    } else {
        begin_stepping(block);
    }
}

// Whether the engine executes what is not there any more: a guest has changed its tables, and not said so yet. Whatever
// the engine still remembers then, an architecture lets it forget.
bool Core::remembers_wrongly(uint64_t address, uint32_t size) {
    return guest_tables_ && blocks_.cached(address)->tag != BlockTable::tag(address, size) &&
           !code_page(address).present;
}

// The usual special block of a guest with its own kernel, where all RAM is writable somewhere: one whose code may
// change, and has not.
bool Core::runs_unchanged(uint64_t address, uint32_t size) {
    Block* block = blocks_.cached(address);
    const uint64_t budget = budget_ - block->unchanged_cost;
    if (block->tag != BlockTable::tag(address, size) || !block->only_changeable || budget & EXHAUSTED) return false;
    if (stepping_ || changes_ || blocks_stale_ || slots_stale_ || translation_stale_ || !unchanged(*block))
        return false;
    if (interrupts_store(address, *block)) return false;
    repeat_ = nullptr;
    budget_ = budget;
    begin_run(*block);
    if (calls_ && calls_->expects_jump()) hold(budget_, held_);
    return true;
}

// A REP comes once for each iteration, and once more to find its count at zero and go on: then it retires.
void Core::consider_repeat(Block& block) {
    if (must_step(block)) {
        begin_stepping(block);
        return;
    }
    const Op& op = block.ops[0];
    const uint64_t left = op.repeats(read_register(engine_, UC_X86_REG_RCX));
    if (left == 0) {
        count(block);
        return;
    }
    if (ends_repeating() || (model_ && !enter_iteration(block))) return;
    add_at(block.address, op.iteration_probes);
    if (undue_until_) undue_until_--;  // it fires what an instruction may fire
    slow_since_poll_++;
    iterations_++;
    repeat_ = &block;
    previous_ = &none_;
}

// Before an iteration.
bool Core::ends_repeating() {
    if (iterations_ < most_iterations_) return false;
    repeats_too_long_ = true;
    exit(Exit::DEADLINE);
    return true;
}

// A trap, a REP or a PTWRITE behind the first instruction is reached by stepping, so that the block that starts with it
// comes.
bool Core::needs_stepping_inside(const Block& block) const {
    for (size_t i = 1; i < block.ops.size(); i++)
        if (block.ops[i].trap != Trap::NONE || block.ops[i].repeated || block.ops[i].writes_trace) return true;
    return model_ && block.acts_for_user;  // slices find addresses, and faults, of the level that executes
}

uint64_t Core::cost(const Block& block) const {
    uint64_t events = 0;
    for (unsigned probe = 0; probe < DECODED_PROBES; probe++)
        if (costed_probes_ >> probe & 1) events += block.counts[probe];
    return block.instructions() | events << 32;
}

bool Core::fits(const Block& block) const { return !((budget_ - cost(block)) & EXHAUSTED); }

void Core::count(Block& block) {
    if (model_ && !enter(block)) return;
    repeat_ = nullptr;
    budget_ -= cost(block);
    begin_run(block);
    if (calls_ && !model_ && calls_->expects_jump()) hold(budget_, held_);
    if (block.changes) note_changes(block);
    if (interrupt_line_) drop_budget();  // each block may be the one that unmasks it
}

void Core::note_run(Block* block) { ran_.push_back(block); }

// The block that was counted as a whole stopped before the instruction at `pc`.
void Core::uncount_from(uint64_t pc) {
    Block& block = *previous_;
    size_t index = block.index_of(pc);
    drop_budget();
    if (index == block.ops.size()) return;
    if (block.runs-- == 0) note_run(&block);
    retired_ -= block.ops.size() - index;
    for (size_t i = 0; i < index; i++) add_at(block.address + block.ops[i].offset, block.ops[i].probes);
    previous_ = &none_;
}

Block& Core::block_at(uint64_t address, uint32_t size) {
    Block* block = blocks_.cached(address);
    if (block->tag == BlockTable::tag(address, size)) {
        if (!must_compare(*block)) return *block;
    } else {
        const BlockFrames frames = frames_of(address, size);
        block = blocks_.find(address, size, frames);
        if (!block) return blocks_.insert(decode(address, size, frames));
    }
    if (!block->changeable || unchanged(*block)) {
        BlockTable::trust(*block);
        return *block;
    }
    if (model_ && model_->visit.block == block) finish_visit(address);
    if (previous_ == block) previous_ = &none_;
    fold();
    if (ledger_) ledger_->settle(*block);
    // Of stores elsewhere the engine has not heard; whose this was, nobody knows.
    translation_stale_ = !guest_tlb_ && memory_->has_several_cores();
    blocks_.replace(*block, std::move(*decode(address, size, block->frames)));
    return *block;
}

std::unique_ptr<Block> Core::decode(uint64_t address, uint32_t size, BlockFrames frames) {
    decoded_blocks_++;
    hook_is_full_ |= decoded_blocks_ - hooked_from_ > most_blocks_;
    slow_since_poll_ += DECODING;
    auto block = std::make_unique<Block>(Block{
        .tag = BlockTable::tag(address, size), .cost = 0, .end = address + size, .address = address, .size = size});
    block->bytes.resize(size);
    if (read_code(address, block->bytes) != size)
        throw std::logic_error("the engine runs a block that is not mapped");  // cannot happen: it has fetched it
    block->frames = frames;
    block->ops = isa_->decode(address, block->bytes, frames.level);
    if (block->ops.empty()) block->ops.push_back(Op{.trap = Trap::UNDEFINED});
    if (processor_ && block->ops[0].trap == Trap::UNDEFINED) {
        // What user mode may not execute, the engine has not read to its end.
        std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
        block->ops = isa_->decode(address, std::span(bytes).first(read_code(address, bytes)), frames.level);
        block->ops.resize(1);
    }
    if (guest_tables_ && guest_tables_->vectors_are_off())
        for (Op& op : block->ops)
            if (op.raises & RAISES_ON_VECTORS) op.trap = Trap::VECTORS;
    for (const Op& op : block->ops)
        for (unsigned probe = 0; probe < DECODED_PROBES; probe++) block->counts[probe] += op.probes >> probe & 1;
    block->ends_conditional = block->ops.back().conditional;
    block->ending = branch_kind(block->ops.back().probes);
    block->ending_length = block->ops.back().length;
    block->acts_for_user = std::ranges::any_of(block->ops, &Op::acts_for_user);
    block->changes = block->ops.back().changes;
    block->changeable = guest_tlb_ != nullptr;  // all of the RAM is
    for (uint64_t page = address & ~PAGE_MASK; page < block->end; page += PAGE_SIZE)
        block->changeable |= changeable(code_page(page));
    const Op& first = block->ops[0];
    bool whole = block->ops.size() == 1 || (first.trap == Trap::NONE && !needs_stepping_inside(*block));
    if (calls_) calls_->note_transfer(*block);
    if (model_ && whole) block->modelled = model_block(*block);
    if (!block->changeable) block->bytes = {};
    if (block->modelled) {
        PreparedBlock& prepared = *block->modelled->prepared;
        prepared.ending = block->ending;
        prepared.ending_length = block->ending_length;
        prepared.level = frames.level;
        prepared.size = size;
        block->prepared = &prepared;
        const SliceFunction enter = model_->addresses->assemble(block->modelled->slice);
        block->enter = enter.code;
        block->plain = enter.never_fails;
        block->sites = static_cast<uint16_t>(block->prepared->sites);
    }
    note_special(*block);
    return block;
}

void Core::note_special(Block& block) const {
    const bool comparable = must_compare(block) && !model_ && !block.changes;
    block.special = must_compare(block) || needs_a_look(block);
    block.only_changeable = comparable && !needs_a_look(block);
    set_cost(block);
}

// Whatever its bytes are.
bool Core::needs_a_look(const Block& block) const {
    const Op& first = block.ops[0];
    // The log has no room for more.
    if (block.prepared && block.prepared->sites > VisitLog::SITES_OF_AN_INSTRUCTION * block.ops.size()) return true;
    if (block.changes & FOLLOWED) return true;
    return first.trap != Trap::NONE || first.repeated || first.writes_trace || block.acts_for_user ||
           needs_stepping_inside(block) || memory_->may_break(block.address, block.end);
}

// There are breakpoints where there was none before.
void Core::look_for_breakpoints() {
    seen_breakpoint_generation_ = memory_->breakpoint_generation();
    blocks_.each([this](Block& block) { note_special(block); });
}

bool Core::has_breakpoint(uint64_t address) const {
    const std::vector<uint64_t>& whatever_space = debugging_.breakpoints;
    return space_->breaks_at(address) || std::ranges::find(whatever_space, address) != whatever_space.end();
}

// Whether to stop before the instruction there, for a breakpoint that has not been answered.
bool Core::breaks_at(uint64_t address) {
    if (!has_breakpoint(address) || passed_breakpoint() == address) return false;
    pass_breakpoint(address);
    return true;
}

// Behind the first instruction. It is reached by stepping.
bool Core::breaks_inside(const Block& block) const {
    if (!memory_->may_break(block.address + 1, block.end)) return false;
    for (size_t i = 1; i < block.ops.size(); i++)
        if (has_breakpoint(block.address + block.ops[i].offset)) return true;
    return false;
}

// Of the page where it starts, and of that where an instruction behind it may end: a compare looks so far.
BlockFrames Core::frames_of(uint64_t address, uint32_t size) const {
    auto frame = [this](uint64_t at) {
        const Page page = code_page(at);
        return page.present ? page.frame : NO_FRAME;
    };
    const uint64_t last = address + size + LONGEST_INSTRUCTION - 1;
    const Frame first = frame(address);
    const uint8_t state = guest_tables_ ? guest_tables_->code_state() : 0;
    return {first, (address ^ last) & ~PAGE_MASK ? frame(last) : first, level_, state};
}

// The code of blocks that have been decoded as unchangeable can change from now on. Called in the middle of a block.
void Core::forget_blocks() {
    blocks_stale_ = true;
    drop_budget();  // so that the next block is considered
}

// Or too long ones: a guest may enter the same code at ever other instructions.
bool Core::has_too_many_blocks() const {
    constexpr size_t INSTRUCTIONS = 6;  // of a block, as they are on average
    return blocks_.size() > most_blocks_ || blocks_.instructions() > INSTRUCTIONS * most_blocks_;
}

void Core::drop_blocks() {
    previous_ = &none_;
    none_.successors = BlockTable::nothing_behind();
    repeat_ = nullptr;
    fold();
    ran_.clear();
    linked_.clear();
    all_linked_ = false;
    if (ledger_) ledger_->settle();
    blocks_.each([this](Block& block) { make_unknown(block); });
    blocks_.clear();
    if (model_) model_->addresses->forget_code();
}

// In another address space, or after a change of this one, what comes behind a block may be another.
void Core::unlink_successors() {
    previous_ = &none_;
    repeat_ = nullptr;
    none_.successors = BlockTable::nothing_behind();
    if (!model_) return;
    auto unlink = [](Block& block) { block.successors = BlockTable::nothing_behind(); };
    if (all_linked_) blocks_.each(unlink);
    for (Block* block : linked_) unlink(*block);
    for (Block* block : ran_) unlink(*block);
    linked_.clear();
    all_linked_ = false;
}

bool Core::changeable(const Page& page) const { return page.protection & WRITE || memory_->changeable(page.frame); }

void Core::set_cost(Block& block) const {
    block.cost_behind_look = block.special ? NEVER_FITS : cost(block);
    block.cost = !model_ || block.transfer == Transfer::NONE ? block.cost_behind_look : NEVER_FITS;
    if (block.only_changeable) block.unchanged_cost = cost(block);
}

// Of a block that is where it was found: its frames hold the bytes that it was decoded from.
bool Core::unchanged(const Block& block) const {
    const uint64_t offset = block.address & PAGE_MASK, in_first = std::min<uint64_t>(block.size, PAGE_SIZE - offset);
    const uint64_t in_last = block.size - in_first;  // behind a block that ends with its page there may be none
    if (block.frames.first == NO_FRAME || (in_last && block.frames.last == NO_FRAME)) return false;
    return !std::memcmp(memory_->host(block.frames.first) + offset, block.bytes.data(), in_first) &&
           (!in_last || !std::memcmp(memory_->host(block.frames.last), block.bytes.data() + in_first, in_last));
}

// On x86 a store into its own block ends that block: the engine runs the store again, alone.
bool Core::interrupts_store(uint64_t address, const Block& next) const {
    if (isa_->engine_arch() != UC_ARCH_X86 || !previous_->contains(address)) return false;
    bool alone = next.ops.size() == 1 && next.ops[0].probes & bit(Probe::STORE) &&
                 !(next.ops[0].probes & bit(Probe::BR_RETIRED));
    return alone && previous_->index_of(address) != previous_->ops.size();
}

// Its first, whole count is taken back from the store on.
void Core::note_interrupted_store(uint64_t address, const Block& next) {
    if (!interrupts_store(address, next)) return;
    if (model_ && !model_->visit.block) return;  // it had come to its end: a branch has led back into it
    if (follows_branches_) previous_->departures--;
    if (model_) cut_visit(static_cast<unsigned>(previous_->index_of(address)), address);
    uncount_from(address);
}

}  // namespace perfemu
