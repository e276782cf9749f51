// gshare: two-bit counters, chosen by the address and what the last branches did (S. McFarling, DEC WRL TN-36, 1993).
// Declared here for BranchUnit, which calls this one without asking a table of functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "predictor/direction.hpp"

namespace perfemu {

class Gshare final : public DirectionPredictor {
  public:
    explicit Gshare(const Config& parameters)
        : mask_(power_of_two(parameters, "entries", 16384) - 1),
          counters_(mask_ / IN_A_BYTE + 1, ALL_WEAKLY_NOT_TAKEN) {
        unsigned index_bits = static_cast<unsigned>(std::countr_one(mask_));
        int64_t bits = within(parameters, "history_bits", std::min(index_bits, 12u), 0, index_bits);
        history_mask_ = (uint64_t{1} << bits) - 1;
    }

    bool learn(uint64_t pc, bool taken) override {
        uint64_t index = (spread(pc) ^ history_) & mask_;
        uint8_t& counters = counters_[index / IN_A_BYTE];
        unsigned place = index % IN_A_BYTE * 2;
        unsigned counter = counters >> place & 3;
        counters = static_cast<uint8_t>(counters ^ CHANGE[taken][counter] << place);
        history_ = (history_ << 1 | static_cast<uint64_t>(taken)) & history_mask_;
        return counter >> 1;
    }

  private:
    static constexpr uint64_t IN_A_BYTE = 4;  // so that they take little of the host's first cache
    // Bits that change as a counter, which is that of predicts_taken, moves towards what the branch did.
    static constexpr uint8_t CHANGE[2][4] = {{0, 1, 3, 1}, {1, 3, 1, 0}};
    static constexpr uint8_t ALL_WEAKLY_NOT_TAKEN = WEAKLY_NOT_TAKEN * 0b01010101;

    uint64_t mask_;
    std::vector<uint8_t> counters_;
    uint64_t history_mask_;
    uint64_t history_ = 0;  // the newest lowest
};

}  // namespace perfemu
