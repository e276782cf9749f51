// Re-reference prediction values: for each line, in two bits, how soon it is expected to be used again.
// Jaleel, Theobald, Steely, Emer: "High Performance Cache Replacement Using Re-Reference Interval Prediction (RRIP)",
// ISCA 2010.
#pragma once

#include <cstdint>
#include <vector>

#include "archive.hpp"

namespace perfemu {

class ReReferenceIntervals {
  public:
    static constexpr uint8_t NEAR = 0, LONG = 2, DISTANT = 3;

    ReReferenceIntervals(uint32_t sets, uint32_t ways) : ways_(ways), of_slot_(sets * ways, DISTANT) {}

    uint8_t& operator[](uint32_t slot) { return of_slot_[slot]; }

    // The lowest way that is distant, if need be after all have grown older.
    uint32_t victim(uint32_t set) {
        uint8_t* intervals = &of_slot_[set * ways_];
        for (;;) {
            for (uint32_t way = 0; way < ways_; ++way)
                if (intervals[way] == DISTANT) return way;
            for (uint32_t way = 0; way < ways_; ++way) ++intervals[way];
        }
    }

    void archive(Archive& state) { state(of_slot_); }

  private:
    uint32_t ways_;
    std::vector<uint8_t> of_slot_;
};

}  // namespace perfemu
