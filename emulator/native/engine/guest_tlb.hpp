// What the engine remembers of a guest's own page tables, and when it must forget.
//
// QEMU has a TLB for each of its MMU indexes, which say who accesses: user mode, the kernel, the kernel with PAN. So a
// change of level needs no flush. It flushes all when a register of the tables changes; ours is to forget what may be
// wrong then and no more: Linux on a core without PAN writes TTBR0_EL1 and the ASID twice for each system call.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <unordered_set>

#include "memory/fetched_pages.hpp"
#include "memory/guest_page_tables.hpp"
#include "memory/remembered_pages.hpp"

namespace perfemu {

// Before the first engine for AArch64 is opened; throws std::runtime_error where it is not what we know.
void take_over_tlb_flushes();

// Of the translation that the engine asks for at present: who accesses, and whether that is an access as user mode.
unsigned filled_index();
bool fills_for_user();

class GuestTlb {
  public:
    // From now on the engine flushes by TLBI alone; for all else it relies on `follow`. What the guest has it forget is
    // forgotten in these, too. `accessed` is by the engine's MMU indexes.
    GuestTlb(uc_engine* engine, RememberedPages& accessed, FetchedPages& fetched);
    ~GuestTlb();
    GuestTlb(const GuestTlb&) = delete;
    GuestTlb& operator=(const GuestTlb&) = delete;

    // What is remembered is wrong.
    void flush();
    // The engine asks again for all that it has been told. What has been accessed and fetched is as it was.
    void refill();
    // The tables' registers, or who executes, may have changed. True: what the engine knew for who executes was not
    // right any more, and so perhaps what it has looked up for what comes next.
    bool follow(const GuestPageTables& tables);
    // An access as user mode follows: true as above.
    bool follow_user(const GuestPageTables& tables);
    // What the engine is going to remember.
    void note_fill(const GuestPageTables& tables, uint64_t address, const PageWalk& walk, bool for_user);

  private:
    friend void take_over_tlb_flushes();
    static void flush_for_register(void* cpu);
    static void flush_indexes(void* cpu, uint16_t indexes);
    static void flush_indexes_everywhere(void* cpu, uint16_t indexes);
    static void flush_page(void* cpu, uint64_t address, uint16_t indexes);
    static void flush_page_everywhere(void* cpu, uint64_t address, uint16_t indexes);
    static uint16_t forget_page(void* cpu, uint64_t address, uint16_t indexes);
    void flush(uint16_t indexes);
    void forget(uint16_t indexes);
    bool is_in_block(uint64_t address) const;

    RememberedPages& accessed_;
    FetchedPages& fetched_;
    void* cpu_ = nullptr;                                   // the engine's
    GuestPageTables::Tables common_{}, kernel_{}, user_{};  // by which its TLBs were filled
    bool kernel_has_local_ = false;
    // Parts of the address space of which it has pages by descriptors of blocks, each page for itself: by their size.
    std::unordered_set<uint64_t> blocks_;
};

}  // namespace perfemu
