#include "timing/out_of_order_trails.hpp"

#include <algorithm>
#include <cstring>

namespace perfemu::out_of_order {

static uint64_t hash_of(std::span<const uint8_t> bytes) {
    uint64_t hash = bytes.size();
    for (size_t index = 0; index < bytes.size(); index += sizeof hash) {
        uint64_t part = 0;
        std::memcpy(&part, &bytes[index], std::min(bytes.size() - index, sizeof part));
        hash = (hash ^ part) * 0xD6E8'FEB8'6659'FD93;
        hash ^= hash >> 32;
    }
    return hash;
}

Trails::Trails() { clear(); }

void Trails::clear() {
    states_.clear();
    bytes_.clear();
    numbers_.assign(FEWEST_PLACES, NO_STATE);
    beginnings_.assign(FEWEST_PLACES, {});
    begun_ = 0;
    steps_.assign(1, {});  // number 0 is none
    endings_.clear();
    changes_.clear();
    taken_.clear();
}

Trails::State Trails::state(std::span<const uint8_t> bytes) {
    if (2 * states_.size() > numbers_.size()) spread_states();
    const uint64_t hash = hash_of(bytes);
    const size_t mask = numbers_.size() - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        State& number = numbers_[place];
        if (number == NO_STATE) {
            number = static_cast<State>(states_.size());
            states_.push_back({hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size())});
            bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
            return number;
        }
        if (states_[number].hash == hash && std::ranges::equal(this->bytes(number), bytes)) return number;
    }
}

void Trails::spread_states() {
    numbers_.assign(numbers_.size() * 2, NO_STATE);
    const size_t mask = numbers_.size() - 1;
    for (State number = 0; number < states_.size(); ++number) {
        size_t place = states_[number].hash & mask;
        while (numbers_[place] != NO_STATE) place = (place + 1) & mask;
        numbers_[place] = number;
    }
}

static uint64_t key_of(Trails::State from, uint32_t block) { return uint64_t{from} << 32 | block; }

uint32_t Trails::find(State from, uint32_t block) const {
    const uint64_t key = key_of(from, block);
    const size_t mask = beginnings_.size() - 1;
    size_t place = spread(key) & mask;
    while (beginnings_[place].step && beginnings_[place].key != key) place = (place + 1) & mask;
    return beginnings_[place].step;
}

void Trails::enter(uint64_t key, uint32_t step) {
    const size_t mask = beginnings_.size() - 1;
    size_t place = spread(key) & mask;
    while (beginnings_[place].step) place = (place + 1) & mask;
    beginnings_[place] = {key, step};
}

void Trails::begin(State from, uint32_t block) {
    first_ = static_cast<uint32_t>(steps_.size());
    behind_ = 0;
    key_ = key_of(from, block);
}

void Trails::begin_behind(uint32_t behind) {
    first_ = static_cast<uint32_t>(steps_.size());
    behind_ = behind;
}

uint64_t Trails::finish(const Ending& ending, std::span<const uint64_t> counted, size_t known) {
    const uint64_t number = endings_.size();
    endings_.push_back(ending);
    endings_[number].changes = static_cast<uint32_t>(changes_.size());
    for (size_t index = 0; index < counted.size(); ++index)
        if (counted[index]) changes_.push_back({static_cast<uint32_t>(index), counted[index]});
    endings_[number].behind = static_cast<uint32_t>(changes_.size());
    add(Question{}, number);
    longest_ = std::max(longest_, known + steps_.size() - first_);
    if (behind_) {
        steps_[behind_].other = first_;
        return number;
    }
    if (2 * ++begun_ > beginnings_.size()) {
        std::vector<Beginning> before(beginnings_.size() * 2);
        before.swap(beginnings_);
        for (const Beginning& beginning : before)
            if (beginning.step) enter(beginning.key, beginning.step);
    }
    enter(key_, first_);
    return number;
}

}  // namespace perfemu::out_of_order
