// OpSampler: the part of a sampling unit that is in the core: it counts, tags an instruction, and keeps what became of
// it until software has read that. AMD's IBS is made of two.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/core.hpp"
#include "core/retirement.hpp"

namespace perfemu {

class OpSampler final : public RetirementListener {
  public:
    explicit OpSampler(Core& core) : core_(core) {}
    ~OpSampler() override { stop(); }

    // Behind `distance` events of `probes` an instruction is tagged: the one that makes the last of them, of CYCLES the
    // next that retires. It is kept if it fires one of
    // `wanted`, or if that is 0; else `period` events are counted anew, less some of [0, 2**random_bits). Then the core
    // stops, and nothing more happens.
    struct Order {
        ProbeMask probes = 0, wanted = 0;
        uint64_t distance = 0, period = 0;
        unsigned random_bits = 0;
    };
    void start(const Order& order);
    void stop();

    // Events that have been counted since `start`, or since the last that was not wanted: at most the distance.
    uint64_t counted();
    // ... that are still to come, at least one.
    uint64_t left() { return std::max<uint64_t>(order_.distance - counted(), 1); }
    // Of a sequence that is the same each time.
    uint64_t random(unsigned bits);
    // Where that is: 31 bits, not 0.
    uint32_t sequence() const { return sequence_; }
    void set_sequence(uint32_t value) { sequence_ = value; }

    bool valid = false;  // `op` is one that was kept
    RetiredOp op;
    Level level = Level::USER;  // at which it was

    Reaction selected(const RetiredOp& retired) override;

  private:
    Core& core_;
    Order order_;
    bool counts_ = false, tags_next_ = false;
    uint64_t from_ = 0;               // the sum of the events when it began to count
    uint32_t sequence_ = 0x2a5c9d17;  // of a shift register of 31 bits
};

}  // namespace perfemu
