// The slots of dispatch (in order: of issue): width in each cycle, each used by a micro-op or lost for a reason.
#pragma once

#include <algorithm>
#include <cstdint>

#include "timing/pipeline_counts.hpp"

namespace perfemu {

// The last branch that was mispredicted: when it was resolved, and the first dispatch (in order: issue) from then on.
struct Redirect {
    uint64_t resolved = 0, right_way_from = 0;
};

// Counts what is lost. A pipeline keeps the next slot, (cycle, used of its slots), in its own registers;
// after each of these it is (to, 0).
class Slots {
  public:
    Slots(PipelineCounts& counts, unsigned width) : counts_(counts), width_(width) {}

    unsigned width() const { return width_; }
    uint64_t lost_cycles() const { return lost_cycles_; }  // that lost all of their slots

    void lose_to_backend(uint64_t cycle, unsigned used, uint64_t to, bool memory) {
        uint64_t lost = (to - cycle) * width_ - used;
        uint64_t whole = to - cycle - (used > 0);
        lost_cycles_ += whole;
        count(Probe::SLOTS_BACKEND, lost);
        count(Probe::STALL_BACKEND, whole);
        if (!memory) return;
        count(Probe::SLOTS_BACKEND_MEMORY, lost);
        count(Probe::STALL_BACKEND_MEMORY, whole);
    }

    // Until the next instruction is supplied.
    void lose_to_supply(uint64_t cycle, unsigned used, uint64_t supplied, const Redirect& redirect) {
        if (redirect.right_way_from > cycle) {
            const uint64_t to = std::min(supplied, redirect.right_way_from);
            lose_to_bad_speculation(cycle, used, to, redirect.resolved);
            cycle = to;
            used = 0;
        }
        if (supplied > cycle) lose_to_frontend(cycle, used, supplied);
    }

  private:
    void lose_to_frontend(uint64_t cycle, unsigned used, uint64_t to) {
        uint64_t whole = to - cycle - (used > 0);
        lost_cycles_ += whole;
        count(Probe::SLOTS_FRONTEND, (to - cycle) * width_ - used);
        count(Probe::SLOTS_FRONTEND_LATENCY, whole * width_);
        count(Probe::STALL_FRONTEND, whole);
    }

    // The branch that was mispredicted gave its result in cycle `resolved`: from then on nothing came from fetch.
    void lose_to_bad_speculation(uint64_t cycle, unsigned used, uint64_t to, uint64_t resolved) {
        count(Probe::SLOTS_BAD_SPECULATION, (to - cycle) * width_ - used);
        uint64_t from = cycle + (used > 0);
        lost_cycles_ += to - from;
        if (resolved < from) resolved = from;
        if (to > resolved) count(Probe::STALL_FRONTEND, to - resolved);
    }

    void count(PipelineProbe probe, uint64_t amount) { counts_.add(probe, amount); }

    PipelineCounts& counts_;
    unsigned width_;
    uint64_t lost_cycles_ = 0;
};

}  // namespace perfemu
