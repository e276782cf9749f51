// SpeSampler: the part of Arm's Statistical Profiling Extension (Arm ARM DDI 0487, chapters "The Statistical Profiling
// Extension" and "Statistical Profiling Extension Sample Record Specification") that is in the core: it counts
// operations, chooses some, and makes a record of each that no filter leaves out.
//
// An operation is an instruction that has retired: no other is ever chosen, so that each record has the event
// "architecturally retired". What is not known here, and so is in no record: which operations were on a wrong path.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/core.hpp"
#include "core/retirement.hpp"

namespace perfemu {

class SpeSampler final : public RetirementListener {
  public:
    static constexpr size_t RECORD = 64;  // bytes: the largest one; each begins at a multiple of it

    enum Packets : unsigned { PHYSICAL = 1, CONTEXT = 2 };
    enum Types : unsigned { BRANCH = 1, LOAD = 2, STORE = 4 };
    enum Filters : unsigned { BY_TYPE = 1, BY_EVENTS = 2, BY_LATENCY = 4, BY_NO_EVENTS = 8 };
    struct Order {
        uint64_t distance = 1;  // instructions until the first sample
        uint64_t interval = 1;  // ... and from one to the next
        bool jitter = false;    // and some of [0, 256) more
        uint64_t room = 0;      // bytes for records
        uint64_t wanted = 0;    // events that records tell of
        unsigned packets = 0, types = 0, filters = 0;
        uint64_t events = 0, no_events = 0;  // which all, or none, must have happened
        uint64_t min_latency = 0;            // cycles
        LevelMask levels = EVERY_LEVEL;      // at which instructions are operations that are counted
        uint64_t ram_base = 0;               // the physical address of the first frame
        uint32_t context_register = 0;       // CONTEXTIDR_EL1's number, of a guest's own kernel; 0: `context` is it
    };

    explicit SpeSampler(Core& core) : core_(core) {}
    ~SpeSampler() override { stop(); }

    void start(const Order& order);
    // Returns how many instructions are left until the next sample.
    uint64_t stop();

    Reaction selected(const RetiredOp& op) override;

    // The records that were made, and the cycle at which each operation was through.
    struct Records {
        std::vector<uint8_t> bytes;
        std::vector<uint64_t> cycles;
    };
    Records take() { return std::exchange(records_, {}); }

    uint64_t samples = 0;            // operations that were chosen
    bool full = false;               // there is no room for another record, and it has stopped
    bool lost = false;               // ... nor was there for the last one
    bool collided = false;           // an operation was chosen while the one before was not through
    uint32_t context = 0;            // CONTEXTIDR_EL1, where the kernel is modelled
    uint32_t sequence = 0x6c078965;  // a shift register of 31 bits; from few ones it would take long to look random

  private:
    struct Latencies {
        uint64_t total, issue, translation;
    };
    uint64_t next_distance();
    bool is_wanted(const RetiredOp& op, uint64_t events, const Latencies& latencies) const;
    void record(const RetiredOp& op, uint64_t events, const Latencies& latencies);

    Core& core_;
    Order order_;
    bool counts_ = false;
    uint64_t due_ = 0;         // the sum of instructions at which the next one is chosen
    uint64_t left_ = 1;        // instructions until then, while it does not count
    uint64_t busy_until_ = 0;  // when the operation that was chosen last was through
    Records records_;
};

}  // namespace perfemu
