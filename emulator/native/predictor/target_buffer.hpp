// The branch target buffer: which addresses hold branches that are taken, and where they went last.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "predictor/tables.hpp"

namespace perfemu {

// Set associative; in each set the entry used last stands first, and the last is replaced. Tags are whole addresses.
class TargetBuffer {
  public:
    // Of `branch.btb_entries` in sets of `branch.btb_ways`. Without entries every target is known.
    explicit TargetBuffer(const Config& branch) {
        if (!branch.has("btb_entries")) return;
        int64_t entries = within(branch, "btb_entries", 0, 1, 1 << 24);
        ways_ = static_cast<size_t>(within(branch, "btb_ways", 4, 1, 64));
        size_t sets = static_cast<size_t>(entries) / ways_;
        if (sets * ways_ != static_cast<size_t>(entries) || !std::has_single_bit(sets))
            throw std::invalid_argument(branch.path("btb_entries") + ": " + std::to_string(entries) + " in " +
                                        std::to_string(ways_) + " ways is no power of two of sets");
        set_mask_ = sets - 1;
        entries_.resize(static_cast<size_t>(entries));
    }

    // A branch was taken. Returns whether its target was known.
    bool learn(uint64_t pc, uint64_t target) {
        if (entries_.empty()) return true;
        Entry* set = &entries_[(spread(pc) & set_mask_) * ways_];
        if (set->pc == pc && set->target == target) return true;
        size_t way = 0;
        while (way < ways_ - 1 && set[way].pc != pc) way++;
        bool known = set[way].pc == pc && set[way].target == target;
        for (; way > 0; way--) set[way] = set[way - 1];
        *set = {pc, target};
        return known;
    }

  private:
    struct Entry {
        uint64_t pc = ~uint64_t{0};  // where no branch can be
        uint64_t target = 0;
    };

    std::vector<Entry> entries_;
    uint64_t set_mask_ = 0;
    size_t ways_ = 0;
};

}  // namespace perfemu
