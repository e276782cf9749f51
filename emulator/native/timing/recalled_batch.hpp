// Blocks of a recalling pipeline as a batch: what memory is asked by many, and what else happens to each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/batch.hpp"
#include "timing/block_requests.hpp"

namespace perfemu {

// The first line of the host's cache is what a batch takes from a block.
struct alignas(64) RecalledBlock : PreparedBlock {
    // What can happen to it, as numbers for Memo: from here on, for its branch, OUTCOMES; then for each of its
    // requests one. All of them twice, because the line of its first instruction is fetched or was fetched before.
    uint32_t first_case = 0;
    uint16_t branch_offset = 0, end_offset = 0;  // as in `requests`
    uint16_t lines = 0;
    BranchKind branch = BranchKind::NONE;
    BatchFit fit = BatchFit::NOT;
    std::array<AccessShape, MemoryBatch::BLOCK_SITES> shapes{};
    alignas(64) BlockRequests requests;  // another line
    std::vector<AccessShape> more_shapes;

    uint64_t end_from(uint64_t address) const { return address + end_offset; }
    // From `requests`.
    void assign_batch();
};

struct RecalledBatch : MemoryBatch {
    static constexpr uint32_t OUTCOMES = 8;  // see RecallingPipeline

    struct Member {
        uint32_t what = 0;              // of its outcomes the first one's number, until its branch is known
        uint32_t sites = 0, lines = 0;  // up to its end
    };

    const RunBlock* gather(const RunBlock* run, const RunBlock* end, uint64_t last_line);

    size_t sites_before(size_t block) const { return block ? members[block - 1].sites : 0; }

    size_t blocks = 0;
    std::array<Member, BLOCKS> members;
};

}  // namespace perfemu
