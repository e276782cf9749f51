// What the pipelines' rows have in common: a block in a pipeline's own form is one row for each instruction.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

// Registers' places in the table of when they are ready: NONE is always, NOWHERE is written and never read.
constexpr uint8_t NOWHERE = 254;

// What an instruction may be the first of.
enum class Pair : uint8_t { NONE, BRANCH, AES };

// More than three sources or two destinations or addresses.
inline bool many_operands(const TimedOp& op) {
    return op.sources[3] != timed_register::NONE || op.destinations[2] != timed_register::NONE ||
           op.address_sources[2] != timed_register::NONE;
}

// What a row takes over as it is.
template <typename Row>
void take_over(Row& row, const TimedOp& op, const SiteRange& sites) {
    row.sources = op.sources;
    row.address_sources = op.address_sources;
    row.destinations = op.destinations;
    std::replace(row.destinations.begin(), row.destinations.end(), timed_register::NONE, NOWHERE);
    row.accumulator = op.accumulator;
    row.write_back = op.write_back;
    row.length = op.length;
    row.offset = op.offset;
    row.branch = op.branch;
    row.serializes = op.serializes;
    row.first_site = sites.first;
    row.load_sites = sites.loads;
    row.store_sites = sites.stores;
}

// A Block of rows that `make_row(op, its sites, block)` makes. Of a REP, the row is what is left of it when its
// iterations are through, and `iteration` one of those.
template <typename Block, typename MakeRow>
std::unique_ptr<Block> prepare_rows(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                                    const FrontEnd& front, MakeRow make_row) {
    auto block = std::make_unique<Block>();
    block->address = address;
    std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        if (op.repeated) block->iteration = make_row(op, ranges[index], *block);
        block->rows.push_back(op.repeated
                                  ? make_row(TimedOp{.offset = op.offset, .length = op.length}, SiteRange{}, *block)
                                  : make_row(op, ranges[index], *block));
        uint64_t pc = address + op.offset;
        block->rows.back().leaves_line = index == 0 || front.leaves(pc - 1, pc, op.length);
    }
    for (const AccessSite& site : sites) block->accesses.push_back({site.size, site.elements});
    return block;
}

}  // namespace perfemu
