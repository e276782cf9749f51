// MemorySystem's TLBs and page walks.
#include "cache/memory_system.hpp"

namespace perfemu {

// A page that is not the one used last in its set of the first-level TLB.
uint64_t MemorySystem::translate_further(FirstLevel& level, const CacheAccess& access, uint64_t cycle) {
    static constexpr Probe REFILL[] = {Probe::ITLB_REFILL, Probe::DTLB_REFILL_LOAD, Probe::DTLB_REFILL_STORE};
    const uint64_t page = access.address >> PAGE_SHIFT;
    if (!level.tlb) {
        level.pages.set(page, 0, page, true);
        level.use_page(page, true);
        return cycle;
    }
    if (const L0Filter::Entry entry = level.pages.at(page); !L0Filter::difference(entry, page)) {
        level.pages.use(entry, ++level.clock);
        level.use_page(page, true);
        return std::max(cycle, level.pages.arrival(entry));
    }
    Tlb& tlb = *level.tlb;
    const uint64_t tag = in_tlbs(page);
    uint32_t slot = tlb.find(tag);
    const bool hit = slot != TagArray::NOWHERE;
    if (hit) {
        tlb.use(slot, access, ++level.clock);
    } else {
        if (access.demanded()) count(REFILL[index(access.kind)]);
        const uint64_t arrival = look_in_l2tlb(access, tag, cycle);
        level.translated_by = std::max(level.translated_by, arrival);
        slot = tlb.room(tag, access);
        if (tlb.tag(slot) != TagArray::NO_TAG) level.pages.clear_slot(slot, tlb.tag(slot));
        tlb.fill(slot, tag, access, ++level.clock, arrival);
    }
    const bool again = hit || tlb.fill_is_use();  // else a first use is more than another
    level.pages.age(tag);
    if (again) level.pages.set(page, slot, tag, true);
    level.use_page(page, again);
    return std::max(cycle, tlb.arrival[slot]);
}

uint64_t MemorySystem::look_in_l2tlb(const CacheAccess& access, uint64_t page, uint64_t cycle) {
    if (!l2tlb_) return walk(access.kind, page, cycle);
    static constexpr Probe ACCESS[] = {Probe::L2TLB_ACCESS_FETCH, Probe::L2TLB_ACCESS_LOAD, Probe::L2TLB_ACCESS_STORE};
    if (access.demanded()) count(ACCESS[index(access.kind)]);
    uint32_t slot = l2tlb_->find(page);
    cycle += l2tlb_->latency;
    if (slot != TagArray::NOWHERE) {
        l2tlb_->use(slot, access, ++l2tlb_clock_);
        return std::max(cycle, l2tlb_->arrival[slot]);
    }
    uint64_t arrival = walk(access.kind, page, cycle);
    slot = l2tlb_->room(page, access);
    l2tlb_->fill(slot, page, access, ++l2tlb_clock_, arrival);
    return arrival;
}

// The levels above the last are taken to be in walk caches: their time is [page_walk].latency. With `reads_entries` the
// last level's entry is read through the outer caches behind it.
uint64_t MemorySystem::walk(Request request, uint64_t page, uint64_t cycle) {
    static constexpr uint64_t ENTRIES = 0xFFFF'8000'0000'0000;  // where no program has data
    static constexpr uint64_t ENTRY_BYTES = 8;
    static constexpr unsigned TABLES_OF_A_SPACE = 40;  // bits of address
    static constexpr Probe WALK[] = {Probe::ITLB_WALK, Probe::DTLB_WALK_LOAD, Probe::DTLB_WALK_STORE};
    uint64_t end = cycle + walk_latency_;
    if (walk_reads_) {
        uint64_t entry = ENTRIES + (page & PageNames::PAGES) * ENTRY_BYTES;
        uint64_t line = (entry ^ page >> PageNames::PAGE_BITS << TABLES_OF_A_SPACE) >> line_shift_;
        const CacheAccess read{0, line << line_shift_, Request::LOAD};
        Arrival arrival = request_from<Detail::FULL>(0, read, line, end);
        if (outer_[0]->inclusion == Inclusion::EXCLUSIVE) handle_fill(0, read, line, end, arrival);
        end = arrival.cycle;
    }
    if (request != Request::PREFETCH) {
        count(WALK[index(request)]);
        count(request == Request::FETCH ? Probe::ITLB_WALK_CYCLES : Probe::DTLB_WALK_CYCLES, end - cycle);
    }
    return end;
}

}  // namespace perfemu
