// Where the engine keeps the guest's registers in host memory.
//
// Reading a register through the engine's API costs several nanoseconds, and every address needs one. The engine holds
// the same values in an array, which lies at the same place as long as it lives. That place is no part of the API: it
// is found by writing marked values through the API and looking for them, and believed only if each register agrees in
// both directions.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "slice/evaluate.hpp"
#include "slice/slice.hpp"

namespace perfemu {

// One of the slices' entry registers, as the engine's API calls it.
struct EntryRegister {
    uint8_t number;  // slice.hpp
    int engine_number;
};
// The general registers first, in the order of the engine's array.
std::span<const EntryRegister> entry_registers(uc_arch arch);

struct RegisterFile {
    std::array<const uint64_t*, slice::ENTRY_REGISTERS> registers{};
    // A64's flags; x86's are not kept as such, and are read through the API.
    const uint32_t* negative = nullptr;  // its highest bit
    const uint32_t* not_zero = nullptr;  // Z if it is zero
    const uint32_t* carry = nullptr;     // 0 or 1
    const uint32_t* overflow = nullptr;  // its highest bit

    // Nothing if something is not where it should be. Takes about a millisecond; leaves the registers as they were.
    static std::optional<RegisterFile> locate(uc_engine* engine, uc_arch arch);
};

// The engine's flags, through its API.
slice::FlagBits read_flags(uc_engine* engine, uc_arch arch);

}  // namespace perfemu
