// One instruction is one cycle. Caches, TLBs and predictor are asked everything, and do not change that.
#include <algorithm>
#include <bit>
#include <memory>

#include "probes.hpp"
#include "timing/batch.hpp"
#include "timing/block_requests.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/request_list.hpp"

namespace perfemu {
namespace {

// Loads and stores are counted in two halves of one number, which `settle` comes to empty often enough.
constexpr uint64_t LOAD = 1, STORE = uint64_t{1} << 32;

struct alignas(64) Block final : BatchBlock {
    BlockRequests parts;  // if they are listed, that is all
    RequestList requests;
};

class Ideal final : public Pipeline {
  public:
    Ideal(const Config&, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
        : memory_(memory), branches_(branches), totals_(totals), line_bytes_(memory.fetch_line_bytes()),
          line_mask_(~(line_bytes_ - 1)), batch_(memory.independent_sides() ? std::make_unique<Batch>() : nullptr) {}

    std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                              std::span<const AccessSite> sites) override {
        auto block = std::make_unique<Block>();
        block->parts.assign(address, ops, sites, memory_);
        block->requests.assign(address, ops, sites, line_bytes_);
        if (batch_ && block->parts.listed) put_in_batch(*block, sites);
        return block;
    }

    void retire_whole(const PreparedBlock& block, const uint64_t* addresses, uint64_t next) override {
        access_whole(static_cast<const Block&>(block), addresses, next);
    }

    void retire_all(std::span<const RunBlock> blocks, const uint64_t* addresses) override {
        const RunBlock *run = blocks.data(), *const end = run + blocks.size() - 1;
        while (run != end) {
            if (batch_) {
                const RunBlock* const last = gather(run, end);
                if (last != run) run_batch(run, addresses);
                addresses += batch_->sites;
                run = last;
                if (run == end) return;
            }
            access_whole(static_cast<const Block&>(*run->block), addresses, run[1].address);
            addresses += run->block->sites;
            ++run;
        }
    }

    void settle() override {
        memory_.count_filtered_hits(filtered_data_ & (STORE - 1), filtered_data_ / STORE, filtered_lines_);
        filtered_data_ = filtered_lines_ = 0;
        for (Probe probe : {Probe::UOPS_DISPATCHED, Probe::UOPS_RETIRED, Probe::CYCLES_RETIRING})
            totals_[static_cast<unsigned>(probe)] += cycle_ - settled_;
        settled_ = cycle_;
    }

    unsigned retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                    uint64_t next, uint64_t limit) override {
        const Block& block = static_cast<const Block&>(prepared);
        // The first instruction after which the cycle is at or beyond the limit ends it.
        uint64_t end = last;
        if (limit - cycle_ < end - first) end = first + std::max<uint64_t>(limit > cycle_ ? limit - cycle_ : 0, 1);
        if (first >= end) return first;
        fetch(block, block.requests.first_line[first],
              0);  // where a block is entered in the middle, no request says so
        for (const ModelRequest& request : block.requests.of(first, end)) {
            const uint64_t cycle = cycle_ + request.op - first, pc = block.parts.address + request.offset;
            switch (request.kind) {
                case ModelRequest::FETCH: fetch(block, request.next, request.op - first); break;
                case ModelRequest::BRANCH: {
                    uint64_t fallthrough = block.parts.address + request.next;
                    branches_.resolve(pc, request.branch, request.op + 1U == last ? next : fallthrough, fallthrough);
                    break;
                }
                default:
                    if (!block.requests.repeated) access(request, addresses, pc, cycle);
            }
        }
        cycle_ += end - first;
        return static_cast<unsigned>(end);
    }

    void iterate(const PreparedBlock& prepared, const uint64_t* addresses) override {
        const Block& block = static_cast<const Block&>(prepared);
        for (const ModelRequest& request : block.requests.all)
            if (request.kind == ModelRequest::LOAD || request.kind == ModelRequest::STORE)
                access(request, addresses, block.parts.address, cycle_);
    }

    void elapse(uint64_t cycles) override {
        cycle_ += cycles;
        settled_ += cycles;
        line_ = FrontEnd::NO_LINE;
    }

