// Which load is answered by which store: the one at that place in the queue that it was the last so many times.
#pragma once

#include <array>
#include <cstdint>

#include "predictor/tables.hpp"

namespace perfemu {

class ForwardPredictor {
  public:
    // Whether this was foreseen. `place`: as StoreQueue::Found's.
    bool learn(uint64_t pc, uint32_t place) {
        Row& row = rows_[spread(pc) % rows_.size()];
        if (row.pc != pc || row.place != place) row = {pc, place, 0};
        if (row.times == SURE) return true;
        ++row.times;
        return false;
    }

  private:
    static constexpr unsigned SURE = 8;
    struct Row {
        uint64_t pc = ~uint64_t{0};
        uint32_t place = 0;
        uint32_t times = 0;
    };
    std::array<Row, 1024> rows_;
};

}  // namespace perfemu
