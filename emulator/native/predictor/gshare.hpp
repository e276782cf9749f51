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

    // What a loop over many branches keeps in the host's registers; the history is given back with set_history.
    struct Walk {
        uint8_t* counters;
        uint64_t mask, history_mask, history;

        bool learn(uint64_t pc, bool taken) {
            uint8_t& counter = counters[(spread(pc) ^ history) & mask];
            const bool predicted = predicts_taken(counter);
            counter = trained(counter, taken);
            history = (history << 1 | static_cast<uint64_t>(taken)) & history_mask;
            return predicted;
        }
    };
    Walk walk() { return {counters_.data(), mask_, history_mask_, history_}; }
    void set_history(uint64_t history) { history_ = history; }

    bool learn(uint64_t pc, bool taken) override {
        Walk one = walk();
        const bool predicted = one.learn(pc, taken);
        history_ = one.history;
        return predicted;
    }

    void archive(Archive& state) override { state(counters_, history_); }

  private:
    uint64_t mask_;
    std::vector<uint8_t> counters_;
    uint64_t history_mask_;
    uint64_t history_ = 0;  // the newest lowest
};

}  // namespace perfemu
