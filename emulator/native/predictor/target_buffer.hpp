// The branch target buffer: which addresses hold branches that are taken. A direct branch's target never changes, and
// that of a return or an indirect branch comes from elsewhere: so it is enough to know that there is one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "predictor/tables.hpp"

namespace perfemu {

// Set associative; the entry of each set that was used longest ago is replaced. Tags are whole addresses.
class TargetBuffer {
  public:
    // Of `branch.btb_entries` in sets of `branch.btb_ways`, or of the keys so called with `prefix` before them. Without
    // entries every target is known.
    explicit TargetBuffer(const Config& branch, const std::string& prefix = "") {
        const std::string key = prefix + "btb_entries";
        if (!branch.has(key)) return;
        int64_t entries = within(branch, key, 0, 1, 1 << 24);
        ways_ = static_cast<size_t>(within(branch, prefix + "btb_ways", 4, 1, 64));
        size_t sets = static_cast<size_t>(entries) / ways_;
        if (sets * ways_ != static_cast<size_t>(entries) || !std::has_single_bit(sets))
            throw std::invalid_argument(branch.path(key) + ": " + std::to_string(entries) + " in " +
                                        std::to_string(ways_) + " ways is no power of two of sets");
        set_mask_ = sets - 1;
        newest_.resize(sets, NO_BRANCH);
        others_.resize(sets * (ways_ - 1), NO_BRANCH);
    }

    // A branch was taken. Returns whether it was known.
    bool learn(uint64_t pc) {
        if (newest_.empty()) return true;
        size_t set = spread(pc) & set_mask_;
        if (newest_[set] == pc) [[likely]]
            return true;
        return look_further(set, pc);
    }
    // Whether a branch at `pc` would change nothing.
    bool knows_best(uint64_t pc) const { return newest_.empty() || newest_[spread(pc) & set_mask_] == pc; }

    // The same in a loop over many.
    struct Best {
        const uint64_t* newest;  // null where every target is known
        uint64_t set_mask;

        bool is(uint64_t pc) const { return !newest || newest[spread(pc) & set_mask] == pc; }
    };
    Best best() const { return {newest_.empty() ? nullptr : newest_.data(), set_mask_}; }

    void archive(Archive& state) { state(newest_, others_); }

  private:
    static constexpr uint64_t NO_BRANCH = ~uint64_t{0};  // where none can be

    // In front of `pc` goes nothing: what was there moves on by one, up to where `pc` was.
    [[gnu::noinline]] bool look_further(size_t set, uint64_t pc) {
        uint64_t moving = std::exchange(newest_[set], pc);
        uint64_t* others = others_.data() + set * (ways_ - 1);
        for (size_t way = 0; way < ways_ - 1 && moving != pc; way++) std::swap(moving, others[way]);
        return moving == pc;
    }

    std::vector<uint64_t> newest_;  // by set: the entry used last, which is almost always the wanted one
    std::vector<uint64_t> others_;  // ways_ - 1 of each set, from the younger to the older
    uint64_t set_mask_ = 0;
    size_t ways_ = 0;
};

}  // namespace perfemu
