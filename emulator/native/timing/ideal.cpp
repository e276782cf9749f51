// One instruction is one cycle. Caches, TLBs and predictor hear everything, and do not change that.
#include <algorithm>
#include <bit>

#include "probes.hpp"
#include "short_list.hpp"
#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"

namespace perfemu {
namespace {

// What the other parts of the core hear of a block, in program order. The rest is one cycle each.
struct Event {
    enum Kind : uint8_t { FETCH, LOAD, STORE, PREFETCH, BRANCH };
    Kind kind;
    BranchKind branch;
    uint16_t op, site, offset;
    uint16_t size, elements;
    uint16_t next;  // of a branch: the offset behind it; of a fetch: the line's number, from the block's first line on
};

// The parts of a block that consists of nothing else but fetches, loads, stores, and a branch at its end. Small, so
// that those of most blocks lie on one cache line. What lies between two fetches is a stretch; the lines of a block's
// stretches follow each other.
struct Stretch {
    uint16_t op;      // whose bytes are in the line to be fetched
    uint16_t behind;  // its last access
};
struct Access {
    uint16_t span;       // its size less 1
    uint16_t unaligned;  // STORE, and address bits that it does not have if it is aligned

    static constexpr uint16_t STORE = 0x8000;
};
union Part {
    Stretch stretch;
    Access access;  // of the site of the same number
};

// Loads and stores are counted in two halves of one number, which `settle` comes to empty often enough.
constexpr uint64_t LOAD = 1, STORE = uint64_t{1} << 32;

struct alignas(64) Block final : PreparedBlock {
    uint64_t address = 0;
    uint64_t touches = 0;                        // LOAD for each load, STORE for each store
    uint16_t stretches = 0;                      // of the parts; the rest are accesses
    uint16_t branch_offset = 0, branch_end = 0;  // if there is one
    BranchKind branch = BranchKind::NONE;
    bool simple = true;  // the parts tell everything
    ShortList<Part, 6> parts;
    bool repeated = false;

