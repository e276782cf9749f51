// The branch that a block ends with.
#pragma once

#include <cstdint>

#include "core/retirement.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

// ... before `end`, where a block ends, when execution goes on at `next`.
inline RetiredBranch branch_before(uint64_t end, BranchKind kind, uint8_t length, Level level, uint64_t next) {
    const bool taken = kind != BranchKind::CONDITIONAL || next != end;
    return {.from = end - length, .to = next, .kind = kind, .taken = taken, .length = length, .level = level};
}

// The branch at the end of a logged block, as far as it is known before that retires.
inline RetiredBranch logged_branch(const RunBlock* run) {
    const PreparedBlock& block = *run[0].block;
    return branch_before(run[0].address + block.size, block.ending, block.ending_length, block.level, run[1].address);
}

}  // namespace perfemu
