// Where a guest with its own kernel has found pages for loads and stores, as its tables were then.
//
// A processor may keep a translation until TLBI, or INVLPG or a write to CR3, takes it away. The engine does so as long
// as it happens to: until something else needs the place, or it has to forget for reasons of ours. So it is kept here,
// and a guest that changes its tables without a word finds the same whoever watches.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "memory/guest_page_tables.hpp"

namespace perfemu {

// Apart by who accesses: a number below INDEXES. Sets of those are bits.
class RememberedPages {
  public:
    static constexpr unsigned INDEXES = 16;
    static constexpr uint16_t EVERY = 0xffff;

    // Null: none has been found there.
    const PageWalk* find(unsigned index, uint64_t page) const {
        const auto found = pages_[index].find(page);
        return found == pages_[index].end() ? nullptr : &found->second;
    }
    void note(unsigned index, uint64_t page, const PageWalk& walk) { pages_[index].insert_or_assign(page, walk); }
    // Whoever keeps pages by these must forget, before there is another.
    bool is_full(unsigned index) const { return pages_[index].size() == MOST_PAGES; }
    void forget(uint16_t indexes = EVERY) {
        for (; indexes; indexes &= static_cast<uint16_t>(indexes - 1)) pages_[std::countr_zero(indexes)].clear();
    }
    void forget_page(uint64_t page, uint16_t indexes) {
        for (; indexes; indexes &= static_cast<uint16_t>(indexes - 1)) pages_[std::countr_zero(indexes)].erase(page);
    }

  private:
    static constexpr size_t MOST_PAGES = 1 << 16;

    std::array<std::unordered_map<uint64_t, PageWalk>, INDEXES> pages_;
};

}  // namespace perfemu
