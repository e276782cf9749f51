// What a pipeline asks: memory and the branch predictor, as they answer now; or, while a block is executed that was
// replayed in part, first as they have answered already (ReplayLog).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cache/memory_system.hpp"
#include "predictor/branch_unit.hpp"
#include "timing/pipeline_counts.hpp"

namespace perfemu {

// What a block asks: its fetches of lines, loads and stores in program order, which are its requests, and its branch,
// which is the last. Most requests change nothing but counts and take as long as a hit
// (MemorySystem::filtered_hit_by); of the others the log has when the pipeline asked, and how long it then took.
struct ReplayLog {
    struct Answer {
        unsigned number;
        uint64_t asked;  // cycle
        uint64_t delay;
    };

    uint64_t cycle = 0;         // whatever was there before it takes as long as a hit
    uint64_t fetch_cycle = 0;   // the same for fetches
    unsigned known = 0;         // the requests before this one have been made
    unsigned known_lines = 0;   // ... and so have the fetches of so many lines, however late they come
    bool branch_known = false;  // ... and the branch
    Prediction prediction = Prediction::RIGHT;
    std::vector<Answer> answers;

    void begin() {
        answers.clear();
        branch_known = false;
        prediction = Prediction::RIGHT;
    }
    void set_branch(Prediction how) {
        branch_known = true;
        prediction = how;
    }

    bool contradicted = false;  // it has asked otherwise than the log says: an error of the pipeline
};

class ReplayEnvironment {
  public:
    ReplayEnvironment(MemorySystem& memory, BranchUnit& branches) : memory(memory), branches(branches) {}

    struct Packet {
        uint64_t address = 0;
        uint32_t size = 0;
        uint64_t pc = 0;
        uint32_t elements = 1;
    };

    uint64_t load(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements) {
        if (replaying_) [[unlikely]]
            return next(Request::LOAD, {address, size, pc, elements}, cycle);
        return arrives(load_now({address, size, pc, elements}, cycle));
    }
    uint64_t store(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements) {
        if (replaying_) [[unlikely]]
            return next(Request::STORE, {address, size, pc, elements}, cycle);
        return arrives(memory.store(address, size, pc, cycle, elements));
    }
    uint64_t fetch(uint64_t address, uint64_t cycle) {
        if (replaying_) [[unlikely]]
            return next(Request::FETCH, {.address = address}, cycle);
        return arrives(memory.fetch(address, cycle));
    }
    void prefetch(uint64_t address, uint64_t pc, uint64_t cycle) { arrives(memory.prefetch(address, pc, cycle)); }
    Prediction resolve(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
        if (replaying_) [[unlikely]]
            return resolve_in_replay(pc, kind, next, fallthrough);
        return branches.resolve(pc, kind, next, fallthrough);
    }

    // From now on answers are those of `log`, as far as it goes. `first`: the number of its first request, and of its
    // first line. Until `end`, mere hits are counted in `hits` instead of by MemorySystem.
    void begin(unsigned first, uint64_t* hits) {
        replaying_ = true;
        hits_ = hits;
        number_ = line_ = first;
        answer_ = 0;
    }
    void end() {
        replaying_ = false;
        log.contradicted = answer_ != log.answers.size();
    }

    // A request of the log that is no mere hit. Returns when it is there.
    uint64_t ask(unsigned number, Request kind, const Packet& access, uint64_t cycle);

    MemorySystem& memory;
    BranchUnit& branches;
    // From this cycle on, all that was asked for is there, but for what memory has brought by itself.
    uint64_t arrived_by = 0;
    unsigned split_load_cycles = 0;  // added to loads that cross a line
    ReplayLog log;

  private:
    uint64_t arrives(uint64_t cycle) {
        arrived_by = std::max(arrived_by, cycle);
        return cycle;
    }
    uint64_t load_now(const Packet& access, uint64_t cycle) {
        uint64_t there = memory.load(access.address, access.size, access.pc, cycle, access.elements);
        if ((access.address ^ (access.address + access.size - 1)) & ~uint64_t{memory.fetch_line_bytes() - 1})
            [[unlikely]]
            there += split_load_cycles;
        return there;
    }
    uint64_t next(Request kind, const Packet& access, uint64_t cycle);
    bool filtered_hit(Request kind, const Packet& access);
    Prediction resolve_in_replay(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough);

    bool replaying_ = false;
    uint64_t* hits_ = nullptr;
    unsigned number_ = 0;
    unsigned line_ = 0;
    size_t answer_ = 0;  // the next of the log's
};

}  // namespace perfemu
