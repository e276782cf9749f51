// MemorySystem among others: what it asks of other cores' caches, and they of its own.
#include "cache/memory_system.hpp"

namespace perfemu {

// A line that is in none of this core's caches, where other cores may have it: an owner answers, because it may have
// written the line; else the shared caches; else a core that shares it; else memory.
MemorySystem::Arrival MemorySystem::request_among_cores(unsigned depth, const CacheAccess& access, uint64_t line,
                                                        uint64_t cycle) {
    const bool to_write = access.stores(), demanded = access.demanded();
    SharedMemory::Answer answer = shared_->ask(core_, line, to_write, cycle);
    OuterCache* cache = depth < outer_.size() ? outer_[depth] : nullptr;
    uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
    Arrival arrival;
    if (answer.owned || (answer.others && slot == TagArray::NOWHERE)) {
        if (!answer.owned && !to_write) shared_->ask_sharer(answer.others);
        if (demanded) count(answer.modified ? Probe::FETCHED_HITM : Probe::FETCHED_HIT);
        if (cache) count_access(*cache, access);
        if (slot != TagArray::NOWHERE) cache->use(slot, access, ++cache->clock);
        arrival = {shared_->hand_over(core_, line, cycle), answer.modified && to_write ? DIRTY : uint8_t{0}};
    } else {
        arrival = request_from<Detail::FULL>(depth, access, line, cycle, answer.others != 0);
    }
    if (answer.others && !to_write) arrival.flags |= SHARED;
    return arrival;
}

template <typename Act>
inline void MemorySystem::each_copy(uint64_t line, unsigned depth, Act act) {
    auto visit = [&](Cache* cache, FirstLevel* level) {
        const uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
        if (slot != TagArray::NOWHERE) act(*cache, slot, level);
    };
    for (FirstLevel* level : {&instructions_, &data_}) visit(level->cache.get(), level);
    for (unsigned inner = 0; inner < std::min(depth, first_shared_); ++inner) visit(outer_[inner], nullptr);
}

bool MemorySystem::take_from_inner(unsigned depth, uint64_t line, bool written_back) {
    bool dirty = false;
    each_copy(line, depth, [&](Cache& cache, uint32_t slot, FirstLevel* level) {
        const bool was_dirty = cache.flags[slot] & DIRTY;
        if (was_dirty && written_back && cache.probes.write_back) count(*cache.probes.write_back);
        dirty |= was_dirty;
        if (level) level->lines.clear_slot(slot, line);
        cache.take_out(slot, Removal::INVALIDATED);
    });
    return dirty;
}

bool MemorySystem::surrender(uint64_t line, bool written_back) {
    return take_from_inner(first_shared_, line, written_back);
}

bool MemorySystem::demote(uint64_t line, uint64_t cycle) {
    bool dirty = false;
    each_copy(line, first_shared_, [&](Cache& cache, uint32_t slot, FirstLevel* level) {
        uint8_t& flags = cache.flags[slot];
        if (flags & DIRTY && cache.probes.write_back) count(*cache.probes.write_back);
        dirty |= (flags & DIRTY) != 0;
        if (level) level->lines.clear_stores(slot, line);
        flags = static_cast<uint8_t>((flags | SHARED) & ~DIRTY);
    });
    if (dirty) write_back(first_shared_, line, cycle);
    return dirty;
}

void MemorySystem::forget_if_gone(uint64_t line) {
    bool held = false;
    each_copy(line, first_shared_, [&](Cache&, uint32_t, FirstLevel*) { held = true; });
    if (!held) shared_->forget(core_, line);
}

// A store to a line that other cores may share. Returns when it is this core's alone.
uint64_t MemorySystem::claim(uint64_t line, uint64_t cycle) {
    const bool held = shared_->ask(core_, line, true, cycle).others != 0;
    each_copy(line, first_shared_,
              [](Cache& cache, uint32_t slot, FirstLevel*) { cache.flags[slot] &= static_cast<uint8_t>(~SHARED); });
    return held ? shared_->hand_over(core_, line, cycle) : cycle + shared_->coherence_latency();
}

}  // namespace perfemu
