#include "cache/tag_array.hpp"

#include <bit>

namespace perfemu {

TagArray::TagArray(const Config& table, uint64_t entries, const char* key, uint64_t unit) {
    auto wrong = [&](const char* name, const std::string& what) {
        throw std::invalid_argument(table.path(name) + ": " + what);
    };
    if (entries < 1 || entries > MAXIMUM)
        wrong(key, std::to_string(entries) + " entries is not between 1 and " + std::to_string(MAXIMUM));
    int64_t wanted = table.integer("ways", 0);
    if (wanted < 0 || static_cast<uint64_t>(wanted) > entries)
        wrong("ways", std::to_string(wanted) + " is not between 1 and the " + std::to_string(entries) + " entries");
    uint64_t ways = wanted ? static_cast<uint64_t>(wanted) : entries;
    uint64_t sets = entries / ways;
    if (sets * ways != entries || !std::has_single_bit(sets))
        wrong(key, std::to_string(entries * unit) + " with " + std::to_string(ways) +
                       " ways is not a number of sets that is a power of two: " +
                       std::to_string(std::bit_floor(sets) * ways * unit) + " or " +
                       std::to_string(std::bit_floor(sets) * 2 * ways * unit) + " would be");
    ways_ = static_cast<uint32_t>(ways);
    set_mask_ = sets - 1;
    set_bits_ = static_cast<unsigned>(std::countr_zero(sets));
    tags_.assign(entries, NO_TAG);
    held_.assign(sets, 0);
    groups_ = (ways_ + 3) / 4;
    lows_.assign(sets * groups_, Lanes{NO_LOW, NO_LOW, NO_LOW, NO_LOW});
    if (ways_ > MANY_WAYS) hints_.assign(std::bit_ceil(entries) * 4, 0);
    std::string policy = table.has("replacement") ? table.text("replacement") : "lru";
    auto maker = Replacement::Row::find(policy, table.path("replacement"), "replacement policy");
    replacement_ = maker(static_cast<uint32_t>(sets), ways_);
    last_use.assign(entries, 0);
    arrival.assign(entries, 0);
    hits_needed_ = replacement_->hits_needed();
    only_last_use_ = hits_needed_ == HitsNeeded::NONE;
}

void TagArray::archive(Archive& state) {
    state(last_use, arrival, tags_, held_, has_wide_tags_);
    if (replacement_) replacement_->archive(state);
    if (!state.is_loading()) return;
    std::vector<uint32_t> held(held_.size());
    for (uint32_t slot = 0; slot < slots(); ++slot) {
        if (tags_[slot] == NO_TAG) continue;
        state.expect(set(tags_[slot]) == slot / ways_);
        ++held[slot / ways_];
        has_wide_tags_ |= is_wide(tags_[slot]);
    }
    state.expect(held == held_);
    for (uint32_t slot = 0; slot < slots(); ++slot) {
        if (hints_.empty())
            set_low(slot / ways_, slot, tags_[slot]);
        else if (tags_[slot] != NO_TAG)
            hint(tags_[slot]) = slot;
    }
}

uint32_t TagArray::find_among_many(uint64_t tag) const {
    uint32_t likely = hint(tag);
    if (tags_[likely] == tag) return likely;
    return search(tag);
}

uint32_t TagArray::search(uint64_t tag) const {
    uint32_t first = set(tag) * ways_;
    for (uint32_t slot = first; slot < first + ways_; ++slot)
        if (tags_[slot] == tag) return slot;
    return NOWHERE;
}

uint32_t TagArray::empty_slot(uint32_t set) const {
    uint32_t slot = set * ways_;
    while (tags_[slot] != NO_TAG) ++slot;
    return slot;
}

}  // namespace perfemu
