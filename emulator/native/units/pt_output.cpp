#include "units/pt_output.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace perfemu {

void TraceOutput::begin(std::vector<TraceRegion> regions, size_t region, uint64_t offset) {
    if (region >= regions.size() || offset >= regions[region].memory.size())
        throw std::invalid_argument("a trace is written to a place in one of its regions");
    for (const TraceRegion& each : regions)
        if (each.memory.empty()) throw std::invalid_argument("a region of a trace has some bytes");
    regions_ = std::move(regions);
    stopped_ = interrupt_ = false;
    enter(region, offset);
}

void TraceOutput::forget() {
    last_offset_ = offset();
    regions_.clear();
    at_ = end_ = nullptr;
}

void TraceOutput::enter(size_t region, uint64_t offset) {
    region_ = region;
    const std::span<uint8_t> memory = regions_[region].memory;
    at_ = memory.data() + offset;
    end_ = memory.data() + memory.size();
}

// It fills the region, or does not fit.
void TraceOutput::write_on(const uint8_t* bytes, size_t size) {
    while (!stopped_ && !regions_.empty()) {
        const size_t part = std::min<size_t>(size, end_ - at_);
        at_ = std::copy_n(bytes, part, at_);
        written_ += part;
        bytes += part;
        size -= part;
        if (at_ != end_) return;
        const TraceRegion& full = regions_[region_];
        interrupt_ |= full.interrupts;
        stopped_ = full.stops;
        if (!stopped_) enter((region_ + 1) % regions_.size(), 0);
    }
}

}  // namespace perfemu
