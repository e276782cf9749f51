// The guest's memory, for helpers: an access that faults leaves the helper by longjmp, as if its instruction had not
// begun.
#pragma once

#include <atomic>

#include "engine/linkage.hpp"
#include "instructions/environment.hpp"

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

// QEMU's MMUAccessType.
enum class AccessType : int { LOAD, STORE };

// Where the engine's TLB has a guest's page in this process; null if accesses of it have to go the long way. Fills it.
inline void* (*guest_page_in_host)(Environment*, uint64_t address, AccessType access, int index) = nullptr;

// An access of that page, of no bytes: it faults as any other would.
inline void* (*probe_guest_page)(Environment*, uint64_t address, int bytes, AccessType access, int index,
                                 uintptr_t return_address) = nullptr;

// Somebody wants to be told of every access, which the engine does on the long way alone.
inline std::atomic<bool> accesses_are_told = false;

inline void find_guest_memory() {
    find_in_engine(guest_memory.load_8, "cpu_ldub_data_ra");
    find_in_engine(guest_memory.load_16, "cpu_lduw_data_ra");
    find_in_engine(guest_memory.load_32, "cpu_ldl_data_ra");
    find_in_engine(guest_memory.load_64, "cpu_ldq_data_ra");
    find_in_engine(guest_memory.store_8, "cpu_stb_data_ra");
    find_in_engine(guest_memory.store_16, "cpu_stw_data_ra");
    find_in_engine(guest_memory.store_32, "cpu_stl_data_ra");
    find_in_engine(guest_memory.store_64, "cpu_stq_data_ra");
    find_in_engine(guest_page_in_host, "tlb_vaddr_to_host");
    find_in_engine(probe_guest_page, "probe_access");
}

constexpr uint64_t GUEST_PAGE_BYTES = 0x1000;

// The engine has a TLB for each mode. A modelled kernel's programs it runs at privilege level 0.
inline int mode_index(Environment* environment) { return (mode(environment) & 3) == 3 ? 1 : 2; }

// So many bytes of the guest's, in this process; null where they have to be accessed the long way, which may fault.
inline uint8_t* in_host(Environment* environment, uint64_t address, uint64_t bytes, AccessType access) {
    const bool in_a_page = address % GUEST_PAGE_BYTES <= GUEST_PAGE_BYTES - bytes;
    if (!in_a_page || accesses_are_told.load(std::memory_order_relaxed)) [[unlikely]]
        return nullptr;
    return static_cast<uint8_t*>(guest_page_in_host(environment, address, access, mode_index(environment)));
}

// Faults where a store of the byte would.
inline void check_writable(Environment* environment, uint64_t address, uintptr_t return_address) {
    probe_guest_page(environment, address, 0, AccessType::STORE, mode_index(environment), return_address);
}

// Where a store of that many bytes faults, it does so here, before any of them is written.
inline void check_store(Environment* environment, uint64_t address, uint64_t bytes, uintptr_t return_address) {
    const uint64_t last_page = (address + bytes - 1) & ~(GUEST_PAGE_BYTES - 1);
    if ((address & ~(GUEST_PAGE_BYTES - 1)) == last_page) return;  // the first byte's page is all of it
    check_writable(environment, address, return_address);
    check_writable(environment, last_page, return_address);
}

// The same of the x87's areas, whose first word and last byte AMD looks at.
inline void check_area(Environment* environment, uint64_t address, uint64_t word_bytes, uint64_t bytes,
                       uintptr_t return_address) {
    check_store(environment, address, word_bytes, return_address);
    check_writable(environment, address, return_address);
    check_writable(environment, address + bytes - 1, return_address);
}

}  // namespace perfemu
