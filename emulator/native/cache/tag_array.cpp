#include "cache/tag_array.hpp"

#include <bit>

namespace perfemu {

TagArray::TagArray(const Config& table, uint64_t entries, const char* entries_key) {
    auto wrong = [&](const std::string& what) { throw std::invalid_argument(table.path(what)); };
    if (entries < 1 || entries > 1 << 26)
        wrong(std::string(entries_key) + ": makes " + std::to_string(entries) + " entries, which is not 1 to 67108864");
    int64_t ways = table.integer("ways", 0);
    if (ways == 0) ways = static_cast<int64_t>(entries);
    if (ways < 0 || static_cast<uint64_t>(ways) > entries)
        wrong("ways: " + std::to_string(ways) + " is not between 1 and the " + std::to_string(entries) + " entries");
    uint64_t sets = entries / static_cast<uint64_t>(ways);
    if (sets * static_cast<uint64_t>(ways) != entries || !std::has_single_bit(sets))
        wrong(std::string(entries_key) + ": " + std::to_string(entries) + " entries of " + std::to_string(ways) +
              " ways do not make a number of sets that is a power of two: " +
              std::to_string(std::bit_floor(sets) * static_cast<uint64_t>(ways)) + " entries would");
    ways_ = static_cast<uint32_t>(ways);
    set_mask_ = sets - 1;
    tags_.assign(entries, NO_TAG);
    held_.assign(sets, 0);
    if (ways_ > MANY_WAYS) hints_.assign(std::bit_ceil(entries) * 4, 0);
    std::string policy = table.has("replacement") ? table.text("replacement") : "lru";
    auto maker = Replacement::Row::find(policy, table.path("replacement"), "replacement policy");
    replacement_ = maker(static_cast<uint32_t>(sets), ways_);
    times.resize(entries);
    only_last_use_ = replacement_->only_last_use();
    fill_is_use_ = replacement_->fill_is_use();
}

uint32_t TagArray::find_among_many(uint64_t tag) const {
    uint32_t likely = hint(tag);
    if (tags_[likely] == tag) return likely;
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
