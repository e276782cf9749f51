#include "timing/request_list.hpp"

#include "timing/execution.hpp"
#include "timing/front_end.hpp"

namespace perfemu {

void RequestList::assign(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                         uint64_t line_bytes) {
    const std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    const uint64_t first = address / line_bytes;
    uint64_t line = FrontEnd::NO_LINE;
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        const SiteRange& range = ranges[index];
        const ModelRequest made{.op = static_cast<uint16_t>(index), .offset = op.offset};
        const uint64_t begin = address + op.offset, last = (begin + op.length - 1) / line_bytes;
        repeated |= op.repeated;
        first_of_op_.push_back(static_cast<uint32_t>(all.size()));
        first_line.push_back(static_cast<uint16_t>(begin / line_bytes - first));
        for (uint64_t next = begin / line_bytes; next <= last; ++next) {
            if (next == line) continue;
            line = next;
            all.push_back(made);
            all.back().next = static_cast<uint16_t>(next - first);
        }
        for (unsigned site = range.first; site < range.first + range.count(); ++site) {
            const bool load = site < unsigned{range.first} + range.loads;
            all.push_back(made);
            all.back().kind = op.prefetches ? ModelRequest::PREFETCH : load ? ModelRequest::LOAD : ModelRequest::STORE;
            all.back().site = static_cast<uint16_t>(site);
            all.back().size = sites[site].size;
            all.back().elements = sites[site].elements;
        }
        if (op.branch == BranchKind::NONE) continue;
        all.push_back(made);
        all.back().kind = ModelRequest::BRANCH;
        all.back().branch = op.branch;
        all.back().next = static_cast<uint16_t>(op.offset + op.length);
    }
    first_of_op_.push_back(static_cast<uint32_t>(all.size()));
}

}  // namespace perfemu
