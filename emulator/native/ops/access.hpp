// Where a block's instructions access memory: what is known before they run, and what only their registers tell.
#pragma once

#include <cstdint>
#include <vector>

namespace perfemu {

// One memory operand of one instruction, in the order in which the instruction accesses them. The address of each is
// found as the block runs.
struct AccessSite {
    uint16_t op = 0;       // index of the instruction in its block
    uint16_t size = 0;     // bytes in all: LDP x0, x1 is one site of 16; DC ZVA one of 64; FXSAVE one of 512
    uint8_t elements = 1;  // as the engine reports it: so many accesses of size / elements bytes, one behind the other
    bool load = false;     // a read-modify-write is two sites at the same address: the load, then the store
    bool store = false;
};

// What an instruction is about to access: one range of addresses.
struct DataAccess {
    uint64_t address = 0, bytes = 0;
    uint8_t kinds = 0;  // bits of Core's FaultAccess: READ, WRITE
    bool acts_for_user = false;
};

}  // namespace perfemu
