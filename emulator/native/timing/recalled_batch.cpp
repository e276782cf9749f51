#include "timing/recalled_batch.hpp"

namespace perfemu {

void RecalledBlock::assign_batch() {
    branch_offset = requests.branch_offset;
    end_offset = requests.end_offset;
    lines = requests.fetches;
    branch = requests.branch;
    const unsigned accesses = unsigned{requests.loads} + requests.stores;
    fit = requests.listed ? RecalledBatch::fit(accesses, lines) : BatchFit::NOT;
    for (unsigned site = 0; fit != BatchFit::NOT && site < accesses; ++site) {
        const AccessShape shape = requests.parts.data()[lines + site].shape;
        if (site < shapes.size())
            shapes[site] = shape;
        else
            more_shapes.push_back(shape);
    }
}

const RunBlock* RecalledBatch::gather(const RunBlock* run, const RunBlock* end, uint64_t last_line) {
    Member* member = members.data();
    run = MemoryBatch::gather<RecalledBlock>(
        run, end, last_line,
        [&member](const RecalledBlock& block, const RunBlock*, uint64_t again, size_t sites, size_t lines) {
            *member++ = {.what = block.first_case + (again ? 0 : OUTCOMES),
                         .sites = static_cast<uint32_t>(sites),
                         .lines = static_cast<uint32_t>(lines)};
        });
    blocks = static_cast<size_t>(member - members.data());
    return run;
}

}  // namespace perfemu
