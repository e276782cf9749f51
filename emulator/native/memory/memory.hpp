// Guest RAM in frames, and a process's page tables over it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "memory/stores_into_code.hpp"

namespace perfemu {

class Archive;

static constexpr uint64_t PAGE_SHIFT = 12;
static constexpr uint64_t PAGE_SIZE = 1 << PAGE_SHIFT;
static constexpr uint64_t PAGE_MASK = PAGE_SIZE - 1;

enum Protection : uint8_t { READ = 1, WRITE = 2, EXECUTE = 4 };

using Frame = uint32_t;
inline constexpr Frame NO_FRAME = ~Frame{0};  // of a page that is not present

// The guest's RAM: one host mapping, whose pages the host supplies when they are first touched.
class PhysicalMemory {
  public:
    explicit PhysicalMemory(uint64_t size_bytes);
    ~PhysicalMemory();
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;

    uint64_t size_bytes() const { return size_bytes_; }
    uint64_t used_bytes() const { return used_frames_ * PAGE_SIZE; }

    // First of `count` contiguous zeroed frames, one reference each. Throws std::bad_alloc when RAM is full.
    Frame allocate(uint32_t count);
    void retain(Frame frame, uint32_t count);
    void release(Frame frame, uint32_t count);
    uint32_t references(Frame frame) const { return frames_.at(frame).references; }
    // Which allocation it was that gave the frame to who has it now: no two have the same number.
    uint64_t allocation(Frame frame) const { return frames_.at(frame).allocation; }

    uint8_t* host(Frame frame) { return arena_ + (uint64_t{frame} << PAGE_SHIFT); }
    void check(Frame frame, uint32_t count) const;
    // Whether the frame of that number has ever been handed out.
    bool is_allocated(uint64_t number) const { return number < frames_.size(); }

    // What the machine keeps elsewhere of its RAM, files in memory say: no frames are left for it. False if there is no
    // room for `bytes` more. Negative: given back.
    bool reserve(int64_t bytes);

    // A frame that has been fetched from holds translated code somewhere: changing or freeing it makes that stale.
    void mark_code(Frame frame) { frames_[frame].holds_code = true; }
    bool holds_code(Frame frame) const { return frames_[frame].holds_code; }
    // How often code may have changed behind the engines' backs; they compare it with the last one they saw.
    uint64_t code_generation() const { return code_generation_; }
    void code_changed() { code_generation_++; }

    // From now on the cores follow what is stored into code, and need not be told that all of it may have changed.
    void log_stores_into_code() { stores_into_code_.emplace(); }
    StoresIntoCode* stores_into_code() { return stores_into_code_ ? &*stores_into_code_ : nullptr; }

    // Some mapping may execute this frame: stores to it through any other mapping must be watched.
    void mark_executable(Frame frame) {
        if (!frames_[frame].executable) watch_generation_++;
        frames_[frame].executable = true;
    }
    // Grows whenever the engines' translations of data addresses must be made anew, watched.
    uint64_t watch_generation() const { return watch_generation_; }

    // A guest's own kernel has said on one core that its page tables have changed, which all of them must hear.
    void tables_changed() { tables_generation_++; }
    uint64_t tables_generation() const { return tables_generation_; }
    bool executable(Frame frame) const { return frames_[frame].executable; }
    // Code in this frame may change by the guest's stores: it is both executable and, somewhere, written.
    // True if blocks may have been decoded from it as if it could not change.
    bool mark_changeable(Frame frame) {
        if (frames_[frame].changeable) return false;
        frames_[frame].changeable = true;
        return frames_[frame].holds_code;
    }
    bool changeable(Frame frame) const { return frames_[frame].changeable; }

    // Some space has, or has had, a breakpoint there: engines look before they run a block with such an address in it.
    void note_breakpoint(uint64_t address) { breakpoint_generation_ += breakpoint_addresses_.insert(address).second; }
    bool may_break(uint64_t begin, uint64_t end) const {
        const auto first = breakpoint_addresses_.lower_bound(begin);
        return first != breakpoint_addresses_.end() && *first < end;
    }
    // Grows whenever there is one more of those addresses.
    uint64_t breakpoint_generation() const { return breakpoint_generation_; }

    // Page tables take frames, too, though not these ones: one that has no room throws std::bad_alloc.
    void take_table();
    void give_tables(uint64_t count) { table_frames_ -= count; }

    // What is known of frames, not their bytes; where all are handed out already, and will not be given back.
    void archive(Archive& state);
    // Of those from `first` on, the next frames that are not all zeroes: the first, and how many there are up to a
    // stretch of others. None: (size, 0).
    struct Stretch {
        uint64_t first, count;
    };
    Stretch next_used(uint64_t first) const;
    // These frames' bytes are those of the host's file from `offset` on, as long as nobody writes them: the file stays
    // as it is. Throws std::invalid_argument, or std::system_error.
    void map_file(int descriptor, uint64_t offset, Frame first, uint32_t count);
    // Into one frame, which may hold code.
    void write(Frame frame, uint64_t offset, std::span<const uint8_t> data);
    uint64_t new_space_id() { return spaces_++; }
    // Engines that have translations of this memory. What one writes, the others must hear of if there are several.
    void add_core() { cores_++; }
    void remove_core() { cores_--; }
    bool has_several_cores() const { return cores_ > 1; }

  private:
    struct FrameState {
        uint32_t references = 0;
        uint64_t allocation = 0;
        bool holds_code = false;
        bool executable = false;
        bool changeable = false;
    };
    void forget(Frame frame);
    uint64_t room_bytes() const { return size_bytes_ - (used_frames_ + table_frames_) * PAGE_SIZE - reserved_bytes_; }

