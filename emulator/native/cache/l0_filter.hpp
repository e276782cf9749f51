// The L0 filter before a first-level cache or TLB: where the tags are whose next use changes nothing but
// TagArray::last_use. Hits that it answers take no search. The host's affair: the guest sees no trace of it, and what
// is not found here is found by TagArray::find.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "cache/tag_array.hpp"

namespace perfemu {

class L0Filter {
  public:
    // A tag, VALID, STORES, and the tag's slot in one word, so that the table takes little of the host's first cache.
    // Without STORES it is for loads and fetches alone.
    using Entry = uint64_t;
    static constexpr uint64_t VALID = 2, STORES = 1;
    static constexpr unsigned SLOT_BITS = 15, TAG_SHIFT = SLOT_BITS + 2;
    static constexpr uint64_t SLOT_MASK = (1 << SLOT_BITS) - 1;

    L0Filter() = default;  // of nothing

    explicit L0Filter(TagArray& array, bool of_pages = false)
        : array_(array.slots() <= SLOT_MASK && array.hits_needed() != HitsNeeded::EVERY ? &array : nullptr),
          entries_(std::bit_ceil(std::max<uint64_t>(array.slots(), MINIMUM)) * PLACES_OF_A_SLOT, 0),
          last_use_(array.last_use.data()), arrival_(array.arrival.data()) {
        mask_ = entries_.size() - 1;
        spread_ = of_pages ? ~uint64_t{0} : 0;
        // If uses have an order in the policy's eyes, only the set's last has an entry.
        if (array_ && !array.only_last_use()) recent_.assign(array.set_mask() + 1, TagArray::NO_TAG);
    }

    // The entry that has the tag, or one that has another.
    Entry at(uint64_t tag) const { return entries_[place(tag)]; }
    // The same of lines.
    Entry line(uint64_t tag) const { return entries_[line_place(tag, mask_)]; }
    // What a loop over many keeps in the host's registers.
    struct Lines {
        const Entry* entries;
        uint64_t mask;
        uint64_t* last_use;
        const uint64_t* arrival;

        Entry at(uint64_t tag) const { return entries[line_place(tag, mask)]; }
        void use(Entry entry, uint64_t now) const { last_use[entry & SLOT_MASK] = now; }
        uint64_t arrives(Entry entry) const { return arrival[entry & SLOT_MASK]; }
    };
    Lines lines() const { return {entries_.data(), mask_, last_use_, arrival_}; }
    // Zero if the entry is for loads (1) or stores (0) of the tag.
    static uint64_t difference(Entry entry, uint64_t tag, uint64_t loads = STORES) {
        return (entry >> SLOT_BITS | loads) ^ (tag << 2 | VALID | STORES);
    }
    void use(Entry entry, uint64_t now) { last_use_[entry & SLOT_MASK] = now; }
    uint64_t arrival(Entry entry) const { return arrival_[entry & SLOT_MASK]; }

    // Where the array has another tag for it, one tag leads to a slot: the last that did.
    void set(uint64_t tag, uint32_t slot, uint64_t in_array, bool stores) {
        if (!array_ || tag > MOST_TAG) return;
        if (!shown_.empty()) {
            if (shown_[slot] != tag) clear(shown_[slot]);
            shown_[slot] = tag;
        }
        if (!recent_.empty()) recent_[array_->set(in_array)] = tag;
        entries_[place(tag)] = (tag << 2 | VALID | static_cast<uint64_t>(stores)) << SLOT_BITS | slot;
    }
    void clear(uint64_t tag) {
        Entry& entry = entries_[place(tag)];
        if (difference(entry, tag) == 0) entry = 0;
    }
    // What leads to a slot, whose tag in the array this is.
    void clear_slot(uint32_t slot, uint64_t in_array) { clear(shown_.empty() ? in_array : shown_[slot]); }
    // The same for stores alone.
    void clear_stores(uint32_t slot, uint64_t in_array) {
        const uint64_t tag = shown_.empty() ? in_array : shown_[slot];
        Entry& entry = entries_[place(tag)];
        if (difference(entry, tag) == 0) entry &= ~(STORES << SLOT_BITS);
    }
    // From now on the array's tags are other ones; and nothing leads anywhere.
    void forget_all() {
        std::ranges::fill(entries_, 0);
        std::ranges::fill(recent_, TagArray::NO_TAG);
        if (array_) shown_.assign(array_->slots(), TagArray::NO_TAG);
    }
    // A tag of the array is used or filled: what its set had here goes.
    void age(uint64_t tag) {
        if (!recent_.empty()) clear(recent_[array_->set(tag)]);
    }

  private:
    static constexpr uint64_t MINIMUM = 32;
    // With 2, a sixth of the lines that a cache holds would not find theirs free; with 8, few.
    static constexpr uint64_t PLACES_OF_A_SLOT = 8;
    static constexpr uint64_t MOST_TAG = ~uint64_t{0} >> TAG_SHIFT;

    // XOR alone makes zeros of the many ones in a stack's pages, and a program's pages have zeros, too.
    uint64_t place(uint64_t tag) const { return ((tag ^ tag >> 9) + (tag >> 9 & spread_)) & mask_; }
    static uint64_t line_place(uint64_t tag, uint64_t mask) { return (tag ^ tag >> 9) & mask; }

    TagArray* array_ = nullptr;
    std::vector<Entry> entries_ = std::vector<Entry>(1);
    uint64_t mask_ = 0, spread_ = 0;
    uint64_t* last_use_ = nullptr;  // the array's
    const uint64_t* arrival_ = nullptr;
    std::vector<uint64_t> recent_;  // by set; empty if every tag may be here
    std::vector<uint64_t> shown_;   // by slot: what led there last; empty if that is always the array's tag
};

}  // namespace perfemu
