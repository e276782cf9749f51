// Which line of a full set makes room for another.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/named.hpp"

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

// In every policy a second use of an entry right behind the first, with no other use in the set between them, must
// change nothing but TagArray::last_use: callers do not report it.
class Replacement {
  public:
    using Maker = std::unique_ptr<Replacement> (*)(uint32_t sets, uint32_t ways);
    using Row = Named<Maker>;

    Replacement(uint32_t sets, uint32_t ways) : sets_(sets), ways_(ways) {}
    virtual ~Replacement() = default;

    // A hit, or a write-back from an inner cache. `slot` is set * ways + way.
    virtual void used(uint32_t slot) = 0;
    virtual void filled(uint32_t slot) = 0;
    // The way to be replaced in a set all of whose ways are full; `last_use` is theirs.
    virtual uint32_t victim(uint32_t set, const uint64_t* last_use) = 0;

    // Whether TagArray::last_use is all that the policy asks for: then used and filled need not be called.
    virtual bool only_last_use() const { return false; }
    // Whether a fill is as good as a use: then the first hit on a new entry changes nothing either.
    virtual bool fill_is_use() const { return true; }

  protected:
    uint32_t sets_;
    uint32_t ways_;
};

}  // namespace perfemu
