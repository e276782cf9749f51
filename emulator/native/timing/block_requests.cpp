#include "timing/block_requests.hpp"

#include "timing/execution.hpp"

namespace perfemu {

static constexpr uint32_t LARGEST_LISTED_ACCESS = 64;  // bytes

void BlockRequests::assign(uint64_t block_address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                           const MemorySystem& memory) {
    const uint64_t line_bytes = memory.fetch_line_bytes();
    const std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    std::vector<Part> lines, shapes;
    uint64_t last_line = 0;
    address = block_address;
    listed = !ops.empty();
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        const uint64_t begin = address + op.offset, end = begin + op.length;
        for (uint64_t line = begin & ~(line_bytes - 1); line < end; line += line_bytes) {
            if (!lines.empty() && line == last_line) continue;
            listed &= lines.empty() || line == last_line + line_bytes;
            lines.push_back({.fetch = {static_cast<uint16_t>(shapes.size())}});
            last_line = line;
        }
        for (unsigned site = ranges[index].first; site < ranges[index].first + ranges[index].count(); ++site) {
            listed &= site == shapes.size();
            const bool load = site < unsigned{ranges[index].first} + ranges[index].loads;
            listed &= sites[site].size <= LARGEST_LISTED_ACCESS;
            shapes.push_back({.shape = AccessShape::of(!load, sites[site].size, sites[site].elements)});
            accesses.push_back({sites[site].size, sites[site].elements, op.offset});
            ++(load ? loads : stores);
            ++lines.back().fetch.sites_end;
        }
        listed &= !op.repeated && !op.prefetches;
        end_offset = static_cast<uint16_t>(end - address);
        if (op.branch == BranchKind::NONE) continue;
        listed &= index + 1 == ops.size();
        branch = op.branch;
        branch_offset = op.offset;
    }
    listed &= shapes.size() == sites.size();
    fetches = static_cast<uint16_t>(lines.size());
    lines.insert(lines.end(), shapes.begin(), shapes.end());
    parts.assign(lines);
}

}  // namespace perfemu
