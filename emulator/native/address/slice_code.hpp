// A slice as a function in the host's own instructions.
#pragma once

#include <cstdint>

namespace perfemu {

// Writes the addresses of a block's sites to `found`, from the registers with which it is entered. Returns the end of
// what it wrote; null if that cannot be told so this time. `results`: Addresses' own.
using SliceCode = uint64_t* (*)(const uint64_t* registers, uint64_t* found, uint64_t* results);
struct SliceFunction {
    SliceCode code = nullptr;
    bool never_fails = false;
};

}  // namespace perfemu
