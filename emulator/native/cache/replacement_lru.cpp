// Least recently used.
#include "cache/replacement.hpp"

namespace perfemu {

class LeastRecentlyUsed final : public Replacement {
  public:
    using Replacement::Replacement;

    bool only_last_use() const override { return true; }
    void used(uint32_t) override {}
    void filled(uint32_t) override {}

    uint32_t victim(uint32_t, const Times* times) override {
        uint32_t oldest = 0;
        uint64_t time = times[0].last_use;
        for (uint32_t way = 1; way < ways_; ++way) {
            oldest = times[way].last_use < time ? way : oldest;
            time = times[way].last_use < time ? times[way].last_use : time;
        }
        return oldest;
    }
};

static const Replacement::Row row("lru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<LeastRecentlyUsed>(sets, ways);
});

}  // namespace perfemu
