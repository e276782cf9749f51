// Predictors of branches and calls through registers. Each kind is a file of this folder and registers itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "archive.hpp"
#include "predictor/tables.hpp"

namespace perfemu {

class IndirectPredictor {
  public:
    using Maker = std::unique_ptr<IndirectPredictor> (*)(const Config& parameters);
    using Row = Named<Maker>;  // a static one in a kind's file registers it

    virtual ~IndirectPredictor() = default;

    // By the name in `branch.indirect`. Throws std::invalid_argument.
    static std::unique_ptr<IndirectPredictor> make(const Config& branch) {
        return make_predictor<IndirectPredictor>(branch, "indirect", "indirect predictor");
    }
    static std::vector<std::string> names() { return Row::names(); }

    // A branch went to `target`. Returns whether that was predicted; learns. `path` tells what the branches before did.
    virtual bool learn(uint64_t pc, uint64_t path, uint64_t target) = 0;

    // All that it has learned.
    virtual void archive(Archive& state) = 0;
};

}  // namespace perfemu
