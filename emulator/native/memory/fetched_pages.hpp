// The pages that a guest with its own kernel has fetched code from, as its tables were then. As RememberedPages, which
// are those of its loads and stores; but whoever comes back to tables finds what they led to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/guest_page_tables.hpp"

namespace perfemu {

class FetchedPages {
  public:
    // Of the page with that number, where code is as GuestPageTables::id says. Null: it has not been fetched.
    const PageWalk* find(uint64_t id, uint64_t page) const {
        const auto found = pages_.find(page);
        if (found == pages_.end()) return nullptr;
        const auto walk = std::ranges::find(found->second, id, &Walk::first);
        return walk == found->second.end() ? nullptr : &walk->second;
    }
    void note(uint64_t id, uint64_t page, const PageWalk& walk) {
        if (size_ == MOST) forget();
        std::vector<Walk>& walks = pages_[page];
        const auto known = std::ranges::find(walks, id, &Walk::first);
        if (known != walks.end()) {
            known->second = walk;
            return;
        }
        walks.emplace_back(id, walk);
        size_++;
    }
    void forget() {
        pages_.clear();
        size_ = 0;
    }
    // Of all tables.
    void forget_page(uint64_t page) {
        const auto found = pages_.find(page);
        if (found == pages_.end()) return;
        size_ -= found->second.size();
        pages_.erase(found);
    }

  private:
    static constexpr size_t MOST = 1 << 16;

    using Walk = std::pair<uint64_t, PageWalk>;  // by id
    std::unordered_map<uint64_t, std::vector<Walk>> pages_;
    size_t size_ = 0;
};

}  // namespace perfemu
