// What the out-of-order pipeline's loads and stores ask: memory, and the stores that are not yet written.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cache/memory_system.hpp"
#include "timing/execution.hpp"
#include "timing/forward_predictor.hpp"
#include "timing/store_queue.hpp"
#include "timing/store_writes.hpp"

namespace perfemu::out_of_order {

constexpr uint8_t ANY_SIZE = 255;

// What the store queue has to know of an access besides its address.
struct ForwardTraits {
    bool by_stack = false;
    bool general = false;  // a store of a general register's data
    uint8_t renames = 0;   // as in PreparedOp
    uint16_t extra = 0;    // cycles that the load will take besides
};

// What memory and the store queue answer to a load: the cycles until memory has the data, and, in bits that a hit
// leaves alone, whether it crosses a line, what the youngest older store means, and when that has it.
constexpr uint64_t HIT = uint64_t{1} << 32, WHEN = uint64_t{1} << 28, SPLIT = uint64_t{1} << 60;
constexpr unsigned ANSWER = 61;

class LoadStoreUnit {
  public:
    LoadStoreUnit(const Config& config, MemorySystem& memory, uint64_t* totals);

    // The cycle in which so many stores find an entry.
    uint64_t room_at(uint64_t stores = 1) const { return stores_.free_at(stores); }
    // Returns HIT's, WHEN's, SPLIT's and ANSWER's bits.
    uint64_t load(uint64_t address, AccessSize access, uint64_t pc, uint64_t issued, ForwardTraits traits) {
        uint64_t answer = memory_.load(address, access.size, pc, issued, access.elements) - issued;
        if ((address ^ (address + access.size - 1)) & line_mask_ && split_load_cycles) [[unlikely]]
            answer |= SPLIT;
        StoreQueue::Found found = stores_.find(address, address + access.size, issued, alias_4k_cycles != 0);
        if (found.answer == StoreQueue::Answer::NONE) return answer;
        return answer | look_at(found, address, access, pc, issued, traits);
    }
    uint64_t store(uint64_t address, AccessSize access, uint64_t pc, uint64_t retirement, uint64_t data,
                   ForwardTraits traits) {
        const uint64_t line = address & line_mask_;
        const uint64_t cycle =
            writes_.take(retirement, line == written_line_ ? line_stores_per_cycle_ : stores_per_cycle_);
        written_line_ = line;
        const uint64_t written = writes_.written(memory_.store(address, access.size, pc, cycle, access.elements));
        stores_.add({address, address + access.size, data, written, traits.by_stack, traits.general});
        return 0;
    }

    unsigned alias_4k_cycles = 0, split_load_cycles = 0;

  private:
    uint64_t look_at(const StoreQueue::Found& found, uint64_t address, AccessSize access, uint64_t pc, uint64_t issued,
                     ForwardTraits traits);

    void count(Probe probe) { ++totals_[static_cast<unsigned>(probe)]; }

    MemorySystem& memory_;
    uint64_t* totals_;
    StoreQueue stores_;
    ForwardPredictor forwards_;
    StoreWrites writes_;
    uint64_t line_mask_;
    uint64_t written_line_ = 0;
    unsigned stores_per_cycle_, line_stores_per_cycle_;
    unsigned store_forward_cycles_, stack_forward_cycles_, forward_blocked_cycles_, predicted_forward_cycles_;
    bool predicts_forwards_;
};

}  // namespace perfemu::out_of_order
