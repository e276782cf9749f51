// Re-reference interval prediction: static, bimodal, and the better of both by set dueling.
// Jaleel and others, ISCA 2010, as re_reference_intervals.hpp; a hit promotes to the nearest interval.
#include "cache/re_reference_intervals.hpp"
#include "cache/replacement.hpp"

namespace perfemu {

enum class Insertion : uint8_t { STATIC, BIMODAL, DYNAMIC };

class Rrip final : public Replacement {
  public:
    Rrip(uint32_t sets, uint32_t ways, Insertion insertion)
        : Replacement(sets, ways), insertion_(insertion), interval_(sets, ways) {}

    HitsNeeded hits_needed() const override { return HitsNeeded::AFTER_FILL; }

    void touch(uint32_t slot, const CacheAccess&) override { interval_[slot] = interval_.NEAR; }

    void reset(uint32_t slot, const CacheAccess&) override {
        uint32_t set = slot / ways_;
        interval_[slot] = bimodal(set) && ++fills_ % BIMODAL_PERIOD ? interval_.DISTANT : interval_.LONG;
        if (insertion_ != Insertion::DYNAMIC) return;
        // A fill is a miss: it speaks against the policy whose set this is.
        if (set % DUEL_SETS == STATIC_LEADER && selector_ < SELECTOR_MAX) ++selector_;
        if (set % DUEL_SETS == BIMODAL_LEADER && selector_ > 0) --selector_;
    }

    uint32_t victim(uint32_t set, const uint64_t*, const CacheAccess&) override { return interval_.victim(set); }

    void archive(Archive& state) override {
        state(interval_, fills_, selector_);
        state.expect(selector_ >= 0 && selector_ <= SELECTOR_MAX);
    }

  private:
    static constexpr uint32_t BIMODAL_PERIOD = 32;  // of so many fills one is LONG
    static constexpr uint32_t DUEL_SETS = 32, STATIC_LEADER = 0, BIMODAL_LEADER = 17;
    static constexpr int SELECTOR_MAX = 1023;

    bool bimodal(uint32_t set) const {
        if (insertion_ != Insertion::DYNAMIC) return insertion_ == Insertion::BIMODAL;
        if (set % DUEL_SETS == STATIC_LEADER) return false;
        if (set % DUEL_SETS == BIMODAL_LEADER) return true;
        return selector_ > SELECTOR_MAX / 2;
    }

    Insertion insertion_;
    ReReferenceIntervals interval_;
    uint32_t fills_ = 0;               // of bimodal sets
    int selector_ = SELECTOR_MAX / 2;  // high: static insertion misses more
};

template <Insertion insertion>
static std::unique_ptr<Replacement> make(uint32_t sets, uint32_t ways) {
    return std::make_unique<Rrip>(sets, ways, insertion);
}

static const Replacement::Row rrip("rrip", &make<Insertion::STATIC>);
static const Replacement::Row brrip("brrip", &make<Insertion::BIMODAL>);
static const Replacement::Row drrip("drrip", &make<Insertion::DYNAMIC>);

}  // namespace perfemu
