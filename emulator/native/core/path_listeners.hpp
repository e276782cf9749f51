// Who hears of the path that execution takes, and what they have heard of it.
//
// Where the kernel is modelled, the path is outside of user mode while the core does not run; where a guest's own
// kernel executes, it goes on there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/retirement.hpp"

namespace perfemu {

struct RunBlock;  // timing/pipeline.hpp

class PathListeners {
  public:
    bool empty() const { return listeners_.empty(); }
    void add(RetirementListener& listener);
    void remove(const RetirementListener& listener);
    // How many branches there may be before one of them wants to be asked again.
    uint64_t room() const;

    // Each of them is told, of branches each that wants it.
    void tell(const RetiredBranch& branch) const {
        for (RetirementListener* listener : listeners_)
            if (wants(*listener, branch)) listener->branch(branch);
    }
    void tell(const FarTransfer& transfer) const {
        for (RetirementListener* listener : listeners_) listener->far(transfer);
    }
    void tell(const TraceWrite& written) const {
        for (RetirementListener* listener : listeners_) listener->trace_written(written);
    }
    void tell(Level level) const {
        for (RetirementListener* listener : listeners_) listener->changed_level(level);
    }
    void tell_tables(uint64_t cr3, uint64_t next, uint64_t cycle) const {
        for (RetirementListener* listener : listeners_) listener->changed_tables(cr3, next, cycle);
    }

    // From now on a guest's own kernel executes.
    void stay() { stays_ = true; }
    // A run begins at this address. If the last one has not ended there, something has come between the two.
    void enter(uint64_t at, uint64_t cycle);
    // It has ended before that one. False: nothing has executed.
    bool end_run(uint64_t at, uint64_t cycle);
    // ... and goes on behind an instruction that the machine has answered.
    void go_on(uint64_t at) { at_ = at; }
    void leave(Leaving why) { leave(why, at_); }
    void leave(Leaving why, uint64_t at);
    // Unless it has left.
    void interrupt() {
        if (in_user_mode_) leave(Leaving::INTERRUPT);
    }

    // So many logged blocks retire, behind which `run` has one more: the number of the first of whose branch somebody
    // is told. Who wants the newest alone hears how many it is not told of.
    size_t begin_log(const RunBlock* run, size_t blocks);
    // Whether somebody is told of the branch of logged block `number`, and then they are.
    bool wanted(size_t number, const RetiredBranch& branch) {
        return listeners_.size() == 1 ? wants(*listeners_[0], branch) : note_hearers(number, branch);
    }
    void tell_hearers(const RetiredBranch& branch) const {
        for (RetirementListener* listener : hearers_) listener->branch(branch);
    }

  private:
    static bool wants(const RetirementListener& listener, const RetiredBranch& branch) {
        return listener.wanted.include(branch.kind, branch.taken, branch.level);
    }
    static size_t first_told(RetirementListener& listener, const RunBlock* run, size_t blocks);
    bool note_hearers(size_t number, const RetiredBranch& branch);

    std::vector<RetirementListener*> listeners_;
    std::vector<RetirementListener*> newcomers_;  // that have not been told where the path is
    bool stays_ = false;
    bool in_user_mode_ = false, runs_ = false;
    uint64_t at_ = 0, cycle_ = 0;               // at the end of the last run
    std::vector<size_t> told_from_;             // of each: the first logged block whose branch it is told of
    std::vector<RetirementListener*> hearers_;  // of the branch at hand
};

}  // namespace perfemu
