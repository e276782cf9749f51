#include "units/branch_records.hpp"

#include <stdexcept>
#include <utility>

namespace perfemu {

BranchRecords::BranchRecords(size_t entries) : entries_(entries), top_(entries - 1) {
    if (!entries) throw std::invalid_argument("branch records have at least one entry");
    wanted.not_taken = false;
    record(WantedBranches::EVERY_KIND, false);
}

void BranchRecords::record(BranchKinds kinds, bool as_stack) {
    constexpr BranchKinds RETURNS = 1 << static_cast<unsigned>(BranchKind::RETURN);
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
    if (!std::exchange(passes_entry_, false) && hides_others_) timed_ = false;
}

// The other level is the one that it was before. What leads away is told behind this, and is still timed.
void BranchRecords::changed_level(Level level) {
    if (hides_others_ && contains(wanted.levels, level) && wanted.levels != EVERY_LEVEL) timed_ = false;
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
                               .kind = transfer.kind,
                               .taken = true,
                               .level = transfer.to_level};
    const bool leaves = hides_others_ && contains(wanted.levels, transfer.from_level);
    if (!wanted.include(branch.kind, branch.taken, leaves ? transfer.from_level : branch.level)) return;
    this->branch(branch);
    BranchRecord& entry = entries_[top_];
    entry.cause = transfer.cause;
    if (!hides_others_) return;
    entry.has_from = contains(wanted.levels, transfer.from_level);
    entry.has_to = contains(wanted.levels, transfer.to_level);
    if (!entry.has_from) entry.from = 0;
    if (!entry.has_to) {
        entry.to = 0;
        entry.level = Level::USER;
    }
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
