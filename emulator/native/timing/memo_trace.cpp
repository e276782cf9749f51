#include "timing/memo_trace.hpp"

#include <algorithm>

namespace perfemu::out_of_order {

void TraceMemo::clear() {
    Memo::clear();
    steps_.assign(1, {});  // number NONE
}

void TraceMemo::begin(State from, uint32_t block) {
    first_ = static_cast<uint32_t>(steps_.size());
    fork_ = NONE;
    key_ = key_of(from, block);
}

void TraceMemo::fork(uint32_t step, uint64_t answer) {
    first_ = static_cast<uint32_t>(steps_.size());
    fork_ = step;
    add(Question(steps_[step].question), answer);
}

uint32_t TraceMemo::finish(const Transition& transition, size_t known) {
    const uint32_t number = Memo::add(transition);
    add(Question{}, number);
    longest_ = std::max(longest_, known + steps_.size() - first_);
    if (fork_ != NONE)
        steps_[fork_].other = first_;
    else
        enter(key_, first_);
    return number;
}

}  // namespace perfemu::out_of_order
