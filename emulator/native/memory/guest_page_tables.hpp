// Page tables that a guest's own kernel keeps in its RAM, read as a processor's walker reads them.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "archive.hpp"
#include "level.hpp"
#include "memory/memory.hpp"

namespace perfemu {

// Why a look-up fails. emulator.cpu.WalkFault
enum class WalkFault : uint8_t {
    NONE,
    TRANSLATION,   // a descriptor says that there is nothing
    ADDRESS_SIZE,  // the address, or one in a descriptor, has too many bits
    ACCESS_FLAG,   // Arm: the page's is clear, and hardware sets none
    EXTERNAL,      // a descriptor lies where there is no RAM
};

// One look-up. What may be done to a page says `page.protection`; a permission fault is for who asked to tell.
struct PageWalk {
    static constexpr unsigned MOST_LEVELS = 5;

    Page page;
    WalkFault fault = WalkFault::NONE;
    uint64_t output = 0;                              // the physical address; with EXTERNAL, where no RAM is
    uint8_t level = 0;                                // of the last descriptor, as the architecture numbers them
    uint8_t reads = 0;                                // how many descriptors were read ...
    std::array<uint64_t, MOST_LEVELS> descriptors{};  // ... at which physical addresses
    bool is_local = false;    // another address space may have another page there: `common` does not say which
    uint8_t block_shift = 0;  // log2 of the size of what one descriptor maps, if that is more than a page
};

// What of the machine's RAM a guest has: so many frames, or all, from one on; it finds them at a physical address.
struct GuestRam {
    uint64_t address = 0, first = 0, frames = ~uint64_t{0};
};

class GuestPageTables : public AddressTranslation {
  public:
    using Tables = std::array<uint64_t, 4>;                         // registers: where tables are, and of which form
    static constexpr std::array<unsigned, 2> BLOCK_SHIFTS{21, 30};  // of blocks, where there are any

    // As an access at that level finds it. Nothing is remembered between two walks.
    virtual PageWalk walk(uint64_t address, Level level) const = 0;
    Page lookup(uint64_t address) const final { return walk(address, level_).page; }
    // The same for such an access (Protection), which is about to happen: what processors note of it is noted.
    virtual Page find(uint64_t address, Level level, uint8_t access) {
        (void)access;
        return walk(address, level).page;
    }
    // Whether loads and stores that are to act as user mode's do so.
    virtual bool acts_for_user() const { return true; }
    // Whether what is remembered of one level's accesses is not taken for another's.
    virtual bool keeps_levels_apart() const { return false; }
    // What else than bytes and level says what code means.
    virtual uint8_t code_state() const { return 0; }
    // Whether what executes may not use vector and floating-point registers, which the engine does not look at.
    virtual bool vectors_are_off() const { return false; }
    // Takes over from the engine who executes, and the registers that say where the tables are.
    void read_registers(uc_engine* engine);
    // At which level what executes does so. Of the registers as they were read.
    Level level() const { return level_; }
    // The guest has said that what is remembered of its tables is wrong.
    void forget() {
        forget_translations();
        code_generation_++;
    }
    // The same, where it is noticed as it is fetched that other code is at an address.
    void forget_translations() { generation_++; }
    const Tables& tables() const { return registers_->tables; }
    // What of that says where pages are that all address spaces have.
    const Tables& common() const { return registers_->common; }
    // The kernel has fetched from a page of one address space's own: which of its code is where depends on that from
    // now on. False: this was known.
    bool note_local_code();
    bool kernel_executes_locally() const { return kernel_executes_locally_; }
    void archive(Archive& state) { state(kernel_executes_locally_, ids_, regimes_); }
    // What the registers ask for that is not modelled; empty if nothing is. Nothing is found then.
    const std::string& refusal() const { return refusal_; }
    // The guest does something else that is not modelled.
    void refuse(std::string why) { refusal_ = std::move(why); }

  protected:
    // `knows_common`: whether `read` says what address spaces have in common, and walks whether that led them.
    GuestPageTables(std::shared_ptr<PhysicalMemory> memory, GuestRam ram, bool knows_common);

    // What look-ups depend on.
    struct Registers {
        Level level = Level::USER;
        uint64_t state = 0;  // of what executes, besides
        Tables tables{};
        Tables common{};  // derived from those
        bool operator==(const Registers&) const = default;
    };
    // Also keeps what `walk` needs of them. Sets `refusal`.
    virtual Registers read(uc_engine* engine, std::string& refusal) = 0;

    // The eight bytes of a descriptor, counted in `walk`; none where there is no RAM.
    std::optional<uint64_t> descriptor(uint64_t physical, PageWalk& walk) const;
    bool is_ram(uint64_t physical) const {
        const uint64_t number = (physical - ram_.address) >> PAGE_SHIFT;
        return physical >= ram_.address && number < ram_.frames && memory_->is_allocated(ram_.first + number);
    }
    // Where there is RAM.
    Frame frame_of(uint64_t physical) const {
        return static_cast<Frame>(ram_.first + ((physical - ram_.address) >> PAGE_SHIFT));
    }

  private:
    static constexpr size_t MOST_IDS = 4096;

    // What decides on which code is where: the level, whether the tables are those of one address space, `code_state`,
    // and the tables.
    using CodeKey = std::array<uint64_t, 3 + std::tuple_size_v<Tables>>;
    CodeKey code_key() const;
    void find_id();

    const GuestRam ram_;
    Level level_ = Level::USER;
    std::optional<Registers> registers_;
    bool kernel_executes_locally_;
    std::map<CodeKey, uint64_t> ids_;
    std::map<Tables, uint64_t> regimes_;
    std::string refusal_;
};

}  // namespace perfemu
