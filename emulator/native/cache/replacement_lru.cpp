// Least recently used.
#include <algorithm>
#include <bit>

#include "cache/replacement.hpp"

namespace perfemu {

class LeastRecentlyUsed final : public Replacement {
  public:
    using Replacement::Replacement;

    bool only_last_use() const override { return true; }
    void used(uint32_t) override {}
    void filled(uint32_t) override {}

    uint32_t victim(uint32_t, const uint64_t* last_use) override {
        // The way in the lowest bits: one comparison for both. Two chains, for the host's sake.
        uint64_t even = last_use[0] << shift_, odd = ~uint64_t{0};
        uint32_t way = 1;
        for (; way + 1 < ways_; way += 2) {
            odd = std::min(odd, last_use[way] << shift_ | way);
            even = std::min(even, last_use[way + 1] << shift_ | (way + 1));
        }
        if (way < ways_) odd = std::min(odd, last_use[way] << shift_ | way);
        return static_cast<uint32_t>(std::min(even, odd) & ((uint64_t{1} << shift_) - 1));
    }

  private:
    unsigned shift_ = static_cast<unsigned>(std::bit_width(ways_));
};

static const Replacement::Row row("lru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<LeastRecentlyUsed>(sets, ways);
});

}  // namespace perfemu
