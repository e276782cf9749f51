// Signature-based hit prediction by PC (SHiP-PC): RRIP whose insertion depends on whether lines that the same
// instruction brought before were used again.
// Wu, Jaleel, Hasenplaugh, Martonosi, Steely, Emer: "SHiP: Signature-based Hit Predictor for High Performance Caching",
// MICRO 2011; signatures of 14 bits, counters of three, intervals of two.
#include <array>

#include "cache/re_reference_intervals.hpp"
#include "cache/replacement.hpp"

namespace perfemu {

class SignatureHitPredictor final : public Replacement {
  public:
    SignatureHitPredictor(uint32_t sets, uint32_t ways)
        : Replacement(sets, ways), interval_(sets, ways), lines_(sets * ways) {
        hits_.fill(INITIAL);
    }

    // What a cache writes back says nothing of its next use, and has no PC.
    void touch(uint32_t slot, const CacheAccess& access) override {
        if (access.kind == Request::WRITE_BACK) return;
        interval_[slot] = interval_.NEAR;
        used_again(lines_[slot]);
    }

    void reset(uint32_t slot, const CacheAccess& access) override {
        const bool trains = access.kind != Request::WRITE_BACK;
        const uint16_t signature = signature_of(access.pc);
        lines_[slot] = {.signature = signature, .trains = trains};
        interval_[slot] = trains && hits_[signature] == 0 ? interval_.DISTANT : interval_.LONG;
    }

    void invalidate(uint32_t slot, Removal why) override {
        Line& line = lines_[slot];
        if (why == Removal::MOVED) used_again(line);
        if (why != Removal::EVICTED || !line.trains || line.outcome) return;
        uint8_t& counter = hits_[line.signature];
        counter -= counter > 0;
    }

    uint32_t victim(uint32_t set, const uint64_t*, const CacheAccess&) override { return interval_.victim(set); }

    void archive(Archive& state) override {
        state(interval_, lines_, hits_);
        state.expect(std::ranges::all_of(lines_, [](const Line& line) { return line.signature < SIGNATURES; }));
    }

  private:
    static constexpr unsigned SIGNATURE_BITS = 14, SIGNATURES = 1 << SIGNATURE_BITS;
    // The paper does not say where counters begin. Here the first lines of an instruction are given a chance.
    static constexpr uint8_t INITIAL = 1, MOST = 7;

    struct Line {
        uint16_t signature = 0;
        bool trains = false;
        bool outcome = false;  // whether it has been used again

        void archive(Archive& state) { state(signature, trains, outcome); }
    };

    static uint16_t signature_of(uint64_t pc) {
        return static_cast<uint16_t>((pc ^ pc >> SIGNATURE_BITS ^ pc >> 2 * SIGNATURE_BITS) & (SIGNATURES - 1));
    }

    void used_again(Line& line) {
        if (!line.trains) return;
        line.outcome = true;
        uint8_t& counter = hits_[line.signature];
        counter += counter < MOST;
    }

    ReReferenceIntervals interval_;
    std::vector<Line> lines_;               // by slot
    std::array<uint8_t, SIGNATURES> hits_;  // SHCT, by signature
};

static const Replacement::Row row("ship", [](uint32_t sets, uint32_t ways) -> std::unique_ptr<Replacement> {
    return std::make_unique<SignatureHitPredictor>(sets, ways);
});

}  // namespace perfemu
