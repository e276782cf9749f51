// What both pipelines' PreparedOps have in common: a block in a pipeline's own form has one for each instruction.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

// Registers' indices in the table of when they are ready: NONE is always, NOWHERE is written and never read.
constexpr uint8_t NOWHERE = 254;

// What an instruction may be the first of.
enum class Pair : uint8_t { NONE, BRANCH, AES };

// More than three sources or two destinations or addresses.
inline bool many_operands(const TimedOp& op) {
    return op.sources[3] != timed_register::NONE || op.destinations[2] != timed_register::NONE ||
           op.address_sources[2] != timed_register::NONE;
}

// What is the same in a TimedOp.
template <typename Op>
void copy_operands(Op& prepared, const TimedOp& op, const SiteRange& sites) {
    prepared.sources = op.sources;
    prepared.address_sources = op.address_sources;
    prepared.destinations = op.destinations;
    std::replace(prepared.destinations.begin(), prepared.destinations.end(), timed_register::NONE, NOWHERE);
    prepared.accumulator = op.accumulator;
    prepared.write_back = op.write_back;
    prepared.length = op.length;
    prepared.offset = op.offset;
    prepared.branch = op.branch;
    prepared.serializes = op.serializes;
    prepared.first_site = sites.first;
    prepared.load_sites = sites.loads;
    prepared.store_sites = sites.stores;
}

// A Block of what `prepare(op, its sites, block)` makes. Of a REP, the op is what is left of it when its iterations are
// through, and `iteration` one of those.
template <typename Block, typename Prepare>
std::unique_ptr<Block> prepare_ops(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                                   const FrontEnd& front, Prepare prepare) {
    auto block = std::make_unique<Block>();
    block->address = address;
    std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        if (op.repeated) block->iteration = prepare(op, ranges[index], *block);
        block->ops.push_back(op.repeated
                                 ? prepare(TimedOp{.offset = op.offset, .length = op.length}, SiteRange{}, *block)
                                 : prepare(op, ranges[index], *block));
        uint64_t pc = address + op.offset;
        block->ops.back().leaves_line = index == 0 || front.leaves(pc - 1, pc, op.length);
    }
    for (const AccessSite& site : sites) block->accesses.push_back({site.size, site.elements});
    return block;
}

}  // namespace perfemu