  private:
    [[gnu::always_inline]] void access_whole(const Block& block, const uint64_t* addresses, uint64_t next) {
        const BlockRequests& parts = block.parts;
        if (!parts.listed) [[unlikely]] {
            retire(block, addresses, 0, block.instructions, next, NO_LIMIT);
            return;
        }
        filtered_data_ += parts.loads * LOAD + parts.stores * STORE;
        const BlockRequests::Part* fetch = parts.parts.data();
        const BlockRequests::Part* const accesses = fetch + parts.fetches;
        uint64_t line = parts.address & line_mask_;
        size_t site = 0;
        for (; fetch != accesses; ++fetch, line -= line_mask_) {
            if (line != line_) {
                line_ = line;
                ++filtered_lines_;
                if (!memory_.filtered_fetch(line)) [[unlikely]]
                    fetch_in_full(block, line, fetch, site);
            }
            for (; site != fetch->fetch.sites_end; ++site) {
                if (!memory_.filtered_hit(addresses[site], accesses[site].shape)) [[unlikely]]
                    access_in_full(block, fetch, site, addresses[site]);
            }
        }
        if (parts.branch != BranchKind::NONE)
            branches_.learn(parts.address + parts.branch_offset, parts.branch, next, parts.end());
        cycle_ += block.instructions;
    }

    // --- batches ---

    void put_in_batch(Block& block, std::span<const AccessSite> sites) {
        const BlockRequests& parts = block.parts;
        block.fit = Batch::fit(sites.size(), parts.fetches);
        if (block.fit == BatchFit::NOT) return;
        for (size_t site = 0; site < sites.size(); ++site) {
            const AccessShape shape = parts.parts.data()[parts.fetches + site].shape;
            if (site < block.shapes.size())
                block.shapes[site] = shape;
            else
                block.more_shapes.push_back(shape);
        }
        block.end = parts.end();
        block.accesses = parts.loads * LOAD + parts.stores * STORE;
        block.lines = parts.fetches;
        block.branch_bytes = static_cast<uint8_t>(parts.end_offset - parts.branch_offset);
        block.branch = parts.branch;
    }

    // Branches learn as their blocks are gathered.
    const RunBlock* gather(const RunBlock* run, const RunBlock* end) {
        if (!branches_.updates_by_batch())
            return batch_->gather(run, end, line_,
                                  [this](const BatchBlock& block, uint64_t went) { branches_.learn(block, went); });
        BranchUnit::BatchUpdate update = branches_.begin_update();
        run = batch_->gather(run, end, line_,
                             [&update](const BatchBlock& block, uint64_t went) { update.learn(block, went); });
        update.end();
        return run;
    }

    void run_batch(const RunBlock* run, const uint64_t* addresses) {
        const Batch& batch = *batch_;
        filtered_data_ += batch.accesses;
        filtered_lines_ += batch.lines;
        Batch::Cursor accesses{.run = run, .last_line = line_};
        Fetches fetches{accesses};
        filter_lines(fetches);
        size_t site = 0;
        while (memory_.ignores_cycles()) {
            const size_t until = std::min<size_t>(fetches.sites_before, batch.sites);
            filtered_data_ -= memory_.access_batch(addresses, batch.shapes.data(), site, until, cycle_);
            site = until;
            if (fetches.sites_before == Fetches::ALL) break;
            fetch_in_batch(fetches);
        }
        for (;; ++site) {
            site = memory_.filtered_hits(addresses, batch.shapes.data(), site, batch.sites);
            // What is no filtered hit is asked for in the program's order.
            while (fetches.sites_before <= site) fetch_in_batch(fetches);
            if (site == batch.sites) break;
            access_in_batch(accesses, addresses[site], site);
        }
        if (batch.lines) line_ = batch.line_addresses[batch.lines - 1];
        cycle_ += batch.cycles;
    }
    // The array of lines, up to one that is no filtered hit.
    struct Fetches {
        static constexpr uint64_t ALL = ~uint64_t{0};

        Batch::Cursor cursor;
        size_t line = 0;
        uint64_t sites_before = ALL;  // that line is fetched; ALL if there is none

