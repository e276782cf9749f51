// What the pipeline does only once: a whole block, from a state that it has been in before, is replayed from its trace
// as long as what it asks is answered as it was. When it is not, or there is no trace, the pipeline's own state is made
// from the memo's and the block is executed, and recorded; what was asked and answered already is not asked again.
//
// Caches, predictors, the store queue and where fetch is stay outside the states, and are asked everything, in the
// same order and at the same cycles.
#include <stdexcept>
#include <utility>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

namespace {

// With anything so far ahead of dispatch, a state is not described.
constexpr uint64_t HORIZON = 1000;
constexpr uint32_t AFTER_PARTS = 64;  // blocks

// Up to the first 0; of equal ones in a row, one and how many.
template <typename At>
void save_runs(StateWriter& state, uint64_t most, At at) {
    for (uint64_t index = 0; index < most;) {
        const uint64_t run = at(index), first = index;
        if (run == 0) break;
        while (++index < most && at(index) == run) {
        }
        state.put(run);
        state.put(index - first);
    }
    state.put(0);
}

}  // namespace

void OutOfOrder::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const Block& block = static_cast<const Block&>(prepared);
    repeating_ = false;
    if (in_memo() && --until_review_ == 0) review();
    if (!in_memo() && !enter_memo()) {
        run_block(block, addresses, 0, static_cast<unsigned>(block.ops.size()), next, NO_LIMIT);
        return;
    }
    has_room_ = block.stores == 0 || stores_.free_at(block.stores) <= base_;
    const uint32_t name = name_of(block);
    if (!replay(block, addresses, next, name)) record(block, addresses, next, name);
    has_room_ = false;
}

// Whatever the block's trace depends on besides the state.
uint32_t OutOfOrder::name_of(const Block& block) const {
    const uint64_t line = hot_.front.line;
    unsigned enters = line == block.first_line ? line != block.second_line : line == FrontEnd::NO_LINE ? 2 : 3;
    return block.number << 3 | enters << 1 | has_room_;
}

// Too much is new: for a while it is cheaper to execute everything.
void OutOfOrder::review() {
    credit_ = std::min(credit_ + REVIEWED - (DEAR + 1) * recorded_, MOST_CREDIT);
    if (credit_ < 0) {
        rest_ = static_cast<uint64_t>((RESTED - credit_) / DEAR * REST);
        credit_ = RESTED;
        leave_memo();
    }
    until_review_ = REVIEWED;
    recorded_ = 0;
}

bool OutOfOrder::enter_memo() {
    if (rest_ == 0) return MemoizingPipeline::enter_memo();
    --rest_;
    return false;
}

// Of a block that is cut into parts, more may follow.
unsigned OutOfOrder::run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                         uint64_t next, uint64_t limit) {
    rest_ = std::max<uint64_t>(rest_, AFTER_PARTS);
    return run_block(static_cast<const Block&>(block), addresses, first, last, next, limit);
}

bool OutOfOrder::replay(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name) {
    uint32_t number = TraceMemo::NONE;
    if (TraceTransition& last = memo_[last_]; last.next_block == name) {
        number = last.next_exchange;
    } else {
        number = memo_.find(state_, name);
        if (number != TraceMemo::NONE && last_ != TraceMemo::NONE) last.next_block = name, last.next_exchange = number;
    }
    known_ = fork_ = 0;
    if (number == TraceMemo::NONE) return false;
    const uint64_t line = hot_.front.line;
    while (true) {
        const TraceMemo::Exchange* exchange = &memo_.exchange(number);
        const Question& question = exchange->question;
        const uint64_t at = base_ + question.at, pc = block.address + question.offset;
        uint64_t answer = 0;
        switch (question.kind) {
            case Question::FETCH:
                hot_.front.line = block.address + question.also;
                answer = memory_.fetch(hot_.front.line, at) - at;
                break;
            case Question::ROOM: answer = std::max(stores_.free_at(), at) - at; break;
            case Question::LOAD:
                answer = ask_load(addresses[question.site], question.access, pc, at, question.forward_traits);
                break;
            case Question::PREFETCH: memory_.prefetch(addresses[question.site], pc, at); break;
            case Question::STORE:
                write_store(addresses[question.site], question.access, pc, at, base_ + question.also,
                            question.forward_traits);
                break;
            case Question::BRANCH: {
                const uint64_t fallthrough = pc + question.length;
                answer = ask_branch(pc, question.branch, question.is_last ? next : fallthrough, fallthrough);
                break;
            }
            case Question::END:
                if (mode_ == RecallMode::CHECK) [[unlikely]]
                    check_block(block, addresses, next, line, static_cast<uint32_t>(exchange->answer));
                advance(static_cast<uint32_t>(exchange->answer));
                return true;
        }
        answers_[known_++] = answer;
        while (exchange->answer != answer) [[unlikely]] {
            if (exchange->other == TraceMemo::NONE) {
                fork_ = number;
                hot_.front.line = line;
                return false;
            }
            number = exchange->other;
            exchange = &memo_.exchange(number);
        }
        ++number;
    }
}

