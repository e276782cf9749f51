// What a cache is told to bring before it is asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "archive.hpp"
#include "cache/cache_access.hpp"
#include "config.hpp"
#include "named.hpp"

namespace perfemu {

// What an access found in the prefetcher's cache.
struct CacheResult {
    bool hit;
    uint64_t line;
    uint64_t victim = ~uint64_t{0};  // the line that made room; all ones: none
};

class Prefetcher {
  public:
    using Maker = std::unique_ptr<Prefetcher> (*)(const Config& parameters, unsigned line_shift);
    using Row = Named<Maker>;

    virtual ~Prefetcher() = default;
    // An access after which the cache has something to do or to note: to a line that it did not hold, the first use of
    // one that a prefetcher brought, and in the first level a store that changes more than the data. Other hits are no
    // news. Adds the lines to be brought to `lines`; some may be there already.
    virtual void operate(const CacheAccess& access, const CacheResult& result, std::vector<uint64_t>& lines) = 0;
    // All that it has learned.
    virtual void archive(Archive& state) = 0;
};

// A parameter of a prefetcher, an integer of at least 1. Throws std::invalid_argument, as the next.
uint32_t prefetcher_parameter(const Config& parameters, const char* key, uint32_t otherwise);
void check_prefetcher_keys(const Config& parameters, std::initializer_list<std::string_view> known);

// The lines of a page are neighbours in physical memory, those of two pages need not be: a prefetcher stays in the page
// of the access unless its `crosses_pages` is true.
class PageBound {
  public:
    PageBound(const Config& parameters, unsigned line_shift)
        : shift_(12 - line_shift), crosses_(parameters.boolean("crosses_pages", false)) {}
    bool allows(uint64_t line, uint64_t target) const { return crosses_ || line >> shift_ == target >> shift_; }

  private:
    unsigned shift_;
    bool crosses_;
};

}  // namespace perfemu
