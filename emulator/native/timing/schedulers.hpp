// The schedulers' entries: taken at dispatch, free again when the micro-op issues, in whatever order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/state_bytes.hpp"

namespace perfemu {

// All of them at once: each is a lane of 16 bits, so that a cycle's frees are one addition. After the last is one more
// lane, the scheduler of those that take no entry: it is never full.
class Schedulers {
  public:
    explicit Schedulers(const std::vector<unsigned>& entries)
        : endless_(static_cast<unsigned>(entries.size())), groups_(endless_ / LANES + 1), freed_(groups_ * WINDOW) {
        for (unsigned lane = 0; lane < endless_; ++lane) lane_of(all_, lane) = static_cast<int16_t>(entries[lane]);
        lane_of(all_, endless_) = ENDLESS;
        std::copy_n(all_, groups_, room_);
    }

    unsigned endless() const { return endless_; }

    // How many entries are held in the cycle to which they have advanced; and room for more.
    unsigned held(unsigned scheduler) {
        return static_cast<unsigned>(lane_of(all_, scheduler) - lane_of(room_, scheduler));
    }
    [[gnu::always_inline]] bool full(unsigned scheduler) {
        return lane_of(room_, scheduler) <= 0 && scheduler != endless_;
    }

    [[gnu::always_inline]] void advance(uint64_t cycle) {
        if (now_ == cycle) return;
        if (cycle - now_ > NEAR) [[unlikely]]
            return advance_far(cycle);
        do step();
        while (now_ < cycle);
    }

    // Advances to the first cycle in which the scheduler, which is full, has an entry free.
    uint64_t wait(unsigned scheduler) {
        while (lane_of(room_, scheduler) <= 0) go_to(next_freed());
        return now_;
    }

    // An entry is held from this cycle until `issue`, which is less than WINDOW cycles ahead.
    [[gnu::always_inline]] void hold(unsigned scheduler, uint64_t issue) {
        lane_of(&freed_[issue % WINDOW * groups_], scheduler)++;
        lane_of(room_, scheduler)--;
        frees_[issue % WINDOW / WORD] |= uint64_t{1} << issue % WORD;
    }
    // `issue` may be any cycle. So far ahead that the window has no place for it, it is taken for the window's last.
    void hold_any(unsigned scheduler, uint64_t issue) {
        if (issue > now_) hold(scheduler, now_ + std::min(issue - now_, WINDOW - 1));
    }

    // What is held in cycle `base`, of which everything is free again by `last`; and that again, as if they had
    // advanced to `base`.
    void save(uint64_t base, uint64_t last, StateWriter& state) {
        uint64_t before = base;
        for (uint64_t cycle = base + 1; cycle <= last; ++cycle) {
            if (!(frees_[cycle % WINDOW / WORD] >> cycle % WORD & 1)) continue;
            for (unsigned lane = 0; lane < endless_; ++lane)
                if (int16_t entries = lane_of(&freed_[cycle % WINDOW * groups_], lane)) {
                    state.put(cycle - before + 1);
                    state.put(static_cast<unsigned>(entries) * MOST + lane);
                    before = cycle;
                }
        }
        state.put(0);
    }
    void restore(uint64_t base, StateReader& state) {
        for (uint64_t first = 0; first < WINDOW; first += WORD)
            for (uint64_t& bits = frees_[first / WORD]; bits; bits &= bits - 1)
                std::fill_n(&freed_[(first + static_cast<uint64_t>(std::countr_zero(bits))) * groups_], groups_,
                            Group{});
        std::copy_n(all_, groups_, room_);
        now_ = base;
        for (uint64_t cycle = base; uint64_t later = state.get();) {
            cycle += later - 1;
            for (uint64_t held = state.get(); held >= MOST; held -= MOST)
                hold(static_cast<unsigned>(held % MOST), cycle);
        }
    }

  private:
    static constexpr uint64_t WINDOW = 2048;
    static constexpr uint64_t NEAR = 8;
    static constexpr uint64_t WORD = 64;
    static constexpr uint64_t NEVER = ~uint64_t{0};
    static constexpr unsigned LANES = 8;
    static constexpr unsigned MOST = 32;  // schedulers: each has a port of its own
    static constexpr int16_t ENDLESS = INT16_MAX;
    typedef int16_t Group __attribute__((vector_size(2 * LANES)));

    static int16_t& lane_of(Group* groups, unsigned lane) { return reinterpret_cast<int16_t*>(groups)[lane]; }

    [[gnu::always_inline]] void step() {
        ++now_;
        Group* freed = &freed_[now_ % WINDOW * groups_];
        for (unsigned group = 0; group < groups_; ++group) {
            room_[group] += freed[group];
            freed[group] = Group{};
        }
    }
    // `step` does not clear the bits of its cycles: there nothing is freed any more.
    void go_to(uint64_t freed) {
        now_ = freed - 1;
        step();
        frees_[now_ % WINDOW / WORD] &= ~(uint64_t{1} << now_ % WORD);
    }
    // The next cycle in which entries may become free.
    uint64_t next_freed() const {
        uint64_t end = now_ + WINDOW;
        for (uint64_t cycle = now_ + 1; cycle < end; cycle = (cycle / WORD + 1) * WORD)
            if (uint64_t bits = frees_[cycle % WINDOW / WORD] >> cycle % WORD)
                return cycle + static_cast<uint64_t>(std::countr_zero(bits));
        return NEVER;
    }
    [[gnu::noinline]] void advance_far(uint64_t cycle) {
        for (uint64_t next = next_freed(); next <= cycle; next = next_freed()) go_to(next);
        now_ = cycle;
    }

    uint64_t now_ = 0;
    unsigned endless_, groups_;
    Group room_[MOST / LANES + 1] = {}, all_[MOST / LANES + 1] = {};
    std::vector<Group> freed_;            // entries, by the cycle in which they become free
    uint64_t frees_[WINDOW / WORD] = {};  // a bit a cycle: whether entries may become free in it
};

}  // namespace perfemu