    uint64_t size_bytes_;
    uint8_t* arena_;
    std::vector<FrameState> frames_;
    std::map<Frame, uint32_t> free_;  // runs of frames that were in use before: first frame, length
    uint64_t used_frames_ = 0;
    uint64_t table_frames_ = 0;
    uint64_t allocations_ = 0;
    uint64_t reserved_bytes_ = 0;
    uint64_t code_generation_ = 0;
    std::optional<StoresIntoCode> stores_into_code_;
    uint64_t watch_generation_ = 0;
    uint64_t tables_generation_ = 0;
    std::set<uint64_t> breakpoint_addresses_;
    uint64_t breakpoint_generation_ = 0;
    uint64_t spaces_ = 0;
    unsigned cores_ = 0;
};

struct Page {
    Frame frame = 0;
    uint8_t protection = 0;
    bool present = false;
};

// Where a guest's addresses lie in RAM, for what executes now: by the page tables of one of the modelled kernel's
// processes (AddressSpace), or by those that a guest's own kernel keeps in its RAM (GuestPageTables).
class AddressTranslation {
  public:
    virtual ~AddressTranslation();
    AddressTranslation(const AddressTranslation&) = delete;
    AddressTranslation& operator=(const AddressTranslation&) = delete;

    // The page that holds `address`, and what may be done to it now. It may not be present.
    virtual Page lookup(uint64_t address) const = 0;

    // The byte at `address` in host memory, or nullptr.
    uint8_t* host(uint64_t address) const {
        const Page page = lookup(address);
        return page.present ? memory_->host(page.frame) + (address & PAGE_MASK) : nullptr;
    }
    // Copies up to the first page that is not present; returns the number of bytes copied.
    uint64_t read(uint64_t address, std::span<uint8_t> into) const;
    uint64_t write(uint64_t address, std::span<const uint8_t> data);
    // The same, up to the first page that may not be written either.
    uint64_t write_permitted(uint64_t address, std::span<const uint8_t> data);

    // Cores stop before they execute an instruction that starts there. A fork has none.
    void set_breakpoint(uint64_t address) {
        breakpoints_.insert(address);
        memory_->note_breakpoint(address);
    }
    void clear_breakpoint(uint64_t address) { breakpoints_.erase(address); }
    bool breaks_at(uint64_t address) const { return breakpoints_.contains(address); }

    PhysicalMemory& memory() const { return *memory_; }
    // Which tables these are: no others over this memory have it, nor ever will.
    uint64_t id() const { return id_; }
    // Grows whenever a cached translation may have become wrong (not when a page merely became present).
    uint64_t generation() const { return generation_; }
    // Grows whenever other code, or none, may be at an address that has been fetched from.
    uint64_t code_generation() const { return code_generation_; }
    // Whether frames are where the guest itself says: machines' caches go by their numbers then.
    bool is_guests_own() const { return is_guests_own_; }
    // By which TLBs tell one address space from another, if so. Who executes in it makes no difference.
    uint64_t regime() const { return regime_; }

  protected:
    explicit AddressTranslation(std::shared_ptr<PhysicalMemory> memory);

    std::shared_ptr<PhysicalMemory> memory_;
    uint64_t id_;
    uint64_t generation_ = 0;
    uint64_t code_generation_ = 0;
    bool is_guests_own_ = false;
    uint64_t regime_ = 0;

  private:
    std::unordered_set<uint64_t> breakpoints_;
};

// Page tables of one process: 48-bit addresses, four levels of 512 entries.
class AddressSpace final : public AddressTranslation {
  public:
    explicit AddressSpace(std::shared_ptr<PhysicalMemory> memory);
    ~AddressSpace() override;

    void map(uint64_t address, Frame frame, uint64_t count, uint8_t protection);
    uint64_t unmap(uint64_t address, uint64_t count);
    void protect(uint64_t address, uint64_t count, uint8_t protection);
    std::vector<uint64_t> present(uint64_t address, uint64_t count) const;
    uint64_t present_pages() const { return present_pages_; }
    std::shared_ptr<AddressSpace> fork();

    Page lookup(uint64_t address) const override;

  private:
    static constexpr unsigned LEVEL_BITS = 9;
    static constexpr unsigned ENTRIES = 1 << LEVEL_BITS;
    static constexpr unsigned ADDRESS_BITS = 48;
    struct Leaf {
        std::array<Page, ENTRIES> pages;
        unsigned present = 0;  // of them
    };
    template <typename Child>
    using Table = std::array<std::unique_ptr<Child>, ENTRIES>;
    using Middle = Table<Leaf>;
    using Upper = Table<Middle>;
    using Root = Table<Upper>;

    static unsigned index(uint64_t address, unsigned level) {
        return (address >> (PAGE_SHIFT + level * LEVEL_BITS)) & (ENTRIES - 1);
    }
    const Leaf* find_leaf(uint64_t address) const;
    Leaf& make_leaf(uint64_t address);
    void drop(Page& page);
    // Calls `visit(leaf, address, end)` for each leaf of the range that there is, with the part of the range in it.
    template <typename Visit>
    void each_leaf(uint64_t address, uint64_t count, Visit visit) const;
    // Calls `visit(address, page)` for each present page in the range, skipping absent tables.
    template <typename Visit>
    void each_present(uint64_t address, uint64_t count, Visit visit) const;

    std::unique_ptr<Root> root_;
    uint64_t tables_ = 0;  // taken of the memory's frames
    uint64_t present_pages_ = 0;
};

}  // namespace perfemu
