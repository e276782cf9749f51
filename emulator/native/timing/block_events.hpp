// What can happen to a block while it runs, in program order: it fetches lines, loads and stores, and branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "address/access.hpp"
#include "cache/memory_system.hpp"
#include "timing/timed_op.hpp"

namespace perfemu {

struct BlockEvents {
    struct Access {
        uint16_t span;       // its size less 1
        uint16_t unaligned;  // MemorySystem::unaligned_bits
        uint16_t size, elements;
        uint16_t offset;  // of its instruction
        bool stores;
    };
    // What lies between two fetches.
    struct Stretch {
        uint64_t line;    // to be fetched; its address
        uint32_t behind;  // its last access
    };

    // False: other things happen than are listed, as a REP or a software prefetch. Nothing else here is to be used
    // then.
    bool listed = false;
    uint64_t address = 0, end = 0;
    std::vector<Stretch> stretches;
    std::vector<Access> accesses;  // by site
    unsigned loads = 0, stores = 0;
    BranchKind branch = BranchKind::NONE;
    uint64_t branch_pc = 0;

    BlockEvents() = default;
    BlockEvents(uint64_t address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                const MemorySystem& memory);

    // The numbers of events: a stretch's fetch, and then its accesses.
    unsigned count() const { return static_cast<unsigned>(stretches.size() + accesses.size()); }
    unsigned fetch_event(const Stretch& stretch, size_t next_site) const {
        return static_cast<unsigned>(&stretch - stretches.data() + next_site);
    }
    unsigned access_event(const Stretch& stretch, size_t site) const { return fetch_event(stretch, site) + 1; }
};

}  // namespace perfemu
