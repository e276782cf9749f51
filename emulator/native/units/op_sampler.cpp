#include "units/op_sampler.hpp"

#include <algorithm>

namespace perfemu {

void OpSampler::start(const Order& order) {
    stop();
    order_ = order;
    core_.select(*this, order_.probes, order_.distance);  // or it throws
    from_ = core_.sum(order_.probes);
    counts_ = true;
    tags_next_ = false;
}

void OpSampler::stop() {
    if (counts_) core_.stop_listening(*this);
    counts_ = false;
}

uint64_t OpSampler::counted() {
    if (!counts_ || tags_next_) return order_.distance;
    return std::min(core_.sum(order_.probes) - from_, order_.distance);
}

// x**31 + x**28 + 1, a step for each bit.
uint64_t OpSampler::random(unsigned bits) {
    for (unsigned i = 0; i < bits; i++)
        sequence_ = (sequence_ << 1 | ((sequence_ >> 30 ^ sequence_ >> 27) & 1)) & 0x7fffffff;
    return sequence_ & ((uint64_t{1} << bits) - 1);
}

Reaction OpSampler::selected(const RetiredOp& retired) {
    if (order_.probes == bit(Probe::CYCLES) && !tags_next_) {
        tags_next_ = true;
        return {.probes = bit(Probe::INST_RETIRED), .distance = 1};
    }
    tags_next_ = false;
    if (order_.wanted && !(retired.fired & order_.wanted)) {
        order_.distance = std::max<uint64_t>(order_.period - std::min(order_.period, random(order_.random_bits)), 1);
        from_ = core_.sum(order_.probes);
        return {.probes = order_.probes, .distance = order_.distance};
    }
    op = retired;
    level = core_.level();
    valid = true;
    counts_ = false;
    return {.interrupts = true};
}

}  // namespace perfemu
