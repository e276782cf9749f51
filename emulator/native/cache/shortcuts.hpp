// Where the tags are whose next use changes nothing but TagArray::last_use: the inline path's way around the search.
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
    // A tag, VALID, and the tag's slot in one word, so that the table takes little of the host's first cache.
    using Entry = uint64_t;
    static constexpr uint64_t VALID = 1;
    static constexpr unsigned SLOT_BITS = 15;
    static constexpr uint64_t SLOT_MASK = (1 << SLOT_BITS) - 1;

    Shortcuts() = default;  // of nothing

    // `spread`: pages of a stack get other places than those of a program.
    Shortcuts(TagArray& array, bool spread)
        : array_(array.slots() <= SLOT_MASK ? &array : nullptr),
          entries_(std::bit_ceil(std::max<uint64_t>(array.slots(), MINIMUM)) * 8, 0), last_use_(array.last_use.data()),
          arrival_(array.arrival.data()) {
        mask_ = entries_.size() - 1;
        spread_ = spread ? ~uint64_t{0} : 0;
        newest_.assign(array.set_mask() + 1, TagArray::NO_TAG);
        newest_mask_ = array.set_mask();
        // If uses have an order in the policy's eyes, only the set's last is a shortcut.
        if (array_ && !array.only_last_use()) recent_.assign(array.set_mask() + 1, TagArray::NO_TAG);
    }

    // The entry that has the tag, or one that has another.
    Entry at(uint64_t tag) const { return entries_[place(tag)]; }
    // The same where tags are not spread, as lines are not.
    Entry line(uint64_t tag) const { return entries_[line_place(tag)]; }
    uint64_t line_place(uint64_t tag) const { return (tag ^ tag >> 9) & mask_; }
    const Entry* entries() const { return entries_.data(); }
    // What a loop over many keeps in the host's registers.
    struct Places {
        uint64_t mask;
        uint64_t* last_use;

        uint64_t line_place(uint64_t tag) const { return (tag ^ tag >> 9) & mask; }
        void use(Entry entry, uint64_t now) const { last_use[entry & SLOT_MASK] = now; }
    };
    Places places() const { return {mask_, last_use_}; }
    struct Newest {
        const uint64_t* tags;
        uint64_t mask;

        bool is(uint64_t tag) const { return tags[tag & mask] == tag; }
    };
    Newest newest() const { return {newest_.data(), newest_mask_}; }
    // Zero if the entry has the tag.
    static uint64_t difference(Entry entry, uint64_t tag) { return entry >> SLOT_BITS ^ (tag << 1 | VALID); }
    void use(Entry entry, uint64_t now) { last_use_[entry & SLOT_MASK] = now; }
    // Whether the tag has a shortcut and was used last in its set: then its next use changes nothing at all.
    bool is_newest(uint64_t tag) const { return newest_[tag & newest_mask_] == tag; }
    // The tag, which has a shortcut, has been used.
    void make_newest(uint64_t tag) { newest_[tag & newest_mask_] = tag; }
    uint64_t arrival(Entry entry) const { return arrival_[entry & SLOT_MASK]; }

    void set(uint64_t tag, uint32_t slot) { set(tag, slot, tag); }
    // The same where the array has another tag for it: then one tag leads to a slot, the last that did.
    void set(uint64_t tag, uint32_t slot, uint64_t in_array) {
        if (!array_ || tag > MOST_TAG) return;
        if (!shown_.empty()) {
            if (shown_[slot] != tag) clear(shown_[slot]);
            shown_[slot] = tag;
        }
        if (!recent_.empty()) recent_[array_->set(in_array)] = tag;
        Entry& entry = entries_[place(tag)];
        forget_newest(entry >> (SLOT_BITS + 1));
        entry = (tag << 1 | VALID) << SLOT_BITS | slot;
        make_newest(tag);
    }
    void clear(uint64_t tag) {
        forget_newest(tag);
        Entry& entry = entries_[place(tag)];
        if (difference(entry, tag) == 0) entry = 0;
    }
    // What leads to a slot, whose tag in the array this is.
    void clear_slot(uint32_t slot, uint64_t in_array) { clear(shown_.empty() ? in_array : shown_[slot]); }
    // From now on the array's tags are other ones; and nothing leads anywhere.
    void forget_all() {
        std::ranges::fill(entries_, 0);
        std::ranges::fill(newest_, TagArray::NO_TAG);
        std::ranges::fill(recent_, TagArray::NO_TAG);
        if (array_) shown_.assign(array_->slots(), TagArray::NO_TAG);
    }
    // A tag of the array is used or filled: its set's former shortcut is none any more.
    void age(uint64_t tag) {
        newest_[tag & newest_mask_] = TagArray::NO_TAG;
        if (!recent_.empty()) clear(recent_[array_->set(tag)]);
    }

  private:
    static constexpr uint64_t MINIMUM = 32;
    static constexpr uint64_t MOST_TAG = ~uint64_t{0} >> (SLOT_BITS + 1);

    // XOR alone makes zeros of the many ones in a stack's pages, and a program's pages have zeros, too.
    uint64_t place(uint64_t tag) const {
        uint64_t high = tag >> 9;
        return ((tag ^ high) + (high & spread_)) & mask_;
    }

    void forget_newest(uint64_t tag) {
        if (is_newest(tag)) newest_[tag & newest_mask_] = TagArray::NO_TAG;
    }

    TagArray* array_ = nullptr;
    std::vector<uint64_t> newest_ = std::vector<uint64_t>(1, TagArray::NO_TAG);  // by set
    uint64_t newest_mask_ = 0;
    std::vector<Entry> entries_ = std::vector<Entry>(1);
    uint64_t mask_ = 0;
    uint64_t* last_use_ = nullptr;  // the array's
    const uint64_t* arrival_ = nullptr;
    uint64_t spread_ = 0;
    std::vector<uint64_t> recent_;  // by set; empty if every tag may be a shortcut
    std::vector<uint64_t> shown_;   // by slot: what led there last; empty if that is always the array's tag
};

}  // namespace perfemu
