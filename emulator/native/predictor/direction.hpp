// Predictors of conditional branches. Each kind is a file of this folder and registers itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "archive.hpp"
#include "predictor/tables.hpp"

namespace perfemu {

class DirectionPredictor {
  public:
    using Maker = std::unique_ptr<DirectionPredictor> (*)(const Config& parameters);
    using Row = Named<Maker>;  // a static one in a kind's file registers it

    virtual ~DirectionPredictor() = default;

    // By the name in `branch.direction`. Throws std::invalid_argument.
    static std::unique_ptr<DirectionPredictor> make(const Config& branch) {
        return make_predictor<DirectionPredictor>(branch, "direction", "direction predictor");
    }
    static std::vector<std::string> names() { return Row::names(); }

    // A conditional branch retires. Returns whether it was predicted taken; learns what it did. What it knows is
    // outside of a pipeline's memo: it is asked by blocks that are recalled, too.
    virtual bool learn(uint64_t pc, bool taken) = 0;

    // All that it has learned.
    virtual void archive(Archive& state) = 0;

    // A branch through a register, or a return, went to `target`: for predictors whose history is of paths.
    virtual void follow(uint64_t target) { static_cast<void>(target); }
};

// Two bits that count up to "taken" and down to "not taken"; the higher one is the prediction.
static constexpr uint8_t WEAKLY_NOT_TAKEN = 1;
inline bool predicts_taken(uint8_t counter) { return counter >= 2; }
inline uint8_t trained(uint8_t counter, bool taken) {
    static constexpr uint8_t NEXT[2][4] = {{0, 0, 1, 2}, {1, 2, 3, 3}};  // the host would have to guess a branch
    return NEXT[taken][counter];
}

}  // namespace perfemu
