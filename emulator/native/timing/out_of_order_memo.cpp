// What the pipeline does only once: a whole block, from a state that it has been in before, is followed along its trail
// as long as the surroundings answer as they did. When they do not, or there is none, the pipeline's own state is made
// from the trails' and the block is executed; what was asked and answered already is not asked again.
//
// Caches, predictors, the store queue and where fetch is stay outside the states, and hear of everything, in the same
// order and at the same cycles.
#include <array>
#include <stdexcept>
#include <utility>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

namespace {

// What the pipeline counts itself; the rest is counted by those whom it asks.
constexpr std::array COUNTED = {
    Probe::FUSED,
    Probe::MOVE_ELIMINATED,
    Probe::DIVIDER_ACTIVE,
    Probe::UOPS_DISPATCHED,
    Probe::UOPS_RETIRED,
    Probe::CYCLES_RETIRING,
    Probe::STALL_ROB,
    Probe::STALL_LOAD_QUEUE,
    Probe::STALL_STORE_BUFFER,
    Probe::STALL_SCHEDULER,
    Probe::STALL_FRONTEND,
    Probe::STALL_BACKEND,
    Probe::STALL_BACKEND_MEMORY,
    Probe::SLOTS_FRONTEND,
    Probe::SLOTS_FRONTEND_LATENCY,
    Probe::SLOTS_BACKEND,
    Probe::SLOTS_BACKEND_MEMORY,
    Probe::SLOTS_BAD_SPECULATION,
};
using Counted = std::array<uint64_t, COUNTED.size()>;

Counted counted(const uint64_t* totals) {
    Counted amounts;
    for (size_t index = 0; index < COUNTED.size(); ++index)
        amounts[index] = totals[static_cast<unsigned>(COUNTED[index])];
    return amounts;
}

// With anything so far ahead of dispatch, a state is not described.
constexpr uint64_t HORIZON = 1000;
constexpr uint32_t AFTER_PARTS = 64;  // blocks
constexpr unsigned CHAINED = 1 << 8;  // of a register's number

}  // namespace

void OutOfOrder::retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, uint64_t next) {
    const Block& block = static_cast<const Block&>(prepared);
    repeating_ = false;
    if (state_ != Trails::NO_STATE && --until_review_ == 0) review();
    if (state_ == Trails::NO_STATE && !come_in()) {
        run(block, addresses, 0, static_cast<unsigned>(block.rows.size()), next, NO_LIMIT);
        return;
    }
    has_room_ = block.stores == 0 || stores_.free_at(block.stores) <= base_;
    const uint32_t name = name_of(block);
    if (!follow(block, addresses, next, name)) blaze(block, addresses, next, name);
    has_room_ = false;
}

// Whatever the block's trail depends on besides the state.
uint32_t OutOfOrder::name_of(const Block& block) const {
    const uint64_t line = hot_.front.line;
    unsigned enters = line == block.first_line ? line != block.second_line : line == FrontEnd::NO_LINE ? 2 : 3;
    return block.number << 3 | enters << 1 | has_room_;
}

// Too much is new: for a while it is cheaper to execute everything.
void OutOfOrder::review() {
    credit_ = std::min(credit_ + REVIEWED - (DEAR + 1) * blazed_, MOST_CREDIT);
    if (credit_ < 0) {
        rest_ = static_cast<uint64_t>((RESTED - credit_) / DEAR * REST);
        credit_ = RESTED;
        come_out();
    }
    until_review_ = REVIEWED;
    blazed_ = 0;
}

bool OutOfOrder::come_in() {
    if (rest_ > 0) {
        --rest_;
        return false;
    }
    if (mode_ == RecallMode::NEVER) return false;
    base_ = hot_.cycle();
    if (!save()) return false;
    state_ = trails_.state(words_);
    ending_ = NO_ENDING;
    return true;
}

// Blocks come in parts: more of them may follow.
void OutOfOrder::watched() {
    come_out();
    rest_ = std::max<uint64_t>(rest_, AFTER_PARTS);
}

void OutOfOrder::come_out() {
    if (state_ == Trails::NO_STATE) return;
    if (!current_) restore();
    state_ = Trails::NO_STATE;
}

