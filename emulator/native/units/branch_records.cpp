#include "units/branch_records.hpp"

#include <stdexcept>
#include <utility>

namespace perfemu {

BranchRecords::BranchRecords(size_t entries) : entries_(entries), top_(entries - 1) {
    if (!entries) throw std::invalid_argument("branch records have at least one entry");
    wanted.not_taken = false;
    record(WantedBranches::EVERY_KIND, false);
}

void BranchRecords::record(uint8_t kinds, bool as_stack) {
    constexpr uint8_t RETURNS = 1 << static_cast<unsigned>(BranchKind::RETURN);
    as_stack_ = as_stack;
    wanted.kinds = as_stack ? kinds | RETURNS : kinds;
    // One more than there is room for: from that the oldest one's time is.
    wanted.newest = as_stack ? WantedBranches::ALL : entries_.size() + 1;
}

void BranchRecords::note(bool cycles, bool mispredictions) {
    notes_cycles_ = cycles;
    notes_mispredictions_ = mispredictions;
    if (!cycles) timed_ = false;
}

void BranchRecords::entered(uint64_t, uint64_t) {
    if (!std::exchange(passes_entry_, false) && forgets_at_entries_) timed_ = false;
}

void BranchRecords::changed_level(Level level) {
    if (forgets_at_entries_ && !contains(wanted.levels, level)) timed_ = false;
}

void BranchRecords::branch(const RetiredBranch& branch) {
    const bool timed = timed_;
    const uint64_t cycles = timed ? branch.cycle - last_cycle_ : 0;
    last_cycle_ = branch.cycle;
    timed_ = notes_cycles_;
    if (as_stack_ && branch.kind == BranchKind::RETURN) {
        entries_[top_] = {};
        top_ = (top_ ? top_ : entries_.size()) - 1;
        return;
    }
    if (++top_ == entries_.size()) top_ = 0;
    const bool mispredicted = notes_mispredictions_ && branch.mispredicted;
    entries_[top_] = {branch.from, branch.to, cycles, branch.kind, mispredicted, timed, branch.level};
    ++recorded_;
}

void BranchRecords::far(const FarTransfer& transfer) {
    const RetiredBranch branch{.from = transfer.from,
                               .to = transfer.to,
                               .cycle = transfer.cycle,
                               .kind = BranchKind::FAR,
                               .taken = true,
                               .level = transfer.to_level};
    if (wanted.include(branch.kind, branch.taken, branch.level)) this->branch(branch);
}

void BranchRecords::skipped(uint64_t branches) {
    top_ = (top_ + branches) % entries_.size();
    recorded_ += branches;
}

void BranchRecords::set_top(size_t top) {
    if (top >= entries_.size()) throw std::invalid_argument("there is no such entry");
    top_ = top;
}

void BranchRecords::clear() {
    for (BranchRecord& entry : entries_) entry = {};
    top_ = entries_.size() - 1;
}

}  // namespace perfemu