// Executes the block that has been replayed, too, which must come to the same.
void OutOfOrder::check_block(const Block& block, const uint64_t* addresses, uint64_t next, uint64_t line,
                             uint32_t number) {
    const TraceTransition transition = memo_[number];
    const uint64_t slots = hot_.rob_count, retired = cycle_, replayed_line = std::exchange(hot_.front.line, line);
    const PipelineCounts before = counts_;
    restore_members();
    memo_.begin(state_, name_of(block));
    run_recorded(block, addresses, next);
    memo_.abandon();
    const uint64_t cycle = transition.retired < 0 ? retired : base_ + static_cast<uint64_t>(transition.retired);
    const bool same = asked_ == known_ && hot_.rob_count == slots + transition.slots && cycle_ == cycle &&
                      hot_.front.line == replayed_line;
    check(number, before, same);
    hot_.rob_count = slots;
    cycle_ = retired;
}

void OutOfOrder::advance(uint32_t number) {
    TraceTransition& transition = memo_[number];
    memo_.prefetch(transition);
    if (last_ != TraceMemo::NONE) memo_[last_].next_transition = number;
    memo_.take(transition);
    if (transition.retired >= 0) cycle_ = base_ + static_cast<uint64_t>(transition.retired);
    base_ += transition.cycles;
    hot_.rob_count += transition.slots;
    state_ = transition.to;
    last_ = number;
    restored_ = false;
}

void OutOfOrder::run_recorded(const Block& block, const uint64_t* addresses, uint64_t next) {
    asked_ = 0;
    recording_ = true;
    run_block(block, addresses, 0, static_cast<unsigned>(block.ops.size()), next, NO_LIMIT);
    recording_ = false;
}

void OutOfOrder::record(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name) {
    restore_members();
    if (fork_ != TraceMemo::NONE)
        memo_.fork(fork_, answers_[known_ - 1]);
    else
        memo_.begin(state_, name);
    const PipelineCounts before = counts_;
    const uint64_t slots = hot_.rob_count, began = base_;
    run_recorded(block, addresses, next);
    if (!number_state()) return memo_.abandon();
    if (!memo_has_room()) return;
    ++recorded_;
    last_ = memo_.finish({.to = state_,
                          .cycles = static_cast<uint32_t>(base_ - began),
                          .retired = cycle_ < began ? -1 : static_cast<int32_t>(cycle_ - began),
                          .slots = static_cast<uint32_t>(hot_.rob_count - slots)},
                         known_);
    memo_.set_counts(last_, counts_.amounts, before.amounts);
    if (answers_.size() < memo_.longest()) answers_.resize(memo_.longest());
}

// What is over by base_ is left out: it makes no difference any more.
bool OutOfOrder::save(StateWriter& state) {
    const uint64_t ahead = std::max(cycle_of(hot_.retirement), calendar_.last());
    const uint64_t horizon = std::max(ahead, base_) - base_;
    if (horizon >= HORIZON) return false;
    auto later = [this](uint64_t cycle) { return cycle > base_ ? cycle - base_ : 0; };

    state.put(used_of(hot_.dispatch));
    const uint64_t earliest = base_ - earliest_;  // which may be before the beginning of time
    auto since = [&](uint64_t cycle) { return cycle + earliest_ > base_ ? cycle - earliest : 0; };
    state.put(since(hot_.front.cycle));
    state.put(hot_.front.bytes);
    state.put(hot_.front.taken);
    const bool decodes = decode_limits_ && hot_.decode_cycle >= hot_.front.cycle;  // else it waits for fetch
    state.put(decodes ? since(hot_.decode_cycle) + 1 : 0);
    state.put(decodes ? hot_.decodes : 0);
    const bool retires = cycle_of(hot_.retirement) >= base_;
    state.put(retires ? cycle_of(hot_.retirement) - base_ + 1 : 0);
    state.put(retires ? used_of(hot_.retirement) : 0);
    state.put(static_cast<uint64_t>(last_pair_));
    state.put(last_pair_ == Pair::AES ? last_destination_ : NOWHERE);
    state.put(last_pair_ != Pair::NONE ? hot_.done + HORIZON - base_ : 0);
    state.put(moves_cycle_ == base_ ? moves_ : 0);
    state.put(later(right_way_from_));
    state.put(right_way_from_ > base_ ? later(resolved_) : 0);
    save_rob(state);
    save_load_queue(state);
    save_registers(state);
    calendar_.save(base_, base_ + horizon, state);
    schedulers_.save(base_, base_ + horizon, state);
    return true;
}

// Whether dispatch may wait for an entry to retire `later`, with so many entries free after it until it is wanted
// again.
// A check compares states byte by byte: there they all count.
bool OutOfOrder::holds_up(uint64_t later, uint64_t places) const {
    if (mode_ == RecallMode::CHECK) return true;
    return later * slots_.width() > places - std::min<uint64_t>(places, most_slots_);
}

