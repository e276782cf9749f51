// Tree pseudo-LRU: a bit at each node of a binary tree over the ways points to the half that was used longer ago.
#include <bit>

#include "cache/replacement.hpp"

namespace perfemu {

class TreePseudoLru final : public Replacement {
  public:
    TreePseudoLru(uint32_t sets, uint32_t ways)
        : Replacement(sets, ways), leaves_(std::bit_ceil(ways)), points_right_(sets * leaves_) {}

    HitsNeeded hits_needed() const override { return HitsNeeded::CHANGES; }
    void reset(uint32_t slot, const CacheAccess& access) override { touch(slot, access); }

    // Where the number of ways is not a power of two, the rightmost leaves do not exist: a half without ways is never
    // entered.
    uint32_t victim(uint32_t set, const uint64_t*, const CacheAccess&) override {
        const uint8_t* tree = &points_right_[set * leaves_];
        uint32_t node = 1, first = 0;
        for (uint32_t half = leaves_ / 2; half; half /= 2) {
            bool right = tree[node] && first + half < ways_;
            node = 2 * node + right;
            first += right ? half : 0;
        }
        return first;
    }

    void touch(uint32_t slot, const CacheAccess&) override {
        uint32_t set = slot / ways_, way = slot % ways_;
        uint8_t* tree = &points_right_[set * leaves_];
        uint32_t node = 1;
        for (uint32_t half = leaves_ / 2; half; half /= 2) {
            bool right = way & half;
            tree[node] = !right;
            node = 2 * node + right;
        }
    }

    void archive(Archive& state) override { state(points_right_); }

  private:
    uint32_t leaves_;
    std::vector<uint8_t> points_right_;  // nodes 1 .. leaves - 1 of each set, children of n: 2n, 2n + 1
};

static const Replacement::Row row("plru", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<TreePseudoLru>(sets, ways);
});

}  // namespace perfemu
