// Least recently used.
#include "cache/replacement.hpp"

namespace perfemu {

class LeastRecentlyUsed final : public Replacement {
  public:
    LeastRecentlyUsed(uint32_t sets, uint32_t ways) : Replacement(sets, ways) { last_use_.resize(sets * ways); }

    void filled(uint32_t slot) override { last_use_[slot] = ++clock_; }

    uint32_t victim(uint32_t set) override {
        const uint64_t* times = &last_use_[set * ways_];
        uint32_t oldest = 0;
        for (uint32_t way = 1; way < ways_; ++way)
            if (times[way] < times[oldest]) oldest = way;
        return set * ways_ + oldest;
    }

  private:
    void used(uint32_t) override {}  // Replacement::use has done it
};

static const Replacement::Row row("lru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<LeastRecentlyUsed>(sets, ways);
});

}  // namespace perfemu
