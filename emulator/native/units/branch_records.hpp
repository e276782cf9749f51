// The last taken branches of a core, as LBR and BRBE keep them: a ring, or in call-stack mode a stack, of entries.
//
// What a vendor's registers say of an entry follows from what is kept here; nothing here knows those registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "archive.hpp"
#include "core/retirement.hpp"

namespace perfemu {

struct BranchRecord {
    uint64_t from = 0, to = 0;  // addresses; 0, 0: nothing has been recorded there
    uint64_t cycles = 0;        // since what was recorded before; 0: nothing was
    BranchKind kind = BranchKind::NONE;
    bool mispredicted = false;
    bool timed = false;  // `cycles` is known
    Level level = Level::USER;
    uint64_t info = 0;  // of what software has put in: whatever its unit says of that besides
    uint8_t cause = 0;  // FarTransfer's
    bool has_from = true, has_to = true;

    void archive(Archive& state) {
        state(from, to, cycles, mispredicted, timed, info, cause, has_from, has_to);
        state.up_to(kind, BranchKind::EXCEPTION_RETURN);
        state.up_to(level, Level::KERNEL);
    }
};

class BranchRecords final : public RetirementListener {
  public:
    // Throws std::invalid_argument.
    explicit BranchRecords(size_t entries);

    // What is recorded from now on: kinds of branches. As a stack, calls of those kinds are entered, and each return
    // takes the last one away.
    void record(BranchKinds kinds, bool as_stack);
    // ... of what executes at these levels; of far transfers, leads there.
    void record_at(LevelMask levels) { wanted.levels = levels; }
    // Whether from now on it is noted of each how many cycles have passed since the one before, and whether it was
    // mispredicted.
    void note(bool cycles, bool mispredictions);
    // The next branch has none before it.
    void forget_time() { timed_ = false; }
    // Of what is at another level, or of a modelled kernel, nothing is to be known: neither how long it took nor, where
    // a far transfer leads from there or to there, where it was. Such a transfer is recorded, too.
    void hide_others() { hides_others_ = true; }
    // The next entry is none: there it only begins to listen again, after whoever has it was saved.
    void pass_entry() { passes_entry_ = true; }

    void branch(const RetiredBranch& branch) override;
    void far(const FarTransfer& transfer) override;
    void skipped(uint64_t branches) override;
    void entered(uint64_t, uint64_t) override;
    void changed_level(Level level) override;

    size_t size() const { return entries_.size(); }
    BranchRecord& entry(size_t number) { return entries_.at(number); }
    // The number of the newest one.
    size_t top() const { return top_; }
    void set_top(size_t top);
    // How many have been recorded, ever, not counting what was taken away.
    uint64_t recorded() const { return recorded_; }
    void clear();

    // All but what is wanted, which its unit's registers say.
    void archive(Archive& state) {
        state(entries_, recorded_, last_cycle_, timed_);
        state.up_to(top_, entries_.size() - 1);
    }

  private:
    std::vector<BranchRecord> entries_;
    size_t top_ = 0;
    uint64_t recorded_ = 0;
    uint64_t last_cycle_ = 0;
    bool timed_ = false;  // that cycle is known
    bool as_stack_ = false;
    bool notes_cycles_ = true;
    bool notes_mispredictions_ = true;
    bool hides_others_ = false;
    bool passes_entry_ = false;
};

}  // namespace perfemu
