#include "timing/memo.hpp"

namespace perfemu {

void MemoIndex::put(const Entry& entry) {
    const size_t mask = entries_.size() - 1;
    size_t slot = spread(entry.key) & mask;
    while (entries_[slot].number != NONE) slot = (slot + 1) & mask;
    entries_[slot] = entry;
}

void MemoIndex::enter(uint64_t key, uint32_t number) {
    if (2 * ++used_ > entries_.size()) {
        std::vector<Entry> before(entries_.size() * 2);
        before.swap(entries_);
        for (const Entry& entry : before)
            if (entry.number != NONE) put(entry);
    }
    put({key, number});
}

void MemoIndex::clear() {
    entries_.assign(FEWEST_ENTRIES, {});
    used_ = 0;
}

}  // namespace perfemu
