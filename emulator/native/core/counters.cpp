#include "core/counters.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace perfemu {

namespace {

// Calls `tell` with the number of each counter of the mask, lowest first.
template <typename Tell>
void each_of(uint64_t counters, const Tell& tell) {
    for (; counters; counters &= counters - 1) tell(static_cast<unsigned>(std::countr_zero(counters)));
}

}  // namespace

CounterBank::CounterBank(Totals& totals, unsigned counters) : totals_(totals) {
    if (counters == 0 || counters > MAX_COUNTERS)
        throw std::invalid_argument("a bank has 1 to " + std::to_string(MAX_COUNTERS) + " counters");
    counters_.resize(counters, Counter{.limit = ~uint64_t{0}, .wrap = ~uint64_t{0}});
}

uint64_t CounterBank::sum(const Counter& counter) {
    if (!counter.probes) return 0;
    uint64_t fired = totals_.sum(counter.probes, counter.levels);
    return counter.less ? fired - totals_.sum(counter.less, counter.levels) : fired;
}

// Brings `value` up to the present; notes a wrap.
void CounterBank::sync(unsigned index) {
    if (index && counters_[index - 1].chained) sync(index - 1);
    Counter& counter = counters_[index];
    if (!counter.probes) return;
    uint64_t now = sum(counter);
    uint64_t fired = now - counter.seen;
    counter.seen = now;
    advance(index, fired);
}

void CounterBank::advance(unsigned index, uint64_t fired) {
    Counter& counter = counters_[index];
    const uint64_t room = counter.to_the_limit();
    counter.value = (counter.value + fired) & counter.limit;
    if (fired <= room || recorded_ >> index & 1) return;
    set_overflowed(uint64_t{1} << index);
    if (!counter.chained) return;
    const uint64_t further = counter.wrap == ~uint64_t{0} ? 0 : (fired - room - 1) / (counter.wrap + 1);
    advance(index + 1, 1 + further);
}

void CounterBank::chain(unsigned index, bool on) {
    if (index + 1 >= counters_.size()) throw std::out_of_range("no counter is behind that one");
    sync(index);
    counters_[index].chained = on;
}

void CounterBank::connect(unsigned index, ProbeMask probes, ProbeMask less) {
    Counter& counter = counters_.at(index);
    sync(index);
    totals_.watch(probes | less);
    counter.probes = probes;
    counter.less = less;
    counter.seen = sum(counter);
    note_connected(index);
    tell_changed(index);
}

void CounterBank::note_connected(unsigned index) {
    const uint64_t bit = uint64_t{1} << index;
    connected_ = counters_[index].probes ? connected_ | bit : connected_ & ~bit;
}

void CounterBank::filter(unsigned index, LevelMask levels) {
    Counter& counter = counters_.at(index);
    if (levels & ~EVERY_LEVEL) throw std::invalid_argument("there is no such privilege level");
    sync(index);
    counter.levels = levels;
    counter.seen = sum(counter);
    tell_changed(index);
}

void CounterBank::set_width(unsigned index, unsigned bits, unsigned overflow_bits) {
    if (bits == 0 || bits > 64)
        throw std::invalid_argument("a counter is 1 to 64 bits wide, not " + std::to_string(bits));
    if (overflow_bits > bits)
        throw std::invalid_argument("a counter of " + std::to_string(bits) + " bits has no bit " +
                                    std::to_string(overflow_bits - 1) + " to overflow at");
    Counter& counter = counters_.at(index);
    sync(index);
    counter.limit = ~uint64_t{0} >> (64 - bits);
    counter.wrap = overflow_bits ? ~uint64_t{0} >> (64 - overflow_bits) : counter.limit;
    counter.value &= counter.limit;
}

// A wrap stops the core if it comes while its counter is armed, or has come and is not cleared when that is armed.
// Whose arming does not change needs no look: who asks for the interrupt looks.
void CounterBank::arm(uint64_t counters) {
    counters &= all();
    each_of(armed_ ^ counters, [this](unsigned index) { sync(index); });
    armed_ = counters;
    if (overflowed_ & armed_) interrupt_ = true;
}

