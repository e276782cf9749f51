// Blocks of a recalling pipeline as columns (see columns.hpp, which is for pipelines that never ask when): what memory
// hears of many blocks, and what else happens to each of them. So memory, predictor and memo each have a loop of their
// own, which the host foresees whatever the blocks are like.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/block_events.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

// The first line of the host's cache is what columns take from a block.
struct alignas(64) RecalledBlock : PreparedBlock {
    static constexpr unsigned SITES = 8, LINES = 2;  // of more, the rest is appended one by one

    // What can happen to it, as numbers for Memo: from here on, for its branch, OUTCOMES; then for each of its events
    // one. All of them twice, because the line of its first instruction is fetched or was fetched before.
    uint32_t first_case = 0;
    uint16_t branch_offset = 0, end_offset = 0;  // as in `events`
    uint16_t lines = 0;
    BranchKind branch = BranchKind::NONE;
    bool in_columns = false;  // if not, other things happen, as a REP
    std::array<TouchShape, SITES> shapes{};
    alignas(64) BlockEvents events;  // another line
    std::vector<TouchShape> more_shapes;

    // From `events`.
    void assign_columns(const MemorySystem& memory);
};

class RecalledColumns {
  public:
    static constexpr size_t BLOCKS = 512;                // at most
    static constexpr size_t SITES = 8192, LINES = 4096;  // of blocks that have more than RecalledBlock's
    static constexpr uint64_t LINE_BYTES = 64;
    static constexpr uint32_t OUTCOMES = 8;  // see RecallingPipeline

    struct Row {
        uint32_t what = 0;              // of its outcomes the first one's number, until its branch is known
        uint32_t sites = 0, lines = 0;  // behind it
    };

    // From `run` on, up to the first block that is not in_columns or for which there is no room. `last_line` has been
    // fetched last. Returns behind the last one.
    const RunBlock* gather(const RunBlock* run, const RunBlock* behind, uint64_t last_line);

    size_t sites_before(size_t block) const { return block ? rows[block - 1].sites : 0; }
    size_t lines_before(size_t block) const { return block ? rows[block - 1].lines : 0; }

    size_t blocks = 0, sites = 0, lines = 0;
    std::array<Row, BLOCKS> rows;
    std::array<TouchShape, SITES + BLOCKS * RecalledBlock::SITES> shapes;
    std::array<uint64_t, LINES + BLOCKS * RecalledBlock::LINES> line_addresses;
};

}  // namespace perfemu
