// A batch of blocks, as a structure of arrays: the data accesses of all of them, and all the lines that they fetch.
// Where the parts of a core that use them do not depend on each other, each is given its whole array, in a loop
// that the host predicts whatever the blocks are like.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "timing/pipeline.hpp"

namespace perfemu {

// Whether a block can be put into a batch: not, if other things happen, as a REP; or only with what its own array of
// shapes does not hold.
enum class BatchFit : uint8_t { NOT, MORE, WHOLE };

// What memory is asked by many blocks.
struct MemoryBatch {
    static constexpr unsigned BLOCK_SITES = 8, BLOCK_LINES = 2;  // that a block holds; of more, the rest is appended
    static constexpr size_t BLOCKS = 512;                        // at most
    static constexpr size_t SITES = 8192, LINES = 4096;          // of blocks that have more
    static constexpr uint64_t LINE_BYTES = 64;

    // What of a block's sites and lines goes there.
    static BatchFit fit(size_t sites, size_t lines) {
        if (sites > SITES || lines > LINES) return BatchFit::NOT;
        return sites > BLOCK_SITES || lines > BLOCK_LINES ? BatchFit::MORE : BatchFit::WHOLE;
    }
    // From `run` on, up to the first block that does not fit or for which there is no room. `last_line` has been
    // fetched last. A `Block` has shapes, more_shapes, lines, fit and end_from(address). `visit(block, run, again,
    // sites, lines)` is called for each: `again` is 1 if its first line is not fetched, because it was the last one;
    // sites and lines are those up to its end. Returns what follows the last one.
    template <typename Block, typename Visit>
    const RunBlock* gather(const RunBlock* run, const RunBlock* end, uint64_t last_line, Visit visit);

    size_t sites = 0, lines = 0;
    // By site and by line
    std::array<AccessShape, SITES + BLOCKS * BLOCK_SITES> shapes;
    std::array<uint64_t, LINES + BLOCKS * BLOCK_LINES> line_addresses;
};

template <typename Block, typename Visit>
const RunBlock* MemoryBatch::gather(const RunBlock* run, const RunBlock* end, uint64_t last_line, Visit visit) {
    constexpr ptrdiff_t AHEAD = 4;  // blocks that the host is to bring
    AccessShape *shape = shapes.data(), *const last_shape = shape + SITES;
    uint64_t *line = line_addresses.data(), *const last_address = line + LINES;
    end = run + std::min(end - run, static_cast<ptrdiff_t>(BLOCKS));
    const RunBlock* const to_bring = end - 1;
    for (; run != end; ++run) {
        __builtin_prefetch(std::min(run + AHEAD, to_bring)->block);
        const Block& block = static_cast<const Block&>(*run->block);
        std::memcpy(shape, block.shapes.data(), sizeof block.shapes);
        const uint64_t first_line = run->address & ~(LINE_BYTES - 1);
        const uint64_t again = first_line == last_line, start = first_line + again * LINE_BYTES;
        line[0] = start;
        line[1] = start + LINE_BYTES;
        if (block.fit != BatchFit::WHOLE) [[unlikely]] {
            if (block.fit == BatchFit::NOT) break;
            if (shape + block.sites > last_shape || line + block.lines > last_address) break;
            std::ranges::copy(block.more_shapes, shape + BLOCK_SITES);
            for (uint64_t i = 0; i < block.lines - again; ++i) line[i] = start + i * LINE_BYTES;
        }
        shape += block.sites;
        line += block.lines - again;
        last_line = (block.end_from(run->address) - 1) & ~(LINE_BYTES - 1);
        visit(block, run, again, static_cast<size_t>(shape - shapes.data()),
              static_cast<size_t>(line - line_addresses.data()));
    }
    sites = static_cast<size_t>(shape - shapes.data());
    lines = static_cast<size_t>(line - line_addresses.data());
    return run;
}

// What a batch takes from a block: one line of the host's cache.
struct alignas(64) BatchBlock : PreparedBlock {
    std::array<AccessShape, MemoryBatch::BLOCK_SITES> shapes{};  // of each access
    uint64_t end = 0;                                            // the address after the block
    uint64_t accesses = 0;                                       // loads, and stores << 32
    uint16_t lines = 0;
    uint8_t branch_bytes = 0;
    BranchKind branch = BranchKind::NONE;
    BatchFit fit = BatchFit::NOT;
    std::vector<AccessShape> more_shapes;

    uint64_t branch_pc() const { return end - branch_bytes; }
    uint64_t end_from(uint64_t) const { return end; }
};

struct Batch : MemoryBatch {
    // Execution goes on at end->address. `learn` is called with each block, and where execution went on after it.
    template <typename Learn>
    const RunBlock* gather(const RunBlock* run, const RunBlock* end, uint64_t last_line, Learn learn) {
        uint64_t all_accesses = 0, all_cycles = 0;
        run = MemoryBatch::gather<BatchBlock>(
            run, end, last_line, [&](const BatchBlock& block, const RunBlock* its, uint64_t, size_t, size_t) {
                all_cycles += block.instructions;
                all_accesses += block.accesses;
                learn(block, its[1].address);
            });
        accesses = all_accesses;
        cycles = all_cycles;
        return run;
    }

    // What all of them add up to
    uint64_t accesses = 0, cycles = 0;

    // Goes from block to block to say whose a site or line is.
    struct Cursor {
        const RunBlock* run;
        uint64_t last_line;
        size_t sites = 0, lines = 0;  // before the block; a line that was the last one is not fetched again
        uint64_t cycles = 0;

        const BatchBlock& block() const { return static_cast<const BatchBlock&>(*run->block); }
        uint64_t first_line() const { return run->address & ~(LINE_BYTES - 1); }
        bool again() const { return first_line() == last_line; }
        void go_to_site(size_t site) {
            while (site - sites >= block().sites) next();
        }
        void go_to_line(size_t line) {
            while (line - lines >= size_t{block().lines} - again()) next();
        }
        void next() {
            const BatchBlock& left = block();
            sites += left.sites;
            cycles += left.instructions;
            lines += left.lines - again();
            last_line = (left.end - 1) & ~(LINE_BYTES - 1);
            ++run;
        }
    };
};

}  // namespace perfemu
