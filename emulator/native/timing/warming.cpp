#include "timing/warming.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "timing/front_end.hpp"
#include "timing/request_list.hpp"

namespace perfemu {
namespace {

struct Block final : PreparedBlock {
    uint64_t address = 0;
    RequestList requests;
};

class Warming final : public Pipeline {
  public:
    Warming(MemorySystem& memory, BranchUnit& branches)
        : memory_(memory), branches_(branches), line_bytes_(memory.fetch_line_bytes()) {}

    unsigned retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                    uint64_t next, uint64_t limit) override {
        const Block& block = static_cast<const Block&>(prepared);
        if (limit == NO_LIMIT) {
            warm(block, addresses, first, last, next);
            return last;
        }
        while (first < last) {
            warm(block, addresses, first, first + 1, first + 1 == last ? next : NOT_TAKEN);
            ++first;
            if (cycle_ >= limit) break;
        }
        return first;
    }

    void iterate(const PreparedBlock& prepared, const uint64_t* addresses) override {
        const Block& block = static_cast<const Block&>(prepared);
        uint64_t ready = cycle_;
        for (const ModelRequest& request : block.requests.all)
            if (request.kind == ModelRequest::LOAD || request.kind == ModelRequest::STORE)
                ready = std::max(ready, access(request, addresses, block.address, cycle_));
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
        block->requests.assign(address, ops, sites, line_bytes_);
        return block;
    }

  private:
    static constexpr uint64_t NOT_TAKEN = ~uint64_t{0};

    void warm(const Block& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next) {
        if (first >= last) return;
        // Where it is entered in the middle
        uint64_t ready = fetch(block, block.requests.first_line[first], cycle_);
        unsigned op = first;
        for (const ModelRequest& request : block.requests.of(first, last)) {
            if (request.op != op) {  // what is between them takes a cycle each
                cycle_ = std::max(cycle_ + 1, ready) + (request.op - op - 1);
                op = request.op;
            }
            if (request.kind == ModelRequest::FETCH) {
                ready = std::max(ready, fetch(block, request.next, cycle_));
            } else if (request.kind == ModelRequest::BRANCH) {
                const uint64_t fallthrough = block.address + request.next;
                const bool leaves = op + 1U == last && next != NOT_TAKEN;
                branches_.resolve(block.address + request.offset, request.branch, leaves ? next : fallthrough,
                                  fallthrough);
            } else if (!block.requests.repeated) {
                ready = std::max(ready, access(request, addresses, block.address + request.offset, cycle_));
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

    uint64_t access(const ModelRequest& request, const uint64_t* addresses, uint64_t pc, uint64_t cycle) {
        const uint64_t address = addresses[request.site];
        if (request.kind == ModelRequest::LOAD) return memory_.load(address, request.size, pc, cycle, request.elements);
        if (request.kind == ModelRequest::STORE)
            return memory_.store(address, request.size, pc, cycle, request.elements);
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
