// Intel's processor event-based sampling (PEBS): a counter's overflow writes a record of the instruction that made it,
// into a buffer that the debug store (DS) names, and reloads the counter. Intel SDM volume 3, "Processor Event Based
// Sampling (PEBS)" and "DS Save Area".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/core.hpp"
#include "core/retirement.hpp"
#include "shown_cycles.hpp"
#include "units/branch_records.hpp"

namespace perfemu {

class Pebs {
  public:
    // Groups of an adaptive record: MSR_PEBS_DATA_CFG.
    static constexpr uint64_t MEMORY = 1 << 0, REGISTERS = 1 << 1, VECTORS = 1 << 2, BRANCHES = 1 << 3;

    // Words of the DS management area.
    enum Word { BASE = 4, INDEX, ABSOLUTE_MAXIMUM, INTERRUPT_THRESHOLD, RESETS };

    struct Settings {
        uint64_t counters = 0;      // of the bank: a mask of those whose overflows are records
        uint64_t slow_loads = 0;    // ... of those whose overflows are only if that load took longer than
        uint64_t latency = 0;       // so many cycles
        unsigned general = 0;       // counters of the bank before the fixed ones
        unsigned resets = 0;        // words of the DS area before the reset values of those
        bool adaptive = false;      // format 4; else format 3
        uint64_t with_groups = 0;   // ... of the counters whose records have more groups than the basic one, by
        uint64_t config = 0;        // MSR_PEBS_DATA_CFG
        uint64_t tsc_at_start = 0;  // the time stamp counter at cycle 0
    };

    Pebs(Core& core, CounterBank& bank, std::shared_ptr<const ShownCycles> clock);
    ~Pebs() { end(); }
    Pebs(const Pebs&) = delete;
    Pebs& operator=(const Pebs&) = delete;

    // `area`: the DS management area, of which the index follows what is written; `buffer`: what lies from its PEBS
    // buffer base on; `branches`: for that group, or null. Throws std::invalid_argument.
    void begin(const Settings& settings, std::span<uint64_t> area, std::span<uint8_t> buffer, BranchRecords* branches);
    void end();

    // The index has reached the threshold; until software clears it.
    bool buffer_overflowed = false;

  private:
    static constexpr unsigned FIXED_SHIFT = 32;    // of a fixed counter's bit in registers
    static constexpr unsigned FIXED_COUNTERS = 4;  // that have a reset value in the DS area

    struct Counter final : RetirementListener {
        Counter(Pebs& unit, unsigned number) : unit(unit), number(number) {}
        Reaction selected(const RetiredOp& op) override { return unit.overflowed(*this, op); }
        Pebs& unit;
        unsigned number;  // of the bank
        bool selects = false;
    };

    void select();
    Reaction overflowed(Counter& counter, const RetiredOp& op);
    bool is_slow(const RetiredOp& op) const { return op.completed - op.issued > settings_.latency; }
    bool record(unsigned number, const RetiredOp& op);
    void write_fixed_format(uint64_t applicable, const RetiredOp& op, bool of_stores);
    void write_adaptive_format(uint64_t applicable, uint64_t config, const RetiredOp& op);
    void put(uint64_t word) { words_.push_back(word); }
    void put_vectors();
    void put_branches(unsigned entries);
    uint64_t value_of(int number) const;  // of a register, by the engine's number
    uint64_t flags() const;
    uint64_t tsc_at(uint64_t cycle) const { return settings_.tsc_at_start + clock_->reference(cycle); }
    uint64_t bit_of(unsigned number) const;
    uint64_t reset_of(unsigned number) const;
    // How far a counter is beyond its wrap: negative before it.
    int64_t beyond(unsigned number);
    uint64_t distance(unsigned number);

    Core& core_;
    CounterBank& bank_;
    std::shared_ptr<const ShownCycles> clock_;
    Settings settings_;
    std::span<uint64_t> area_;
    std::span<uint8_t> buffer_;
    BranchRecords* branches_ = nullptr;
    std::vector<std::unique_ptr<Counter>> counters_;
    std::vector<uint64_t> words_;  // of a record
    bool writes_ = false, reloading_ = false;
    uint64_t last_choice_ = 0;            // of the record that was written last,
    uint8_t* last_applicable_ = nullptr;  // and its mask of counters: another's may overflow together with it
};

}  // namespace perfemu
