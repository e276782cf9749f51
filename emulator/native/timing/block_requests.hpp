// What can happen to a block while it runs, in program order: it fetches lines, loads and stores, and branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/memory_system.hpp"
#include "ops/access.hpp"
#include "ops/timed_op.hpp"
#include "short_list.hpp"

namespace perfemu {

struct BlockRequests {
    // One line's fetch; the lines follow each other.
    struct Fetch {
        uint16_t sites_end;  // after the last access before the next line is fetched
    };
    union Part {
        Fetch fetch;
        AccessShape shape;
    };
    // What most blocks never need
    struct AccessDetails {
        uint16_t size, elements;
        uint16_t offset;  // of its instruction
    };

    // Together with what RecalledBlock has before it, a line of the host's cache, up to the lists' ends if they are
    // short. Nothing of it is to be used if it is not `listed`: then other things happen, as a REP or a software
    // prefetch.
    bool listed = false;
    BranchKind branch = BranchKind::NONE;
    uint16_t branch_offset = 0, end_offset = 0;
    uint16_t loads = 0, stores = 0;
    uint16_t fetches = 0;  // of the parts; the others are accesses, by site
    uint64_t address = 0;
    ShortList<Part, 8> parts;
    std::vector<AccessDetails> accesses;

    BlockRequests() = default;
    void assign(uint64_t block_address, std::span<const TimedOp> ops, std::span<const AccessSite> sites,
                const MemorySystem& memory);

    uint64_t end() const { return address + end_offset; }
    uint64_t last_byte() const { return end() - 1; }
    // They have numbers: each line's fetch comes before the accesses after it.
    unsigned count() const { return unsigned{fetches} + loads + stores; }
    static unsigned number_of_fetch(size_t fetch, size_t next_site) { return static_cast<unsigned>(fetch + next_site); }
    static unsigned number_of_access(size_t fetch, size_t site) { return static_cast<unsigned>(fetch + site + 1); }
};

}  // namespace perfemu
