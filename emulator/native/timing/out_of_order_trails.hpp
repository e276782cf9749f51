// What the out-of-order pipeline has done before: in this state, with this block, when its surroundings answered so,
// it went to that state, after so many cycles, and counted so much.
//
// The idea is FastSim's (E. Schnarr, J. Larus: "Fast out-of-order processor simulation using memoization", ASPLOS VIII,
// 1998). A trail begins at a state and a block. Its steps are what the pipeline asks of memory, the store queue and the
// branch unit, in order, and the answer that it got; a step that has been answered in several ways has several
// continuations. At its end stands the next state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing/execution.hpp"
#include "timing/state_table.hpp"

namespace perfemu::out_of_order {

// What the store queue has to know of an access besides its address.
struct AccessKind {
    bool by_stack = false;
    bool general = false;  // a store of a general register's data
    uint8_t renames = 0;   // as in Row
    uint16_t extra = 0;    // cycles that the load will take besides
};

// What the pipeline asks its surroundings, or tells them; times are relative to the dispatch with which the trail
// began.
struct Question {
    enum Kind : uint8_t {
        FETCH,     // line `also` from the block's start, in cycle `at`
        ROOM,      // in the store buffer, in cycle `at`
        LOAD,      // in cycle `at`
        PREFETCH,  // in cycle `at`
        STORE,     // retired in cycle `at`, data known in cycle `also`
        BRANCH,
        END,  // the answer is an Ending's number
    };

    int32_t at = 0, also = 0;
    uint16_t offset = 0, site = 0;  // of the instruction from the block's start; of its access
    Access access;
    Kind kind = END;
    uint8_t length = 0;
    BranchKind branch = BranchKind::NONE;
    AccessKind access_kind;
    bool is_last = false;  // a branch: of the block
};

class Trails {
  public:
    using State = StateTable::State;
    static constexpr State NO_STATE = StateTable::NONE;

    struct Step {
        uint64_t answer;
        uint32_t other;  // the same question's step with another answer; 0: none
        Question question;
    };
    struct Ending {
        State to;
        uint32_t cycles;                     // the dispatch has moved on
        int32_t retired;                     // cycle of the last retirement; negative: none was later than the dispatch
        uint32_t slots;                      // taken in the ROB
        uint32_t changes, behind;            // what it counts: [changes, behind)
        uint64_t runs = 0;                   // since the last `settle`
        uint64_t next_block = ~uint64_t{0};  // the block that followed last, and its first step
        uint32_t next_step = 0;
        uint32_t next_ending = 0;  // where that led last
    };

    Trails();

    // The state that these bytes describe.
    State state(std::span<const uint8_t> bytes) { return states_.number(bytes); }
    std::span<const uint8_t> bytes(State state) const { return states_.bytes(state); }

    // A trail's first step, 0 if there is none.
    uint32_t find(State from, uint32_t block) const;
    const Step& step(uint32_t number) const { return steps_[number]; }
    Ending& ending(uint64_t number) { return endings_[number]; }
    // Brings to the host's cache what came behind the next ending last: by the time that the next block has been
    // followed, it is there.
    void foresee(const Ending& ending) const {
        const Ending& next = endings_[ending.next_ending];
        __builtin_prefetch(&endings_[next.next_ending]);
        const Step* step = &steps_[next.next_step];
        for (size_t line = 0; line < 3; ++line) __builtin_prefetch(reinterpret_cast<const char*>(step) + 64 * line);
    }
    void take(uint64_t number) {
        if (endings_[number].runs++ == 0) taken_.push_back(static_cast<uint32_t>(number));
    }

    // A new trail, or a new continuation behind another answer to the question of `behind`; then its steps; then its
    // end, with what it has counted by index of `counted`. `abandon` instead: there is none.
    void begin(State from, uint32_t block);
    void begin_behind(uint32_t behind);
    void add(const Question& question, uint64_t answer) { steps_.push_back({answer, 0, question}); }
    // `known`: steps before the new ones. Returns the ending's number.
    uint64_t finish(const Ending& ending, std::span<const uint64_t> counted, size_t known);
    void abandon() { steps_.resize(first_); }
    size_t longest() const { return longest_; }  // steps of a trail, at most

    // What one run counts: calls add(index of `counted`, amount).
    template <typename Add>
    void each_change(const Ending& ending, Add add) const {
        for (uint32_t index = ending.changes; index < ending.behind; ++index)
            add(changes_[index].counter, changes_[index].amount);
    }

    // Adds up what has been counted since the last time: calls add(index of `counted`, amount).
    template <typename Add>
    void settle(Add add) {
        for (uint32_t number : taken_) {
            Ending& ending = endings_[number];
            each_change(ending, [&](uint32_t index, uint64_t amount) { add(index, amount * ending.runs); });
            ending.runs = 0;
        }
        taken_.clear();
    }

    // So much that the host's memory suffers: the owner settles and clears.
    bool full() const { return steps_.size() > MOST_STEPS || states_.size_bytes() > MOST_BYTES; }
    void clear();

  private:
    static constexpr size_t MOST_STEPS = 2 << 20, MOST_BYTES = 64 << 20;
    static constexpr size_t FEWEST_PLACES = 1 << 12;

    struct Beginning {
        uint64_t key = 0;
        uint32_t step = 0;  // 0: the place is empty
    };
    struct Change {
        uint32_t counter;
        uint64_t amount;
    };

    static uint64_t spread(uint64_t key) {
        key *= 0x9E37'79B9'7F4A'7C15;  // 2^64 over the golden ratio
        return key ^ key >> 32;
    }
    void enter(uint64_t key, uint32_t step);

    StateTable states_;
    std::vector<Beginning> beginnings_;
    size_t begun_ = 0;
    std::vector<Step> steps_;
    std::vector<Ending> endings_;
    std::vector<Change> changes_;
    std::vector<uint32_t> taken_;  // numbers of endings with runs
    // Of the trail that is being made: its first new step, and what leads to it.
    uint32_t first_ = 0, behind_ = 0;
    uint64_t key_ = 0;
    size_t longest_ = 0;
};

}  // namespace perfemu::out_of_order
