#include "core/counters.hpp"

#include <stdexcept>
#include <string>

namespace perfemu {

CounterBank::CounterBank(Totals& totals, unsigned counters) : totals_(totals) {
    if (counters == 0 || counters > MAX_COUNTERS)
        throw std::invalid_argument("a bank has 1 to " + std::to_string(MAX_COUNTERS) + " counters");
    counters_.resize(counters, Counter{.limit = ~uint64_t{0}});
}

uint64_t CounterBank::sum(const Counter& counter) {
    if (!counter.probes) return 0;
    uint64_t fired = totals_.sum(counter.probes, counter.levels);
    return counter.less ? fired - totals_.sum(counter.less, counter.levels) : fired;
}

// Brings `value` up to the present; notes a wrap.
void CounterBank::sync(unsigned index) {
    Counter& counter = counters_[index];
    if (!counter.probes) return;
    uint64_t now = sum(counter);
    uint64_t fired = now - counter.seen;
    counter.seen = now;
    bool wraps = fired > counter.limit - counter.value;
    counter.value = (counter.value + fired) & counter.limit;
    if (!wraps) return;
    uint64_t self = uint64_t{1} << index;
    overflowed_ |= self;
    if (armed_ & self) interrupt_ = true;
}

void CounterBank::connect(unsigned index, ProbeMask probes, ProbeMask less) {
    Counter& counter = counters_.at(index);
    sync(index);
    totals_.watch(probes | less);
    counter.probes = probes;
    counter.less = less;
    counter.seen = sum(counter);
}

void CounterBank::filter(unsigned index, LevelMask levels) {
    Counter& counter = counters_.at(index);
    if (levels & ~EVERY_LEVEL) throw std::invalid_argument("there is no such privilege level");
    sync(index);
    counter.levels = levels;
    counter.seen = sum(counter);
}

void CounterBank::set_width(unsigned index, unsigned bits) {
    if (bits == 0 || bits > 64)
        throw std::invalid_argument("a counter is 1 to 64 bits wide, not " + std::to_string(bits));
    Counter& counter = counters_.at(index);
    sync(index);
    counter.limit = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    counter.value &= counter.limit;
}

void CounterBank::arm(uint64_t counters) {
    sync_armed();
    armed_ = counters;
    sync_armed();
    if (overflowed_ & armed_) interrupt_ = true;
}

uint64_t CounterBank::read(unsigned index) {
    Counter& counter = counters_.at(index);
    sync(index);
    return counter.value;
}

void CounterBank::write(unsigned index, uint64_t value) {
    Counter& counter = counters_.at(index);
    sync(index);
    counter.value = value & counter.limit;
}

void CounterBank::add(unsigned index, uint64_t amount) {
    Counter& counter = counters_.at(index);
    sync(index);
    bool wraps = amount > counter.limit - counter.value;
    counter.value = (counter.value + amount) & counter.limit;
    if (wraps) set_overflowed(uint64_t{1} << index);
}

uint64_t CounterBank::overflowed() {
    for (unsigned i = 0; i < counters_.size(); i++) sync(i);
    return overflowed_;
}

void CounterBank::set_overflowed(uint64_t counters) {
    overflowed_ |= counters;
    if (counters & armed_) interrupt_ = true;
}

void CounterBank::clear_overflowed(uint64_t counters) {
    overflowed();  // a wrap that nobody has seen yet is before this clearing
    overflowed_ &= ~counters;
}

void CounterBank::sync_armed() {
    for (unsigned i = 0; i < counters_.size(); i++)
        if (armed_ >> i & 1) sync(i);
}

std::vector<CounterBank::Armed> CounterBank::armed() {
    std::vector<Armed> result;
    for (unsigned i = 0; i < counters_.size(); i++) {
        const ProbeMask probes = counters_[i].probes;
        if (!(armed_ >> i & 1) || !probes || !contains(counters_[i].levels, totals_.level())) continue;
        sync(i);
        uint64_t to_the_limit = counters_[i].limit - counters_[i].value;
        result.push_back({probes, to_the_limit + (to_the_limit != ~uint64_t{0})});
    }
    return result;
}

bool CounterBank::armed_for(Probe probe, Level level) const {
    for (unsigned i = 0; i < counters_.size(); i++)
        if (armed_ >> i & 1 && counters_[i].probes & bit(probe) && contains(counters_[i].levels, level)) return true;
    return false;
}

bool CounterBank::take_interrupt() {
    sync_armed();
    bool taken = interrupt_;
    interrupt_ = false;
    return taken;
}

}  // namespace perfemu