void CounterBank::record(uint64_t counters, std::function<void()> changed) {
    for (unsigned i = 0; i < size(); i++) sync(i);
    recorded_ = counters;
    changed_ = std::move(changed);
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
    tell_changed(index);
}

std::vector<uint64_t> CounterBank::read_each(std::span<const unsigned> counters) {
    std::vector<uint64_t> values;
    values.reserve(counters.size());
    for (unsigned index : counters) values.push_back(read(index));
    return values;
}

void CounterBank::write_each(std::span<const unsigned> counters, std::span<const uint64_t> values) {
    if (counters.size() != values.size()) throw std::invalid_argument("each counter is written one value");
    for (size_t i = 0; i < counters.size(); i++) {
        if (values[i] > counters_.at(counters[i]).limit)
            throw std::invalid_argument("counter " + std::to_string(counters[i]) + " is too narrow for " +
                                        std::to_string(values[i]));
        write(counters[i], values[i]);
    }
}

void CounterBank::add(unsigned index, uint64_t amount) {
    counters_.at(index);
    sync(index);
    advance(index, amount);
}

uint64_t CounterBank::overflowed() {
    each_of(connected_, [this](unsigned index) { sync(index); });
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
    each_of(armed_, [this](unsigned index) { sync(index); });
}

// How far it is, in events, to the wrap behind so many wraps more: at most 2**64 - 1.
static uint64_t sum_of(uint64_t to_the_limit, uint64_t wraps, uint64_t wrap) {
    const auto all = static_cast<unsigned __int128>(wraps) * (static_cast<unsigned __int128>(wrap) + 1) + to_the_limit;
    return static_cast<uint64_t>(std::min(all, static_cast<unsigned __int128>(~uint64_t{0})));
}

std::vector<CounterBank::Armed> CounterBank::armed() {
    std::vector<Armed> result;
    each_of(armed_ & ~recorded_, [&](unsigned i) {
        const bool counts_wraps = i && counters_[i - 1].chained;
        const Counter& counter = counters_[counts_wraps ? i - 1 : i];  // whose events make it wrap
        if (!counter.probes || !contains(counter.levels, totals_.level())) return;
        sync(i);
        uint64_t to_the_limit = counter.to_the_limit();
        if (counts_wraps) to_the_limit = sum_of(to_the_limit, counters_[i].to_the_limit(), counter.wrap);
        result.push_back({counter.probes, to_the_limit + (to_the_limit != ~uint64_t{0})});
    });
    return result;
}

bool CounterBank::armed_for(Probe probe, Level level) const {
    for (unsigned i = 0; i < counters_.size(); i++) {
        const Counter& counter = counters_[i && counters_[i - 1].chained ? i - 1 : i];
        if ((armed_ & ~recorded_) >> i & 1 && counter.probes & bit(probe) && contains(counter.levels, level))
            return true;
    }
    return false;
}

bool CounterBank::Counter::is_possible() const {
    auto are_lowest_bits = [](uint64_t mask) { return mask && !(mask & (mask + 1)); };
    return are_probes(probes | less) && are_lowest_bits(limit) && are_lowest_bits(wrap) && wrap <= limit &&
           value <= limit && !(levels & ~EVERY_LEVEL);
}

void CounterBank::archive(Archive& state) {
    state(counters_, armed_, overflowed_, interrupt_);
    state.expect(std::ranges::all_of(counters_, &Counter::is_possible));
    state.expect(!counters_.back().chained);
    state.expect(!((armed_ | overflowed_) & ~all()));
    if (state.is_loading())
        for (unsigned i = 0; i < size(); i++) note_connected(i);
}

bool CounterBank::take_interrupt() {
    sync_armed();
    bool taken = interrupt_;
    interrupt_ = false;
    return taken;
}

}  // namespace perfemu
