#include "timing/columns.hpp"

#include <algorithm>
#include <cstring>

namespace perfemu {

static constexpr ptrdiff_t AHEAD = 4;  // blocks that the host is told to bring

const RunBlock* Columns::gather(const RunBlock* run, const RunBlock* behind, uint64_t last_line) {
    uint64_t all_touches = 0, all_cycles = 0;
    uint16_t *shape = shapes.data(), *const last_shape = shape + SITES;
    uint64_t *line = line_addresses.data(), *const last_address = line + LINES;
    behind = run + std::min(behind - run, static_cast<ptrdiff_t>(BLOCKS));
    const RunBlock* const to_bring = behind - 1;
    for (; run != behind; ++run) {
        __builtin_prefetch(std::min(run + AHEAD, to_bring)->block);
        const ColumnBlock& block = static_cast<const ColumnBlock&>(*run->block);
        if (!block.in_columns) [[unlikely]]
            break;
        std::memcpy(shape, block.shapes.data(), sizeof block.shapes);
        const uint64_t first_line = run->address & ~(LINE_BYTES - 1);
        // If it is the last one, it is not fetched again.
        const uint64_t again = first_line == last_line, start = first_line + again * LINE_BYTES;
        line[0] = start;
        line[1] = start + LINE_BYTES;
        if ((block.sites > ColumnBlock::SITES) | (block.lines > ColumnBlock::LINES)) [[unlikely]] {
            if (shape + block.sites > last_shape || line + block.lines > last_address) break;
            std::ranges::copy(block.more_shapes, shape + ColumnBlock::SITES);
            for (uint64_t i = 0; i < block.lines - again; ++i) line[i] = start + i * LINE_BYTES;
        }
        shape += block.sites;
        line += block.lines - again;
        last_line = (block.end - 1) & ~(LINE_BYTES - 1);
        all_cycles += block.instructions;
        all_touches += block.touches;
    }
    touches = all_touches;
    cycles = all_cycles;
    sites = static_cast<size_t>(shape - shapes.data());
    lines = static_cast<size_t>(line - line_addresses.data());
    return run;
}

}  // namespace perfemu
