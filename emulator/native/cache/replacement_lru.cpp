// Least recently used.
#include "cache/replacement.hpp"

namespace perfemu {

class LeastRecentlyUsed final : public Replacement {
  public:
    using Replacement::Replacement;

    bool only_last_use() const override { return true; }
    void used(uint32_t) override {}
    void filled(uint32_t) override {}

    uint32_t victim(uint32_t, const uint64_t* last_use) override { return oldest(last_use, ways_); }
};

static const Replacement::Row row("lru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<LeastRecentlyUsed>(sets, ways);
});

}  // namespace perfemu
