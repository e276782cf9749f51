// What a machine has done before: from a state, when this or that happened to it, it went to another state, after so
// long, and so much was to be counted.
//
// States are strings of bytes and get numbers; there are also states without a string, which lie between two others. A
// step leads from one state to the next by `what` happened, a number that means something to the owner. Steps are
// found by hashing; what has been counted comes to the totals when the owner asks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace perfemu {

class Memo {
  public:
    using State = uint32_t;
    static constexpr State NONE = ~State{0};

    struct Step {
        uint64_t key = EMPTY;  // where it comes from, and what happened
        State to = NONE;       // where it leads
        uint32_t runs = 0;     // how often it was taken, since the last `settle`
        int32_t cycles = 0;    // these two are the owner's
        int32_t retired = 0;
        uint32_t changes = 0;  // what it counts: changes_[changes] and the following
        uint32_t behind = 0;   // up to there

        static constexpr uint64_t EMPTY = ~uint64_t{0};
    };

    Memo() { clear(); }

    // Eight things that may happen to a state: numbers that differ in their lowest three bits.
    struct Cases {
        uint64_t key;
        size_t place;  // of the first, if no other is there; those of the others follow
    };
    Cases cases(State from, uint32_t first) const {
        const uint64_t key = uint64_t{from} << 32 | first;
        return {key, key * SPREAD >> shift_};
    }
    // Brings this one to the host's cache.
    void prefetch(const Cases& cases, uint32_t which) const {
        __builtin_prefetch(&steps_[(cases.place + which) & mask_], 1);
    }
    void prefetch(State from, uint32_t what) const { prefetch(cases(from, what & ~LOW), what & LOW); }
    // The step that leads from there, or null.
    Step* find(const Cases& cases, uint32_t which) {
        const uint64_t key = cases.key | which;
        Step* step = &steps_[(cases.place + which) & mask_];
        if (step->key == key) [[likely]]
            return step;
        return search(key, step);
    }
    Step* find(State from, uint32_t what) { return find(cases(from, what & ~LOW), what & LOW); }
    void take(Step& step) {
        if (step.runs++ == 0) [[unlikely]]
            taken_.push_back(static_cast<uint32_t>(&step - steps_.data()));
    }

    // The state with these bytes; `fresh`: one that has none.
    State state(std::span<const uint8_t> bytes);
    State fresh();
    std::span<const uint8_t> bytes(State state) const {
        return std::span(bytes_).subspan(states_[state].first, states_[state].size);
    }
    // A step that `find` has not found. References to steps do not outlive it.
    Step& add(State from, uint32_t what, State to);
    // What the step counts: amounts by counter, most of them 0.
    void set_changes(Step& step, std::span<const uint64_t> amounts);
    template <typename Counts>
    Counts changes(const Step& step) const {
        Counts amounts{};
        for (uint32_t index = step.changes; index != step.behind; ++index)
            amounts[changes_[index].counter] = changes_[index].amount;
        return amounts;
    }
    // What has been counted since the last time is added to `totals`.
    void settle(std::span<uint64_t> totals);

    // Too much to be found quickly: the owner settles and clears.
    bool full() const { return used_ > MOST_STEPS || states_.size() > MOST_STEPS; }
    void clear();

  private:
    static constexpr size_t FEWEST_PLACES = 1 << 10, MOST_STEPS = 1 << 18;
    static constexpr uint64_t SPREAD = 0x9E37'79B9'7F4A'7C15;  // 2^64 over the golden ratio

    struct Bytes {
        uint32_t first, size, hash;
    };
    struct Change {
        uint64_t amount;
        uint32_t counter;
    };

    static constexpr uint32_t LOW = 7;

    Step* search(uint64_t key, Step* step);
    Step& room(uint64_t key);
    void grow();

    std::vector<Step> steps_;
    size_t mask_ = 0, used_ = 0;
    unsigned shift_ = 0;
    std::vector<uint32_t> taken_;  // places of steps that have been taken
    std::vector<Change> changes_;
    std::vector<Bytes> states_;  // by number
    std::vector<uint8_t> bytes_;
    std::vector<State> numbers_;  // of states that have bytes, by hash
};

}  // namespace perfemu
