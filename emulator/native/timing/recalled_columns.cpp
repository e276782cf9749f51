#include "timing/recalled_columns.hpp"

#include <algorithm>
#include <cstring>

namespace perfemu {

static constexpr ptrdiff_t AHEAD = 4;  // blocks that the host is told to bring

void RecalledBlock::assign_columns(const MemorySystem& memory) {
    branch_offset = events.branch_offset;
    end_offset = events.end_offset;
    lines = events.fetches;
    branch = events.branch;
    const unsigned accesses = unsigned{events.loads} + events.stores;
    in_columns = events.listed && accesses <= RecalledColumns::SITES && lines <= RecalledColumns::LINES;
    for (unsigned site = 0; in_columns && site < accesses; ++site) {
        const bool stores = events.parts.data()[lines + site].touch.stores;
        const auto [size, elements, offset] = events.accesses[site];
        const TouchShape shape = memory.touch_shape(stores, size, elements);
        if (site < SITES)
            shapes[site] = shape;
        else
            more_shapes.push_back(shape);
    }
}

const RunBlock* RecalledColumns::gather(const RunBlock* run, const RunBlock* behind, uint64_t last_line) {
    TouchShape *shape = shapes.data(), *const last_shape = shape + SITES;
    uint64_t *line = line_addresses.data(), *const last_address = line + LINES;
    Row* row = rows.data();
    behind = run + std::min(behind - run, static_cast<ptrdiff_t>(BLOCKS));
    const RunBlock* const to_bring = behind - 1;
    for (; run != behind; ++run) {
        __builtin_prefetch(std::min(run + AHEAD, to_bring)->block);
        const RecalledBlock& block = static_cast<const RecalledBlock&>(*run->block);
        if (!block.in_columns) [[unlikely]]
            break;
        std::memcpy(shape, block.shapes.data(), sizeof block.shapes);
        const uint64_t first_line = run->address & ~(LINE_BYTES - 1);
        // If it is the last one, it is not fetched again.
        const uint64_t again = first_line == last_line, start = first_line + again * LINE_BYTES;
        line[0] = start;
        line[1] = start + LINE_BYTES;
        if ((block.sites > RecalledBlock::SITES) | (block.lines > RecalledBlock::LINES)) [[unlikely]] {
            if (shape + block.sites > last_shape || line + block.lines > last_address) break;
            std::ranges::copy(block.more_shapes, shape + RecalledBlock::SITES);
            for (uint64_t i = 0; i < block.lines - again; ++i) line[i] = start + i * LINE_BYTES;
        }
        shape += block.sites;
        line += block.lines - again;
        row->what = block.first_case + (again ? 0 : OUTCOMES);
        row->sites = static_cast<uint32_t>(shape - shapes.data());
        row->lines = static_cast<uint32_t>(line - line_addresses.data());
        ++row;
        last_line = (run->address + block.end_offset - 1) & ~(LINE_BYTES - 1);
    }
    blocks = static_cast<size_t>(row - rows.data());
    sites = static_cast<size_t>(shape - shapes.data());
    lines = static_cast<size_t>(line - line_addresses.data());
    return run;
}

}  // namespace perfemu
