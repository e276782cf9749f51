// Which load is answered by which store: the one at that distance in the queue that it was the last so many times.
#pragma once

#include <array>
#include <cstdint>

#include "predictor/tables.hpp"

namespace perfemu {

class ForwardPredictor {
  public:
    // Whether this was predicted. `distance`: as StoreQueue::Found's.
    bool learn(uint64_t pc, uint32_t distance) {
        Entry& entry = entries_[spread(pc) % entries_.size()];
        if (entry.pc != pc || entry.distance != distance) entry = {pc, distance, 0};
        if (entry.times == SURE) return true;
        ++entry.times;
        return false;
    }

  private:
    static constexpr unsigned SURE = 8;
    struct Entry {
        uint64_t pc = ~uint64_t{0};
        uint32_t distance = 0;
        uint32_t times = 0;
    };
    std::array<Entry, 1024> entries_;
};

}  // namespace perfemu
