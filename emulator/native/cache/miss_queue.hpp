// How much can be under way at once: miss registers, and the channel to memory. Requests come in program order, which
// need not be the order of their cycles: an older one may ask for a later cycle than a younger.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "archive.hpp"

namespace perfemu {

// The registers that hold misses (MSHRs, line fill buffers).
class MissQueue {
  public:
    explicit MissQueue(unsigned registers) : free_at_(registers, 0) {}  // 0: as many as it takes

    bool limited() const { return !free_at_.empty(); }

    // The register that can start a miss at `cycle` or as soon as possible behind it. Of those that are free, the one
    // that was in use most recently: the others stay free for younger misses at earlier cycles.
    unsigned choose(uint64_t cycle) const {
        if (free_at_[0] > cycle) return 0;
        size_t index = free_at_.size() - 1;
        while (free_at_[index] > cycle) --index;
        return static_cast<unsigned>(index);
    }
    uint64_t start(unsigned index, uint64_t cycle) const { return std::max(cycle, free_at_[index]); }
    void hold(unsigned index, uint64_t until) {
        size_t place = index;
        for (; place + 1 < free_at_.size() && free_at_[place + 1] <= until; ++place)
            free_at_[place] = free_at_[place + 1];
        free_at_[place] = until;
    }

    // A miss at `cycle` has a register as soon as one is free, until what fetch(start) returns has arrived.
    template <typename Fetch>
    auto hold_while(uint64_t cycle, Fetch fetch) {
        if (!limited()) return fetch(cycle);
        const unsigned index = choose(cycle);
        auto arrival = fetch(start(index, cycle));
        hold(index, arrival.cycle);
        return arrival;
    }

    void archive(Archive& state) { state(free_at_); }

  private:
    std::vector<uint64_t> free_at_;  // ascending; `until` is never earlier than what it takes the place of
};

// A way that takes a line every so many cycles: to memory, into a bank, out of L1D. Time is cut into windows, each of
// which knows from when on it has room, so that a request for a late cycle does not hold up a younger one for an early
// cycle. Requests in the order of their cycles are served exactly as by a queue.
class Channel {
  public:
    explicit Channel(double cycles_per_line)  // 0: at once
        : step_(static_cast<uint64_t>(cycles_per_line * FRACTION + 0.5)), window_(64 * FRACTION), windows_(WINDOWS) {
        while (window_ < 8 * step_) window_ *= 2;
    }

    bool takes_time() const { return step_; }
    // The cycle at which the channel takes up the request.
    uint64_t take(uint64_t cycle) {
        if (!step_) return cycle;
        for (uint64_t at = cycle * FRACTION;; at = (at / window_ + 1) * window_) {
            uint64_t number = at / window_, end = (number + 1) * window_;
            Window& window = enter(number);
            uint64_t from = std::max(at, window.room_from);
            if (from >= end) continue;
            window.room_from = from + step_;
            if (window.room_from > end) {  // the last one reaches into the next window
                Window& next = enter(number + 1);
                next.room_from = std::max(next.room_from, window.room_from);
            }
            return std::max(cycle, (from + FRACTION - 1) / FRACTION);
        }
    }

    void archive(Archive& state) { state(windows_); }

  private:
    static constexpr uint64_t FRACTION = 256;  // of a cycle
    static constexpr unsigned WINDOWS = 256;   // remembered; what lies further back counts as empty

    struct Window {
        uint64_t number = 0;
        uint64_t room_from = 0;
    };

    Window& enter(uint64_t number) {
        Window& window = windows_[number % WINDOWS];
        if (window.number != number) window = {number, 0};
        return window;
    }

    uint64_t step_;
    uint64_t window_;
    std::vector<Window> windows_;
};

}  // namespace perfemu
