// The guest's memory, for helpers: an access that faults leaves the helper by longjmp, as if its instruction had not
// begun.
#pragma once

#include "../engine_linkage.hpp"
#include "environment.hpp"

namespace perfemu {

struct GuestMemory {
    uint32_t (*load_8)(Environment*, uint64_t address, uintptr_t return_address);
    uint32_t (*load_16)(Environment*, uint64_t address, uintptr_t return_address);
    uint32_t (*load_32)(Environment*, uint64_t address, uintptr_t return_address);
    uint64_t (*load_64)(Environment*, uint64_t address, uintptr_t return_address);
    void (*store_8)(Environment*, uint64_t address, uint32_t value, uintptr_t return_address);
    void (*store_16)(Environment*, uint64_t address, uint32_t value, uintptr_t return_address);
    void (*store_32)(Environment*, uint64_t address, uint32_t value, uintptr_t return_address);
    void (*store_64)(Environment*, uint64_t address, uint64_t value, uintptr_t return_address);
};
inline GuestMemory guest_memory;

inline void find_guest_memory() {
    find_in_engine(guest_memory.load_8, "cpu_ldub_data_ra");
    find_in_engine(guest_memory.load_16, "cpu_lduw_data_ra");
    find_in_engine(guest_memory.load_32, "cpu_ldl_data_ra");
    find_in_engine(guest_memory.load_64, "cpu_ldq_data_ra");
    find_in_engine(guest_memory.store_8, "cpu_stb_data_ra");
    find_in_engine(guest_memory.store_16, "cpu_stw_data_ra");
    find_in_engine(guest_memory.store_32, "cpu_stl_data_ra");
    find_in_engine(guest_memory.store_64, "cpu_stq_data_ra");
}

// Where a store of that many bytes faults, it does so here, before any of them is written.
inline void check_store(Environment* environment, uint64_t address, uint64_t bytes, uintptr_t return_address) {
    constexpr int PAGE_BITS = 12;
    const uint64_t last = address + bytes - 1;
    if (address >> PAGE_BITS == last >> PAGE_BITS) return;  // the first byte's page is all of it
    guest_memory.store_8(environment, last, guest_memory.load_8(environment, last, return_address), return_address);
}

}  // namespace perfemu
