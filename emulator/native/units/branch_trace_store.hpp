// Intel's branch trace store (BTS): every taken branch as a record of 24 bytes, in a buffer that the debug store (DS)
// names. Intel SDM volume 3, "Branch Trace Store (BTS)" and "DS Save Area".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "core/retirement.hpp"

namespace perfemu {

class BranchTraceStore final : public RetirementListener {
  public:
    static constexpr uint64_t RECORD_BYTES = 24;

    explicit BranchTraceStore(std::function<void()> request_interrupt)
        : request_interrupt_(std::move(request_interrupt)) {}

    // `area`: the DS management area as 64-bit words, of which the index follows what is written; `buffer`: what lies
    // from its BTS buffer base on. With `interrupts` the buffer is written once, and the interrupt comes at the
    // threshold; else it is written round and round.
    void begin(std::span<uint64_t> area, std::span<uint8_t> buffer, bool interrupts);
    void end() { buffer_ = {}; }

    bool interrupt_pending() const { return interrupt_; }
    void clear_interrupt() { interrupt_ = false; }

    void branch(const RetiredBranch& branch) override;
    void far(const FarTransfer& transfer) override;
    uint64_t room() const override;

  private:
    bool has_room(uint64_t index) const;

    enum Word { BASE, INDEX, ABSOLUTE_MAXIMUM, INTERRUPT_THRESHOLD };
    static constexpr uint64_t PREDICTED = 1 << 4;

    std::function<void()> request_interrupt_;
    std::span<uint64_t> area_;
    std::span<uint8_t> buffer_;
    bool interrupts_ = false, interrupt_ = false;
};

}  // namespace perfemu
