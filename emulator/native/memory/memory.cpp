#include "memory/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>

namespace perfemu {

namespace {

// Addresses far below the host's libraries, from here on. The engine gets the memory for its translations next to the
// libraries then; with gigabytes of ours between, each call from a translation into a library is an indirect one, which
// costs more, on Intel's Granite Rapids a lot at half of the addresses that the host may choose.
constexpr uintptr_t FAR = uintptr_t{1} << 45, FAR_END = uintptr_t{1} << 46;
constexpr uint64_t FAR_STEP = uint64_t{4} << 30;  // at least, so that all places are soon tried for small ones, too

// Anywhere, if the host has no such addresses.
void* map_far(uint64_t size_bytes) {
    auto map = [size_bytes](uintptr_t address, int more) {
        return mmap(reinterpret_cast<void*>(address), size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more, -1, 0);
    };
    const uint64_t step = std::max(size_bytes, FAR_STEP);
    for (uintptr_t address = FAR; address + size_bytes <= FAR_END; address += step) {
        void* mapped = map(address, MAP_FIXED_NOREPLACE);
        if (mapped != MAP_FAILED) return mapped;
        if (errno != EEXIST) break;
    }
    return map(0, 0);
}

}  // namespace

PhysicalMemory::PhysicalMemory(uint64_t size_bytes) : size_bytes_(size_bytes) {
    if (size_bytes == 0 || size_bytes & PAGE_MASK || size_bytes >> PAGE_SHIFT > UINT32_MAX)
        throw std::invalid_argument("physical memory must be a whole number of 4096-byte frames, under 16 TiB");
    void* mapped = map_far(size_bytes);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    arena_ = static_cast<uint8_t*>(mapped);
}

PhysicalMemory::~PhysicalMemory() { munmap(arena_, size_bytes_); }

void PhysicalMemory::check(Frame frame, uint32_t count) const {
    if (uint64_t{frame} + count > frames_.size())
        throw std::out_of_range("frames " + std::to_string(frame) + " to " +
                                std::to_string(uint64_t{frame} + count - 1) + " are not all allocated");
}

bool PhysicalMemory::reserve(int64_t bytes) {
    if (bytes < 0 && reserved_bytes_ < static_cast<uint64_t>(-bytes))
        throw std::logic_error("more memory is given back than was reserved");
    if (bytes > 0 && room_bytes() < static_cast<uint64_t>(bytes)) return false;
    reserved_bytes_ += bytes;
    return true;
}

Frame PhysicalMemory::allocate(uint32_t count) {
    if (count == 0 || room_bytes() < count * PAGE_SIZE) throw std::bad_alloc();
    const FrameState state{.references = 1, .allocation = ++allocations_};
    for (auto run = free_.begin(); run != free_.end(); ++run) {
        auto [first, length] = *run;
        if (length < count) continue;
        free_.erase(run);
        if (length > count) free_[first + count] = length - count;
        for (Frame frame = first; frame < first + count; frame++) frames_[frame] = state;
        std::memset(host(first), 0, count * PAGE_SIZE);
        used_frames_ += count;
        return first;
    }
    if (frames_.size() + count > size_bytes_ >> PAGE_SHIFT) throw std::bad_alloc();
    auto first = static_cast<Frame>(frames_.size());
    frames_.resize(first + count, state);
    used_frames_ += count;
    return first;
}

void PhysicalMemory::take_table() {
    if (room_bytes() < PAGE_SIZE) throw std::bad_alloc();
    table_frames_++;
}

void PhysicalMemory::retain(Frame frame, uint32_t count) {
    check(frame, count);
    for (uint32_t i = 0; i < count; i++) frames_[frame + i].references++;
}

void PhysicalMemory::release(Frame frame, uint32_t count) {
    check(frame, count);
    for (uint32_t i = 0; i < count; i++) {
        FrameState& state = frames_[frame + i];
        if (state.references == 0) throw std::logic_error("frame " + std::to_string(frame + i) + " is already free");
        if (--state.references == 0) forget(frame + i);
    }
}

void PhysicalMemory::forget(Frame frame) {
    if (frames_[frame].holds_code) code_changed();
    used_frames_--;
    auto run = free_.emplace(frame, 1).first;
    if (auto next = std::next(run); next != free_.end() && next->first == frame + 1) {
        run->second += next->second;
        free_.erase(next);
    }
    if (run == free_.begin()) return;
    if (auto before = std::prev(run); before->first + before->second == frame) {
        before->second += run->second;
        free_.erase(run);
    }
}

void PhysicalMemory::write(Frame frame, uint64_t offset, std::span<const uint8_t> data) {
    check(frame, 1);
    if (offset > PAGE_SIZE || data.size() > PAGE_SIZE - offset)
        throw std::out_of_range("a write that goes beyond its frame");
    if (holds_code(frame) && stores_into_code_)
        stores_into_code_->note((uint64_t{frame} << PAGE_SHIFT) + offset, data.size(), nullptr);
    else if (holds_code(frame))
        code_changed();
    std::memcpy(host(frame) + offset, data.data(), data.size());
}

AddressTranslation::AddressTranslation(std::shared_ptr<PhysicalMemory> memory)
    : memory_(std::move(memory)), id_(memory_->new_space_id()) {}

AddressTranslation::~AddressTranslation() = default;

// Splits [address, address + size) at page boundaries; `copy(host, offset, length)` gets each piece until one is
// missing.
template <typename Copy>
static uint64_t each_piece(const AddressTranslation& space, uint64_t address, uint64_t size, Copy copy) {
    uint64_t done = 0;
    while (done < size) {
        uint8_t* host = space.host(address + done);
        if (!host) break;
        uint64_t length = std::min(size - done, PAGE_SIZE - ((address + done) & PAGE_MASK));
        copy(host, done, length);
        done += length;
    }
    return done;
}

uint64_t AddressTranslation::read(uint64_t address, std::span<uint8_t> into) const {
    return each_piece(*this, address, into.size(), [&](const uint8_t* host, uint64_t offset, uint64_t length) {
        std::memcpy(into.data() + offset, host, length);
    });
}

uint64_t AddressTranslation::write(uint64_t address, std::span<const uint8_t> data) {
    return each_piece(*this, address, data.size(), [&](uint8_t* host, uint64_t offset, uint64_t length) {
        if (memory_->holds_code(lookup(address + offset).frame)) memory_->code_changed();
        std::memcpy(host, data.data() + offset, length);
    });
}

uint64_t AddressTranslation::write_permitted(uint64_t address, std::span<const uint8_t> data) {
    uint64_t size = data.size(), permitted = 0;
    while (permitted < size) {
        const Page page = lookup(address + permitted);
        if (!page.present || !(page.protection & WRITE)) break;
        permitted += PAGE_SIZE - ((address + permitted) & PAGE_MASK);
    }
    return write(address, data.first(std::min(permitted, size)));
}

AddressSpace::AddressSpace(std::shared_ptr<PhysicalMemory> memory)
    : AddressTranslation(std::move(memory)), root_(std::make_unique<Root>()) {}

AddressSpace::~AddressSpace() {
    unmap(0, 1ull << (ADDRESS_BITS - PAGE_SHIFT));
    memory_->give_tables(tables_);
}

const AddressSpace::Leaf* AddressSpace::find_leaf(uint64_t address) const {
    if (address >> ADDRESS_BITS) return nullptr;
    const Upper* upper = (*root_)[index(address, 3)].get();
    if (!upper) return nullptr;
    const Middle* middle = (*upper)[index(address, 2)].get();
    return middle ? (*middle)[index(address, 1)].get() : nullptr;
}

AddressSpace::Leaf& AddressSpace::make_leaf(uint64_t address) {
    auto& upper = (*root_)[index(address, 3)];
    if (!upper) upper = std::make_unique<Upper>();
    auto& middle = (*upper)[index(address, 2)];
    if (!middle) {
        memory_->take_table();
        tables_++;
        middle = std::make_unique<Middle>();
    }
    auto& leaf = (*middle)[index(address, 1)];
    if (!leaf) {
        memory_->take_table();
        tables_++;
        leaf = std::make_unique<Leaf>();
    }
    return *leaf;
}

Page AddressSpace::lookup(uint64_t address) const {
    const Leaf* leaf = find_leaf(address);
    return leaf ? leaf->pages[index(address, 0)] : Page{};
}

template <typename Visit>
void AddressSpace::each_leaf(uint64_t address, uint64_t count, Visit visit) const {
    static constexpr uint64_t LEAF_BYTES = PAGE_SIZE * ENTRIES;
    static constexpr uint64_t MIDDLE_BYTES = LEAF_BYTES * ENTRIES;
    static constexpr uint64_t UPPER_BYTES = MIDDLE_BYTES * ENTRIES;
    static constexpr uint64_t PAGES = uint64_t{1} << (ADDRESS_BITS - PAGE_SHIFT);
    uint64_t first = address >> PAGE_SHIFT;
    if (first >= PAGES) return;
    uint64_t end = (first + std::min(count, PAGES - first)) << PAGE_SHIFT;
    auto past = [](uint64_t at, uint64_t bytes) { return (at / bytes + 1) * bytes; };
    while (address < end) {
        Upper* upper = (*root_)[index(address, 3)].get();
        if (!upper) {
            address = past(address, UPPER_BYTES);
            continue;
        }
        Middle* middle = (*upper)[index(address, 2)].get();
        if (!middle) {
            address = past(address, MIDDLE_BYTES);
            continue;
        }
        std::unique_ptr<Leaf>& leaf = (*middle)[index(address, 1)];
        uint64_t leaf_end = std::min(end, past(address, LEAF_BYTES));
        if (leaf) visit(leaf, address, leaf_end);
        address = leaf_end;
    }
}

template <typename Visit>
void AddressSpace::each_present(uint64_t address, uint64_t count, Visit visit) const {
    each_leaf(address, count, [&](std::unique_ptr<Leaf>& leaf, uint64_t at, uint64_t end) {
        for (; at < end; at += PAGE_SIZE)
            if (Page& page = leaf->pages[index(at, 0)]; page.present) visit(at, page);
    });
}

void AddressSpace::drop(Page& page) {
    if (memory_->holds_code(page.frame)) code_generation_++;
    memory_->release(page.frame, 1);
    page = Page{};
}

void AddressSpace::map(uint64_t address, Frame frame, uint64_t count, uint8_t protection) {
    if (address & PAGE_MASK) throw std::invalid_argument("address is not a multiple of 4096");
    if (address >> ADDRESS_BITS || (address + count * PAGE_SIZE - 1) >> ADDRESS_BITS)
        throw std::out_of_range("address beyond 48 bits");
    for (uint64_t i = 0; i < count; i += ENTRIES - index(address + i * PAGE_SIZE, 0))
        make_leaf(address + i * PAGE_SIZE);
    memory_->retain(frame, count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = address + i * PAGE_SIZE;
        Leaf& leaf = make_leaf(at);
        Page& page = leaf.pages[index(at, 0)];
        if (page.present) {
            drop(page);
            generation_++;
        } else {
            leaf.present++;
            present_pages_++;
        }
        page = Page{.frame = static_cast<Frame>(frame + i), .protection = protection, .present = true};
        if (protection & EXECUTE) memory_->mark_executable(page.frame);
    }
}

uint64_t AddressSpace::unmap(uint64_t address, uint64_t count) {
    uint64_t dropped = 0;
    each_leaf(address, count, [&](std::unique_ptr<Leaf>& leaf, uint64_t at, uint64_t end) {
        for (; at < end; at += PAGE_SIZE) {
            Page& page = leaf->pages[index(at, 0)];
            if (!page.present) continue;
            drop(page);
            leaf->present--;
            dropped++;
        }
        if (leaf->present) return;
        leaf.reset();
        tables_--;
        memory_->give_tables(1);
    });
    if (dropped) generation_++;
    present_pages_ -= dropped;
    return dropped;
}

void AddressSpace::protect(uint64_t address, uint64_t count, uint8_t protection) {
    each_present(address, count, [&](uint64_t, Page& page) {
        if (page.protection == protection) return;
        page.protection = protection;
        if (protection & EXECUTE) memory_->mark_executable(page.frame);
        if (memory_->holds_code(page.frame)) code_generation_++;
        generation_++;
    });
}

std::vector<uint64_t> AddressSpace::present(uint64_t address, uint64_t count) const {
    std::vector<uint64_t> addresses;
    each_present(address, count, [&](uint64_t at, Page&) { addresses.push_back(at); });
    return addresses;
}

std::shared_ptr<AddressSpace> AddressSpace::fork() {
    auto child = std::make_shared<AddressSpace>(memory_);
    generation_++;
    each_present(0, uint64_t{1} << (ADDRESS_BITS - PAGE_SHIFT), [&](uint64_t address, Page& page) {
        Leaf& leaf = child->make_leaf(address);
        page.protection &= ~WRITE;
        memory_->retain(page.frame, 1);
        leaf.pages[index(address, 0)] = page;
        leaf.present++;
    });
    child->present_pages_ = present_pages_;
    return child;
}

}  // namespace perfemu
