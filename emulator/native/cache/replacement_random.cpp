// Any way, from a generator of fixed seed: two runs replace the same.
#include "cache/replacement.hpp"

namespace perfemu {

class Random final : public Replacement {
  public:
    using Replacement::Replacement;

    HitsNeeded hits_needed() const override { return HitsNeeded::CHANGES; }
    void touch(uint32_t, const CacheAccess&) override {}
    void reset(uint32_t, const CacheAccess&) override {}

    // xorshift64 (Marsaglia, "Xorshift RNGs", 2003: shifts 13, 7, 17); its upper half scaled to the ways.
    uint32_t victim(uint32_t, const uint64_t*, const CacheAccess&) override {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<uint32_t>(((state_ >> 32) * ways_) >> 32);
    }

    void archive(Archive& state) override { state(state_); }

  private:
    uint64_t state_ = 0x9E37'79B9'7F4A'7C15;
};

static const Replacement::Row row("random", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<Random>(sets, ways);
});

}  // namespace perfemu
