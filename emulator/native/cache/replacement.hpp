// Which line of a full set makes room for another.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "archive.hpp"
#include "cache/cache_access.hpp"
#include "named.hpp"

namespace perfemu {

// The way that was used last longest ago.
inline uint32_t oldest(const uint64_t* last_use, uint32_t ways) {
    // The way in the lowest bits: one comparison for both. Two chains, for the host's sake.
    const unsigned shift = static_cast<unsigned>(std::bit_width(ways));
    uint64_t even = last_use[0] << shift, odd = ~uint64_t{0};
    uint32_t way = 1;
    for (; way + 1 < ways; way += 2) {
        odd = std::min(odd, last_use[way] << shift | way);
        even = std::min(even, last_use[way + 1] << shift | (way + 1));
    }
    if (way < ways) odd = std::min(odd, last_use[way] << shift | way);
    return static_cast<uint32_t>(std::min(even, odd) & ((uint64_t{1} << shift) - 1));
}

// Which hits a policy is told of. The fewer they are, the more the first level can answer without a search.
enum class HitsNeeded : uint8_t {
    NONE,        // TagArray::last_use is all that it asks for: it is never called
    CHANGES,     // a hit may go unheard if its line is the one of its set that was used or filled last
    AFTER_FILL,  // ... that was used last: the first hit behind a fill is heard
    EVERY,       // with its CacheAccess; the others do not look at that
};

// Why a line leaves its cache.
enum class Removal : uint8_t {
    EVICTED,      // the victim: another line takes its place
    MOVED,        // an exclusive cache was hit: the line goes towards the core
    INVALIDATED,  // another core writes it, or an inclusive cache has lost it
};

// The words are gem5's. `slot` is set * ways + way.
class Replacement {
  public:
    using Maker = std::unique_ptr<Replacement> (*)(uint32_t sets, uint32_t ways);
    using Row = Named<Maker>;

    Replacement(uint32_t sets, uint32_t ways) : sets_(sets), ways_(ways) {}
    virtual ~Replacement() = default;

    // A hit, or a write-back to a line that is there.
    virtual void touch(uint32_t slot, const CacheAccess& access) = 0;
    // The slot is filled.
    virtual void reset(uint32_t slot, const CacheAccess& access) = 0;
    // Its line goes.
    virtual void invalidate(uint32_t, Removal) {}
    // The way to be replaced in a set all of whose ways are full, by what `access` brings; `last_use` is theirs.
    virtual uint32_t victim(uint32_t set, const uint64_t* last_use, const CacheAccess& access) = 0;

    virtual HitsNeeded hits_needed() const { return HitsNeeded::EVERY; }
    // All that it has learned.
    virtual void archive(Archive& state) = 0;

  protected:
    uint32_t sets_;
    uint32_t ways_;
};

}  // namespace perfemu
