// Intel PT: the path of what executes as packets. Intel SDM volume 3, chapter "Intel Processor Trace".
//
// What registers say is the unit's matter (pmu/intel/pt.py): here is a trace from its beginning to its end.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "archive.hpp"
#include "core/retirement.hpp"
#include "shown_cycles.hpp"
#include "units/pt_output.hpp"

namespace perfemu {

struct PtSettings {
    bool branches = true;
    bool compresses_returns = true;
    bool tsc = false, mtc = false, cyc = false;
    bool ptwrite = false, ptwrite_addresses = false;  // a PTW for each PTWRITE, and a FUP behind it
    uint64_t bytes_between_psbs = 1 << 14;
    unsigned mtc_shift = 3;      // an MTC whenever the counter of the crystal clock has passed so many bits more
    unsigned cyc_threshold = 0;  // cycles that have to pass between two CYCs
    uint64_t tsc_at_start = 0;   // the time stamp counter at cycle 0
    uint64_t tsc_ticks = 1, ctc_ticks = 1;  // ... so many of it are as long as these of the crystal clock
    bool power = false;                     // when the processor sleeps and wakes
    uint64_t core_hz = 0, bus_hz = 1;       // CBR: their ratio; `core_hz` where it is always the same
    struct Range {
        uint64_t first, last;
        bool stops;  // tracing stops in it; else it is only traced in such ranges
    };
    std::vector<Range> ranges;
    LevelMask levels = 1 << static_cast<unsigned>(Level::USER);  // that are traced
    std::optional<uint64_t> only_cr3;                            // ... of this address space alone
};

class PtEncoder final : public RetirementListener {
  public:
    // `request_interrupt`: of the core that it listens to. `clock`: what makes reference cycles of cycles.
    PtEncoder(std::shared_ptr<const ShownCycles> clock, std::function<void()> request_interrupt)
        : clock_(std::move(clock)), request_interrupt_(std::move(request_interrupt)) {}

    TraceOutput output;

    // A trace begins, and after `bytes_since_psb` of the last one, without a PSB first if that are some. `place`: where
    // the kernel executes, which begins it; where that is modelled the trace begins outside of user mode.
    void begin(PtSettings settings, uint64_t bytes_since_psb, uint64_t cycle,
               const std::optional<ExecutionPlace>& place);
    // ... and ends: nothing is left behind.
    void end(uint64_t cycle, const std::optional<ExecutionPlace>& place);
    // One that was saved, which had these, goes on.
    void set(PtSettings settings);
    void archive(Archive& state);
    // The processor sleeps, by the instruction at `at`, and wakes again, for a reason as PWRX tells it.
    void sleep(uint64_t at, uint64_t cycle);
    void wake(uint64_t cycle, uint8_t reason);
    // TRACE_TOPA_PMI, and whether the processor is still to be interrupted for it.
    bool interrupt_pending() const { return interrupt_; }
    bool interrupt_asserted() const { return asserted_; }
    void take_interrupt() { asserted_ = false; }
    void set_interrupt(bool pending) { interrupt_ = asserted_ = pending; }
    uint64_t bytes_since_psb() const { return since_psb_; }
    bool in_context() const { return in_context_; }
    bool in_filter() const { return in_range_; }
    // A TraceStop range has been entered.
    bool has_met_stop() const { return met_stop_; }

    void branch(const RetiredBranch& branch) override;
    void trace_written(const TraceWrite& written) override;
    void far(const FarTransfer& transfer) override;
    void changed_tables(uint64_t cr3, uint64_t next, uint64_t cycle) override;
    void left(const PathEnd& end) override;
    void entered(uint64_t at, uint64_t cycle) override;

  private:
    bool traces() const { return in_context_ && in_range_ && !met_stop_ && settings_.branches; }
    bool is_traced(Level level) const;
    void arrive(uint64_t at, uint64_t cycle, bool from_trace);
    void enable(uint64_t at, uint64_t cycle);
    void take(bool taken, uint64_t cycle);
    void flush_tnt();
    void target(uint8_t header, uint64_t address, uint64_t cycle);
    void write_address(uint8_t header, uint64_t address);
    void write_disabled(uint64_t cycle);
    void tell_mode();
    void tell_tables(uint64_t cycle);
    void push(uint64_t return_address);
    bool pops(uint64_t target);
    bool follows_filters(const RetiredBranch& branch);
    bool covers(uint64_t address, bool stops) const;
    bool filters() const;
    void stop();
    void stamp(uint64_t cycle);
    void tell_cycles(uint64_t cycle);
    void write_tsc(uint64_t cycle);
    uint8_t ratio_at(uint64_t cycle) const;
    void write_ratio(uint64_t cycle);
    void expect_mtc(uint64_t cycle);
    void tell_mtc(uint64_t cycle);
    void tell_ticks(uint64_t cycle);
    void synchronise(uint64_t cycle, const uint64_t* address);
    void synchronise_if_due(uint64_t address, uint64_t cycle);
    void write(const uint8_t* bytes, size_t size);
    uint64_t tsc_at(uint64_t cycle) const { return settings_.tsc_at_start + clock_->reference(cycle); }
    uint64_t ctc_of(uint64_t tsc) const;
    uint64_t tsc_of(uint64_t ctc) const;

    std::shared_ptr<const ShownCycles> clock_;
    std::function<void()> request_interrupt_;
    PtSettings settings_;
    bool active_ = false, in_context_ = false, in_range_ = true, met_stop_ = false;
    bool interrupt_ = false, asserted_ = false;
    bool kernel_executes_ = false;  // rather than being modelled
    Level level_ = Level::USER;
    uint8_t code_bits_ = 64;
    uint64_t cr3_ = 0;
    bool mode_told_ = false;
    bool address_told_ = false;  // `last_ip_` is what a decoder has
    uint64_t since_psb_ = 0;     // bytes
    uint64_t last_ip_ = 0;
    uint64_t tnt_ = 0;  // taken or not, the latest lowest
    unsigned tnt_bits_ = 0, most_tnt_bits_ = 0;
    uint64_t tnt_cycle_ = 0;   // of the first of them
    uint64_t told_cycle_ = 0;  // by the last CYC
    bool asleep_ = false;
    uint64_t asleep_from_ = 0;               // cycle
    uint8_t told_ratio_ = 0;                 // by the last CBR
    uint64_t told_mtc_ = 0;                  // of the crystal clock's counter, without the bits below
    uint64_t mtc_due_cycle_ = ~uint64_t{0};  // at which it is another
    static constexpr unsigned CALLS = 64;
    std::array<uint64_t, CALLS> calls_{};
    unsigned newest_call_ = 0, kept_calls_ = 0;
};

}  // namespace perfemu
