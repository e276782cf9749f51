// A scheduler's entries: taken at dispatch, free again when the micro-op issues, in whatever order.
#pragma once

#include <cstdint>
#include <cstring>

namespace perfemu {

class Scheduler {
  public:
    explicit Scheduler(unsigned entries) : entries_(entries) { clear(0); }

    void clear(uint64_t cycle) {
        std::memset(freed_, 0, sizeof freed_);
        held_ = 0;
        now_ = cycle;
    }

    // How many entries are held in this cycle, which is not before any that was named before.
    unsigned held(uint64_t cycle) {
        advance(cycle);
        return held_;
    }

    // The first cycle, from `cycle` on, in which an entry is free.
    [[gnu::always_inline]] uint64_t free_at(uint64_t cycle) {
        advance(cycle);
        while (held_ >= entries_) step();
        return now_;
    }

    // Between free_at and the next one's: an entry is held from then until `issue`.
    [[gnu::always_inline]] void hold(uint64_t issue) {
        if (issue <= now_) return;
        uint64_t ahead = issue - now_ < WINDOW ? issue - now_ : WINDOW - 1;
        freed_[(now_ + ahead) % WINDOW]++;
        held_++;
    }

    unsigned entries() const { return entries_; }

  private:
    static constexpr uint64_t WINDOW = 2048;

    void step() {
        ++now_;
        held_ -= freed_[now_ % WINDOW];
        freed_[now_ % WINDOW] = 0;
    }
    [[gnu::always_inline]] void advance(uint64_t cycle) {
        while (now_ < cycle) {
            if (held_ == 0) {
                now_ = cycle;
                return;
            }
            step();
        }
    }

    unsigned entries_;
    unsigned held_ = 0;
    uint64_t now_ = 0;
    uint16_t freed_[WINDOW];  // entries, by the cycle in which they become free
};

}  // namespace perfemu
