// What MemorySystem brings before it is asked for: by prefetchers, and by instructions.
#include "cache/memory_system.hpp"

namespace perfemu {

uint64_t MemorySystem::prefetch(uint64_t address, uint64_t pc, uint64_t cycle) {
    if (!data_.cache) return cycle;
    const uint64_t start = translate<Detail::FULL>(data_, {pc, address, Request::PREFETCH}, cycle);
    const uint64_t arrival = prefetch_into({in_caches(address) >> line_shift_, pc, IN_L1D}, start);
    if (!wanted_.empty()) run_prefetches(start);
    return std::max(start, arrival);
}

void MemorySystem::tell_prefetchers(int depth, const Cache& cache, const Lookup& lookup, bool hit) {
    for (const auto& prefetcher : cache.prefetchers) {
        lines_.clear();
        prefetcher->operate(lookup.access, {hit, lookup.line, lookup.victim}, lines_);
        for (uint64_t line : lines_) wanted_.push_back({line, lookup.access.pc, depth});
    }
}

// At the end of an access, so that no line moves below it. What one brings to L1 another may hear in L2, no further.
void MemorySystem::run_prefetches(uint64_t cycle) {
    for (size_t index = 0; index < wanted_.size(); ++index) prefetch_into(Wanted(wanted_[index]), cycle);
    wanted_.clear();
}

// A prefetch that finds no miss register free is dropped. Returns when the line is there, 0 if nothing is brought.
uint64_t MemorySystem::prefetch_into(const Wanted& wanted, uint64_t cycle) {
    const bool is_first = wanted.depth < 0;
    const unsigned depth = is_first ? 0 : static_cast<unsigned>(wanted.depth);
    FirstLevel& level = wanted.depth == IN_L1I ? instructions_ : data_;
    Cache& cache = is_first ? *level.cache : *outer_[depth];
    if (cache.find(wanted.line) != TagArray::NOWHERE) return 0;
    const bool is_exclusive = !is_first && outer_[depth]->inclusion == Inclusion::EXCLUSIVE;
    if (is_exclusive && data_.cache->find(wanted.line) != TagArray::NOWHERE) return 0;
    if (cache.misses.limited() && cache.misses.start(cache.misses.choose(cycle), cycle) > cycle) return 0;
    const CacheAccess access{wanted.pc, wanted.line << line_shift_, Request::PREFETCH};
    Arrival arrival = cache.misses.hold_while(
        cycle, [&](uint64_t start) { return request(is_first ? 0 : depth + 1, access, wanted.line, start); });
    arrival.flags |= PREFETCHED;
    if (cache.probes.prefetch) count(*cache.probes.prefetch);
    if (is_first)
        handle_fill(level, {.access = access, .line = wanted.line, .cycle = cycle, .arrival = arrival});
    else
        handle_fill(depth, access, wanted.line, cycle, arrival);
    return arrival.cycle;
}

}  // namespace perfemu
