#include "timing/out_of_order_trails.hpp"

#include <algorithm>

namespace perfemu::out_of_order {

Trails::Trails() { clear(); }

void Trails::clear() {
    states_.clear();
    beginnings_.assign(FEWEST_PLACES, {});
    begun_ = 0;
    steps_.assign(1, {});  // number 0 is none
    endings_.clear();
    changes_.clear();
    taken_.clear();
}

static uint64_t key_of(Trails::State from, uint32_t block) { return uint64_t{from} << 32 | block; }

uint32_t Trails::find(State from, uint32_t block) const {
    const uint64_t key = key_of(from, block);
    const size_t mask = beginnings_.size() - 1;
    size_t place = spread(key) & mask;
    while (beginnings_[place].step && beginnings_[place].key != key) place = (place + 1) & mask;
    return beginnings_[place].step;
}

void Trails::enter(uint64_t key, uint32_t step) {
    const size_t mask = beginnings_.size() - 1;
    size_t place = spread(key) & mask;
    while (beginnings_[place].step) place = (place + 1) & mask;
    beginnings_[place] = {key, step};
}

void Trails::begin(State from, uint32_t block) {
    first_ = static_cast<uint32_t>(steps_.size());
    behind_ = 0;
    key_ = key_of(from, block);
}

void Trails::begin_behind(uint32_t behind) {
    first_ = static_cast<uint32_t>(steps_.size());
    behind_ = behind;
}

uint64_t Trails::finish(const Ending& ending, std::span<const uint64_t> counted, size_t known) {
    const uint64_t number = endings_.size();
    endings_.push_back(ending);
    endings_[number].changes = static_cast<uint32_t>(changes_.size());
    for (size_t index = 0; index < counted.size(); ++index)
        if (counted[index]) changes_.push_back({static_cast<uint32_t>(index), counted[index]});
    endings_[number].behind = static_cast<uint32_t>(changes_.size());
    add(Question{}, number);
    longest_ = std::max(longest_, known + steps_.size() - first_);
    if (behind_) {
        steps_[behind_].other = first_;
        return number;
    }
    if (2 * ++begun_ > beginnings_.size()) {
        std::vector<Beginning> before(beginnings_.size() * 2);
        before.swap(beginnings_);
        for (const Beginning& beginning : before)
            if (beginning.step) enter(beginning.key, beginning.step);
    }
    enter(key_, first_);
    return number;
}

}  // namespace perfemu::out_of_order
