// Least recently used.
#include "cache/replacement.hpp"

namespace perfemu {

class LeastRecentlyUsed final : public Replacement {
  public:
    using Replacement::Replacement;

    HitsNeeded hits_needed() const override { return HitsNeeded::NONE; }
    void touch(uint32_t, const CacheAccess&) override {}
    void reset(uint32_t, const CacheAccess&) override {}
    void archive(Archive&) override {}

    uint32_t victim(uint32_t, const uint64_t* last_use, const CacheAccess&) override { return oldest(last_use, ways_); }
};

static const Replacement::Row row("lru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<LeastRecentlyUsed>(sets, ways);
});

}  // namespace perfemu
