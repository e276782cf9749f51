// Armv8-A's page tables of EL1 and EL0: VMSAv8-64, stage 1, 4 KiB granule.
#pragma once

#include "memory/guest_page_tables.hpp"

namespace perfemu::aarch64 {

// Arm ARM DDI 0487, "The AArch64 Virtual Memory System Architecture". Not modelled, and refused by name: granules of 16
// and 64 KiB.
class PageTables final : public GuestPageTables {
  public:
    PageTables(std::shared_ptr<PhysicalMemory> memory, GuestRam ram) : GuestPageTables(std::move(memory), ram, true) {}

    PageWalk walk(uint64_t address, Level level) const override;
    bool acts_for_user() const override { return !user_access_override_; }

    uint8_t code_state() const override { return vectors_are_off_; }
    bool vectors_are_off() const override { return vectors_are_off_; }

  protected:
    Registers read(uc_engine* engine, std::string& refusal) override;

  private:
    // Of the lower or of the upper half of the addresses.
    struct Half {
        uint64_t root = 0;
        unsigned address_bits = 0;
        bool disabled = false;      // its tables are not to be read: EPD0, EPD1
        bool ignores_tags = false;  // TBI0, TBI1
    };

    PageWalk physical(uint64_t address) const;

    bool enabled_ = false;  // else addresses are physical
    bool write_implies_never_execute_ = false, privileged_access_never_ = false, user_access_override_ = false;
    bool vectors_are_off_ = false;  // CPACR_EL1.FPEN
    Half lower_, upper_;
};

}  // namespace perfemu::aarch64
