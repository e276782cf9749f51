// Blocks as columns: all the data accesses of many blocks one behind the other, and all the lines that they fetch.
// Where the parts of a core that hear of them do not depend on each other, each is told of its whole column, in a loop
// that the host foresees whatever the blocks are like.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "timing/pipeline.hpp"

namespace perfemu {

// What columns take from a block: one line of the host's cache.
struct alignas(64) ColumnBlock : PreparedBlock {
    static constexpr unsigned SITES = 8, LINES = 2;  // of more, the rest is appended one by one

    std::array<uint16_t, SITES> shapes{};  // MemorySystem::touch_shape of each access
    uint64_t end = 0;                      // the address behind the block
    uint64_t touches = 0;                  // loads, and stores << 32
    uint16_t lines = 0;
    uint8_t branch_bytes = 0;
    BranchKind branch = BranchKind::NONE;
    bool in_columns = false;  // if not, other things happen, as a REP
    std::vector<uint16_t> more_shapes;

    uint64_t branch_pc() const { return end - branch_bytes; }
};

class Columns {
  public:
    static constexpr size_t BLOCKS = 512;                // at most
    static constexpr size_t SITES = 8192, LINES = 4096;  // of blocks that have more than ColumnBlock's
    static constexpr uint64_t LINE_BYTES = 64;

    // From `run` on, up to the first block that is not in_columns or for which there is no room. `last_line` has been
    // fetched last. Returns behind the last one.
    const RunBlock* gather(const RunBlock* run, const RunBlock* behind, uint64_t last_line);

    // What all of them add up to
    uint64_t touches = 0, cycles = 0;
    size_t sites = 0, lines = 0;
    // By site and by line
    std::array<uint16_t, SITES + BLOCKS * ColumnBlock::SITES> shapes;
    std::array<uint64_t, LINES + BLOCKS * ColumnBlock::LINES> line_addresses;

    // Goes from block to block to say whose a site or line is.
    struct Cursor {
        const RunBlock* run;
        uint64_t last_line;
        size_t sites = 0, lines = 0;  // before the block; a line that was the last one is not fetched again
        uint64_t cycles = 0;

        const ColumnBlock& block() const { return static_cast<const ColumnBlock&>(*run->block); }
        uint64_t first_line() const { return run->address & ~(LINE_BYTES - 1); }
        bool again() const { return first_line() == last_line; }
        void go_to_site(size_t site) {
            while (site - sites >= block().sites) next();
        }
        void go_to_line(size_t line) {
            while (line - lines >= size_t{block().lines} - again()) next();
        }
        void next() {
            const ColumnBlock& left = block();
            sites += left.sites;
            cycles += left.instructions;
            lines += left.lines - again();
            last_line = (left.end - 1) & ~(LINE_BYTES - 1);
            ++run;
        }
    };
};

}  // namespace perfemu
