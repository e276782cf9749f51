// Which execution ports are busy in which cycle, over a window that begins at the cycle of dispatch.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "timing/execution.hpp"

namespace perfemu {

class PortCalendar {
  public:
    explicit PortCalendar(const std::vector<PortGroup>& groups) {
        for (const PortGroup& group : groups) groups_.push_back({group.ports, group.busy_cycles});
        clear(0);
    }

    void clear(uint64_t cycle) {
        std::memset(busy_, 0, sizeof busy_);
        start_ = cycle;
        for (Group& group : groups_) group.full_from = group.full_to = 0;
    }

    // Nothing issues before `cycle` any more.
    void advance(uint64_t cycle) {
        if (cycle - start_ >= WINDOW) {
            std::memset(busy_, 0, sizeof busy_);
            start_ = cycle;
        }
        while (start_ < cycle) busy_[start_++ % WINDOW] = 0;
    }

    // The first cycle from `ready` on in which one of the group's ports is free, which then is taken. So far ahead that
    // the window has no place for it, ports are not asked for.
    uint64_t take(PortUse use, uint64_t ready) {
        Group& group = groups_[use.group];
        if (ready - start_ >= WINDOW - FAR) [[unlikely]]
            return ready;
        if (group.busy_cycles != 1) [[unlikely]]
            return take_long(group, ready);
        uint64_t cycle = ready;
        uint32_t free = group.ports & ~busy_[cycle % WINDOW];
        if (free == 0) {
            if (group.ports == 0) return ready;
            bool within = group.full_from <= cycle && cycle < group.full_to;
            if (within) cycle = group.full_to;
            uint64_t end = start_ + WINDOW - FAR;
            while ((free = group.ports & ~busy_[cycle % WINDOW]) == 0)
                if (++cycle >= end) return cycle;
            remember(group, ready, cycle);
        }
        busy_[cycle % WINDOW] |= free & (~free + 1);
        return cycle;
    }

  private:
    static constexpr uint64_t WINDOW = 2048;
    static constexpr uint64_t FAR = 1024;  // what is kept behind the last start, for the longest busy_cycles

    struct Group {
        uint32_t ports;
        uint32_t busy_cycles;
        uint64_t full_from = 0, full_to = 0;  // no start is possible in these cycles
    };

    static void remember(Group& group, uint64_t from, uint64_t to) {
        if (group.full_from <= from && from <= group.full_to)
            group.full_to = to;
        else
            group.full_from = from, group.full_to = to;
    }

    uint64_t take_long(Group& group, uint64_t ready) {
        if (group.ports == 0) return ready;
        uint64_t cycle = ready, end = start_ + WINDOW - FAR;
        if (group.full_from <= cycle && cycle < group.full_to) cycle = group.full_to;
        for (; cycle < end; ++cycle) {
            uint32_t free = group.ports;
            for (uint64_t ahead = 0; ahead < group.busy_cycles && free; ++ahead)
                free &= ~busy_[(cycle + ahead) % WINDOW];
            if (free == 0) continue;
            uint32_t port = free & (~free + 1);
            for (uint64_t ahead = 0; ahead < group.busy_cycles; ++ahead) busy_[(cycle + ahead) % WINDOW] |= port;
            break;
        }
        if (cycle != ready) remember(group, ready, cycle);
        return cycle;
    }

    uint64_t start_ = 0;
    std::vector<Group> groups_;
    uint32_t busy_[WINDOW];
};

}  // namespace perfemu
