// The path of an access: the first level, the outer caches, memory. In each cache, it is tried to hit; a miss asks the
// next level, and what comes from there fills the cache.
#include <utility>

#include "cache/memory_system.hpp"

namespace perfemu {

// --- data and fetches, by lines ---

uint64_t MemorySystem::access_lines(const CacheAccess& access, uint32_t size, uint64_t cycle, uint32_t elements) {
    if (!data_.cache && !data_.tlb) return cycle;
    const uint64_t address = access.address, last = address + size - 1;
    if (!outer_.empty()) outer_[0]->expect(address >> line_shift_);
    if (data_.cache) {
        const uint32_t element = size / elements, alignment = element & (0 - element);
        if (address & (alignment - 1)) count(access.stores() ? Probe::UNALIGNED_STORE : Probe::UNALIGNED_LOAD);
    }
    auto access_part = [&](uint64_t at, uint64_t start) {
        return data_.cache ? access_line(data_, access.at(at), start) : start;
    };
    Times& times = times_[index(access.kind)];
    if (((address ^ last) & outside_line_) == 0) {
        const uint64_t translated = translate<Detail::FULL>(data_, access, cycle);
        const uint64_t ready = access_part(address, translated);
        times = {cycle, translated, ready};
        return ready;
    }
    if (data_.cache) count(access.stores() ? Probe::L1D_SPLIT_STORE : Probe::L1D_SPLIT_LOAD);
    uint64_t ready = cycle, start = cycle;
    for (uint64_t at = address;; at = (at & outside_line_) + fetch_line_bytes()) {
        if (at == address || (at & 0xFFF) == 0) start = translate<Detail::FULL>(data_, access.at(at), cycle);
        ready = std::max(ready, access_part(at, start));
        times = {cycle, start, ready};
        if (((at ^ last) & outside_line_) == 0) return ready;
    }
}

uint64_t MemorySystem::fetch_line(uint64_t address, uint64_t cycle) {
    const CacheAccess access{address, address, Request::FETCH};
    const uint64_t translated = translate<Detail::FULL>(instructions_, access, cycle);
    const uint64_t ready = instructions_.cache ? access_line(instructions_, access, translated) : translated;
    times_[index(Request::FETCH)] = {cycle, translated, ready};
    return ready;
}

// Alone, so that the loop has the registers.
[[gnu::noinline]] size_t MemorySystem::filtered_hits(const uint64_t* addresses, const AccessShape* shapes, size_t first,
                                                     size_t end) {
    return data_.filtered_hits(addresses, first, end, [&](size_t n) { return shapes[n].at(addresses[n]); });
}

size_t MemorySystem::filtered_fetches(const uint64_t* lines, size_t first, size_t end) {
    return instructions_.filtered_hits(lines, first, end, [](size_t) { return WHOLE_LINE; });
}

uint64_t MemorySystem::access_batch(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t end,
                                    uint64_t cycle) {
    constexpr size_t AHEAD = 32;  // accesses
    uint64_t others = 0;
    size_t last = first, expected = first;
    for (;; ++first) {
        first = filtered_hits(addresses, shapes, first, end);
        if (first == end) return others;
        const uint64_t address = addresses[first];
        const AccessShape shape = shapes[first];
        const CacheAccess access{0, address, shape.stores() ? Request::STORE : Request::LOAD};
        if (shape.at(address).leaves) [[unlikely]] {
            others += uint64_t{1} << 32 * access.stores();
            access_lines(access, shape.size(), cycle, shape.size() / shape.alignment());
            continue;
        }
        // Misses come in company: the next ones' sets are brought while this one is looked for.
        if (first - std::exchange(last, first) < AHEAD) {
            const size_t horizon = std::min(first + AHEAD, end);
            for (expected = std::max(expected, first + 1); expected < horizon; ++expected) {
                const uint64_t tag = addresses[expected] >> FirstLevel::LINE_SHIFT;
                if (L0Filter::difference(data_.lines.line(tag), tag)) outer_[0]->expect(tag);
            }
        }
        translate<Detail::UNTIMED>(data_, access, cycle);
        access_line<Detail::UNTIMED>(data_, access, cycle);
    }
}

// --- the first level ---

uint64_t MemorySystem::access_line(FirstLevel& level, const CacheAccess& access, uint64_t cycle) {
    if (level.is_simple) return access_line<Detail::SIMPLE>(level, access, cycle);
    return access_line<Detail::FULL>(level, access, cycle);
}

template <MemorySystem::Detail DETAIL>
[[gnu::always_inline]] inline uint64_t MemorySystem::access_line(FirstLevel& level, const CacheAccess& access,
                                                                 uint64_t cycle) {
    Cache& cache = *level.cache;
    Lookup lookup{.access = access.at(in_caches(access.address)), .line = 0, .cycle = cycle};
    lookup.line = lookup.access.address >> line_shift_;
    if (DETAIL != Detail::UNTIMED) count(cache.probes.access[index(access.kind)]);
    const bool hit = try_hit<DETAIL>(level, lookup);
    if (!hit) handle_miss<DETAIL>(level, lookup);
    // LRU, and all is brought, if there is less detail.
    if (DETAIL != Detail::FULL || (lookup.slot != TagArray::NOWHERE && (hit || cache.fill_is_use())))
        level.lines.set(access.address >> line_shift_, lookup.slot, lookup.line,
                        writes_silently(cache.flags[lookup.slot]));
    if constexpr (DETAIL == Detail::FULL) {
        if (lookup.is_news && !cache.prefetchers.empty())
            tell_prefetchers(&level == &data_ ? IN_L1D : IN_L1I, cache, lookup, hit);
        if (!wanted_.empty()) run_prefetches(cycle);
    }
    return lookup.arrival.cycle;
}

template <MemorySystem::Detail DETAIL>
[[gnu::always_inline]] inline bool MemorySystem::try_hit(FirstLevel& level, Lookup& lookup) {
    Cache& cache = *level.cache;
    const uint32_t slot = lookup.slot = cache.find(lookup.line);
    if (slot == TagArray::NOWHERE) return false;
    lookup.arrival.cycle = std::max(lookup.cycle + cache.latency, cache.arrival[slot]);
    lookup.is_news = note_first_use(cache, lookup);
    cache.use(slot, lookup.access, ++level.clock);
    if constexpr (DETAIL == Detail::FULL) level.lines.age(lookup.line);
    if (lookup.access.stores()) {
        lookup.is_news |= !writes_silently(cache.flags[slot]);
        lookup.arrival.cycle = std::max(lookup.arrival.cycle, write_hit(slot, lookup.line, lookup.cycle));
    }
    return true;
}

template <MemorySystem::Detail DETAIL>
[[gnu::always_inline]] inline void MemorySystem::handle_miss(FirstLevel& level, Lookup& lookup) {
    Cache& cache = *level.cache;
    const bool stores = lookup.access.stores();
    const CacheAccess further = outward(lookup.access, lookup.line);
    lookup.is_news = true;
    if (DETAIL == Detail::FULL && stores && !write_allocate_) {
        lookup.arrival.cycle = write_around(lookup);
        return;
    }
    count(cache.probes.refill[index(lookup.access.kind)]);
    if constexpr (DETAIL == Detail::FULL)
        lookup.arrival = cache.misses.hold_while(
            lookup.cycle, [&](uint64_t start) { return request(0, further, lookup.line, start); });
    else
        lookup.arrival = request_from<DETAIL>(0, further, lookup.line, lookup.cycle);
    if (stores && write_policy_ == WritePolicy::BACK) lookup.arrival.flags |= DIRTY;
    handle_fill<DETAIL>(level, lookup);
    if (DETAIL == Detail::FULL && stores && write_policy_ == WritePolicy::THROUGH)
        write_back(0, lookup.line, lookup.cycle);
}

template <MemorySystem::Detail DETAIL>
[[gnu::always_inline]] inline void MemorySystem::handle_fill(FirstLevel& level, Lookup& lookup) {
    Cache& cache = *level.cache;
    const uint32_t slot = lookup.slot = cache.room(lookup.line, lookup.access);
    if (const uint64_t old = lookup.victim = cache.tag(slot); old != NO_LINE) {
        const uint8_t old_flags = cache.flags[slot];
        level.lines.clear_slot(slot, old);
        if (old_flags & DIRTY && cache.probes.write_back) {
            count(*cache.probes.write_back);
            if (DETAIL == Detail::FULL)
                lookup.arrival.cycle = std::max(lookup.arrival.cycle, evictions_.take(lookup.cycle));
        }
        if constexpr (DETAIL == Detail::FULL) {
            cache.take_out(slot, Removal::EVICTED);  // others ask who holds the line
            pass_on(0, old, old_flags, lookup.cycle);
        } else if (old_flags & DIRTY) {
            write_back(0, old, lookup.cycle);
        }
    }
    if constexpr (DETAIL == Detail::UNTIMED)
        cache.fill(slot, lookup.line, lookup.arrival.flags, lookup.access, ++level.clock);
    else
        cache.fill(slot, lookup.line, lookup.arrival.flags, lookup.access, ++level.clock, lookup.arrival.cycle);
    if constexpr (DETAIL == Detail::FULL) level.lines.age(lookup.line);
}

void MemorySystem::handle_fill(FirstLevel& level, Lookup lookup) { handle_fill<Detail::FULL>(level, lookup); }

uint64_t MemorySystem::write_hit(uint32_t slot, uint64_t line, uint64_t cycle) {
    uint64_t ready = cycle;
    uint8_t& flags = data_.cache->flags[slot];
    if (flags & SHARED) ready = claim(line, cycle);
    if (write_policy_ == WritePolicy::BACK) {
        flags |= DIRTY;
    } else if (write_policy_ == WritePolicy::THROUGH) {
        if (!outer_.empty()) count(outer_[0]->probes.access[index(Request::STORE)]);
        write_back(0, line, cycle);
    }
    return ready;
}

uint64_t MemorySystem::write_around(const Lookup& lookup) {
    uint64_t ready = lookup.cycle + data_.latency;
    if (!outer_.empty())
        ready = request(0, outward(lookup.access, lookup.line), lookup.line, lookup.cycle).cycle;
    else if (coherent_)
        ready = claim(lookup.line, lookup.cycle);
    if (write_policy_ != WritePolicy::UNTRACKED) write_back(0, lookup.line, lookup.cycle);
    if (coherent_) forget_if_gone(lookup.line);
    return ready;
}

// --- the outer caches and memory ---

MemorySystem::Arrival MemorySystem::request(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle) {
    if (coherent_ && depth == first_shared_) return request_among_cores(depth, access, line, cycle);
    return request_from<Detail::FULL>(depth, access, line, cycle);
}

// Depth 0 is L2, where there is one: here it is decided whether an access hits in L2.
template <MemorySystem::Detail DETAIL>
inline MemorySystem::Arrival MemorySystem::request_from(unsigned depth, const CacheAccess& access, uint64_t line,
                                                        uint64_t cycle, bool keep) {
    if (DETAIL == Detail::FULL && depth == outer_.size()) {
        if (shared_->has_memory()) count(Probe::DRAM_READ);
        return {shared_->read(cycle), 0};
    }
    OuterCache& cache = *outer_[depth];
    count_access(cache, access);
    if constexpr (DETAIL == Detail::FULL) cycle = cache.enter_bank(line, cycle);
    Lookup lookup{.access = access, .line = line, .cycle = cycle};
    const bool hit = try_hit<DETAIL>(cache, lookup, keep);
    if (!hit) lookup = handle_miss(depth, lookup);
    if (DETAIL == Detail::FULL && lookup.is_news && !cache.prefetchers.empty())
        tell_prefetchers(static_cast<int>(depth), cache, lookup, hit);
    return lookup.arrival;
}

template MemorySystem::Arrival MemorySystem::request_from<MemorySystem::Detail::FULL>(unsigned, const CacheAccess&,
                                                                                      uint64_t, uint64_t, bool);

template <MemorySystem::Detail DETAIL>
[[gnu::always_inline]] inline bool MemorySystem::try_hit(OuterCache& cache, Lookup& lookup, bool keep) {
    const uint32_t slot = lookup.slot = cache.find(lookup.line);
    if (slot == TagArray::NOWHERE) return false;
    Arrival& arrival = lookup.arrival;
    arrival.cycle = std::max(lookup.cycle + cache.latency, cache.arrival[slot]);
    if constexpr (DETAIL != Detail::FULL) {
        cache.use(slot, lookup.access, ++cache.clock);
        return true;
    }
    lookup.is_news = note_first_use(cache, lookup);
    arrival.flags = cache.flags[slot] & (DIRTY | SHARED);
    if (cache.inclusion == Inclusion::EXCLUSIVE && !keep) {
        cache.take_out(slot, Removal::MOVED);
    } else {
        cache.use(slot, lookup.access, ++cache.clock);
        arrival.flags &= static_cast<uint8_t>(~DIRTY);
    }
    if (lookup.access.stores() && arrival.flags & SHARED) {
        arrival.cycle = std::max(arrival.cycle, claim(lookup.line, lookup.cycle));
        arrival.flags &= static_cast<uint8_t>(~SHARED);
    }
    return true;
}

MemorySystem::Lookup MemorySystem::handle_miss(unsigned depth, Lookup lookup) {
    OuterCache& cache = *outer_[depth];
    lookup.is_news = true;
    if (lookup.access.demanded())
        count(cache.probes.refill[index(lookup.access.kind)]);
    else if (cache.probes.prefetch_refill)
        count(*cache.probes.prefetch_refill);
    lookup.arrival = cache.misses.hold_while(
        lookup.cycle, [&](uint64_t start) { return request(depth + 1, lookup.access, lookup.line, start); });
    if (cache.inclusion == Inclusion::EXCLUSIVE) return lookup;
    lookup.victim = handle_fill(depth, lookup.access, lookup.line, lookup.cycle, lookup.arrival);
    lookup.arrival.flags &= static_cast<uint8_t>(~DIRTY);
    return lookup;
}

uint64_t MemorySystem::handle_fill(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle,
                                   Arrival arrival) {
    OuterCache& cache = *outer_[depth];
    if (cache.shared) arrival.flags &= static_cast<uint8_t>(~SHARED);  // which is said of private copies
    uint32_t slot = cache.find(line);
    if (slot != TagArray::NOWHERE) {  // a second victim of an exclusive cache: both L1 had it
        cache.flags[slot] |= arrival.flags & DIRTY;
        cache.use(slot, access, ++cache.clock);
        return NO_LINE;
    }
    slot = cache.room(line, access);
    const uint64_t victim = cache.tag(slot);
    if (victim != NO_LINE) evict(depth, slot, cycle);
    cache.fill(slot, line, arrival.flags, access, ++cache.clock, arrival.cycle);
    return victim;
}

// --- lines that leave ---

void MemorySystem::evict(unsigned depth, uint32_t slot, uint64_t cycle) {
    OuterCache& cache = *outer_[depth];
    uint64_t line = cache.tag(slot);
    uint8_t flags = cache.flags[slot];
    cache.take_out(slot, Removal::EVICTED);
    if (cache.inclusion == Inclusion::INCLUSIVE) {
        bool dirty = cache.shared && coherent_ ? shared_->recall(line) : take_from_inner(depth, line, true);
        if (dirty) flags |= DIRTY;
    }
    if (flags & DIRTY) count(*cache.probes.write_back);
    pass_on(depth + 1, line, flags, cycle);
}

void MemorySystem::pass_on(unsigned depth, uint64_t line, uint8_t flags, uint64_t cycle) {
    if (flags & DIRTY)
        write_back(depth, line, cycle);
    else if (depth < outer_.size() && outer_[depth]->inclusion == Inclusion::EXCLUSIVE)
        handle_fill(depth, write_back_of(line), line, cycle, {cycle, static_cast<uint8_t>(flags & SHARED)});
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
        handle_fill(depth, write_back_of(line), line, cycle, {cycle, DIRTY});
        return;
    }
    cache.flags[slot] |= DIRTY;
    cache.use(slot, write_back_of(line), ++cache.clock);
}

}  // namespace perfemu
