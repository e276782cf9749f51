// What a pipeline counts itself, apart from what memory and the branch unit count: so it can be remembered by block.
#pragma once

#include <array>
#include <cstdint>

#include "cache/memory_system.hpp"
#include "probes.hpp"

namespace perfemu {

// One of the probes of Source.PIPELINE in emulator/probes.py; any other does not compile.
class PipelineProbe {
  public:
    static constexpr unsigned FIRST = PIPELINE_PROBES.first, COUNT = PIPELINE_PROBES.count;

    consteval PipelineProbe(Probe probe) : index_(static_cast<uint8_t>(static_cast<unsigned>(probe) - FIRST)) {
        if (index_ >= COUNT) throw "not one of the pipeline's probes";
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
            totals[PipelineProbe::FIRST + index] += amounts[index];
        memory.count_filtered_hits(hits()[LOADS], hits()[STORES], hits()[FETCHES]);
        amounts = {};
    }
    bool operator==(const PipelineCounts&) const = default;
};

}  // namespace perfemu
