// What a cache is told to bring before it is asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/named.hpp"
#include "config.hpp"

namespace perfemu {

// An access after which the prefetcher's cache has something to do or to note: to a line that it did not hold, the
// first use of one that a prefetcher brought, and in the first level a store that changes more than the data. Other
// hits are no news.
struct Heard {
    uint64_t address;
    uint64_t line;
    uint64_t pc;  // of the instruction; a fetch's own address
};

class Prefetcher {
  public:
    using Maker = std::unique_ptr<Prefetcher> (*)(const Config& parameters, unsigned line_shift);
    using Row = Named<Maker>;

    virtual ~Prefetcher() = default;
    // Adds the lines to be brought to `lines`; some may be there already.
    virtual void hear(const Heard& heard, std::vector<uint64_t>& lines) = 0;
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