    std::vector<Event> events;
    std::vector<uint32_t> first_event;  // by op, and behind the last
    std::vector<uint16_t> first_line;   // by op: of its bytes, as FETCH's
};

class Ideal final : public Pipeline {
  public:
    Ideal(const Config&, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
        : memory_(memory), branches_(branches), totals_(totals), line_bytes_(memory.fetch_line_bytes()),
          line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes_))) {}

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) override {
        auto block = std::make_unique<Block>();
        block->address = address;
        std::vector<SiteRange> ranges = sites_by_op(ops, sites);
        const uint64_t first_line = address / line_bytes_;
        uint64_t line = FrontEnd::NO_LINE;
        for (size_t index = 0; index < ops.size(); ++index) {
            const TimedOp& op = ops[index];
            Event event{.op = static_cast<uint16_t>(index), .offset = op.offset};
            uint64_t begin = address + op.offset;
            block->first_event.push_back(static_cast<uint32_t>(block->events.size()));
            block->first_line.push_back(static_cast<uint16_t>(begin / line_bytes_ - first_line));
            for (uint64_t next = begin / line_bytes_; next <= (begin + op.length - 1) / line_bytes_; ++next) {
                if (next == line) continue;
                line = next;
                event.kind = Event::FETCH;
                event.next = static_cast<uint16_t>(next - first_line);
                block->events.push_back(event);
            }
            for (unsigned site = ranges[index].first; site < ranges[index].first + ranges[index].count(); ++site) {
                bool load = site < unsigned{ranges[index].first} + ranges[index].loads;
                event.kind = op.prefetches ? Event::PREFETCH : load ? Event::LOAD : Event::STORE;
                event.site = static_cast<uint16_t>(site);
                event.size = sites[site].size;
                event.elements = sites[site].elements;
                block->events.push_back(event);
            }
            event.kind = Event::BRANCH;
            event.branch = op.branch;
            event.next = static_cast<uint16_t>(op.offset + op.length);
            if (op.branch != BranchKind::NONE) block->events.push_back(event);
            block->repeated |= op.repeated;
        }
        block->first_event.push_back(static_cast<uint32_t>(block->events.size()));
        simplify(*block, ops, sites);
        return block;
    }

    void retire_whole(const PreparedBlock& prepared, const uint64_t* addresses, unsigned count,
                      uint64_t next) override {
        const Block& block = static_cast<const Block&>(prepared);
        if (!block.simple) [[unlikely]] {
            retire(block, addresses, 0, count, next, NO_LIMIT);
            return;
        }
        touched_data_ += block.touches;
        const Part* const stretches = block.parts.data();
        const Part* const accesses = stretches + block.stretches;
        uint64_t line = block.address >> line_shift_;
        size_t site = 0;
        for (const Part* part = stretches; part != accesses; ++part, ++line) {
            if (line != line_) {
                line_ = line;
                if (memory_.touch_line(line << line_shift_)) [[likely]]
                    ++touched_lines_;
                else
                    fetch_in_full(line, part->stretch.op);
            }
            for (; site != part->stretch.behind; ++site) {
                Access access = accesses[site].access;
                bool stores = access.unaligned & Access::STORE;
                uint64_t unaligned = access.unaligned & (Access::STORE - 1u);
                if (!memory_.touch(stores, addresses[site], access.span, unaligned)) [[unlikely]]
                    access_in_full(block, site, addresses);
            }
        }
        if (block.branch != BranchKind::NONE)
            branches_.learn(block.address + block.branch_offset, block.branch, next, block.address + block.branch_end);
        cycle_ += count;
    }

    void settle() override {
        memory_.count_touches(touched_data_ & (STORE - 1), touched_data_ / STORE, touched_lines_);
        touched_data_ = touched_lines_ = 0;
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
        const Event* event = block.events.data() + block.first_event[first];
        const Event* const behind = block.events.data() + block.first_event[end];
        fetch(block, block.first_line[first], 0);  // where a block is entered in the middle, no event says so
        for (; event < behind; ++event) {
            const uint64_t cycle = cycle_ + event->op - first, pc = block.address + event->offset;
            switch (event->kind) {
                case Event::FETCH: fetch(block, event->next, event->op - first); break;
                case Event::BRANCH: {
                    uint64_t fallthrough = block.address + event->next;
                    branches_.resolve(pc, event->branch, event->op + 1U == last ? next : fallthrough, fallthrough);
                    break;
                }
                default:
                    if (!block.repeated) access(*event, addresses, pc, cycle);
            }
        }
        cycle_ += end - first;
        return static_cast<unsigned>(end);
    }

    void iterate(const PreparedBlock& prepared, const uint64_t* addresses) override {
        const Block& block = static_cast<const Block&>(prepared);
        for (const Event& event : block.events)
            if (event.kind == Event::LOAD || event.kind == Event::STORE)
                access(event, addresses, block.address, cycle_);
    }

    void elapse(uint64_t cycles) override {
        cycle_ += cycles;
        settled_ += cycles;
        line_ = FrontEnd::NO_LINE;
    }

  private:
    void simplify(Block& block, std::span<const TimedOp> ops, std::span<const AccessSite> sites) const {
        block.simple = !block.repeated;
        std::vector<Part> parts, accesses;
        for (const Event& event : block.events) {
            bool store = event.kind == Event::STORE;
            switch (event.kind) {
                case Event::FETCH:
                    block.simple &= event.next == parts.size();
                    parts.push_back({.stretch = {event.op, static_cast<uint16_t>(accesses.size())}});
                    break;
                case Event::LOAD:
                case Event::STORE: {
                    block.simple &= event.site == accesses.size();
                    uint64_t unaligned = memory_.unaligned_bits(event.size, event.elements);
                    accesses.push_back({.access = {static_cast<uint16_t>(event.size - 1),
                                                   static_cast<uint16_t>(unaligned | (store ? Access::STORE : 0))}});
                    block.touches += store ? STORE : LOAD;
                    ++parts.back().stretch.behind;
                    break;
                }
                case Event::PREFETCH: block.simple = false; break;
                case Event::BRANCH:
                    block.simple &= event.op + 1U == ops.size();
                    block.branch = event.branch;
                    block.branch_offset = event.offset;
                    block.branch_end = event.next;
            }
        }
        block.simple &= accesses.size() == sites.size();
        block.stretches = static_cast<uint16_t>(parts.size());
        parts.insert(parts.end(), accesses.begin(), accesses.end());
        block.parts.assign(parts);
    }

    [[gnu::noinline]] void fetch_in_full(uint64_t line, uint64_t later) {
        memory_.fetch(line << line_shift_, cycle_ + later);
    }

    [[gnu::noinline]] void access_in_full(const Block& block, size_t site, const uint64_t* addresses) {
        const Event* event = block.events.data();  // a fetch
        for (size_t left = site + 1; left;) left -= (++event)->kind != Event::FETCH;
        bool stores = event->kind == Event::STORE;
        touched_data_ -= stores ? STORE : LOAD;
        memory_.access(stores, addresses[site], event->size, block.address + event->offset, cycle_ + event->op,
                       event->elements);
    }

    void fetch(const Block& block, uint64_t number, uint64_t later) {
        uint64_t line = block.address / line_bytes_ + number;
        if (line != line_) memory_.fetch(line * line_bytes_, cycle_ + later);
        line_ = line;
    }

    void access(const Event& event, const uint64_t* addresses, uint64_t pc, uint64_t cycle) {
        uint64_t address = addresses[event.site];
        if (event.kind == Event::LOAD)
            memory_.load(address, event.size, pc, cycle, event.elements);
        else if (event.kind == Event::STORE)
            memory_.store(address, event.size, pc, cycle, event.elements);
        else
            memory_.prefetch(address, cycle);
    }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    uint64_t line_bytes_;
    unsigned line_shift_;
    uint64_t settled_ = 0;                           // the cycle up to which the totals are told
    uint64_t touched_data_ = 0, touched_lines_ = 0;  // not told; as Block::touches
    uint64_t line_ = FrontEnd::NO_LINE;              // address / line_bytes_
};

const PipelineModel MODEL("ideal", make_pipeline<Ideal>);

}  // namespace
}  // namespace perfemu
