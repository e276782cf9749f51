// What kind of branch an instruction is, by what it fires.
#pragma once

#include "ops/op.hpp"
#include "ops/timed_op.hpp"

namespace perfemu {

// NONE of what is no branch, and of what enters the kernel.
constexpr BranchKind branch_kind(ProbeMask probes) {
    if (probes & bit(Probe::BR_RETURN)) return BranchKind::RETURN;
    if (probes & bit(Probe::BR_COND)) return BranchKind::CONDITIONAL;
    const bool call = probes & bit(Probe::BR_CALL);
    if (probes & bit(Probe::BR_INDIRECT)) return call ? BranchKind::INDIRECT_CALL : BranchKind::INDIRECT;
    if (probes & bit(Probe::BR_IMMED)) return call ? BranchKind::CALL : BranchKind::DIRECT;
    return BranchKind::NONE;
}

}  // namespace perfemu
