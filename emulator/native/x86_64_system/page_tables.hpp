// x86-64's page tables: none, of 32-bit entries, PAE, and of four levels.
#pragma once

#include "memory/guest_page_tables.hpp"
#include "x86_64_system/state.hpp"

namespace perfemu::x86_64 {

// Intel SDM vol. 3, chapter 4 "Paging". Not modelled, and not offered: five levels, protection keys, SMAP, PCID.
class PageTables final : public GuestPageTables {
  public:
    // `state`: of the processor whose tables these are; it lives as long.
    PageTables(std::shared_ptr<PhysicalMemory> memory, GuestRam ram, const State& state)
        : GuestPageTables(std::move(memory), ram, false), state_(state) {}

    PageWalk walk(uint64_t address, Level level) const override;
    Page find(uint64_t address, Level level, uint8_t access) override;
    bool keeps_levels_apart() const override { return true; }
    uint8_t code_state() const override { return code_state_; }
    // The error code of the page fault that such an access raises. SDM vol. 3, 4.7.
    uint32_t error_code(uint64_t address, Level level, uint8_t access) const;

  protected:
    Registers read(uc_engine* engine, std::string& refusal) override;

  private:
    // What entries allow, from the root on.
    struct Rights {
        bool user = true, writable = true, no_execute = false;
    };
    // One level of the tables.
    struct Step {
        unsigned shift;    // of the part of the address that chooses the entry
        unsigned bits;     // of that part
        bool may_be_page;  // an entry with PS is one
    };
    std::span<const Step> steps() const;
    uint64_t entry(uint64_t physical, PageWalk& walk) const;
    bool reserved_bits(uint64_t entry, const Step& step, bool is_page) const;
    uint8_t protection(Rights rights, Level level) const;
    unsigned entry_bytes() const { return state_.cr4 & cr4::PAE ? 8 : 4; }

    const State& state_;
    uint8_t code_state_ = 0;
};

}  // namespace perfemu::x86_64
