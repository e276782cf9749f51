// One instruction is one cycle. Caches, TLBs and predictor hear everything, and do not change that.
#include "probes.hpp"
#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"

namespace perfemu {
namespace {

struct Row {
    uint16_t offset;
    uint8_t length;
    BranchKind branch;
    SiteRange sites;
    bool prefetches, repeated;
};

struct Block final : PreparedBlock {
    uint64_t address;
    std::vector<Row> rows;
    std::vector<Access> accesses;  // by site
};

class Ideal final : public Pipeline {
  public:
    Ideal(const Config&, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
        : memory_(memory), branches_(branches), totals_(totals), line_mask_(~uint64_t{memory.fetch_line_bytes() - 1}) {}

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) override {
        auto block = std::make_unique<Block>();
        block->address = address;
        std::vector<SiteRange> ranges = sites_by_op(ops, sites);
        for (size_t index = 0; index < ops.size(); ++index) {
            const TimedOp& op = ops[index];
            block->rows.push_back({op.offset, op.length, op.branch, ranges[index], op.prefetches, op.repeated});
        }
        for (const AccessSite& site : sites) block->accesses.push_back({site.size, site.elements});
        return block;
    }

    unsigned retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                    uint64_t next, uint64_t limit) override {
        const Block& block = static_cast<const Block&>(prepared);
        unsigned index = first;
        while (index < last) {
            const Row& row = block.rows[index];
            uint64_t pc = block.address + row.offset;
            uint64_t end = pc + row.length;
            ++index;
            if (((pc ^ line_) | ((end - 1) ^ line_)) & line_mask_) fetch(pc, end);
            if (!row.repeated) access(block, row, addresses, pc);
            if (row.branch != BranchKind::NONE) branches_.resolve(pc, row.branch, index == last ? next : end, end);
            if (++cycle_ >= limit) break;
        }
        uint64_t count = index - first;
        for (Probe probe : {Probe::UOPS_DISPATCHED, Probe::UOPS_RETIRED, Probe::CYCLES_RETIRING})
            totals_[static_cast<unsigned>(probe)] += count;
        return index;
    }

    void iterate(const PreparedBlock& prepared, const uint64_t* addresses) override {
        const Block& block = static_cast<const Block&>(prepared);
        access(block, block.rows[0], addresses, block.address);
    }

    void elapse(uint64_t cycles) override {
        cycle_ += cycles;
        line_ = FrontEnd::NO_LINE;
    }

  private:
    void fetch(uint64_t pc, uint64_t end) {
        for (uint64_t line = pc & line_mask_; line < end; line += ~line_mask_ + 1) {
            if (line != line_) memory_.fetch(line, cycle_);
            line_ = line;
        }
    }

    void access(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc) {
        unsigned site = row.sites.first, stores = site + row.sites.loads, end = stores + row.sites.stores;
        if (row.prefetches) {
            if (site < end) memory_.prefetch(addresses[site], cycle_);
            return;
        }
        for (; site < stores; ++site)
            memory_.load(addresses[site], block.accesses[site].size, pc, cycle_, block.accesses[site].elements);
        for (; site < end; ++site)
            memory_.store(addresses[site], block.accesses[site].size, pc, cycle_, block.accesses[site].elements);
    }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    uint64_t line_mask_;
    uint64_t line_ = FrontEnd::NO_LINE;
};

const PipelineModel MODEL("ideal", make_pipeline<Ideal>);

}  // namespace
}  // namespace perfemu