// From the youngest. If dispatch will wait for none of its entries, it matters only who will be the oldest when, loads
// or others: for each change the cycle until which. Else all of them, equal ones in a row as one.
void OutOfOrder::save_rob(StateWriter& state) const {
    const uint64_t entries = std::min<uint64_t>(rob_size_, hot_.rob_count);
    // Copies, since no byte that is written can be one of them.
    const uint64_t base = base_, youngest = hot_.rob_count - 1, mask = rob_mask_;
    const CycleSlot* const rob = rob_.get();
    auto entry = [=](uint64_t index) { return rob[(youngest - index) & mask]; };
    auto number = [=](uint64_t index) -> uint64_t {
        const CycleSlot its = entry(index);
        return cycle_of(its) <= base ? 0 : (cycle_of(its) - base) << 1 | ((its & WAITED_FOR_MEMORY) != 0);
    };
    const size_t first = state.size();
    state.put(false);
    uint64_t last = 0;
    for (uint64_t index = 0; index < entries; ++index) {
        const uint64_t now = number(index);
        if (now == 0) break;
        if (holds_up(now >> 1, rob_size_ - 1 - index)) {
            state.truncate(first);
            state.put(true);
            return save_runs(state, entries, number);
        }
        // Of those that retire in one cycle, the oldest.
        if (index + 1 < entries && cycle_of(entry(index + 1)) == cycle_of(entry(index))) continue;
        if (last == 0 || (last ^ now) & 1) state.put(last = now);
    }
    state.put(0);
}

// From the youngest, if dispatch may wait for one.
void OutOfOrder::save_load_queue(StateWriter& state) const {
    const uint64_t base = base_, next = load_next_, size = load_queue_size_;
    const uint64_t* const queue = load_queue_.get();
    auto later = [=](uint64_t index) -> uint64_t {
        const uint64_t retires = queue[(next > index ? next : next + size) - 1 - index];
        return retires > base ? retires - base : 0;
    };
    for (uint64_t index = 0; index < load_queue_size_ && later(index); ++index)
        if (holds_up(later(index), load_queue_size_ - 1 - index)) return save_runs(state, load_queue_size_, later);
    state.put(0);
}

// How far each is from the one before, and when it is ready.
void OutOfOrder::save_registers(StateWriter& state) const {
    const uint64_t base = base_;
    const unsigned registers = registers_;
    unsigned before = 0;
    for (unsigned number = 0; number < registers; ++number) {
        if (ready_[number] <= base + 1) continue;
        state.put((number + 1 - before) << 1 | chained_[number]);
        state.put(ready_[number] - base);
        before = number + 1;
    }
    state.put(0);
}

void OutOfOrder::restore(StateReader& saved) {
    hot_.dispatch = base_ << CYCLE | saved.get();
    const uint64_t earliest = base_ - earliest_;
    hot_.front.cycle = earliest + saved.get();
    hot_.front.bytes = static_cast<unsigned>(saved.get());
    hot_.front.taken = static_cast<unsigned>(saved.get());
    const uint64_t decode = saved.get();
    hot_.decode_cycle = decode ? earliest + decode - 1 : 0;
    hot_.decodes = static_cast<unsigned>(saved.get());
    const uint64_t retirement = saved.get();
    hot_.retirement = (retirement ? base_ + retirement - 1 : cycle_) << CYCLE | saved.get();
    last_pair_ = static_cast<Pair>(saved.get());
    last_destination_ = static_cast<uint8_t>(saved.get());
    hot_.done = base_ + saved.get() - HORIZON;
    moves_cycle_ = base_;
    moves_ = static_cast<unsigned>(saved.get());
    right_way_from_ = base_ + saved.get();
    resolved_ = base_ + saved.get();
    hot_.retiring_cycles = counted_retiring_;
    counted_slots_ = hot_.rob_count;

    auto get_runs = [&](auto set) {
        for (uint64_t index = 0; uint64_t run = saved.get();)
            for (uint64_t count = saved.get(); count > 0; --count) set(index++, run);
    };
    auto set_entry = [&](uint64_t index, uint64_t entry) {
        rob_[(hot_.rob_count - 1 - index) & rob_mask_] =
            (base_ + (entry >> 1)) << CYCLE | (entry & 1 ? WAITED_FOR_MEMORY : 0);
    };
    const bool has_runs = saved.get();
    if (has_runs) {
        rob_oldest_ = 0;
        get_runs(set_entry);
    } else {
        uint64_t entries = 0;
        while (uint64_t entry = saved.get()) set_entry(entries++, entry);
        rob_oldest_ = hot_.rob_count - entries;
    }
    std::fill_n(load_queue_.get(), load_queue_size_, 0);
    load_next_ = 0;
    get_runs([&](uint64_t index, uint64_t later) { load_queue_[load_queue_size_ - 1 - index] = base_ + later; });
    std::fill_n(ready_, registers_, 0);
    std::fill_n(chained_, registers_, false);
    for (uint64_t end = 0; uint64_t next = saved.get();) {
        end += next >> 1;
        ready_[end - 1] = base_ + saved.get();
        chained_[end - 1] = next & 1;
    }
    calendar_.restore(base_, saved);
    schedulers_.restore(base_, saved);
}

}  // namespace perfemu::out_of_order
