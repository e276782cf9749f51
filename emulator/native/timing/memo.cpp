#include "timing/memo.hpp"

#include <algorithm>
#include <bit>
#include <utility>

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
    if (2 * steps_.size() > places_.size()) grow();
    const uint64_t key = uint64_t{from} << 32 | what;
    size_t place = place_of(key);
    while (places_[place] != NOWHERE) place = (place + 1) & (places_.size() - 1);
    places_[place] = static_cast<uint32_t>(steps_.size());
    details_.push_back({});
    return steps_.emplace_back(Step{.key = key, .to = to});
}

// Changes `found` only if it is there.
Memo::Step* Memo::search(uint64_t key, uint32_t& found) {
    const size_t mask = places_.size() - 1;
    for (size_t place = place_of(key); places_[place] != NOWHERE; place = (place + 1) & mask) {
        Step& step = steps_[places_[place]];
        if (step.key != key) continue;
        found = places_[place];
        return &step;
    }
    return nullptr;
}

void Memo::grow() {
    places_.assign(2 * places_.size(), NOWHERE);
    --shift_;
    for (uint32_t number = NOWHERE + 1; number < steps_.size(); ++number) {
        size_t place = place_of(steps_[number].key);
        while (places_[place] != NOWHERE) place = (place + 1) & (places_.size() - 1);
        places_[place] = number;
    }
}

void Memo::set_changes(const Step& step, int32_t retired, std::span<const uint64_t> amounts) {
    Detail& detail = details_[number(step)];
    detail.retired = retired;
    detail.changes = static_cast<uint32_t>(changes_.size());
    for (uint32_t counter = 0; counter < amounts.size(); ++counter)
        if (amounts[counter]) changes_.push_back({amounts[counter], counter});
    detail.behind = static_cast<uint32_t>(changes_.size());
}

void Memo::settle(std::span<uint64_t> totals) {
    for (uint32_t number : taken_) {
        const Detail& detail = details_[number];
        const uint64_t runs = std::exchange(steps_[number].runs, 0);
        for (uint32_t index = detail.changes; index != detail.behind; ++index)
            totals[changes_[index].counter] += changes_[index].amount * runs;
    }
    taken_.clear();
}

void Memo::clear() {
    steps_.assign(1, {});
    details_.assign(1, {});
    places_.assign(FEWEST_PLACES, NOWHERE);
    shift_ = 64 - std::countr_zero(FEWEST_PLACES);
    taken_.clear();
    changes_.clear();
    states_.clear();
    bytes_.clear();
    numbers_.assign(FEWEST_PLACES, NONE);
}

}  // namespace perfemu