bool OutOfOrder::follow(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name) {
    uint32_t number = 0;
    if (ending_ == NO_ENDING) {
        number = trails_.find(state_, name);
    } else if (Trails::Ending& last = trails_.ending(ending_); last.next_block == name) {
        number = last.next_step;
    } else if ((number = trails_.find(state_, name))) {
        last.next_block = name;
        last.next_step = number;
    }
    known_ = behind_ = 0;
    if (number == 0) return false;
    const uint64_t line = hot_.front.line;
    while (true) {
        const Trails::Step* step = &trails_.step(number);
        const Question& question = step->question;
        const uint64_t at = base_ + question.at, pc = block.address + question.offset;
        uint64_t answer = 0;
        switch (question.kind) {
            case Question::FETCH:
                hot_.front.line = block.address + question.also;
                answer = memory_.fetch(hot_.front.line, at) - at;
                break;
            case Question::ROOM: answer = std::max(stores_.free_at(), at) - at; break;
            case Question::LOAD:
                answer = ask_load(addresses[question.site], question.access, pc, at, question.access_kind);
                break;
            case Question::PREFETCH: memory_.prefetch(addresses[question.site], at); break;
            case Question::STORE:
                tell_store(addresses[question.site], question.access, pc, at, base_ + question.also,
                           question.access_kind);
                break;
            case Question::BRANCH: {
                const uint64_t fallthrough = pc + question.length;
                answer = ask_branch(pc, question.branch, question.is_last ? next : fallthrough, fallthrough);
                break;
            }
            case Question::END:
                if (mode_ == RecallMode::CHECK) [[unlikely]]
                    check(block, addresses, next, line, step->answer);
                arrive(step->answer);
                return true;
        }
        answers_[known_++] = answer;
        while (step->answer != answer) [[unlikely]] {
            if (step->other == 0) {
                behind_ = number;
                hot_.front.line = line;
                return false;
            }
            number = step->other;
            step = &trails_.step(number);
        }
        ++number;
    }
}

// Executes the block that has been followed, too: it must count the same and come to the same state.
void OutOfOrder::check(const Block& block, const uint64_t* addresses, uint64_t next, uint64_t line, uint64_t number) {
    const Trails::Ending ending = trails_.ending(number);
    const uint64_t began = base_, slots = hot_.rob_count, retired = cycle_;
    const uint64_t last_line = std::exchange(hot_.front.line, line);
    if (!current_) restore();
    trails_.begin(state_, name_of(block));
    const Counted before = counted(totals_);
    heard_ = 0;
    recording_ = true;
    run(block, addresses, 0, static_cast<unsigned>(block.rows.size()), next, NO_LIMIT);
    recording_ = false;
    Counted changes = counted(totals_);
    for (size_t index = 0; index < changes.size(); ++index) {
        totals_[static_cast<unsigned>(COUNTED[index])] = before[index];
        changes[index] -= before[index];
    }
    trails_.each_change(ending, [&](uint32_t index, uint64_t amount) { changes[index] -= amount; });
    base_ = hot_.cycle();
    bool same = save() && trails_.state(words_) == ending.to && changes == Counted{} && heard_ == known_ &&
                hot_.rob_count == slots + ending.slots && base_ == began + ending.cycles &&
                (ending.retired < 0 ? cycle_ == retired : cycle_ == began + static_cast<uint64_t>(ending.retired)) &&
                hot_.front.line == last_line;
    if (!same) throw std::logic_error("a trail leads astray");
    trails_.abandon();
    base_ = began;
    hot_.rob_count = slots;
    cycle_ = retired;
}

void OutOfOrder::arrive(uint64_t number) {
    const Trails::Ending& ending = trails_.ending(number);
    trails_.take(number);
    if (ending.retired >= 0) cycle_ = base_ + static_cast<uint64_t>(ending.retired);
    base_ += ending.cycles;
    hot_.rob_count += ending.slots;
    state_ = ending.to;
    ending_ = number;
    current_ = false;
}

void OutOfOrder::blaze(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name) {
    if (!current_) restore();
    if (behind_) {
        trails_.begin_behind(behind_);
        trails_.add(trails_.step(behind_).question, answers_[known_ - 1]);
    } else {
        trails_.begin(state_, name);
    }
    const Counted before = counted(totals_);
    const uint64_t slots = hot_.rob_count;
    heard_ = 0;
    recording_ = true;
    run(block, addresses, 0, static_cast<unsigned>(block.rows.size()), next, NO_LIMIT);
    recording_ = false;

    state_ = Trails::NO_STATE;
    const uint64_t began = base_;
    base_ = hot_.cycle();
    if (!save()) return trails_.abandon();
    if (trails_.full()) {
        settle();
        return trails_.clear();
    }
    ++blazed_;
    state_ = trails_.state(words_);
    Counted changes = counted(totals_);
    for (size_t index = 0; index < changes.size(); ++index) changes[index] -= before[index];
    ending_ = trails_.finish({.to = state_,
                              .cycles = static_cast<uint32_t>(base_ - began),
                              .retired = cycle_ < began ? -1 : static_cast<int32_t>(cycle_ - began),
                              .slots = static_cast<uint32_t>(hot_.rob_count - slots)},
                             changes, known_);
    if (answers_.size() < trails_.longest()) answers_.resize(trails_.longest());
}

