#include "timing/state_table.hpp"

#include <algorithm>
#include <cstring>

namespace perfemu {

// Eight bytes at a time: each is folded in and spread by a multiplication, as in a linear congruential generator.
uint64_t StateTable::hash_of(std::span<const uint8_t> bytes) {
    uint64_t hash = bytes.size();
    for (size_t index = 0; index < bytes.size(); index += sizeof hash) {
        uint64_t part = 0;
        std::memcpy(&part, &bytes[index], std::min(bytes.size() - index, sizeof part));
        hash = (hash ^ part) * 0xD6E8'FEB8'6659'FD93;
        hash ^= hash >> 32;
    }
    return hash;
}

size_t StateTable::slot_of(std::span<const uint8_t> bytes, uint64_t hash) const {
    const size_t mask = numbers_.size() - 1;
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        const State number = numbers_[slot];
        if (number == NONE) return slot;
        if (states_[number].hash == hash && std::ranges::equal(this->bytes(number), bytes)) return slot;
    }
}

StateTable::State StateTable::number(std::span<const uint8_t> bytes) {
    if (2 * states_.size() > numbers_.size()) grow();
    const uint64_t hash = hash_of(bytes);
    State& number = numbers_[slot_of(bytes, hash)];
    if (number == NONE) {
        number = static_cast<State>(states_.size());
        states_.push_back({hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size())});
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    return number;
}

StateTable::State StateTable::fresh() {
    states_.push_back({});
    return static_cast<State>(states_.size() - 1);
}

void StateTable::grow() {
    while (2 * states_.size() > numbers_.size()) numbers_.resize(2 * numbers_.size());
    std::ranges::fill(numbers_, NONE);
    const size_t mask = numbers_.size() - 1;
    for (State number = 0; number < states_.size(); ++number) {
        if (states_[number].size == 0) continue;
        size_t slot = states_[number].hash & mask;
        while (numbers_[slot] != NONE) slot = (slot + 1) & mask;
        numbers_[slot] = number;
    }
}

void StateTable::clear() {
    states_.clear();
    bytes_.clear();
    numbers_.assign(FEWEST_SLOTS, NONE);
}

}  // namespace perfemu
