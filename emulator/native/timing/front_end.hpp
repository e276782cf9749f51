// Fetch: in which cycle an instruction's bytes are there, as dispatch sees it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "config.hpp"
#include "timing/replay_environment.hpp"

namespace perfemu {

struct FrontEnd {
    static constexpr uint64_t NO_LINE = ~uint64_t{0};

    ReplayEnvironment& environment;
    unsigned fetch_bytes = 16;
    bool aligned = false;  // fetch_bytes is a power of two then
    bool streams_loops = false;
    unsigned taken_bubble = 0, indirect_bubble = 0, far_bubble = 0, late_bubble = 0, taken_per_cycle = 1;
    uint64_t ahead = 8;        // cycles before dispatch
    uint64_t hit_latency = 0;  // of L1I: hidden
    uint64_t line_mask = ~uint64_t{63};

    // How far fetch is. A pipeline keeps it in its own registers while it works.
    struct Progress {
        uint64_t cycle = 0;
        uint64_t line = NO_LINE;
        unsigned bytes = 0;          // of this cycle
        unsigned taken = 0;          // branches in this cycle
        uint64_t straight_from = 0;  // address: no branch has retired since; of any block, however it was cut

        // Before an instruction: behind the kernel nothing is known of what came before.
        void begin_at(uint64_t pc) {
            if (line == NO_LINE) straight_from = pc;
        }
    };

    FrontEnd(const Config& config, ReplayEnvironment& environment);

    // Whether an instruction's bytes lie in another line than the last fetched one, or in two.
    bool leaves(uint64_t line, uint64_t pc, unsigned length) const {
        return ((pc ^ line) | ((pc + length - 1) ^ line)) & line_mask;
    }

    // `leaves`: what that says of progress.line. `fetch(line, cycle)` says when the line is there.
    template <typename Fetch>
    [[gnu::always_inline]] uint64_t supply(Progress& progress, uint64_t pc, unsigned length, bool leaves,
                                           uint64_t dispatch, Fetch fetch) {
        if (leaves) [[unlikely]]
            progress = fetch_lines(progress, pc, length, dispatch, fetch);
        progress.bytes += length;
        if (progress.bytes > fetch_bytes) {
            progress.bytes = aligned ? progress.bytes - fetch_bytes : length;
            progress.taken = 0;
            progress.cycle = std::max(progress.cycle + 1, dispatch - std::min(dispatch, ahead));
        }
        return progress.cycle;
    }

    [[gnu::always_inline]] uint64_t supply(Progress& progress, uint64_t pc, unsigned length, bool leaves,
                                           uint64_t dispatch) {
        auto fetch = [this](uint64_t line, uint64_t cycle) { return environment.fetch(line, cycle); };
        return supply(progress, pc, length, leaves, dispatch, fetch);
    }

    // A taken branch, and the bubble after it. However short the loop, fetch is no further ahead of `dispatch` than it
    // may be. `streams`: a loop that is not fetched again.
    [[gnu::always_inline]] void go_to(Progress& progress, uint64_t target, unsigned bubble, uint64_t dispatch,
                                      bool streams = false) const {
        if (streams && bubble == 0) {
            progress.bytes = 0;
            return;
        }
        progress.bytes = aligned ? static_cast<unsigned>(target & (fetch_bytes - 1)) : 0;
        if (bubble == 0 && ++progress.taken < taken_per_cycle) return;
        progress.taken = 0;
        progress.cycle = std::max(progress.cycle + 1, dispatch - std::min(dispatch, ahead)) + bubble;
    }

    // Whether a branch to there goes back to where the straight code began that it ends.
    bool streams(uint64_t straight_from, uint64_t target) const { return streams_loops && target == straight_from; }

    void restart(Progress& progress, uint64_t at, uint64_t target) const {
        progress.cycle = at;
        progress.taken = 0;
        progress.bytes = aligned ? static_cast<unsigned>(target & (fetch_bytes - 1)) : 0;
    }

  private:
    template <typename Fetch>
    [[gnu::noinline]] Progress fetch_lines(Progress progress, uint64_t pc, unsigned length, uint64_t dispatch,
                                           Fetch fetch) const {
        if (progress.cycle + ahead < dispatch) {
            progress.cycle = dispatch - ahead;
            progress.taken = 0;
            if (!aligned) progress.bytes = 0;
        }
        uint64_t last = (pc + length - 1) & line_mask;
        if (progress.line == NO_LINE && aligned) progress.bytes = static_cast<unsigned>(pc & (fetch_bytes - 1));
        for (uint64_t next = pc & line_mask;; next += ~line_mask + 1) {
            if (next != progress.line) {
                uint64_t there = fetch(next, progress.cycle);
                if (there > progress.cycle + hit_latency) {
                    progress.cycle = there - hit_latency;
                    progress.taken = 0;
                    if (!aligned) progress.bytes = 0;
                }
                progress.line = next;
            }
            if (next == last) return progress;
        }
    }
};

}  // namespace perfemu