void OutOfOrder::settle() {
    trails_.settle([this](uint32_t index, uint64_t amount) { count(COUNTED[index], amount); });
}

// What is over by base_ is left out: it makes no difference any more.
bool OutOfOrder::save() {
    const uint64_t ahead = std::max(cycle_of(hot_.retirement), calendar_.last());
    const uint64_t horizon = std::max(ahead, base_) - base_;
    if (horizon >= HORIZON) return false;
    words_.clear();
    bool fits = true;
    auto put = [&](uint64_t word) {
        fits &= word <= UINT16_MAX;
        words_.push_back(static_cast<uint16_t>(word));
    };
    auto later = [this](uint64_t cycle) { return cycle > base_ ? cycle - base_ : 0; };

    put(used_of(hot_.dispatch));
    const uint64_t earliest = base_ - earliest_;  // which may be before the beginning of time
    auto since = [&](uint64_t cycle) { return cycle + earliest_ > base_ ? cycle - earliest : 0; };
    put(since(hot_.front.cycle));
    put(hot_.front.bytes);
    put(hot_.front.taken);
    const bool decodes = decode_limits_ && hot_.decode_cycle >= hot_.front.cycle;  // else it waits for fetch
    put(decodes ? since(hot_.decode_cycle) + 1 : 0);
    put(decodes ? hot_.decodes : 0);
    const bool retires = cycle_of(hot_.retirement) >= base_;
    put(retires ? cycle_of(hot_.retirement) - base_ + 1 : 0);
    put(retires ? used_of(hot_.retirement) : 0);
    put(static_cast<uint64_t>(last_pair_));
    put(last_pair_ == Pair::AES ? last_destination_ : NOWHERE);
    put(last_pair_ != Pair::NONE ? hot_.done + HORIZON - base_ : 0);
    put(moves_cycle_ == base_ ? moves_ : 0);
    put(later(right_way_from_));
    put(right_way_from_ > base_ ? later(resolved_) : 0);

    save_rob();
    save_load_queue();
    const size_t registers = words_.size();
    put(0);
    for (unsigned number = 0; number < registers_; ++number)
        if (ready_[number] > base_ + 1) put(number | (chained_[number] ? CHAINED : 0)), put(ready_[number] - base_);
    words_[registers] = static_cast<uint16_t>(words_.size() - registers - 1);
    calendar_.save(base_, base_ + horizon, put);
    schedulers_.save(base_, base_ + horizon, put);
    return fits;
}

// Whether dispatch may wait for an entry to retire `later`, with so many places free behind it until it is wanted
// again.
// A check compares states word by word: there they all count.
bool OutOfOrder::holds_up(uint64_t later, uint64_t places) const {
    if (mode_ == RecallMode::CHECK) return true;
    return later * slots_.width() > places - std::min<uint64_t>(places, most_slots_);
}

// From the youngest. If dispatch will wait for none of its entries, it matters only who will be the oldest when, loads
// or others: for each change the cycle until which. Else all of them, equal ones behind each other as one.
void OutOfOrder::save_rob() {
    const uint64_t entries = std::min<uint64_t>(rob_size_, hot_.rob_count);
    const size_t count = words_.size();
    words_.push_back(0);
    bool holds = false;
    for (uint64_t index = 0; index < entries; ++index) {
        const Place entry = rob_[(hot_.rob_count - 1 - index) & rob_mask_];
        if (cycle_of(entry) <= base_) break;
        const uint64_t later = cycle_of(entry) - base_, word = later << 1 | ((entry & WAITED_FOR_MEMORY) != 0);
        if (holds_up(later, rob_size_ - 1 - index)) {
            holds = true;
            break;
        }
        // Of those that retire in one cycle, the oldest.
        if (index + 1 < entries && cycle_of(rob_[(hot_.rob_count - 2 - index) & rob_mask_]) == cycle_of(entry))
            continue;
        if (words_.size() == count + 1 || (words_.back() ^ word) & 1) words_.push_back(static_cast<uint16_t>(word));
    }
    if (holds) {
        words_.resize(count + 1);
        save_runs(entries, [&](uint64_t index) -> uint64_t {
            const Place entry = rob_[(hot_.rob_count - 1 - index) & rob_mask_];
            if (cycle_of(entry) <= base_) return 0;
            return (cycle_of(entry) - base_) << 1 | ((entry & WAITED_FOR_MEMORY) != 0);
        });
    }
    words_[count] = static_cast<uint16_t>((words_.size() - count - 1) << 1 | holds);
}

