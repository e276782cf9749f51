// What a machine has done before: from a state, when this or that happened to it, it went to another state, after so
// long, and so much was to be counted.
//
// States are strings of bytes and get numbers; there are also states without a string, which lie between two others. A
// step leads from one state to the next by `what` happened, a number that means something to the owner. Each step knows
// which ones came behind it last, so that most are found without hashing. What has been counted comes to the totals
// when the owner asks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "timing/state_table.hpp"

namespace perfemu {

class Memo {
  public:
    using State = StateTable::State;
    static constexpr State NONE = StateTable::NONE;

    struct alignas(32) Step {
        uint64_t key = EMPTY;              // where it comes from, and what happened
        State to = NONE;                   // where it leads
        uint32_t runs = 0;                 // how often it was taken, since the last `settle`
        int32_t cycles = 0;                // the owner's
        std::array<uint32_t, 3> behind{};  // numbers of the steps that came behind it, in so many ways

        static constexpr uint64_t EMPTY = ~uint64_t{0};
    };
    static constexpr uint32_t NOWHERE = 0;  // the number of a step that has not been taken, and leads to no state

    Memo() { clear(); }

    Step& step(uint32_t number) { return steps_[number]; }
    uint32_t number(const Step& step) const { return static_cast<uint32_t>(&step - steps_.data()); }
    // The step that leads from there, or null. `last` has led there, or is NOWHERE; `way` is one of three, and the same
    // for what is most often the same.
    Step* find(Step& last, unsigned way, State from, uint32_t what) {
        const uint64_t key = uint64_t{from} << 32 | what;
        Step& step = steps_[last.behind[way]];
        if (step.key == key) [[likely]]
            return &step;
        return search(key, last.behind[way]);
    }
    // Brings the one that came behind it that way to the host's cache.
    void prefetch(const Step& last, unsigned way) const { __builtin_prefetch(&steps_[last.behind[way]], 1); }
    Step* find(State from, uint32_t what) {
        uint32_t found;
        return search(uint64_t{from} << 32 | what, found);
    }
    void take(Step& step) {
        if (step.runs++ == 0) [[unlikely]]
            taken_.push_back(number(step));
    }

    // The state with these bytes; `fresh`: one that has none.
    State state(std::span<const uint8_t> bytes) { return states_.number(bytes); }
    State fresh() { return states_.fresh(); }
    std::span<const uint8_t> bytes(State state) const { return states_.bytes(state); }
    // A step that `find` has not found. References to steps do not outlive it.
    Step& add(State from, uint32_t what, State to);
    // What the step counts: amounts by counter, most of them 0. `retired`: the owner's.
    void set_changes(const Step& step, int32_t retired, std::span<const uint64_t> amounts);
    int32_t retired(const Step& step) const { return details_[number(step)].retired; }
    template <typename Counts>
    Counts changes(const Step& step) const {
        Counts amounts{};
        const Detail& detail = details_[number(step)];
        for (uint32_t index = detail.changes; index != detail.behind; ++index)
            amounts[changes_[index].counter] = changes_[index].amount;
        return amounts;
    }
    // What has been counted since the last time is added to `totals`.
    void settle(std::span<uint64_t> totals);

    // Too much to be found quickly: the owner settles and clears.
    bool full() const { return steps_.size() > MOST_STEPS || states_.size() > MOST_STEPS; }
    void clear();

  private:
    static constexpr size_t FEWEST_PLACES = 1 << 10, MOST_STEPS = 1 << 18;
    static constexpr uint64_t SPREAD = 0x9E37'79B9'7F4A'7C15;  // 2^64 over the golden ratio

    struct Change {
        uint64_t amount;
        uint32_t counter;
    };

    // What is rarely needed of a step: what it counts, changes_[changes] and the following up to `behind`.
    struct Detail {
        int32_t retired = 0;
        uint32_t changes = 0, behind = 0;
    };

    Step* search(uint64_t key, uint32_t& found);
    size_t place_of(uint64_t key) const { return key * SPREAD >> shift_; }
    void grow();

    std::vector<Step> steps_;  // by number; the first is NOWHERE
    std::vector<Detail> details_;
    std::vector<uint32_t> places_;  // numbers of steps, by hash
    unsigned shift_ = 0;
    std::vector<uint32_t> taken_;  // numbers of steps that have been taken
    std::vector<Change> changes_;
    StateTable states_;
};

}  // namespace perfemu
