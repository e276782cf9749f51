// What the pipeline does only once: a whole block, from a state that it has been in before, is replayed from its trace
// as long as what it asks is answered as it was. When it is not, or there is no trace, the pipeline's own state is made
// from the memo's and the block is executed, and recorded; what was asked and answered already is not asked again.
//
// Caches, predictors, the store queue and where fetch is stay outside the states, and are asked everything, in the
// same order and at the same cycles.
#include <bit>
#include <stdexcept>
#include <utility>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

namespace {

constexpr uint32_t NEW_STATES_FROM = 1 << 6;  // blocks behind one that was cut

}  // namespace

void OutOfOrder::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const Block& block = static_cast<const Block&>(prepared);
    repeats_.end();
    if (in_memo() && --until_review_ == 0) review();
    if (!in_memo() && !enter_memo(block)) {
        run_block(block, addresses, 0, static_cast<unsigned>(block.ops.size()), next, NO_LIMIT);
        return;
    }
    const uint32_t name = begin_whole(block);
    if (!replay(block, addresses, next, name)) record(block, addresses, next, name);
    has_room_ = false;
}

// The block is about to be looked for. Returns its name in the memo.
uint32_t OutOfOrder::begin_whole(const Block& block) {
    hot_.front.begin_at(block.address);
    has_room_ = block.stores == 0 || load_store_.room_at(block.stores) <= base_;
    return name_of(block);
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

bool OutOfOrder::enter_memo(const Block& block) {
    if (rest_ > 0) {
        --rest_;
        return false;
    }
    return since_cut_ ? returns_to_memo(block) : MemoizingPipeline::enter_memo();
}

// Behind a block that was cut, which ever more may be: to where it has been before, if it comes there soon. What is
// looked up costs as much as some blocks, so it is tried at the first one, the second, the fourth and so on.
bool OutOfOrder::returns_to_memo(const Block& block) {
    const uint32_t tried = since_cut_++;
    if (mode_ == RecallMode::NEVER || !std::has_single_bit(tried)) return false;
    if (tried == NEW_STATES_FROM) {
        since_cut_ = 0;
        return MemoizingPipeline::enter_memo();
    }
    last_ = TraceMemo::NONE;
    if (!find_state()) return false;
    if (memo_.find(state_, begin_whole(block)) == TraceMemo::NONE) {
        state_ = TraceMemo::NO_STATE;
        has_room_ = false;
        return false;
    }
    since_cut_ = 0;
    return true;
}

unsigned OutOfOrder::run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last,
                         uint64_t next, uint64_t limit) {
    since_cut_ = 1;
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
    const uint64_t line = hot_.front.line, straight_from = hot_.front.straight_from;
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
            case Question::ROOM: answer = std::max(load_store_.room_at(), at) - at; break;
            case Question::LOAD:
                answer = load_store_.load(addresses[question.site], question.access, pc, at, question.forward_traits);
                break;
            case Question::PREFETCH: memory_.prefetch(addresses[question.site], pc, at); break;
            case Question::STORE:
                load_store_.store(addresses[question.site], question.access, pc, at, base_ + question.also,
                                  question.forward_traits);
                break;
            case Question::BRANCH: {
                const uint64_t fallthrough = pc + question.length, target = question.is_last ? next : fallthrough;
                answer = ask_branch(hot_.front.straight_from, pc, question.branch, target, fallthrough);
                hot_.front.straight_from = target;
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
                hot_.front.straight_from = straight_from;
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

}  // namespace perfemu::out_of_order
