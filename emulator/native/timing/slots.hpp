// The slots of dispatch (in order: of issue): width in each cycle, each used by a micro-op or lost for a reason.
#pragma once

#include <cstdint>

#include "probes.hpp"

namespace perfemu {

struct Slots {
    uint64_t* totals;
    unsigned width;
    uint64_t cycle = 0;  // in which the next slot is
    unsigned used = 0;   // slots of it, up to width

    void count(Probe probe, uint64_t amount) { totals[static_cast<unsigned>(probe)] += amount; }

    // The next slot, if nothing is to be waited for.
    void next() {
        if (used >= width) {
            cycle += used / width;
            used %= width;
        }
    }

    // What is left of this cycle and all until `to` is lost. Returns how many cycles lost all of their slots.
    uint64_t lose(uint64_t to, Probe slots) {
        count(slots, (to - cycle) * width - used);
        uint64_t whole = to - cycle - (used > 0);
        cycle = to;
        used = 0;
        return whole;
    }
    void lose_to_frontend(uint64_t to) {
        uint64_t whole = lose(to, Probe::SLOTS_FRONTEND);
        count(Probe::SLOTS_FRONTEND_LATENCY, whole * width);
        count(Probe::STALL_FRONTEND, whole);
    }
    void lose_to_backend(uint64_t to, bool memory) {
        uint64_t before = totals[static_cast<unsigned>(Probe::SLOTS_BACKEND)];
        uint64_t whole = lose(to, Probe::SLOTS_BACKEND);
        count(Probe::STALL_BACKEND, whole);
        if (!memory) return;
        count(Probe::SLOTS_BACKEND_MEMORY, totals[static_cast<unsigned>(Probe::SLOTS_BACKEND)] - before);
        count(Probe::STALL_BACKEND_MEMORY, whole);
    }
    // The branch that was mispredicted gave its result in cycle `resolved`: from then on nothing came from fetch.
    void lose_to_bad_speculation(uint64_t to, uint64_t resolved) {
        uint64_t from = cycle + (used > 0);
        lose(to, Probe::SLOTS_BAD_SPECULATION);
        if (resolved < from) resolved = from;
        if (to > resolved) count(Probe::STALL_FRONTEND, to - resolved);
    }
};

}  // namespace perfemu
