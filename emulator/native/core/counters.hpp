// The counting half of a PMU: counters over probe totals. Which register shows which counter is the PMU model's matter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "archive.hpp"
#include "level.hpp"
#include "ops/op.hpp"

namespace perfemu {

// Where a bank gets its totals from.
class Totals {
  public:
    virtual ~Totals() = default;
    // How often the probes of the mask have fired at these levels, together, exact at the present instruction.
    virtual uint64_t sum(ProbeMask probes, LevelMask levels) = 0;
    // At which what executes is.
    virtual Level level() const = 0;
    // A counter begins to count these.
    virtual void watch(ProbeMask probes) = 0;
};

class CounterBank {
  public:
    static constexpr unsigned MAX_COUNTERS = 64;

    CounterBank(Totals& totals, unsigned counters);

    unsigned size() const { return static_cast<unsigned>(counters_.size()); }
    // Counts `probes` from now on, less how often those of `less` fire: each of these with one of the others.
    void connect(unsigned counter, ProbeMask probes, ProbeMask less = 0);
    ProbeMask connected(unsigned counter) const { return counters_.at(counter).probes; }
    LevelMask levels(unsigned counter) const { return counters_.at(counter).levels; }
    uint64_t limit(unsigned counter) const { return counters_.at(counter).limit; }
    ProbeMask subtracted(unsigned counter) const { return counters_.at(counter).less; }
    // Counts only what happens at these, from now on.
    void filter(unsigned counter, LevelMask levels);
    // `overflow_bits`: it overflows when that many of its bits wrap, and counts on; 0: when all do.
    void set_width(unsigned counter, unsigned bits, unsigned overflow_bits = 0);
    // The counter behind this one counts how often this one overflows, besides its own probes: which are none.
    void chain(unsigned counter, bool on);
    void arm(uint64_t counters);
    // A unit writes records of these counters' wraps, and hears of whatever changes when the next one will be: they set
    // no overflow bit, and stop nothing.
    void record(uint64_t counters, std::function<void()> changed);
    uint64_t read(unsigned counter);
    void write(unsigned counter, uint64_t value);
    // Several at once, as one register after the other. A value that does not fit is none of its counter's.
    std::vector<uint64_t> read_each(std::span<const unsigned> counters);
    void write_each(std::span<const unsigned> counters, std::span<const uint64_t> values);
    void add(unsigned counter, uint64_t amount);
    uint64_t overflowed();
    void set_overflowed(uint64_t counters);
    void clear_overflowed(uint64_t counters);

    // For the core: an armed counter that counts, and how many more of its events make it wrap.
    struct Armed {
        ProbeMask probes;
        uint64_t remaining;
    };
    std::vector<Armed> armed();
    // Is there an armed counter of this probe at that level?
    bool armed_for(Probe probe, Level level) const;
    // Has an armed counter wrapped since this was asked last?
    bool take_interrupt();
    void archive(Archive& state);

  private:
    struct Counter {
        ProbeMask probes = 0;
        ProbeMask less = 0;
        uint64_t limit = 0;  // 2**width - 1
        uint64_t wrap = 0;   // the bits whose wrap is its overflow
        uint64_t value = 0;  // when `seen` was the sum of its probes
        uint64_t seen = 0;
        LevelMask levels = EVERY_LEVEL;
        bool chained = false;  // to the one behind, which counts the overflows

        bool is_possible() const;
        uint64_t to_the_limit() const { return wrap - (value & wrap); }
        void archive(Archive& state) { state(probes, less, limit, wrap, value, seen, levels, chained); }
    };
    uint64_t all() const { return ~uint64_t{0} >> (MAX_COUNTERS - size()); }
    // Of its probes, at its levels.
    uint64_t sum(const Counter& counter);
    void sync(unsigned counter);
    // `fired` more.
    void advance(unsigned counter, uint64_t fired);
    void sync_armed();
    void tell_changed(unsigned counter) {
        if (recorded_ >> counter & 1) changed_();
    }

    void note_connected(unsigned counter);

    Totals& totals_;
    std::vector<Counter> counters_;
    uint64_t connected_ = 0;  // those that have probes
    uint64_t armed_ = 0;
    uint64_t recorded_ = 0;
    std::function<void()> changed_;  // one of `recorded_`
    uint64_t overflowed_ = 0;
    bool interrupt_ = false;
};

}  // namespace perfemu
