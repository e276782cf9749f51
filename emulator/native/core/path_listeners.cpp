#include "core/path_listeners.hpp"

#include <algorithm>

#include "core/ending_branch.hpp"

namespace perfemu {

void PathListeners::add(RetirementListener& listener) {
    if (listeners_.empty()) {
        in_user_mode_ = runs_ = false;
        at_ = cycle_ = 0;
    }
    listeners_.push_back(&listener);
    newcomers_.push_back(&listener);
}

void PathListeners::remove(const RetirementListener& listener) {
    std::erase(listeners_, &listener);
    std::erase(newcomers_, &listener);
}

uint64_t PathListeners::room() const {
    uint64_t room = ~uint64_t{0};
    for (const RetirementListener* listener : listeners_) room = std::min(room, listener->room());
    return room;
}

void PathListeners::enter(uint64_t at, uint64_t cycle) {
    if (at_ != at) interrupt();
    const std::vector<RetirementListener*> newcomers = std::exchange(newcomers_, {});
    for (RetirementListener* listener : in_user_mode_ ? newcomers : listeners_) listener->entered(at, cycle);
    in_user_mode_ = runs_ = true;
}

bool PathListeners::end_run(uint64_t at, uint64_t cycle) {
    if (!std::exchange(runs_, false)) return false;
    at_ = at;
    cycle_ = cycle;
    return true;
}

void PathListeners::leave(Leaving why, uint64_t at) {
    if (stays_) return;
    in_user_mode_ = false;
    for (RetirementListener* listener : listeners_) listener->left({at, cycle_, why});
}

size_t PathListeners::begin_log(const RunBlock* run, size_t blocks) {
    told_from_.clear();
    size_t first = blocks;
    for (RetirementListener* listener : listeners_) {
        told_from_.push_back(first_told(*listener, run, blocks));
        first = std::min(first, told_from_.back());
    }
    if (listeners_.size() == 1) hearers_ = listeners_;
    return first;
}

// The first of the logged blocks whose branches a listener is told of. It hears how many it is not.
size_t PathListeners::first_told(RetirementListener& listener, const RunBlock* run, size_t blocks) {
    const uint64_t newest = listener.wanted.newest;
    if (newest == WantedBranches::ALL) return 0;
    uint64_t found = 0;
    size_t first = blocks;
    for (size_t i = blocks; i-- > 0;) {
        if (!wants(listener, logged_branch(run + i))) continue;
        if (++found <= newest) first = i;
    }
    if (found > newest) listener.skipped(found - newest);
    return first;
}

// Who is told of the branch of logged block `number`. False: nobody.
bool PathListeners::note_hearers(size_t number, const RetiredBranch& branch) {
    hearers_.clear();
    for (size_t i = 0; i < listeners_.size(); i++)
        if (told_from_[i] <= number && wants(*listeners_[i], branch)) hearers_.push_back(listeners_[i]);
    return !hearers_.empty();
}

}  // namespace perfemu
