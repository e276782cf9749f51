#include "timing/block_events.hpp"

#include "timing/execution.hpp"

namespace perfemu {

BlockEvents::BlockEvents(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                         const MemorySystem& memory)
    : listed(!ops.empty()), address(address) {
    const uint64_t line_bytes = memory.fetch_line_bytes();
    const std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        const uint64_t begin = address + op.offset;
        end = begin + op.length;
        for (uint64_t line = begin & ~(line_bytes - 1); line < end; line += line_bytes)
            if (stretches.empty() || stretches.back().line != line)
                stretches.push_back({line, static_cast<uint32_t>(accesses.size())});
        for (unsigned site = ranges[index].first; site < ranges[index].first + ranges[index].count(); ++site) {
            listed &= site == accesses.size() && sites[site].size > 0;
            const bool load = site < unsigned{ranges[index].first} + ranges[index].loads;
            accesses.push_back({static_cast<uint16_t>(sites[site].size - 1),
                                static_cast<uint16_t>(memory.unaligned_bits(sites[site].size, sites[site].elements)),
                                sites[site].size, sites[site].elements, op.offset, !load});
            ++(load ? loads : stores);
            ++stretches.back().behind;
        }
        listed &= !op.repeated && !op.prefetches;
        if (op.branch == BranchKind::NONE) continue;
        listed &= index + 1 == ops.size();
        branch = op.branch;
        branch_pc = begin;
    }
    listed &= accesses.size() == sites.size();
}

}  // namespace perfemu
