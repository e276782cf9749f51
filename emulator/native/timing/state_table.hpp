// Numbers for a pipeline's states, which are strings of bytes: equal strings have one number, and are kept once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace perfemu {

class StateTable {
  public:
    using State = uint32_t;
    static constexpr State NONE = ~State{0};

    StateTable() { clear(); }

    // The state with these bytes, of which there is at least one.
    State number(std::span<const uint8_t> bytes);
    // The same; NONE: there is no such state yet.
    State find(std::span<const uint8_t> bytes) const { return numbers_[slot_of(bytes, hash_of(bytes))]; }
    // A state without bytes, which `number` never returns.
    State fresh();
    std::span<const uint8_t> bytes(State state) const {
        return std::span(bytes_).subspan(states_[state].first, states_[state].size);
    }
    size_t size() const { return states_.size(); }
    size_t size_bytes() const { return bytes_.size(); }
    void clear();

  private:
    static constexpr size_t FEWEST_SLOTS = 1 << 12;

    struct Bytes {
        uint64_t hash;
        uint32_t first, size;  // size 0: it has none
    };

    static uint64_t hash_of(std::span<const uint8_t> bytes);
    // Of `numbers_`: where its number is, or is to be.
    size_t slot_of(std::span<const uint8_t> bytes, uint64_t hash) const;
    void grow();

    std::vector<Bytes> states_;  // by number
    std::vector<uint8_t> bytes_;
    std::vector<State> numbers_;  // of those with bytes, by hash; open addressing
};

}  // namespace perfemu
