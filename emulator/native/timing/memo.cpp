#include "timing/memo.hpp"

#include <bit>
#include <utility>

namespace perfemu {

Memo::Step& Memo::add(State from, uint32_t what, State to) {
    if (2 * steps_.size() > places_.size()) grow();
    const uint64_t key = uint64_t{from} << 32 | what;
    size_t place = place_of(key);
    while (places_[place] != NOWHERE) place = (place + 1) & (places_.size() - 1);
    places_[place] = static_cast<uint32_t>(steps_.size());
    details_.push_back({});
    return steps_.emplace_back(Step{.key = key, .to = to});
}

// Changes `found` only if it is there.
Memo::Step* Memo::search(uint64_t key, uint32_t& found) {
    const size_t mask = places_.size() - 1;
    for (size_t place = place_of(key); places_[place] != NOWHERE; place = (place + 1) & mask) {
        Step& step = steps_[places_[place]];
        if (step.key != key) continue;
        found = places_[place];
        return &step;
    }
    return nullptr;
}

void Memo::grow() {
    places_.assign(2 * places_.size(), NOWHERE);
    --shift_;
    for (uint32_t number = NOWHERE + 1; number < steps_.size(); ++number) {
        size_t place = place_of(steps_[number].key);
        while (places_[place] != NOWHERE) place = (place + 1) & (places_.size() - 1);
        places_[place] = number;
    }
}

void Memo::set_changes(const Step& step, int32_t retired, std::span<const uint64_t> amounts) {
    Detail& detail = details_[number(step)];
    detail.retired = retired;
    detail.changes = static_cast<uint32_t>(changes_.size());
    for (uint32_t counter = 0; counter < amounts.size(); ++counter)
        if (amounts[counter]) changes_.push_back({amounts[counter], counter});
    detail.behind = static_cast<uint32_t>(changes_.size());
}

void Memo::settle(std::span<uint64_t> totals) {
    for (uint32_t number : taken_) {
        const Detail& detail = details_[number];
        const uint64_t runs = std::exchange(steps_[number].runs, 0);
        for (uint32_t index = detail.changes; index != detail.behind; ++index)
            totals[changes_[index].counter] += changes_[index].amount * runs;
    }
    taken_.clear();
}

void Memo::clear() {
    steps_.assign(1, {});
    details_.assign(1, {});
    places_.assign(FEWEST_PLACES, NOWHERE);
    shift_ = 64 - std::countr_zero(FEWEST_PLACES);
    taken_.clear();
    changes_.clear();
    states_.clear();
}

}  // namespace perfemu
