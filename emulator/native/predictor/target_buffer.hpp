// The branch target buffer: which addresses hold branches that are taken. A direct branch's target never changes, and
// that of a return or an indirect branch comes from elsewhere: so it is enough to know that there is one.
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
        entries_.resize(static_cast<size_t>(entries), NO_BRANCH);
    }

    // A branch was taken. Returns whether it was known.
    bool learn(uint64_t pc) {
        if (entries_.empty()) return true;
        uint64_t* set = &entries_[(spread(pc) & set_mask_) * ways_];
        if (*set == pc) [[likely]]
            return true;
        return look_further(set, pc);
    }

  private:
    static constexpr uint64_t NO_BRANCH = ~uint64_t{0};  // where none can be

    [[gnu::noinline]] bool look_further(uint64_t* set, uint64_t pc) {
        size_t way = 0;
        while (way < ways_ - 1 && set[way] != pc) way++;
        bool known = set[way] == pc;
        for (; way > 0; way--) set[way] = set[way - 1];
        *set = pc;
        return known;
    }

    std::vector<uint64_t> entries_;
    uint64_t set_mask_ = 0;
    size_t ways_ = 0;
};

}  // namespace perfemu
