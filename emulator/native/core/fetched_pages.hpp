// The pages that a guest with its own kernel has fetched code from, as its tables were then.
//
// A processor may keep a translation until TLBI, or INVLPG or a write to CR3, takes it away. The engine does so as long
// as it happens to: until something else needs the place, or a step looks the code up again. So it is kept here, and a
// guest that changes the tables of the code that it executes finds the same whoever watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "memory/guest_page_tables.hpp"

namespace perfemu {

class FetchedPages {
  public:
    // Of the page with that number, where code is as GuestPageTables::id says. Null: it has not been fetched.
    const PageWalk* find(uint64_t id, uint64_t page) const {
        const auto found = pages_.find({id, page});
        return found == pages_.end() ? nullptr : &found->second;
    }
    void note(uint64_t id, uint64_t page, const PageWalk& walk) {
        if (pages_.size() == MOST_PAGES) pages_.clear();
        pages_.insert_or_assign({id, page}, walk);
    }
    void forget() { pages_.clear(); }

  private:
    static constexpr size_t MOST_PAGES = 1 << 16;

    struct Key {
        uint64_t id, page;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        size_t operator()(const Key& key) const {
            constexpr uint64_t SPREAD = 0x9e37'79b9'7f4a'7c15;  // 2^64 / golden ratio
            return std::hash<uint64_t>()((key.page + key.id * SPREAD) * SPREAD);
        }
    };
    std::unordered_map<Key, PageWalk, Hash> pages_;
};

}  // namespace perfemu
