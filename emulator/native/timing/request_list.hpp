// All that a block asks of memory and predictor, one by one in program order: for models that ask in that order, and
// for those that ask by kind (block_requests.hpp), where a request needs more than they have of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/access.hpp"
#include "ops/timed_op.hpp"

namespace perfemu {

struct ModelRequest {
    enum Kind : uint8_t { FETCH, LOAD, STORE, PREFETCH, BRANCH };

    uint16_t op = 0;      // its instruction
    uint16_t offset = 0;  // of that, in the block
    uint16_t site = 0, size = 0, elements = 1;
    uint16_t next = 0;  // FETCH: how many lines after the block's first; BRANCH: the offset after it
    Kind kind = FETCH;
    BranchKind branch = BranchKind::NONE;
};

struct RequestList {
    std::vector<ModelRequest> all;     // numbered as BlockRequests does
    std::vector<uint16_t> first_line;  // by op: of its bytes, as FETCH's
    bool repeated = false;             // a REP, whose iterations make its accesses

    void assign(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites, uint64_t line_bytes);
    // Of the instructions [first, last).
    std::span<const ModelRequest> of(size_t first, size_t last) const {
        return std::span(all).subspan(first_of_op_[first], first_of_op_[last] - first_of_op_[first]);
    }

  private:
    std::vector<uint32_t> first_of_op_;  // and the end of the last
};

}  // namespace perfemu
