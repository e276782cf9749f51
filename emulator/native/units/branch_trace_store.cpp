#include "units/branch_trace_store.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

namespace perfemu {

void BranchTraceStore::begin(std::span<uint64_t> area, std::span<uint8_t> buffer, bool interrupts) {
    const bool ordered = area[BASE] <= area[INDEX] && area[INDEX] <= area[ABSOLUTE_MAXIMUM];
    if (!ordered || area[ABSOLUTE_MAXIMUM] - area[BASE] > buffer.size())
        throw std::invalid_argument("the DS area's BTS buffer, index and maximum are in no order, or beyond memory");
    area_ = area;
    buffer_ = buffer;
    interrupts_ = interrupts;
    interrupt_ = false;
}

uint64_t BranchTraceStore::room() const {
    if (!interrupts_ || area_[INDEX] >= area_[INTERRUPT_THRESHOLD]) return RetirementListener::room();
    return (area_[INTERRUPT_THRESHOLD] - area_[INDEX]) / RECORD_BYTES;
}

// Whether a record can be there. What the area says may be a guest's, and change at any time.
bool BranchTraceStore::has_room(uint64_t index) const {
    const uint64_t base = area_[BASE], maximum = area_[ABSOLUTE_MAXIMUM];
    if (index < base || index > maximum || maximum - index < RECORD_BYTES) return false;
    return buffer_.size() >= RECORD_BYTES && index - base <= buffer_.size() - RECORD_BYTES;
}

// By where it comes from: what leaves a level that is stored says where to, and shows addresses of the other one, which
// Linux's driver therefore takes out of samples (arch/x86/events/intel/ds.c).
void BranchTraceStore::far(const FarTransfer& transfer) {
    if (contains(wanted.levels, transfer.from_level))
        branch({.from = transfer.from, .to = transfer.to, .cycle = transfer.cycle, .taken = true});
}

void BranchTraceStore::branch(const RetiredBranch& branch) {
    if (!branch.taken) return;
    const uint64_t base = area_[BASE];
    uint64_t index = area_[INDEX];
    if (!has_room(index)) {
        if (interrupts_ || !has_room(base)) return;  // full, until software takes the records away
        index = base;
    }
    const std::array<uint64_t, 3> record{branch.from, branch.to, branch.mispredicted ? 0 : PREDICTED};
    std::memcpy(buffer_.data() + (index - base), record.data(), RECORD_BYTES);
    area_[INDEX] = index += RECORD_BYTES;
    if (interrupts_ && !interrupt_ && index >= area_[INTERRUPT_THRESHOLD]) {
        interrupt_ = true;
        request_interrupt_();
    }
}

}  // namespace perfemu
