#include "timing/memo.hpp"

#include <algorithm>
#include <bit>

namespace perfemu {

// FNV-1a (Fowler, Noll, Vo), 64 bits, folded.
static uint32_t hash_of(std::span<const uint8_t> bytes) {
    uint64_t hash = 0xCBF2'9CE4'8422'2325;
    for (uint8_t byte : bytes) hash = (hash ^ byte) * 0x100'0000'01B3;
    return static_cast<uint32_t>(hash ^ hash >> 32);
}

Memo::State Memo::state(std::span<const uint8_t> bytes) {
    const uint32_t hash = hash_of(bytes);
    const size_t mask = numbers_.size() - 1;
    size_t place = hash & mask;
    for (; numbers_[place] != NONE; place = (place + 1) & mask) {
        const Bytes& other = states_[numbers_[place]];
        if (other.hash == hash && std::ranges::equal(this->bytes(numbers_[place]), bytes)) return numbers_[place];
    }
    const State number = static_cast<State>(states_.size());
    numbers_[place] = number;
    states_.push_back({static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size()), hash});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    if (2 * states_.size() < numbers_.size()) return number;
    numbers_.assign(2 * numbers_.size(), NONE);
    for (State each = 0; each < states_.size(); ++each) {
        if (states_[each].size == 0) continue;
        place = states_[each].hash & (numbers_.size() - 1);
        while (numbers_[place] != NONE) place = (place + 1) & (numbers_.size() - 1);
        numbers_[place] = each;
    }
    return number;
}

Memo::State Memo::fresh() {
    states_.push_back({0, 0, 0});
    return static_cast<State>(states_.size() - 1);
}

Memo::Step& Memo::add(State from, uint32_t what, State to) {
    if (2 * ++used_ > steps_.size()) grow();
    const uint64_t key = uint64_t{from} << 32 | what;
    Step& step = room(key);
    step.key = key;
    step.to = to;
    return step;
}

// Behind the place where it should be.
Memo::Step* Memo::search(uint64_t key, Step* step) {
    while (step->key != key) {
        if (step->key == Step::EMPTY) return nullptr;
        if (++step == steps_.data() + steps_.size()) step = steps_.data();
    }
    return step;
}

Memo::Step& Memo::room(uint64_t key) {
    size_t place = cases(static_cast<State>(key >> 32), static_cast<uint32_t>(key) & ~LOW).place + (key & LOW);
    while (steps_[place & mask_].key != Step::EMPTY) ++place;
    return steps_[place & mask_];
}

void Memo::grow() {
    std::vector<Step> old(2 * steps_.size());
    old.swap(steps_);
    mask_ = steps_.size() - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(steps_.size()));
    taken_.clear();
    for (const Step& step : old) {
        if (step.key == Step::EMPTY) continue;
        Step& now = room(step.key);
        now = step;
        if (now.runs) taken_.push_back(static_cast<uint32_t>(&now - steps_.data()));
    }
}

void Memo::set_changes(Step& step, std::span<const uint64_t> amounts) {
    step.changes = static_cast<uint32_t>(changes_.size());
    for (uint32_t counter = 0; counter < amounts.size(); ++counter)
        if (amounts[counter]) changes_.push_back({amounts[counter], counter});
    step.behind = static_cast<uint32_t>(changes_.size());
}

void Memo::settle(std::span<uint64_t> totals) {
    for (uint32_t place : taken_) {
        Step& step = steps_[place];
        for (uint32_t index = step.changes; index != step.behind; ++index)
            totals[changes_[index].counter] += changes_[index].amount * step.runs;
        step.runs = 0;
    }
    taken_.clear();
}

void Memo::clear() {
    steps_.assign(FEWEST_PLACES, {});
    mask_ = FEWEST_PLACES - 1;
    shift_ = 64 - std::countr_zero(FEWEST_PLACES);
    used_ = 0;
    taken_.clear();
    changes_.clear();
    states_.clear();
    bytes_.clear();
    numbers_.assign(FEWEST_PLACES, NONE);
}

}  // namespace perfemu