// From the youngest, if dispatch may wait for one.
void OutOfOrder::save_load_queue() {
    auto later = [&](uint64_t index) -> uint64_t {
        uint64_t place = load_next_ > index ? load_next_ - 1 - index : load_next_ + load_queue_size_ - 1 - index;
        return load_queue_[place] > base_ ? load_queue_[place] - base_ : 0;
    };
    const size_t count = words_.size();
    words_.push_back(0);
    for (uint64_t index = 0; index < load_queue_size_ && later(index); ++index) {
        if (!holds_up(later(index), load_queue_size_ - 1 - index)) continue;
        save_runs(load_queue_size_, later);
        break;
    }
    words_[count] = static_cast<uint16_t>(words_.size() - count - 1);
}

// Up to the first 0; of equal ones behind each other, one and how many.
template <typename At>
void OutOfOrder::save_runs(uint64_t most, At at) {
    const size_t first = words_.size();
    for (uint64_t index = 0; index < most; ++index) {
        const auto word = static_cast<uint16_t>(at(index));
        if (word == 0) return;
        if (words_.size() > first && words_.end()[-2] == word) {
            ++words_.back();
        } else {
            words_.insert(words_.end(), {word, 1});
        }
    }
}

void OutOfOrder::restore() {
    const uint16_t* word = trails_.words(state_).data();
    auto get = [&] { return uint64_t{*word++}; };
    auto get_runs = [&](uint64_t size, auto set) {
        uint64_t index = 0;
        for (uint64_t left = size; left > 0; left -= 2, word += 2)
            for (unsigned count = 0; count < word[1]; ++count) set(index++, word[0]);
    };

    hot_.dispatch = base_ << CYCLE | get();
    const uint64_t earliest = base_ - earliest_;
    hot_.front.cycle = earliest + get();
    hot_.front.bytes = static_cast<unsigned>(get());
    hot_.front.taken = static_cast<unsigned>(get());
    const uint64_t decode = get();
    hot_.decode_cycle = decode ? earliest + decode - 1 : 0;
    hot_.decodes = static_cast<unsigned>(get());
    const uint64_t retirement = get();
    hot_.retirement = (retirement ? base_ + retirement - 1 : cycle_) << CYCLE | get();
    last_pair_ = static_cast<Pair>(get());
    last_destination_ = static_cast<uint8_t>(get());
    hot_.done = base_ + get() - HORIZON;
    moves_cycle_ = base_;
    moves_ = static_cast<unsigned>(get());
    right_way_from_ = base_ + get();
    resolved_ = base_ + get();
    hot_.retiring_cycles = counted_retiring_;
    counted_slots_ = hot_.rob_count;

    auto set_entry = [&](uint64_t index, uint64_t entry) {
        rob_[(hot_.rob_count - 1 - index) & rob_mask_] =
            (base_ + (entry >> 1)) << CYCLE | (entry & 1 ? WAITED_FOR_MEMORY : 0);
    };
    const uint64_t rob = get();
    if (rob & 1) {
        rob_oldest_ = 0;
        get_runs(rob >> 1, set_entry);
    } else {
        rob_oldest_ = hot_.rob_count - (rob >> 1);
        for (uint64_t index = 0; index < rob >> 1; ++index) set_entry(index, get());
    }
    std::fill_n(load_queue_.get(), load_queue_size_, 0);
    load_next_ = 0;
    get_runs(get(), [&](uint64_t index, uint64_t later) { load_queue_[load_queue_size_ - 1 - index] = base_ + later; });
    std::fill_n(ready_, registers_, 0);
    std::fill_n(chained_, registers_, false);
    for (uint64_t left = get(); left > 0; left -= 2, word += 2) {
        const unsigned number = word[0] & ~CHAINED;
        ready_[number] = base_ + word[1];
        chained_[number] = word[0] & CHAINED;
    }
    calendar_.restore(base_, get);
    schedulers_.restore(base_, get);
    current_ = true;
}

}  // namespace perfemu::out_of_order
