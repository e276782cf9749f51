// What a pipeline counts itself, apart from what memory and the branch unit count: so it can be remembered by block.
#pragma once

#include <array>
#include <cstdint>

#include "cache/memory_system.hpp"
#include "probes.hpp"

namespace perfemu {

// One of the probes that emulator/probes.py has from FIRST to LAST; any other does not compile.
class PipelineProbe {
  public:
    static constexpr Probe FIRST = Probe::UOPS_DISPATCHED, LAST = Probe::MOVE_ELIMINATED;
    static constexpr unsigned COUNT = static_cast<unsigned>(LAST) - static_cast<unsigned>(FIRST) + 1;

    consteval PipelineProbe(Probe probe) : index_(static_cast<uint8_t>(probe) - static_cast<uint8_t>(FIRST)) {
        if (probe < FIRST || probe > LAST) throw "not one of the pipeline's probes";
    }
    unsigned index() const { return index_; }
    bool operator==(const PipelineProbe&) const = default;

  private:
    uint8_t index_;
};

// Since the last `settle`.
struct PipelineCounts {
    // Hits that MemorySystem has not counted.
    enum Hit : unsigned { LOADS, STORES, FETCHES, HITS };

    std::array<uint64_t, PipelineProbe::COUNT + HITS> amounts{};  // by probe, then by Hit

    void add(PipelineProbe probe, uint64_t amount) { amounts[probe.index()] += amount; }
    uint64_t* hits() { return &amounts[PipelineProbe::COUNT]; }
    void settle(uint64_t* totals, MemorySystem& memory) {
        for (unsigned index = 0; index < PipelineProbe::COUNT; ++index)
            totals[static_cast<unsigned>(PipelineProbe::FIRST) + index] += amounts[index];
        memory.count_filtered_hits(hits()[LOADS], hits()[STORES], hits()[FETCHES]);
        amounts = {};
    }
    bool operator==(const PipelineCounts&) const = default;
};

}  // namespace perfemu
