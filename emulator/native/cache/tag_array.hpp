// Sets of ways that hold tags: the part that caches and TLBs have in common. Tags alone, contiguous per set; what
// else belongs to an entry lies in arrays of its owner, by the same slot number.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/replacement.hpp"
#include "config.hpp"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace perfemu {

class TagArray {
  public:
    static constexpr uint64_t NO_TAG = ~uint64_t{0};
    static constexpr uint32_t NOWHERE = ~uint32_t{0};

    // Of `entries` in sets of [table].ways (missing or 0: one set), with [table].replacement (missing: "lru"). Throws
    // std::invalid_argument; `key` is what the number of entries comes from, in steps of `unit`.
    TagArray(const Config& table, uint64_t entries, const char* key, uint64_t unit = 1);

    TagArray() : last_use(1), arrival(1), tags_{NO_TAG} {}  // of one slot, for nothing

    uint32_t slots() const { return static_cast<uint32_t>(tags_.size()); }
    uint64_t tag(uint32_t slot) const { return tags_[slot]; }
    uint32_t set(uint64_t tag) const { return static_cast<uint32_t>(tag & set_mask_); }
    uint64_t set_mask() const { return set_mask_; }
    HitsNeeded hits_needed() const { return hits_needed_; }
    bool fill_is_use() const { return hits_needed_ <= HitsNeeded::CHANGES; }
    bool only_last_use() const { return only_last_use_; }

    uint32_t find(uint64_t tag) const {
        if (!hints_.empty()) return find_among_many(tag);
        // The low halves of four tags at a time, to the end, because where it ends the host could not predict.
        const uint32_t low = low_half(tag), in_set = set(tag);
        const Lanes wanted = {low, low, low, low}, *lows = &lows_[in_set * groups_];
        uint32_t ways = 0;
        for (uint32_t group = 0; group < groups_; ++group) ways |= equal_lanes(lows[group], wanted) << 4 * group;
        if (!ways) return NOWHERE;
        const uint32_t way = static_cast<uint32_t>(std::countr_zero(ways)), slot = in_set * ways_ + way;
        if (!(has_wide_tags_ | (tag >> set_bits_ >= NO_LOW))) [[likely]]
            return slot;
        // Two low halves may be the same, or those of nothing.
        return way < ways_ && tags_[slot] == tag ? slot : search(tag);
    }

    // Policies are given copies of accesses, so that the compiler keeps those in registers where there is only LRU.
    void use(uint32_t slot, const CacheAccess& access, uint64_t now) {
        last_use[slot] = now;
        if (!only_last_use_) replacement_->touch(slot, CacheAccess(access));
    }

    // The slot for a tag that is not there: an empty one, the lowest first, or the policy's victim, which goes when it
    // is taken out or the slot filled.
    uint32_t room(uint64_t tag, const CacheAccess& access) {
        uint32_t in_set = set(tag);
        if (held_[in_set] < ways_) return empty_slot(in_set);
        const uint64_t* uses = &last_use[in_set * ways_];
        return in_set * ways_ +
               (only_last_use_ ? oldest(uses, ways_) : replacement_->victim(in_set, uses, CacheAccess(access)));
    }

    void fill(uint32_t slot, uint64_t tag, const CacheAccess& access, uint64_t now, uint64_t arrives) {
        fill(slot, tag, access, now);
        arrival[slot] = arrives;
    }
    // The same where nobody asks from when on it can be used.
    void fill(uint32_t slot, uint64_t tag, const CacheAccess& access, uint64_t now) {
        uint32_t in_set = set(tag);
        const bool was_empty = tags_[slot] == NO_TAG;
        held_[in_set] += was_empty;
        has_wide_tags_ |= is_wide(tag);
        tags_[slot] = tag;
        set_low(in_set, slot, tag);
        if (!hints_.empty()) hint(tag) = slot;
        last_use[slot] = now;
        if (only_last_use_) return;
        if (!was_empty) replacement_->invalidate(slot, Removal::EVICTED);
        replacement_->reset(slot, CacheAccess(access));
    }

    void take_out(uint32_t slot, Removal why) {
        if (!only_last_use_) replacement_->invalidate(slot, why);
        uint32_t in_set = set(tags_[slot]);
        --held_[in_set];
        tags_[slot] = NO_TAG;
        set_low(in_set, slot, NO_TAG);
    }

    void archive(Archive& state);

    // Brings what `find` and what follows it will read into the host's cache.
    void expect(uint64_t tag) const {
        if (!hints_.empty()) return;
        uint64_t in_set = set(tag);
        __builtin_prefetch(&lows_[in_set * groups_]);
        for (uint64_t slot = in_set * ways_, end = slot + ways_; slot < end; slot += SLOTS_OF_A_HOST_LINE)
            __builtin_prefetch(&last_use[slot]);
    }

    // By slot: the last use, as a number that grows with every access; the cycle from which on the entry can be used.
    std::vector<uint64_t> last_use, arrival;

  private:
    static constexpr uint64_t MAXIMUM = 1 << 26;  // entries
    static constexpr uint32_t SLOTS_OF_A_HOST_LINE = 8;
    static constexpr uint32_t NO_LOW = ~uint32_t{0};  // an empty way's
    static constexpr uint32_t MANY_WAYS = 16;  // from here on, remembering where a tag was is faster than looking

    using Lanes [[gnu::vector_size(16)]] = uint32_t;

    // A bit for each lane.
    static uint32_t equal_lanes(Lanes a, Lanes b) {
#ifdef __SSE2__
        return static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(a == b)));
#else
        const Lanes bits = (Lanes)(a == b) & Lanes{1, 2, 4, 8};
        return bits[0] | bits[1] | bits[2] | bits[3];
#endif
    }
    // All of a tag that its set does not tell, if it is not wide.
    uint32_t low_half(uint64_t tag) const { return static_cast<uint32_t>(tag >> set_bits_); }
    bool is_wide(uint64_t tag) const { return tag >> set_bits_ > NO_LOW; }
    void set_low(uint32_t in_set, uint32_t slot, uint64_t tag) {
        uint32_t way = slot - in_set * ways_;
        if (hints_.empty()) lows_[in_set * groups_ + way / 4][way % 4] = low_half(tag);
    }
    uint32_t find_among_many(uint64_t tag) const;
    uint32_t search(uint64_t tag) const;
    uint32_t empty_slot(uint32_t set) const;
    const uint32_t& hint(uint64_t tag) const { return hints_[(tag ^ tag >> 11) & (hints_.size() - 1)]; }
    uint32_t& hint(uint64_t tag) { return hints_[(tag ^ tag >> 11) & (hints_.size() - 1)]; }

    uint32_t ways_ = 0;
    uint32_t groups_ = 0;  // of four ways
    uint64_t set_mask_ = 0;
    unsigned set_bits_ = 0;
    bool has_wide_tags_ = false;  // or had
    HitsNeeded hits_needed_ = HitsNeeded::NONE;
    bool only_last_use_ = true;
    std::vector<uint64_t> tags_;
    std::vector<Lanes> lows_;     // of the tags, so many groups for each set
    std::vector<uint32_t> held_;  // tags in each set
    std::vector<uint32_t>
        hints_;  // where a tag with this hash may be; the host's affair, the guest sees no trace of it
    std::unique_ptr<Replacement> replacement_;
};

}  // namespace perfemu