        // Of its block.
        size_t in_block() const { return line - cursor.lines + cursor.again(); }
        const Block& block() const { return static_cast<const Block&>(cursor.block()); }
        size_t next_site() const { return in_block() ? block().parts.parts.data()[in_block() - 1].fetch.sites_end : 0; }
    };
    void filter_lines(Fetches& fetches) {
        fetches.line = memory_.filtered_fetches(batch_->line_addresses.data(), fetches.line, batch_->lines);
        fetches.sites_before = Fetches::ALL;
        if (fetches.line == batch_->lines) return;
        fetches.cursor.go_to_line(fetches.line);
        fetches.sites_before = fetches.cursor.sites + fetches.next_site();
    }
    [[gnu::noinline]] void fetch_in_batch(Fetches& fetches) {
        const ModelRequest& request =
            fetches.block().requests.all[BlockRequests::number_of_fetch(fetches.in_block(), fetches.next_site())];
        --filtered_lines_;
        memory_.fetch(batch_->line_addresses[fetches.line], cycle_ + fetches.cursor.cycles + request.op);
        ++fetches.line;
        filter_lines(fetches);
    }
    [[gnu::noinline]] void access_in_batch(Batch::Cursor& cursor, uint64_t address, size_t site) {
        cursor.go_to_site(site);
        const Block& block = static_cast<const Block&>(cursor.block());
        const ModelRequest& request = block.requests.all[number_of_access(block.parts, site - cursor.sites)];
        const bool stores = request.kind == ModelRequest::STORE;
        filtered_data_ -= stores ? STORE : LOAD;
        memory_.access({block.parts.address + request.offset, address, stores ? Request::STORE : Request::LOAD},
                       request.size, cycle_ + cursor.cycles + request.op, request.elements);
    }

    static unsigned number_of_access(const BlockRequests& parts, size_t site) {
        const BlockRequests::Part* const first = parts.parts.data();
        const BlockRequests::Part* fetch = first;
        while (fetch->fetch.sites_end <= site) ++fetch;
        return BlockRequests::number_of_access(static_cast<size_t>(fetch - first), site);
    }

    // --- block by block ---

    [[gnu::noinline]] void fetch_in_full(const Block& block, uint64_t line, const BlockRequests::Part* fetch,
                                         size_t site) {
        --filtered_lines_;
        const auto number = static_cast<size_t>(fetch - block.parts.parts.data());
        memory_.fetch(line, cycle_ + block.requests.all[BlockRequests::number_of_fetch(number, site)].op);
    }

    [[gnu::noinline]] void access_in_full(const Block& block, const BlockRequests::Part* fetch, size_t site,
                                          uint64_t address) {
        const auto number = static_cast<size_t>(fetch - block.parts.parts.data());
        const ModelRequest& request = block.requests.all[BlockRequests::number_of_access(number, site)];
        const bool stores = request.kind == ModelRequest::STORE;
        filtered_data_ -= stores ? STORE : LOAD;
        memory_.access({block.parts.address + request.offset, address, stores ? Request::STORE : Request::LOAD},
                       request.size, cycle_ + request.op, request.elements);
    }

    void fetch(const Block& block, uint64_t number, uint64_t later) {
        uint64_t line = (block.parts.address & line_mask_) - number * line_mask_;
        if (line != line_) memory_.fetch(line, cycle_ + later);
        line_ = line;
    }

    void access(const ModelRequest& request, const uint64_t* addresses, uint64_t pc, uint64_t cycle) {
        uint64_t address = addresses[request.site];
        if (request.kind == ModelRequest::LOAD)
            memory_.load(address, request.size, pc, cycle, request.elements);
        else if (request.kind == ModelRequest::STORE)
            memory_.store(address, request.size, pc, cycle, request.elements);
        else
            memory_.prefetch(address, pc, cycle);
    }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    uint64_t line_bytes_;
    uint64_t line_mask_;                               // less it is a line further
    std::unique_ptr<Batch> batch_;                     // null where fetches and data accesses depend on each other
    uint64_t settled_ = 0;                             // the cycle up to which the totals are counted
    uint64_t filtered_data_ = 0, filtered_lines_ = 0;  // not counted; as LOAD and STORE say
    uint64_t line_ = FrontEnd::NO_LINE;                // address of the line fetched last
};

const PipelineModel MODEL("ideal", make_pipeline<Ideal>);

}  // namespace
}  // namespace perfemu
