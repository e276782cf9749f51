#include "cache/page_names.hpp"

namespace perfemu {

uint64_t PageNames::enter(const std::shared_ptr<AddressTranslation>& space) {
    if (space->is_guests_own()) {
        several_ = by_number_ = true;
        return space->regime() % NUMBERS;
    }
    if (numbers_.empty()) first_ = std::dynamic_pointer_cast<AddressSpace>(space);
    uint64_t number = numbers_.try_emplace(space->id(), numbers_.size() % NUMBERS).first->second;
    if (several_ || numbers_.size() == 1) return number;
    several_ = true;
    // What the first space has in the caches has been called by virtual addresses.
    if (std::shared_ptr<AddressSpace> first = first_.lock())
        for (uint64_t address : first->present(0, uint64_t{1} << PAGE_BITS)) name(*first, 0, address >> PAGE_SHIFT);
    return number;
}

uint64_t PageNames::name(const AddressTranslation& space, uint64_t number, uint64_t page) {
    const uint64_t own = own_name(number, page);
    const Page mapped = space.lookup(page << PAGE_SHIFT);
    if (!mapped.present) return own;
    if (by_number_) return mapped.frame;
    const uint64_t allocation = space.memory().allocation(mapped.frame);
    auto known = names_.find(mapped.frame);
    if (known != names_.end() && known->second.allocation == allocation) return known->second.name;
    call(mapped.frame, {own, allocation});
    return own;
}

// A name is one frame's. Who has had it gets another when it is met again: it is mapped elsewhere now.
void PageNames::call(Frame frame, Named named) {
    auto [former, is_new] = called_.try_emplace(named.name, frame);
    if (!is_new && former->second != frame) {
        auto its = names_.find(former->second);
        if (its != names_.end() && its->second.name == named.name) {
            names_.erase(its);
            ++generation_;
        }
        former->second = frame;
    }
    names_.insert_or_assign(frame, named);
}

// Further spaces begin somewhere else, by a hash of their number, and keep the order of their pages.
uint64_t PageNames::own_name(uint64_t number, uint64_t page) {
    const uint64_t shift = (number * 0x9E37'79B9) >> 8 & 0xF'FFFF;
    return ((page + shift) & PAGES) | number << PAGE_BITS;
}

}  // namespace perfemu
