#include "timing/memo_trace.hpp"

#include <algorithm>

namespace perfemu::out_of_order {

void TraceMemo::clear() {
    Memo::clear();
    exchanges_.assign(1, {});  // number NONE
}

void TraceMemo::begin(State from, uint32_t block) {
    first_ = static_cast<uint32_t>(exchanges_.size());
    fork_ = NONE;
    key_ = key_of(from, block);
}

void TraceMemo::fork(uint32_t exchange, uint64_t answer) {
    first_ = static_cast<uint32_t>(exchanges_.size());
    fork_ = exchange;
    add(Question(exchanges_[exchange].question), answer);
}

uint32_t TraceMemo::finish(const Transition& transition, size_t known) {
    const uint32_t number = Memo::add(transition);
    add(Question{}, number);
    longest_ = std::max(longest_, known + exchanges_.size() - first_);
    if (fork_ != NONE)
        exchanges_[fork_].other = first_;
    else
        enter(key_, first_);
    return number;
}

}  // namespace perfemu::out_of_order
