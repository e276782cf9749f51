#include "timing/recalled_batch.hpp"

namespace perfemu {

void RecalledBlock::assign_batch() {
    branch_offset = events.branch_offset;
    end_offset = events.end_offset;
    lines = events.fetches;
    branch = events.branch;
    const unsigned accesses = unsigned{events.loads} + events.stores;
    fit = events.listed ? RecalledBatch::fit(accesses, lines) : BatchFit::NOT;
    for (unsigned site = 0; fit != BatchFit::NOT && site < accesses; ++site) {
        const AccessShape shape = events.parts.data()[lines + site].shape;
        if (site < shapes.size())
            shapes[site] = shape;
        else
            more_shapes.push_back(shape);
    }
}

const RunBlock* RecalledBatch::gather(const RunBlock* run, const RunBlock* behind, uint64_t last_line) {
    Row* row = rows.data();
    run = MemoryBatch::gather<RecalledBlock>(
        run, behind, last_line,
        [&row](const RecalledBlock& block, const RunBlock*, uint64_t again, size_t sites, size_t lines) {
            *row++ = {.what = block.first_case + (again ? 0 : OUTCOMES),
                      .sites = static_cast<uint32_t>(sites),
                      .lines = static_cast<uint32_t>(lines)};
        });
    blocks = static_cast<size_t>(row - rows.data());
    return run;
}

}  // namespace perfemu
