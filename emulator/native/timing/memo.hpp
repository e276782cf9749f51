// What a pipeline has done before: from a state, with something that happened, it went to another state, after so many
// cycles, and counted so much. (After FastSim: E. Schnarr, J. Larus: "Fast out-of-order processor simulation using
// memoization", ASPLOS VIII, 1998.)
//
// A client brings its `Transition`, with what it wants to know of one besides, and enters under (state, what happened)
// a number of its own: in order that of a transition (block_memo.hpp), out of order that of a trace (memo_trace.hpp).
// What transitions count comes to the totals when the client settles.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "timing/state_table.hpp"

namespace perfemu {

// Numbers by key; open addressing.
class MemoIndex {
  public:
    static constexpr uint32_t NONE = 0;

    MemoIndex() { clear(); }

    uint32_t find(uint64_t key) const {
        const size_t mask = entries_.size() - 1;
        size_t slot = spread(key) & mask;
        while (entries_[slot].number != NONE && entries_[slot].key != key) slot = (slot + 1) & mask;
        return entries_[slot].number;
    }
    // A key that `find` has not found.
    void enter(uint64_t key, uint32_t number);
    void clear();

  private:
    static constexpr size_t FEWEST_ENTRIES = 1 << 12;

    struct Entry {
        uint64_t key = 0;
        uint32_t number = NONE;
    };

    static uint64_t spread(uint64_t key) {
        key *= 0x9E37'79B9'7F4A'7C15;  // 2^64 over the golden ratio
        return key ^ key >> 32;
    }
    void put(const Entry& entry);

    std::vector<Entry> entries_;
    size_t used_ = 0;
};

// A Transition has `to`, a state, and `runs`, how often it was taken since the last `settle`.
template <typename Transition>
class Memo {
  public:
    using State = StateTable::State;
    static constexpr State NO_STATE = StateTable::NONE;
    static constexpr uint32_t NONE = MemoIndex::NONE;  // the number of a transition that leads to no state

    explicit Memo(size_t most) : most_(most) { clear(); }

    State state(std::span<const uint8_t> bytes) { return states_.number(bytes); }
    // NO_STATE: it has never been.
    State known_state(std::span<const uint8_t> bytes) const { return states_.find(bytes); }
    // A state between two others, which has no bytes.
    State fresh() { return states_.fresh(); }
    std::span<const uint8_t> bytes(State state) const { return states_.bytes(state); }

    static uint64_t key_of(State from, uint32_t what) { return uint64_t{from} << 32 | what; }
    uint32_t find(uint64_t key) const { return index_.find(key); }
    void enter(uint64_t key, uint32_t number) { index_.enter(key, number); }

    Transition& operator[](uint32_t number) { return transitions_[number]; }
    const Transition& operator[](uint32_t number) const { return transitions_[number]; }
    uint32_t number(const Transition& transition) const {
        return static_cast<uint32_t>(&transition - transitions_.data());
    }
    // References to transitions do not outlive it. Returns the number.
    uint32_t add(const Transition& transition) {
        transitions_.push_back(transition);
        counted_.push_back({});
        return static_cast<uint32_t>(transitions_.size() - 1);
    }
    void take(Transition& transition) {
        if (transition.runs++ == 0) [[unlikely]]
            taken_.push_back(number(transition));
    }

    // What the transition counts: by counter, `now` less `before`, most of which is nothing.
    void set_counts(uint32_t number, std::span<const uint64_t> now, std::span<const uint64_t> before) {
        Range& range = counted_[number];
        range.first = static_cast<uint32_t>(amounts_.size());
        for (uint32_t counter = 0; counter < now.size(); ++counter)
            if (now[counter] != before[counter]) amounts_.push_back({now[counter] - before[counter], counter});
        range.end = static_cast<uint32_t>(amounts_.size());
    }
    // Adds that to `totals`, `times` times.
    void count(uint32_t number, uint64_t times, std::span<uint64_t> totals) const {
        const Range range = counted_[number];
        for (uint32_t index = range.first; index != range.end; ++index)
            totals[amounts_[index].counter] += amounts_[index].amount * times;
    }
    // Adds what has been counted since the last time.
    void settle(std::span<uint64_t> totals) {
        for (uint32_t number : taken_) count(number, std::exchange(transitions_[number].runs, 0), totals);
        taken_.clear();
    }

    // Too much for the host's memory, or to be found quickly: the client settles and clears.
    bool full() const {
        return transitions_.size() > most_ || states_.size() > most_ || states_.size_bytes() > MOST_BYTES;
    }
    void clear() {
        states_.clear();
        index_.clear();
        transitions_.assign(1, {});
        counted_.assign(1, {});
        amounts_.clear();
        taken_.clear();
    }

  private:
    static constexpr size_t MOST_BYTES = 64 << 20;

    struct Amount {
        uint64_t amount;
        uint32_t counter;
    };
    struct Range {
        uint32_t first = 0, end = 0;
    };

    size_t most_;
    StateTable states_;
    MemoIndex index_;
    std::vector<Transition> transitions_;  // by number; the first is NONE
    std::vector<Range> counted_;           // by transition, of amounts_
    std::vector<Amount> amounts_;
    std::vector<uint32_t> taken_;  // numbers of transitions with runs
};

}  // namespace perfemu
