#include "timing/warming.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"

namespace perfemu {
namespace {

struct Event {
    enum Kind : uint8_t { FETCH, LOAD, STORE, PREFETCH, BRANCH };

    uint16_t op = 0;      // its instruction
    uint16_t offset = 0;  // of that, in the block
    uint16_t site = 0, size = 0, elements = 1;
    uint16_t next = 0;  // FETCH: how many lines behind the block's first; BRANCH: the offset behind it
    Kind kind = FETCH;
    BranchKind branch = BranchKind::NONE;
};

struct Block final : PreparedBlock {
    uint64_t address = 0;
    bool repeated = false;              // a REP, whose iterations make its accesses
    std::vector<Event> events;          // in program order
    std::vector<uint32_t> first_event;  // by op, and behind the last
    std::vector<uint16_t> first_line;   // by op: of its bytes, as FETCH's
};

class Warming final : public Pipeline {
  public:
    Warming(MemorySystem& memory, BranchUnit& branches)
        : memory_(memory), branches_(branches), line_bytes_(memory.fetch_line_bytes()) {}

    unsigned retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                    uint64_t next, uint64_t limit) override {
        const Block& block = static_cast<const Block&>(prepared);
        if (limit == NO_LIMIT) {
            hear(block, addresses, first, last, next);
            return last;
        }
        while (first < last) {
            hear(block, addresses, first, first + 1, first + 1 == last ? next : NOT_TAKEN);
            ++first;
            if (cycle_ >= limit) break;
        }
        return first;
    }

    void iterate(const PreparedBlock& prepared, const uint64_t* addresses) override {
        const Block& block = static_cast<const Block&>(prepared);
        uint64_t ready = cycle_;
        for (const Event& event : block.events)
            if (event.kind == Event::LOAD || event.kind == Event::STORE)
                ready = std::max(ready, access(event, addresses, block.address, cycle_));
        cycle_ = ready;
    }

    void elapse(uint64_t cycles) override {
        cycle_ += cycles;
        line_ = FrontEnd::NO_LINE;
    }

  protected:
    std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                              std::span<const AccessSite> sites) override {
        auto block = std::make_unique<Block>();
        block->address = address;
        const std::vector<SiteRange> ranges = sites_by_op(ops, sites);
        uint64_t line = FrontEnd::NO_LINE;
        for (size_t index = 0; index < ops.size(); ++index) {
            block->first_event.push_back(static_cast<uint32_t>(block->events.size()));
            line = add_events(*block, ops[index], index, line, sites, ranges[index]);
            block->repeated |= ops[index].repeated;
        }
        block->first_event.push_back(static_cast<uint32_t>(block->events.size()));
        return block;
    }

  private:
    static constexpr uint64_t NOT_TAKEN = ~uint64_t{0};

    // Of one instruction. `line`: fetched before; returns the last that is fetched.
    uint64_t add_events(Block& block, const TimedOp& op, size_t index, uint64_t line, std::span<const AccessSite> sites,
                        SiteRange range) const {
        Event event{.op = static_cast<uint16_t>(index), .offset = op.offset};
        const uint64_t begin = block.address + op.offset, first_line = block.address / line_bytes_;
        block.first_line.push_back(static_cast<uint16_t>(begin / line_bytes_ - first_line));
        for (uint64_t next = begin / line_bytes_; next <= (begin + op.length - 1) / line_bytes_; ++next) {
            if (next == line) continue;
            line = next;
            event.next = static_cast<uint16_t>(next - first_line);
            block.events.push_back(event);
        }
        for (unsigned site = range.first; site < range.first + range.count(); ++site) {
            const bool load = site < unsigned{range.first} + range.loads;
            event.kind = op.prefetches ? Event::PREFETCH : load ? Event::LOAD : Event::STORE;
            event.site = static_cast<uint16_t>(site);
            event.size = sites[site].size;
            event.elements = sites[site].elements;
            block.events.push_back(event);
        }
        if (op.branch != BranchKind::NONE) {
            event.kind = Event::BRANCH;
            event.branch = op.branch;
            event.next = static_cast<uint16_t>(op.offset + op.length);
            block.events.push_back(event);
        }
        return line;
    }

    void hear(const Block& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next) {
        if (first >= last) return;
        uint64_t ready = fetch(block, block.first_line[first], cycle_);  // where it is entered in the middle
        unsigned op = first;
        const Event* const behind = block.events.data() + block.first_event[last];
        for (const Event* event = block.events.data() + block.first_event[first]; event < behind; ++event) {
            if (event->op != op) {  // what is between them takes a cycle each
                cycle_ = std::max(cycle_ + 1, ready) + (event->op - op - 1);
                op = event->op;
            }
            if (event->kind == Event::FETCH) {
                ready = std::max(ready, fetch(block, event->next, cycle_));
            } else if (event->kind == Event::BRANCH) {
                const uint64_t fallthrough = block.address + event->next;
                const bool leaves = op + 1U == last && next != NOT_TAKEN;
                branches_.resolve(block.address + event->offset, event->branch, leaves ? next : fallthrough,
                                  fallthrough);
            } else if (!block.repeated) {
                ready = std::max(ready, access(*event, addresses, block.address + event->offset, cycle_));
            }
        }
        cycle_ = std::max(cycle_ + 1, ready) + (last - op - 1);
    }

    // When it is there.
    uint64_t fetch(const Block& block, uint64_t number, uint64_t cycle) {
        const uint64_t line = (block.address / line_bytes_ + number) * line_bytes_;
        if (line == std::exchange(line_, line)) return cycle;
        return memory_.fetch(line, cycle);
    }

    uint64_t access(const Event& event, const uint64_t* addresses, uint64_t pc, uint64_t cycle) {
        const uint64_t address = addresses[event.site];
        if (event.kind == Event::LOAD) return memory_.load(address, event.size, pc, cycle, event.elements);
        if (event.kind == Event::STORE) return memory_.store(address, event.size, pc, cycle, event.elements);
        memory_.prefetch(address, pc, cycle);
        return cycle;
    }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t line_bytes_;
    uint64_t line_ = FrontEnd::NO_LINE;  // address of the line fetched last
};

}  // namespace

std::unique_ptr<Pipeline> make_warming(MemorySystem& memory, BranchUnit& branches) {
    return std::make_unique<Warming>(memory, branches);
}

}  // namespace perfemu
