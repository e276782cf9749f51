#include "engine/guest_tlb.hpp"

#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "engine/linkage.hpp"

namespace perfemu {
namespace {

// QEMU's ARMMMUIdx: what EL0 does, and loads and stores at EL1 that act for it; not secure, and secure.
constexpr uint16_t EVERY = 0xfff, USER = 1 << 0 | 1 << 7, KERNEL = EVERY & ~USER;

std::mutex guard;
std::unordered_map<void*, GuestTlb*> tlbs;  // by the engine's CPU
thread_local GuestTlb* new_one = nullptr;   // whose CPU comes with the next flush
thread_local unsigned index_at_fill = 0;

GuestTlb* tlb_of(void* cpu) {
    const std::lock_guard lock(guard);
    const auto found = tlbs.find(cpu);
    return found == tlbs.end() ? nullptr : found->second;
}

using FillTlb = bool(void* cpu, uint64_t address, int size, int access, int index, bool probe, uintptr_t);
FillTlb* engine_fill_tlb = nullptr;
bool fill_tlb(void* cpu, uint64_t address, int size, int access, int index, bool probe, uintptr_t return_address) {
    index_at_fill = static_cast<unsigned>(index);
    return engine_fill_tlb(cpu, address, size, access, index, probe, return_address);
}

using Flush = void(void* cpu);
using FlushIndexes = void(void* cpu, uint16_t indexes);
using FlushPage = void(void* cpu, uint64_t address, uint16_t indexes);
Flush* engine_flush = nullptr;
FlushIndexes* engine_flush_indexes = nullptr;
FlushIndexes* engine_flush_indexes_everywhere = nullptr;
FlushPage* engine_flush_page = nullptr;
FlushPage* engine_flush_page_everywhere = nullptr;

// A block's address and size as one number: the size is a power of two, and the address a multiple of it.
constexpr uint64_t block_key(uint64_t address, unsigned shift) { return address >> shift << shift | shift; }

}  // namespace

void take_over_tlb_flushes() {
    static const bool taken_over = [] {
        const EngineReplacement replacements[] = {
            in_place_of("unicorn_fill_tlb", fill_tlb, &engine_fill_tlb),
            in_place_of("tlb_flush", GuestTlb::flush_for_register, &engine_flush),
            in_place_of("tlb_flush_by_mmuidx", GuestTlb::flush_indexes, &engine_flush_indexes),
            in_place_of("tlb_flush_by_mmuidx_all_cpus_synced", GuestTlb::flush_indexes_everywhere,
                        &engine_flush_indexes_everywhere),
            in_place_of("tlb_flush_page_by_mmuidx", GuestTlb::flush_page, &engine_flush_page),
            in_place_of("tlb_flush_page_by_mmuidx_all_cpus_synced", GuestTlb::flush_page_everywhere,
                        &engine_flush_page_everywhere),
        };
        replace_in_engine(replacements, "aarch64");
        return true;
    }();
    (void)taken_over;
}

unsigned filled_index() { return index_at_fill; }
bool fills_for_user() { return USER >> index_at_fill & 1; }

GuestTlb::GuestTlb(uc_engine* engine, RememberedPages& accessed, FetchedPages& fetched)
    : accessed_(accessed), fetched_(fetched) {
    new_one = this;
    uc_ctl_flush_tlb(engine);
    if (std::exchange(new_one, nullptr)) throw std::logic_error("the engine does not flush its TLB when it is told to");
    const std::lock_guard lock(guard);
    tlbs[cpu_] = this;
}

GuestTlb::~GuestTlb() {
    const std::lock_guard lock(guard);
    tlbs.erase(cpu_);
}

void GuestTlb::flush_for_register(void* cpu) {
    if (new_one) std::exchange(new_one, nullptr)->cpu_ = cpu;
    if (!tlb_of(cpu)) engine_flush(cpu);
}

// By TLBI of all.
void GuestTlb::flush_indexes(void* cpu, uint16_t indexes) {
    if (GuestTlb* tlb = tlb_of(cpu)) tlb->forget(indexes);
    engine_flush_indexes(cpu, indexes);
}

void GuestTlb::flush_indexes_everywhere(void* cpu, uint16_t indexes) {
    if (GuestTlb* tlb = tlb_of(cpu)) tlb->forget(indexes);
    engine_flush_indexes_everywhere(cpu, indexes);
}

// By TLBI of an address. One within a block is for all of it, though the engine has its pages one by one: then these
// are to be flushed.
uint16_t GuestTlb::forget_page(void* cpu, uint64_t address, uint16_t indexes) {
    GuestTlb* tlb = tlb_of(cpu);
    if (!tlb) return 0;
    if (tlb->is_in_block(address)) {
        tlb->forget(indexes);
        return indexes;
    }
    tlb->accessed_.forget_page(address >> PAGE_SHIFT, indexes);
    tlb->fetched_.forget_page(address >> PAGE_SHIFT);
    return 0;
}

void GuestTlb::forget(uint16_t indexes) {
    accessed_.forget(indexes);
    fetched_.forget();
}

void GuestTlb::flush_page(void* cpu, uint64_t address, uint16_t indexes) {
    if (const uint16_t all_of = forget_page(cpu, address, indexes)) return engine_flush_indexes(cpu, all_of);
    engine_flush_page(cpu, address, indexes);
}

void GuestTlb::flush_page_everywhere(void* cpu, uint64_t address, uint16_t indexes) {
    if (const uint16_t all_of = forget_page(cpu, address, indexes)) return engine_flush_indexes(cpu, all_of);
    engine_flush_page_everywhere(cpu, address, indexes);
}

bool GuestTlb::is_in_block(uint64_t address) const {
    for (const unsigned shift : GuestPageTables::BLOCK_SHIFTS)
        if (blocks_.contains(block_key(address, shift))) return true;
    return false;
}

void GuestTlb::flush(uint16_t indexes) {
    accessed_.forget(indexes);
    engine_flush_indexes(cpu_, indexes);
}

void GuestTlb::refill() { engine_flush_indexes(cpu_, EVERY); }

void GuestTlb::flush() {
    flush(EVERY);
    kernel_has_local_ = false;
    blocks_.clear();
}

bool GuestTlb::follow(const GuestPageTables& tables) {
    if (common_ != tables.common()) {
        common_ = tables.common();
        kernel_ = user_ = tables.tables();
        flush();
        return true;
    }
    bool outdated = false;
    if (kernel_ != tables.tables()) {
        kernel_ = tables.tables();
        outdated = kernel_has_local_ || tables.kernel_executes_locally();
        if (outdated) flush(KERNEL);
        kernel_has_local_ = false;
    }
    return tables.level() == Level::USER ? follow_user(tables) : outdated;
}

bool GuestTlb::follow_user(const GuestPageTables& tables) {
    if (user_ == tables.tables()) return false;
    user_ = tables.tables();
    flush(USER);
    return true;
}

void GuestTlb::note_fill(const GuestPageTables& tables, uint64_t address, const PageWalk& walk, bool for_user) {
    if (for_user)
        follow_user(tables);
    else
        kernel_has_local_ |= walk.is_local;
    if (walk.block_shift) blocks_.insert(block_key(address, walk.block_shift));
}

}  // namespace perfemu
