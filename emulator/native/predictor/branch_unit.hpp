// Everything that predicts branches: direction, targets, returns.
#pragma once

#include <cstdint>
#include <memory>

#include "config.hpp"
#include "timing/timed_op.hpp"

namespace perfemu {

enum class Prediction : uint8_t {
    RIGHT,
    LATE,   // direction right, but the target of a taken direct branch was not known at fetch: decode finds it
    WRONG,  // found when the branch executes
};

class BranchUnit {
  public:
    // Without a [branch] table every branch is predicted right.
    BranchUnit(const Config& config, uint64_t* totals);

    // A branch retires: predicts, learns, and fires the probes of what went wrong. `next` is where it went,
    // `fallthrough` the address behind it.
    Prediction resolve(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough);
};

}  // namespace perfemu
