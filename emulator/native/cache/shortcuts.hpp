// Where the tags are whose next use changes nothing but Times::last_use: the inline path's way around the search.
// The host's affair: the guest sees no trace of it, and what is not found here is found by TagArray::find.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "cache/tag_array.hpp"

namespace perfemu {

class Shortcuts {
  public:
    // Without an array: for want of a TLB all addresses are page 0, in slot 0; for want of a cache nothing is there.
    explicit Shortcuts(uint64_t only_tag = TagArray::NO_TAG) : tags_{only_tag}, slots_{0} {}

    explicit Shortcuts(const TagArray& array) {
        uint64_t size = std::bit_ceil(uint64_t{array.slots()}) * 2;
        tags_.assign(size, TagArray::NO_TAG);
        slots_.assign(size, 0);
        mask_ = size - 1;
        shift_ = static_cast<unsigned>(std::countr_zero(size));
        // If uses have an order in the policy's eyes, only the set's last is a shortcut.
        if (!array.only_last_use()) recent_.assign(array.set_mask() + 1, TagArray::NO_TAG);
    }

    uint64_t index(uint64_t tag) const { return (tag ^ tag >> shift_) & mask_; }
    bool has(uint64_t tag, uint64_t index) const { return tags_[index] == tag; }
    uint32_t slot(uint64_t index) const { return slots_[index]; }

    void set(uint64_t tag, uint32_t slot, uint32_t in_set) {
        if (!recent_.empty()) recent_[in_set] = tag;
        uint64_t at = index(tag);
        tags_[at] = tag;
        slots_[at] = slot;
    }
    void clear(uint64_t tag) {
        uint64_t at = index(tag);
        if (tags_[at] == tag) tags_[at] = TagArray::NO_TAG;
    }
    // Another tag of the set was used or filled.
    void age(uint32_t in_set) {
        if (!recent_.empty()) clear(recent_[in_set]);
    }

  private:
    std::vector<uint64_t> tags_;
    std::vector<uint32_t> slots_;
    uint64_t mask_ = 0;
    unsigned shift_ = 0;
    std::vector<uint64_t> recent_;  // by set; empty if every tag may be a shortcut
};

}  // namespace perfemu
