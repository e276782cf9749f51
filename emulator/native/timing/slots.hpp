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
    static constexpr unsigned STATE_BITS = 3;  // of `stalled_before`

    Slots(PipelineCounts& counts, unsigned width) : counts_(counts), width_(width) {}

    unsigned width() const { return width_; }
    uint64_t lost_cycles() const { return lost_cycles_; }  // that lost all of their slots

    void lose_to_backend(uint64_t cycle, unsigned used, uint64_t to, bool memory) {
        uint64_t lost = (to - cycle) * width_ - used;
        uint64_t whole = to - cycle - (used > 0);
        lost_cycles_ += whole;
        count(Probe::SLOTS_BACKEND, lost);
        begin_stall(to - whole, to);
        stall(backend_, to - whole, to, Probe::STALL_BACKEND, Probe::STALL_BACKEND_BEGINS);
        if (!memory) return;
        count(Probe::SLOTS_BACKEND_MEMORY, lost);
        stall(memory_, to - whole, to, Probe::STALL_BACKEND_MEMORY, Probe::STALL_BACKEND_MEMORY_BEGINS);
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

    // By what the cycle before this slot was lost, a bit each: it matters where a stall goes on.
    unsigned stalled_before(uint64_t cycle, unsigned used) const {
        if (used > 0) return 0;
        return (frontend_ == cycle) | (backend_ == cycle) << 1 | (memory_ == cycle) << 2;
    }
    // The state in which that is what `stalled_before` says.
    void set_stalled_before(uint64_t cycle, unsigned stalled) {
        frontend_ = stalled & 1 ? cycle : NEVER;
        backend_ = stalled & 2 ? cycle : NEVER;
        memory_ = stalled & 4 ? cycle : NEVER;
    }

  private:
    static constexpr uint64_t NEVER = ~uint64_t{0};

    void lose_to_frontend(uint64_t cycle, unsigned used, uint64_t to) {
        uint64_t whole = to - cycle - (used > 0);
        lost_cycles_ += whole;
        count(Probe::SLOTS_FRONTEND, (to - cycle) * width_ - used);
        count(Probe::SLOTS_FRONTEND_LATENCY, whole * width_);
        stall_frontend(to - whole, to);
    }

    // The branch that was mispredicted gave its result in cycle `resolved`: from then on nothing came from fetch.
    void lose_to_bad_speculation(uint64_t cycle, unsigned used, uint64_t to, uint64_t resolved) {
        count(Probe::SLOTS_BAD_SPECULATION, (to - cycle) * width_ - used);
        uint64_t from = cycle + (used > 0);
        lost_cycles_ += to - from;
        if (resolved < from) resolved = from;
        if (to > resolved) stall_frontend(resolved, to);
    }

    void stall_frontend(uint64_t from, uint64_t to) {
        begin_stall(from, to);
        stall(frontend_, from, to, Probe::STALL_FRONTEND, Probe::STALL_FRONTEND_BEGINS);
    }

    // Before either is counted.
    void begin_stall(uint64_t from, uint64_t to) {
        count(Probe::STALL_BEGINS, from != to && from != frontend_ && from != backend_);
    }

    // `last`: where the last stall of this kind ended, which this one may continue.
    void stall(uint64_t& last, uint64_t from, uint64_t to, PipelineProbe cycles, PipelineProbe begins) {
        if (from == to) return;
        count(cycles, to - from);
        count(begins, from != last);
        last = to;
    }

    void count(PipelineProbe probe, uint64_t amount) { counts_.add(probe, amount); }

    PipelineCounts& counts_;
    unsigned width_;
    uint64_t lost_cycles_ = 0;
    uint64_t frontend_ = NEVER, backend_ = NEVER, memory_ = NEVER;  // the first cycle behind the last stall
};

}  // namespace perfemu
