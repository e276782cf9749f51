// Out of order: each instruction, in program order, is given the cycles of its dispatch, issue, completion and
// retirement, from what the ones before it have left: slots, ROB and queue entries, ports, operands. No loop over
// cycles.
//
// Not modelled: what a wrong path executes or fetches; replays; loads that must not pass older stores; bypass delays
// between units other than what [ops] says.
#include "timing/out_of_order.hpp"

#include <algorithm>

#include "timing/out_of_order_back_end.hpp"
#include "timing/pipeline_model.hpp"

namespace perfemu::out_of_order {

unsigned OutOfOrder::run_block(const Block& block, const uint64_t* addresses, unsigned first, unsigned last,
                               uint64_t next, uint64_t limit) {
    Hot hot = hot_;
    const PreparedOp* op = block.ops.data() + first;
    const PreparedOp* const end = block.ops.data() + last;
    const CycleSlot limit_slot = limit > cycle_of(~CycleSlot{0}) ? ~CycleSlot{0} : limit << CYCLE;
    hot.front.begin_at(block.address + op->offset);
    bool leaves = front_.leaves(hot.front.line, block.address + op->offset, op->length);
    Pair pair = last_pair_;
    uint8_t destination = last_destination_;
    while (true) {
        const uint64_t pc = block.address + op->offset;
        uint64_t supplied = fetch_and_decode(hot, block, *op, leaves, pc);
        switch (op->shape) {
            case Shape::SECOND_BRANCH:
                if (pair == Pair::BRANCH) {
                    count(Probe::FUSED);
                    break;
                }
                [[fallthrough]];
            case Shape::COMPUTES:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::COMPUTES_SOMEWHERE:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::IS_ELIMINATED:
                wait_for_supply(hot, supplied);
                execute<ELIMINATED, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::LOADS:
                wait_for_supply(hot, supplied);
                execute<LOAD, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::STORES:
                wait_for_supply(hot, supplied);
                execute<STORE, false>(hot, block, *op, addresses, pc);
                break;
            case Shape::LOADS_AND_COMPUTES:
                wait_for_supply(hot, supplied);
                execute<LOAD | COMPUTE, false>(hot, block, *op, addresses, pc);
                break;
            case Shape::OTHER:
                if (op->parts & SECOND_OF_PAIR && fuse(hot, *op, pair, destination)) break;
                wait_for_supply(hot, supplied);
                execute_any(hot, block, *op, addresses, pc);
                break;
        }
        if (op->parts & BRANCH) branch(hot, *op, pc, op + 1 == end ? next : pc + op->length, op + 1 == end);
        ++op;
        if (op == end || hot.retirement >= limit_slot) break;
        leaves = op->leaves_line;
        pair = op[-1].pair;
        destination = op[-1].destinations[0];
    }
    last_pair_ = op[-1].pair;
    last_destination_ = op[-1].destinations[0];
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    repeats_.end();
    count_slots();
    return static_cast<unsigned>(op - block.ops.data());
}

// Fetch and decode: when the instruction may be dispatched.
[[gnu::always_inline]] inline uint64_t OutOfOrder::fetch_and_decode(Hot& hot, const Block& block, const PreparedOp& op,
                                                                    bool leaves, uint64_t pc) {
    auto fetch = [&](uint64_t line, uint64_t cycle) {
        auto question = [&] {
            return Question{
                .at = relative(cycle), .also = static_cast<int32_t>(line - block.address), .kind = Question::FETCH};
        };
        return cycle + ask(question, [&] { return memory_.fetch(line, cycle) - cycle; });
    };
    uint64_t supplied = front_.supply(hot.front, pc, op.length, leaves, hot.cycle(), fetch);
    if (decode_limits_) {
        if (supplied > hot.decode_cycle) hot.decode_cycle = supplied, hot.decodes = decode_width_;
        if (hot.decodes == 0) ++hot.decode_cycle, hot.decodes = decode_width_;
        --hot.decodes;
        supplied = hot.decode_cycle;
    }
    return supplied;
}

// Dispatch waits for it, at the next slot.
[[gnu::always_inline]] inline void OutOfOrder::wait_for_supply(Hot& hot, uint64_t supplied) {
    next_slot(hot);
    if (supplied << CYCLE <= hot.dispatch) return;
    slots_.lose_to_supply(hot.cycle(), used_of(hot.dispatch), supplied, redirect_);
    hot.dispatch = supplied << CYCLE;
}

// When the sources are there, those that the same unit has computed a little earlier.
uint64_t OutOfOrder::chain_start(const PreparedOp& op, uint64_t start) const {
    for (uint8_t source : op.sources) {
        const uint64_t saved = chained_[source] ? op.accumulate_saving : 0;
        start = std::max(start, ready_[source] - saved);
    }
    return start;
}

uint64_t OutOfOrder::apply(uint64_t answer, uint64_t issued) {
    uint64_t loaded = issued + answer % HIT, when = issued + answer / HIT % WHEN;
    if (answer & SPLIT)
        loaded = std::max(loaded, calendar_.take(load_entry_.use, issued)) + load_store_.split_load_cycles;
    switch (static_cast<StoreQueue::Answer>(answer >> ANSWER)) {
        case StoreQueue::Answer::FORWARD: return when;
        case StoreQueue::Answer::PART: return std::max(loaded, when);
        case StoreQueue::Answer::ALIAS: return loaded + load_store_.alias_4k_cycles;
        case StoreQueue::Answer::NONE: break;
    }
    return loaded;
}

// Of a taken branch that was predicted.
unsigned OutOfOrder::bubble_of(BranchKind kind, Prediction prediction, uint64_t answer) const {
    if (prediction == Prediction::LATE) return front_.late_bubble;
    const bool indirect = kind >= BranchKind::INDIRECT && kind != BranchKind::CALL;
    const unsigned bubble = indirect ? front_.indirect_bubble : front_.taken_bubble;
    return answer & FAR ? std::max(bubble, front_.far_bubble) : bubble;
}

[[gnu::always_inline]] inline void OutOfOrder::branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next,
                                                      bool last) {
    const uint64_t fallthrough = pc + op.length, straight_from = hot.front.straight_from;
    auto question = [&] {
        return Question{
            .offset = op.offset, .kind = Question::BRANCH, .length = op.length, .branch = op.branch, .is_last = last};
    };
    const uint64_t answer = ask(question, [&] { return ask_branch(straight_from, pc, op.branch, next, fallthrough); });
    hot.front.straight_from = next;
    const auto prediction = static_cast<Prediction>(answer & PREDICTION);
    if (prediction == Prediction::WRONG) {
        redirect_ = {hot.done, hot.done + mispredict_cycles_};
        front_.restart(hot.front, redirect_.right_way_from, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, bubble_of(op.branch, prediction, answer), hot.cycle(), answer & STREAMS);
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool OutOfOrder::fuse(const Hot& hot, const PreparedOp& op, Pair pair,
                                                    uint8_t destination) {
    const bool aes = op.parts & AES_PAIR;
    if (pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && op.sources[0] != destination)) return false;
    count(Probe::FUSED);
    if (aes) write(op.destinations[0], hot.done);
    return true;
}

[[gnu::always_inline]] inline void OutOfOrder::next_slot(Hot& hot) {
    if (used_of(hot.dispatch) >= slots_.width()) hot.dispatch = (hot.dispatch | USED) + 1;
}

// Dispatch waits for an entry of something.
[[gnu::always_inline]] inline void OutOfOrder::wait(Hot& hot, uint64_t to, PipelineProbe reason) {
    stand_still(hot.dispatch, to, hot.rob_count, reason);
    hot.dispatch = to << CYCLE;
}

[[gnu::always_inline]] inline void OutOfOrder::wait_to(Hot& hot, uint64_t to) {
    if (to <= hot.cycle()) return;
    lose_in_segments(hot.cycle(), used_of(hot.dispatch), to, hot.rob_count, false);
    hot.dispatch = to << CYCLE;
}

void OutOfOrder::stand_still(CycleSlot from, uint64_t to, uint64_t rob_count, PipelineProbe reason) {
    count(reason, to - cycle_of(from));
    lose_in_segments(cycle_of(from), used_of(from), to, rob_count, reason == Probe::STALL_STORE_BUFFER);
}

// Each cycle is memory's if the oldest micro-op then was a load.
void OutOfOrder::lose_in_segments(uint64_t cycle, unsigned used, uint64_t to, uint64_t rob_count, bool memory) {
    if (rob_count - rob_oldest_ > rob_size_) rob_oldest_ = rob_count - rob_size_;
    while (cycle < to) {
        uint64_t until = to;
        bool waits = memory;
        for (; rob_oldest_ < rob_count; ++rob_oldest_) {
            CycleSlot entry = rob_[rob_oldest_ & rob_mask_];
            if (cycle_of(entry) > cycle) {
                until = std::min(to, cycle_of(entry));
                waits |= (entry & WAITED_FOR_MEMORY) != 0;
                break;
            }
        }
        slots_.lose_to_backend(cycle, used, until, waits);
        cycle = until;
        used = 0;
    }
}

Entry OutOfOrder::choose(Entry entry) {
    unsigned fewest = ~0U;
    for (const Entry& choice : placement_.choices(entry.use)) {
        unsigned held = schedulers_.held(choice.scheduler);
        if (schedulers_.full(choice.scheduler)) held += 1 << 16;
        if (held >= fewest) continue;
        fewest = held;
        entry = choice;
    }
    return entry;
}

bool OutOfOrder::too_many_moves(uint64_t cycle) {
    if (cycle != moves_cycle_) moves_cycle_ = cycle, moves_ = 0;
    return ++moves_ > moves_per_cycle_;
}

void OutOfOrder::run_iteration(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const PreparedOp& op = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (repeats_.begin()) {
        bool leaves = front_.leaves(hot.front.line, block.address, op.length);
        wait_for_supply(hot, fetch_and_decode(hot, block, op, leaves, block.address));
        wait_to(hot, hot.cycle() + repeats_.start_cycles);
    }
    if (repeats_.moved(op.load_sites + op.store_sites ? block.accesses[op.first_site].size : 0))
        feed_caches(block, addresses);
    else
        execute_any(hot, block, op, addresses, block.address);
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    count_slots();
}

// A part of what REP's last micro-ops have moved: no time, but the caches are accessed.
void OutOfOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const PreparedOp& op = block.iteration;
    unsigned site = op.first_site, stores = site + op.load_sites, end = stores + op.store_sites;
    for (; site < stores; ++site) memory_.load(addresses[site], block.accesses[site].size, block.address, hot_.cycle());
    for (; site < end; ++site)
        memory_.store(addresses[site], block.accesses[site].size, block.address, cycle_of(hot_.retirement));
}

void OutOfOrder::run_kernel(uint64_t cycles) {
    next_slot(hot_);
    uint64_t retired = cycle_of(hot_.retirement);
    wait_to(hot_, retired + (used_of(hot_.dispatch) > 0 && retired == hot_.cycle()));
    cycle_ = hot_.cycle() + cycles;
    hot_.dispatch += cycles << CYCLE;
    hot_.retirement = cycle_ << CYCLE;
    front_.restart(hot_.front, cycle_, 0);
    hot_.front.line = FrontEnd::NO_LINE;
    redirect_ = {};
    last_pair_ = Pair::NONE;
    repeats_.end();
}

void OutOfOrder::count_slots() {
    count(Probe::UOPS_DISPATCHED, hot_.rob_count - counted_slots_);
    count(Probe::UOPS_RETIRED, hot_.rob_count - counted_slots_);
    count(Probe::CYCLES_RETIRING, hot_.retiring_cycles - counted_retiring_);
    counted_slots_ = hot_.rob_count;
    counted_retiring_ = hot_.retiring_cycles;
}

static const PipelineModel MODEL("out_of_order", make_pipeline<OutOfOrder>);

}  // namespace perfemu::out_of_order
