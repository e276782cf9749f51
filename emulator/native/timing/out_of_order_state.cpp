// The out-of-order pipeline's state as bytes, for its memo.
#include <algorithm>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

namespace {

// With anything so far ahead of dispatch, a state is not described.
constexpr uint64_t HORIZON = 1000;

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

// What is over by base_ is left out: it makes no difference any more.
bool OutOfOrder::save(StateWriter& state) {
    const uint64_t ahead = std::max(cycle_of(hot_.retirement), calendar_.last());
    const uint64_t horizon = std::max(ahead, base_) - base_;
    if (horizon >= HORIZON) return false;
    auto later = [this](uint64_t cycle) { return cycle > base_ ? cycle - base_ : 0; };

    const unsigned used = used_of(hot_.dispatch);
    state.put(used << Slots::STATE_BITS | slots_.stalled_before(hot_.cycle(), used));
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
    state.put(later(redirect_.right_way_from));
    state.put(redirect_.right_way_from > base_ ? later(redirect_.resolved) : 0);
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
    const uint64_t slot = saved.get();
    hot_.dispatch = base_ << CYCLE | slot >> Slots::STATE_BITS;
    slots_.set_stalled_before(base_, slot & ((1 << Slots::STATE_BITS) - 1));
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
    redirect_.right_way_from = base_ + saved.get();
    redirect_.resolved = base_ + saved.get();
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
