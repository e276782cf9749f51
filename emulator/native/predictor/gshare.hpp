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
        : mask_(power_of_two(parameters, "entries", 16384) - 1), counters_(mask_ + 1, WEAKLY_NOT_TAKEN) {
        unsigned index_bits = static_cast<unsigned>(std::countr_one(mask_));
        int64_t bits = within(parameters, "history_bits", std::min(index_bits, 12u), 0, index_bits);
        history_mask_ = (uint64_t{1} << bits) - 1;
    }

    bool learn(uint64_t pc, bool taken) override {
        uint8_t& counter = counters_[(spread(pc) ^ history_) & mask_];
        const bool predicted = predicts_taken(counter);
        counter = trained(counter, taken);
        history_ = (history_ << 1 | static_cast<uint64_t>(taken)) & history_mask_;
        return predicted;
    }

  private:
    uint64_t mask_;
    std::vector<uint8_t> counters_;
    uint64_t history_mask_;
    uint64_t history_ = 0;  // the newest lowest
};

}  // namespace perfemu
