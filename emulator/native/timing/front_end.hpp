// Fetch: in which cycle an instruction's bytes are there, as dispatch sees it.
#pragma once

#include <cstdint>

#include "cache/memory_system.hpp"
#include "predictor/branch_unit.hpp"

namespace perfemu {

struct FrontEnd {
    static constexpr uint64_t NO_LINE = ~uint64_t{0};

    MemorySystem& memory;
    unsigned fetch_bytes = 16;
    bool aligned = false;  // fetch_bytes is a power of two then
    unsigned taken_bubble = 0, late_bubble = 0, taken_per_cycle = 1;
    uint64_t ahead = 8;        // cycles before dispatch
    uint64_t hit_latency = 0;  // of L1I: hidden
    uint64_t line_mask = ~uint64_t{63};

    uint64_t cycle = 0;
    unsigned bytes = 0;  // of this cycle
    unsigned taken = 0;  // branches in this cycle
    uint64_t line = NO_LINE;

    FrontEnd(const Config& config, MemorySystem& memory);

    uint64_t supply(uint64_t pc, unsigned length, uint64_t dispatch) {
        if (cycle + ahead < dispatch) {
            cycle = dispatch - ahead;
            taken = 0;
            if (!aligned) bytes = 0;
        }
        if (((pc ^ line) | ((pc + length - 1) ^ line)) & line_mask) [[unlikely]]
            fetch_lines(pc, length);
        bytes += length;
        if (bytes > fetch_bytes) {
            ++cycle;
            taken = 0;
            bytes = aligned ? bytes - fetch_bytes : length;
        }
        return cycle;
    }

    // A taken branch whose target was (or was not) known at once.
    void go_to(uint64_t target, bool known) {
        bytes = aligned ? static_cast<unsigned>(target & (fetch_bytes - 1)) : 0;
        if (known && ++taken < taken_per_cycle) return;
        taken = 0;
        cycle += 1 + (known ? taken_bubble : late_bubble);
    }

    void restart(uint64_t at, uint64_t target) {
        cycle = at;
        taken = 0;
        bytes = aligned ? static_cast<unsigned>(target & (fetch_bytes - 1)) : 0;
    }

  private:
    void fetch_lines(uint64_t pc, unsigned length);
};

}  // namespace perfemu
