// One cache: tags, and what is known of each line. Its owner says what happens between caches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/miss_queue.hpp"
#include "cache/prefetcher.hpp"
#include "cache/tag_array.hpp"
#include "config.hpp"
#include "probes.hpp"

namespace perfemu {

enum class Inclusion : uint8_t { NON_INCLUSIVE, INCLUSIVE, EXCLUSIVE };  // of the caches between this and the core

// Of a line. Without a word about it a line is this core's alone and as memory has it (E), or the caches have no peers.
static constexpr uint8_t DIRTY = 1;       // to be written back (M)
static constexpr uint8_t SHARED = 2;      // another core may hold it (S): a store has to ask first
static constexpr uint8_t PREFETCHED = 4;  // no demand access yet

// What a cache counts: accesses and refills by Request, as far as it has such.
struct CacheProbes {
    Probe access[3], refill[3];  // FETCH, LOAD, STORE
    std::optional<Probe> write_back, prefetch, prefetch_used;
    std::optional<Probe> prefetch_access = {}, prefetch_refill = {};  // of what caches before this one prefetch
};

// The part of a cache that all levels have: [l1i], [l1d], [l2], [llc].
class Cache : public TagArray {
  public:
    Cache(const Config& file, const std::string& name);

    const std::string name;
    const CacheProbes probes;
    unsigned line_shift;
    uint64_t latency;
    MissQueue misses;
    std::vector<uint8_t> flags;  // by slot
    std::vector<std::unique_ptr<Prefetcher>> prefetchers;

    void fill(uint32_t slot, uint64_t line, uint8_t line_flags, const CacheAccess& access, uint64_t now,
              uint64_t arrival) {
        TagArray::fill(slot, line, access, now, arrival);
        flags[slot] = line_flags;
    }
    void fill(uint32_t slot, uint64_t line, uint8_t line_flags, const CacheAccess& access, uint64_t now) {
        TagArray::fill(slot, line, access, now);
        flags[slot] = line_flags;
    }
    void archive(Archive& state) {
        TagArray::archive(state);
        state(misses, flags);
        for (auto& prefetcher : prefetchers) prefetcher->archive(state);
    }
};

// A cache behind the first level.
class OuterCache : public Cache {
  public:
    OuterCache(const Config& file, const std::string& name);

    // The cycle from which the line's bank is free for one who comes at `cycle`; then it is busy.
    uint64_t enter_bank(uint64_t line, uint64_t cycle) {
        return banks.empty() ? cycle : banks[line & (banks.size() - 1)].take(cycle);
    }

    void archive(Archive& state) {
        Cache::archive(state);
        state(banks, clock);
    }

    std::vector<Channel> banks;  // by the lowest bits of a line's number; none: no limit
    Inclusion inclusion;
    uint64_t clock = 0;  // for last_use: one core's would not do, if the cache is shared
    bool shared;         // by all cores
};

// Whether [name].scope says "shared"; missing, it is so for the last-level cache alone.
bool is_shared(const Config& file, const std::string& name);
// A latency in cycles, at least 1. Throws std::invalid_argument.
uint64_t latency_of(const Config& table, const char* key = "latency");

}  // namespace perfemu
