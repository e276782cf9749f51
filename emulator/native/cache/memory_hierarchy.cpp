// MemorySystem behind the first level: outer caches, memory, and what other cores hold.
#include "cache/memory_system.hpp"

namespace perfemu {

MemorySystem::Arrival MemorySystem::obtain(unsigned depth, uint64_t line, const CacheAccess& access, uint64_t cycle) {
    if (coherent_ && depth == first_shared_) return obtain_among_cores(depth, line, access, cycle);
    return obtain_from(depth, line, access, cycle, false);
}

MemorySystem::Arrival MemorySystem::obtain_from(unsigned depth, uint64_t line, const CacheAccess& access,
                                                uint64_t cycle, bool keep) {
    if (depth == outer_.size()) {
        if (shared_->has_memory()) count(Probe::DRAM_READ);
        return {shared_->read(cycle), 0};
    }
    OuterCache& cache = *outer_[depth];
    bool exclusive = cache.inclusion == Inclusion::EXCLUSIVE, demanded = access.demanded();
    if (demanded) count(cache.access[static_cast<unsigned>(access.kind)]);
    uint32_t slot = cache.find(line);
    const bool hit = slot != TagArray::NOWHERE;
    bool is_news = !hit;
    uint64_t victim = NO_LINE;
    cycle = cache.enter_bank(line, cycle);
    Arrival arrival;
    if (hit) {
        uint8_t& flags = cache.flags[slot];
        arrival = {std::max(cycle + cache.latency, cache.arrival[slot]),
                   static_cast<uint8_t>(flags & (DIRTY | SHARED))};
        if (demanded && flags & PREFETCHED) {
            flags &= static_cast<uint8_t>(~PREFETCHED);
            is_news = true;
            if (cache.counts_prefetches) count(Probe::L2_PREFETCH_USED);
        }
        if (exclusive && !keep) {
            cache.take_out(slot, Removal::MOVED);
        } else {
            cache.use(slot, access, ++cache.clock);
            arrival.flags &= static_cast<uint8_t>(~DIRTY);
        }
        if (access.stores() && arrival.flags & SHARED) {
            arrival.cycle = std::max(arrival.cycle, claim(line, cycle));
            arrival.flags &= static_cast<uint8_t>(~SHARED);
        }
    } else {
        if (demanded) count(cache.refill[static_cast<unsigned>(access.kind)]);
        MissQueue& misses = cache.misses;
        unsigned place = misses.limited() ? misses.choose(cycle) : 0;
        arrival = obtain(depth + 1, line, access, misses.limited() ? misses.start(place, cycle) : cycle);
        if (misses.limited()) misses.hold(place, arrival.cycle);
        if (!exclusive) {
            victim = insert(depth, line, arrival.flags, access, cycle, arrival.cycle);
            arrival.flags &= static_cast<uint8_t>(~DIRTY);
        }
    }
    if (is_news && !cache.prefetchers.empty())
        tell_prefetchers(static_cast<int>(depth), cache, access, {hit, line, victim});
    return arrival;
}

// A line that is in none of this core's caches, where other cores may have it: an owner answers, because it may have
// written the line; else the shared caches; else a core that shares it; else memory.
MemorySystem::Arrival MemorySystem::obtain_among_cores(unsigned depth, uint64_t line, const CacheAccess& access,
                                                       uint64_t cycle) {
    const bool to_write = access.stores(), demanded = access.demanded();
    SharedMemory::Answer answer = shared_->ask(core_, line, to_write, cycle);
    OuterCache* cache = depth < outer_.size() ? outer_[depth] : nullptr;
    uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
    Arrival arrival;
    if (answer.owned || (answer.others && slot == TagArray::NOWHERE)) {
        if (!answer.owned && !to_write) shared_->ask_sharer(answer.others);
        if (demanded) count(answer.modified ? Probe::FETCHED_HITM : Probe::FETCHED_HIT);
        if (demanded && cache) count(cache->access[static_cast<unsigned>(access.kind)]);
        if (slot != TagArray::NOWHERE) cache->use(slot, access, ++cache->clock);
        arrival = {shared_->hand_over(core_, line, cycle), answer.modified && to_write ? DIRTY : uint8_t{0}};
    } else {
        arrival = obtain_from(depth, line, access, cycle, answer.others != 0);
    }
    if (answer.others && !to_write) arrival.flags |= SHARED;
    return arrival;
}

uint64_t MemorySystem::insert(unsigned depth, uint64_t line, uint8_t flags, const CacheAccess& access, uint64_t cycle,
                              uint64_t arrival) {
    OuterCache& cache = *outer_[depth];
    if (cache.shared) flags &= static_cast<uint8_t>(~SHARED);  // which is said of private copies
    uint32_t slot = cache.find(line);
    if (slot != TagArray::NOWHERE) {  // a second victim of an exclusive cache: both L1 had it
        cache.flags[slot] |= flags & DIRTY;
        cache.use(slot, access, ++cache.clock);
        return NO_LINE;
    }
    slot = cache.room(line, access);
    const uint64_t victim = cache.tag(slot);
    if (victim != NO_LINE) evict(depth, slot, cycle);
    cache.fill(slot, line, flags, access, ++cache.clock, arrival);
    return victim;
}

void MemorySystem::evict(unsigned depth, uint32_t slot, uint64_t cycle) {
    OuterCache& cache = *outer_[depth];
    uint64_t line = cache.tag(slot);
    uint8_t flags = cache.flags[slot];
    cache.take_out(slot, Removal::EVICTED);
    if (cache.inclusion == Inclusion::INCLUSIVE) {
        bool dirty = cache.shared && coherent_ ? shared_->recall(line) : take_from_inner(depth, line, true);
        if (dirty) flags |= DIRTY;
    }
    if (flags & DIRTY) count(cache.write_back);
    pass_on(depth + 1, line, flags, cycle);
}

void MemorySystem::pass_on(unsigned depth, uint64_t line, uint8_t flags, uint64_t cycle) {
    if (flags & DIRTY)
        write_back(depth, line, cycle);
    else if (depth < outer_.size() && outer_[depth]->inclusion == Inclusion::EXCLUSIVE)
        insert(depth, line, flags & SHARED, write_back_of(line), cycle, cycle);
    if (coherent_ && depth <= first_shared_) forget_if_gone(line);
}

// A dirty line comes to a cache, or to memory. All of it is written: nothing need be read.
void MemorySystem::write_back(unsigned depth, uint64_t line, uint64_t cycle) {
    if (depth == outer_.size()) {
        if (!shared_->has_memory()) return;
        count(Probe::DRAM_WRITE);
        shared_->write(cycle);
        return;
    }
    OuterCache& cache = *outer_[depth];
    uint32_t slot = cache.find(line);
    if (slot == TagArray::NOWHERE) {
        insert(depth, line, DIRTY, write_back_of(line), cycle, cycle);
        return;
    }
    cache.flags[slot] |= DIRTY;
    cache.use(slot, write_back_of(line), ++cache.clock);
}

bool MemorySystem::take_from_inner(unsigned depth, uint64_t line, bool written_back) {
    bool dirty = false;
    auto take = [&](Cache* cache, Probe write_back) {
        uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
        if (slot == TagArray::NOWHERE) return;
        bool was_dirty = cache->flags[slot] & DIRTY;
        if (was_dirty && written_back && cache != l1i_.get()) count(write_back);
        dirty |= was_dirty;
        if (cache == l1d_.get()) {
            data_lines_.clear_slot(slot, line);
        } else if (cache == l1i_.get()) {
            fetch_lines_.clear_slot(slot, line);
        }
        cache->take_out(slot, Removal::INVALIDATED);
    };
    take(l1i_.get(), Probe::L1D_WRITE_BACK);
    take(l1d_.get(), Probe::L1D_WRITE_BACK);
    for (unsigned inner = 0; inner < std::min(depth, first_shared_); ++inner)
        take(outer_[inner], outer_[inner]->write_back);
    return dirty;
}

bool MemorySystem::surrender(uint64_t line, bool written_back) {
    return take_from_inner(first_shared_, line, written_back);
}

bool MemorySystem::demote(uint64_t line, uint64_t cycle) {
    bool dirty = false;
    auto share = [&](Cache* cache, Probe write_back) {
        uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
        if (slot == TagArray::NOWHERE) return;
        bool was_dirty = cache->flags[slot] & DIRTY;
        if (was_dirty && cache != l1i_.get()) count(write_back);
        dirty |= was_dirty;
        if (cache == l1d_.get()) data_lines_.clear_stores(slot, line);
        cache->flags[slot] = static_cast<uint8_t>((cache->flags[slot] | SHARED) & ~DIRTY);
    };
    share(l1i_.get(), Probe::L1D_WRITE_BACK);
    share(l1d_.get(), Probe::L1D_WRITE_BACK);
    for (auto& level : private_) share(level.get(), level->write_back);
    if (dirty) write_back(first_shared_, line, cycle);
    return dirty;
}

void MemorySystem::forget_if_gone(uint64_t line) {
    auto holds = [&](Cache* cache) { return cache && cache->find(line) != TagArray::NOWHERE; };
    if (holds(l1i_.get()) || holds(l1d_.get())) return;
    for (auto& level : private_)
        if (holds(level.get())) return;
    shared_->forget(core_, line);
}

// A store to a line that other cores may share. Returns when it is this core's alone.
uint64_t MemorySystem::claim(uint64_t line, uint64_t cycle) {
    const bool held = shared_->ask(core_, line, true, cycle).others != 0;
    auto own = [&](Cache* cache) {
        uint32_t slot = cache ? cache->find(line) : TagArray::NOWHERE;
        if (slot != TagArray::NOWHERE) cache->flags[slot] &= static_cast<uint8_t>(~SHARED);
    };
    own(l1i_.get());
    own(l1d_.get());
    for (auto& level : private_) own(level.get());
    return held ? shared_->hand_over(core_, line, cycle) : cycle + shared_->coherence_latency();
}

}  // namespace perfemu
