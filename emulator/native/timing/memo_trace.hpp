// The memo of the out-of-order pipeline. A trace begins at a state and a block. Its exchanges are what the pipeline
// asks of memory, the store queue and the branch unit, in order, and the answer that it got; an exchange that has been
// answered in several ways has several continuations. At its end stands the transition to the next state.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/load_store_unit.hpp"
#include "timing/memo.hpp"

namespace perfemu::out_of_order {

// What the pipeline asks its environment, or tells them; times are relative to the dispatch with which the trace
// began.
struct Question {
    enum Kind : uint8_t {
        FETCH,     // line `also` from the block's start, in cycle `at`
        ROOM,      // in the store buffer, in cycle `at`
        LOAD,      // in cycle `at`
        PREFETCH,  // in cycle `at`
        STORE,     // retired in cycle `at`, data known in cycle `also`
        BRANCH,
        END,  // the answer is a transition's number
    };

    int32_t at = 0, also = 0;
    uint16_t offset = 0, site = 0;  // of the instruction from the block's start; of its access
    AccessSize access;
    Kind kind = END;
    uint8_t length = 0;
    BranchKind branch = BranchKind::NONE;
    ForwardTraits forward_traits;
    bool is_last = false;  // a branch: of the block
};

// By a whole block.
struct TraceTransition {
    StateTable::State to = StateTable::NONE;
    uint32_t runs = 0;
    uint32_t cycles = 0;             // dispatch has moved on
    int32_t retired = -1;            // cycle of the last retirement; negative: none was later than the dispatch
    uint32_t slots = 0;              // taken in the ROB
    uint32_t next_block = NO_BLOCK;  // the block that followed last,
    uint32_t next_exchange = 0;      // ... its first exchange,
    uint32_t next_transition = 0;    // ... and where that led last

    static constexpr uint32_t NO_BLOCK = ~uint32_t{0};
};

class TraceMemo : public Memo<TraceTransition> {
  public:
    using Transition = TraceTransition;

    struct Exchange {
        uint64_t answer;
        uint32_t other;  // the same question's exchange with another answer; NONE: there is none
        Question question;
    };

    TraceMemo() : Memo(MOST_TRANSITIONS) { clear(); }

    // Of the trace that begins there the first exchange; NONE: there is no such trace.
    uint32_t find(State from, uint32_t block) const { return Memo::find(key_of(from, block)); }
    const Exchange& exchange(uint32_t number) const { return exchanges_[number]; }
    // Brings to the host's cache what followed the next transition last: by the time that the next block has been
    // followed, it is there.
    void prefetch(const Transition& transition) const {
        const Transition& next = (*this)[transition.next_transition];
        __builtin_prefetch(&(*this)[next.next_transition]);
        const Exchange* exchange = &exchanges_[next.next_exchange];
        for (size_t line = 0; line < 3; ++line) __builtin_prefetch(reinterpret_cast<const char*>(exchange) + 64 * line);
    }

    // A new trace; or a new continuation, after another answer to the question of exchange `fork`. Then its exchanges,
    // and its end: `abandon`, or `finish`.
    void begin(State from, uint32_t block);
    void fork(uint32_t exchange, uint64_t answer);
    void add(const Question& question, uint64_t answer) { exchanges_.push_back({answer, NONE, question}); }
    void abandon() { exchanges_.resize(first_); }
    // `known`: exchanges before the new ones. Returns the transition's number.
    uint32_t finish(const Transition& transition, size_t known);
    size_t longest() const { return longest_; }  // exchanges of a trace, at most

    bool full() const { return exchanges_.size() > MOST_EXCHANGES || Memo::full(); }
    void clear();

  private:
    static constexpr size_t MOST_EXCHANGES = 2 << 20, MOST_TRANSITIONS = MOST_EXCHANGES;

    std::vector<Exchange> exchanges_;
    // Of the trace that is being made: its first new exchange, and what leads to it.
    uint32_t first_ = 0, fork_ = NONE;
    uint64_t key_ = 0;
    size_t longest_ = 0;
};

}  // namespace perfemu::out_of_order
