// When stores that have retired are written to the cache: in order, so many in a cycle.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perfemu {

struct StoreWrites {
    uint64_t cycle = 0;  // of the last one
    unsigned used = 0;   // stores in that cycle
    uint64_t last = 0;   // when all of them are in the cache

    // The cycle in which the next one is written, if not before `from`.
    uint64_t take(uint64_t from, unsigned per_cycle) {
        if (from > cycle) cycle = from, used = 0;
        if (used >= per_cycle) ++cycle, used = 0;
        ++used;
        return cycle;
    }
    // It is `there`, according to memory. Returns when its entry is free.
    uint64_t written(uint64_t there) { return last = std::max(last, std::max(there, cycle + 1)); }
};

}  // namespace perfemu
