// What guests have seen of time: cores run in turns, so that one is ahead of another by up to a turn.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perfemu {

// Shared by the cores of a machine: what one has shown, no other takes back.
struct ShownCycles {
    uint64_t latest = 0;

    // `now`: the cycles of the core that asks.
    uint64_t show(uint64_t now) { return latest = std::max(latest, now); }
};

}  // namespace perfemu
