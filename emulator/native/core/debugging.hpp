// What a core does for debuggers: its guest's own, by debug registers, and one outside.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "archive.hpp"
#include "level.hpp"

namespace perfemu {

// Data addresses at which the core stops: before an access, or on x86-64 behind the instruction that makes it.
struct Watchpoint {
    uint64_t address, bytes;
    uint8_t accesses;            // bits of FaultAccess: READ, WRITE
    uint8_t levels;              // bits 1 << Level: whose accesses
    uint8_t taken_from;          // bits 1 << Level: where the core may be for the stop to happen ...
    bool maskable;               // ... if a kernel there does not mask debug exceptions
    int8_t debug_register = -1;  // x86-64: the guest's own, DR0 to DR3: its exception

    // Whether it has an address in common with so many bytes from there.
    bool overlaps(uint64_t first, uint64_t size) const { return first - address < bytes || address - first < size; }
};

struct Debugging {
    // Something that holds at one instruction until it has retired: its address, and how many had retired.
    struct Moment {
        uint64_t pc, retired;
        bool operator==(const Moment&) const = default;
    };

    std::vector<Watchpoint> watchpoints;
    std::vector<uint64_t> breakpoints;  // whatever address space executes
    uint64_t hits = 0;                  // bits by number, of the last stop
    bool refused = false;               // the engine was refused a watched page, not one that is not there
    bool due = false;                   // x86-64: the instruction that passes hits
    bool passes = false;                // the instruction that is stepped may reach watched pages
    std::optional<Moment> passed;       // the access for which the core has stopped: the next run makes it
    bool steps = false;                 // each run executes one instruction
    // The guest's own software step: at which levels (bits), and the moment at which PSTATE.SS was set.
    uint8_t guest_steps = 0;
    std::optional<uint64_t> guest_step_from;
    bool guest_steps_return = false;  // what is stepped is an exception return: it steps nothing behind it

    // Whoever sets watchpoints and steps sets them again. A return is over when the core has stopped.
    void archive(Archive& state) { state(hits, passed, guest_steps, guest_step_from); }
};

}  // namespace perfemu
