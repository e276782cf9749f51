// Which execution ports are busy in which cycle, over a window that begins at the cycle of dispatch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "timing/execution.hpp"
#include "timing/state_bytes.hpp"

namespace perfemu {

class PortCalendar {
  public:
    explicit PortCalendar(const std::vector<PortGroup>& groups) {
        for (const PortGroup& group : groups) groups_.push_back({group.ports, group.busy_cycles});
        std::memset(busy_, 0, sizeof busy_);
    }

    // Nothing issues before `cycle` any more.
    [[gnu::always_inline]] void advance(uint64_t cycle) {
        if (start_ == cycle) return;
        if (cycle - start_ > FEW) [[unlikely]]
            return forget(cycle);
        do busy_[start_++ % WINDOW] = 0;
        while (start_ < cycle);
    }

    // What `take` may look at first: the ports of a use that takes one of them for a cycle.
    uint32_t simple_ports(PortUse use) const {
        return groups_[use.group].busy_cycles == 1 ? groups_[use.group].ports : 0;
    }

    // The first cycle from `ready` on in which one of the use's ports is free, which then is taken. So far ahead that
    // the window has no place for it, ports are not asked for.
    [[gnu::always_inline]] uint64_t take(PortUse use, uint32_t simple_ports, uint64_t ready) {
        if (ready - start_ >= NEAR) [[unlikely]]
            return ready;
        uint32_t& busy = busy_[ready % WINDOW];
        uint32_t free = simple_ports & ~busy;
        if (free == 0) return search(use, ready);
        busy |= free & (~free + 1);
        return ready;
    }
    uint64_t take(PortUse use, uint64_t ready) { return take(use, simple_ports(use), ready); }

    // So far ahead that the window has no place for it.
    [[gnu::always_inline]] bool far(uint64_t ready) const { return ready - start_ >= NEAR; }

    // Nothing is taken in it or later by a micro-op that did not issue as soon as it was ready.
    uint64_t last() const { return last_; }

    // What is taken after `base`, up to `last`; and that again, as if `base` was the cycle of dispatch.
    void save(uint64_t base, uint64_t last, StateWriter& state) const {
        uint64_t before = base;
        for (uint64_t cycle = base + 1; cycle <= last; ++cycle) {
            const uint32_t busy = busy_[cycle % WINDOW];
            if (busy == 0) continue;
            state.put(cycle - before);
            state.put(busy);
            before = cycle;
        }
        state.put(0);
    }
    void restore(uint64_t base, StateReader& state) {
        std::memset(busy_, 0, sizeof busy_);
        start_ = base;
        last_ = 0;
        for (Group& group : groups_) group.full_from = group.full_to = 0;
        for (uint64_t cycle = base; uint64_t later = state.get(); last_ = cycle + 1) {
            cycle += later;
            busy_[cycle % WINDOW] = static_cast<uint32_t>(state.get());
        }
    }

  private:
    static constexpr uint64_t WINDOW = 2048;
    static constexpr uint64_t NEAR = 1024;  // the rest is room for the longest busy_cycles
    static constexpr uint64_t FEW = 8;

    struct Group {
        uint32_t ports;
        uint32_t busy_cycles;
        uint64_t full_from = 0, full_to = 0;  // no start is possible in these cycles
    };

    [[gnu::noinline]] void forget(uint64_t cycle) {
        uint64_t count = std::min(cycle - start_, WINDOW), first = start_ % WINDOW;
        uint64_t to_end = std::min(count, WINDOW - first);
        std::memset(busy_ + first, 0, to_end * sizeof busy_[0]);
        std::memset(busy_, 0, (count - to_end) * sizeof busy_[0]);
        start_ = cycle;
    }

    [[gnu::noinline]] uint64_t search(PortUse use, uint64_t ready) {
        Group& group = groups_[use.group];
        if (group.ports == 0) return ready;
        uint64_t cycle = ready, end = start_ + NEAR;
        if (group.full_from <= cycle && cycle < group.full_to) cycle = group.full_to;
        for (; cycle < end; ++cycle) {
            uint32_t free = group.ports & ~busy_[cycle % WINDOW];
            for (uint64_t ahead = 1; ahead < group.busy_cycles && free; ++ahead)
                free &= ~busy_[(cycle + ahead) % WINDOW];
            if (free == 0) continue;
            uint32_t port = free & (~free + 1);
            for (uint64_t ahead = 0; ahead < group.busy_cycles; ++ahead) busy_[(cycle + ahead) % WINDOW] |= port;
            break;
        }
        last_ = std::max(last_, cycle + group.busy_cycles);
        if (group.full_from <= ready && ready <= group.full_to)
            group.full_to = cycle;
        else
            group.full_from = ready, group.full_to = cycle;
        return cycle;
    }

    uint64_t start_ = 0, last_ = 0;
    std::vector<Group> groups_;
    uint32_t busy_[WINDOW];
};

}  // namespace perfemu
