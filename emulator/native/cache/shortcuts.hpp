// Where the tags are whose next use changes nothing but Times::last_use: the inline path's way around the search.
// The host's affair: the guest sees no trace of it, and what is not found here is found by TagArray::find.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "cache/tag_array.hpp"

namespace perfemu {

class Shortcuts {
  public:
    struct Entry {
        uint64_t tag = TagArray::NO_TAG;
        Times* times = nullptr;  // of the tag's slot
    };

    Shortcuts() = default;  // of nothing

    // `spread`: pages of a stack get other places than those of a program.
    Shortcuts(TagArray& array, bool spread)
        : array_(&array), entries_(std::bit_ceil(std::max<uint64_t>(array.slots(), MINIMUM)) * 2) {
        mask_ = entries_.size() - 1;
        spread_ = spread ? ~uint64_t{0} : 0;
        // If uses have an order in the policy's eyes, only the set's last is a shortcut.
        if (!array.only_last_use()) recent_.assign(array.set_mask() + 1, TagArray::NO_TAG);
    }

    // The entry that has the tag, or one that has another.
    const Entry& at(uint64_t tag) const { return entries_[place(tag)]; }
    // The same where tags are not spread, as lines are not.
    const Entry& line(uint64_t tag) const { return entries_[(tag ^ tag >> 9) & mask_]; }

    void set(uint64_t tag, uint32_t slot) {
        if (!array_) return;
        if (!recent_.empty()) recent_[array_->set(tag)] = tag;
        entry(tag) = {tag, &array_->times[slot]};
    }
    void clear(uint64_t tag) {
        if (entry(tag).tag == tag) entry(tag).tag = TagArray::NO_TAG;
    }
    // A tag is used or filled: its set's former shortcut is none any more.
    void age(uint64_t tag) {
        if (!recent_.empty()) clear(recent_[array_->set(tag)]);
    }

  private:
    static constexpr uint64_t MINIMUM = 32;

    // XOR alone makes zeros of the many ones in a stack's pages, and a program's pages have zeros, too.
    uint64_t place(uint64_t tag) const { return ((tag ^ tag >> 9) + (tag >> 9 & spread_)) & mask_; }

    Entry& entry(uint64_t tag) { return entries_[place(tag)]; }

    TagArray* array_ = nullptr;
    std::vector<Entry> entries_{1};
    uint64_t mask_ = 0;
    uint64_t spread_ = 0;
    std::vector<uint64_t> recent_;  // by set; empty if every tag may be a shortcut
};

}  // namespace perfemu
