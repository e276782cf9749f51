// Caches, TLBs and memory of one core, down to what it shares with others.
//
// Tables of the core file: [l1i], [l1d], [l2], [llc], [memory], [itlb], [dtlb], [l2tlb], [page_walk], [coherence] and
// [prefetcher.NAME]. A table that is missing costs nothing and counts nothing. Latencies are cycles from load to use,
// in all; those of TLBs are added to them. Lines are all of the same size. Addresses are virtual; with one address
// space lines are called by them, with several by what is in memory (PageNames), and what translations are of one space
// only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache.hpp"
#include "cache/cache_access.hpp"
#include "cache/first_level.hpp"
#include "cache/shared_memory.hpp"
#include "cache/tlb.hpp"
#include "config.hpp"
#include "probes.hpp"

namespace perfemu {

// Of L1D. Untracked: nothing is ever dirty, as in simulators that count misses alone.
enum class WritePolicy : uint8_t { BACK, THROUGH, UNTRACKED };

// Each call returns the cycle at which the data are there, if the access starts at `cycle`; calls come in program
// order, which need not be the order of their cycles. Parts that `config` does not have cost nothing and count nothing.
class MemorySystem {
  public:
    // Throws std::invalid_argument, which names the key and what would be right. `totals` has PROBE_COUNT entries.
    MemorySystem(const Config& config, std::shared_ptr<SharedMemory> shared, uint64_t* totals);
    ~MemorySystem();
    MemorySystem(const MemorySystem&) = delete;

    // A load or store: for a store, when it can write its line, which is the end of its time in the store buffer.
    // `elements`: so many accesses of size / elements bytes, one behind the other; they are aligned or not each by
    // itself. The instruction as a whole accesses each line once.
    uint64_t access(const CacheAccess& access, uint32_t size, uint64_t cycle, uint32_t elements = 1) {
        // Not 0 if it is not aligned as a whole; then it may leave its line.
        const uint64_t leaves = (access.address | ~AccessShape::LINE_MASK) & (size - 1);
        if (!data_.filtered_access(access.address, {!access.stores(), leaves}, cycle)) [[unlikely]]
            return access_lines(access, size, cycle, elements);
        count(access.stores() ? Probe::L1D_ACCESS_STORE : Probe::L1D_ACCESS_LOAD);
        if (has_dtlb_) count(access.stores() ? Probe::DTLB_ACCESS_STORE : Probe::DTLB_ACCESS_LOAD);
        return cycle;
    }
    uint64_t load(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements = 1) {
        return access({pc, address, Request::LOAD}, size, cycle, elements);
    }
    uint64_t store(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements = 1) {
        return access({pc, address, Request::STORE}, size, cycle, elements);
    }
    // The line of instructions at `address`.
    uint64_t fetch(uint64_t address, uint64_t cycle) {
        if (!instructions_.filtered_access(address, WHOLE_LINE, cycle)) [[unlikely]]
            return fetch_line(address, cycle);
        count(Probe::L1I_ACCESS);
        if (has_itlb_) count(Probe::ITLB_ACCESS);
        return cycle;
    }

    // --- filtered hits ---
    // For callers who do not ask when the data are there. Whether a load or store hits in the L0 filter, and so changes
    // nothing but counts: then it is done, but for what count_filtered_hits counts for many at once. Otherwise nothing
    // is done.
    bool filtered_hit(uint64_t address, AccessShape shape) {
        return data_.filtered_hit<false>(address, shape.at(address), 0);
    }
    // For callers who do ask: everything must have been there before `cycle`, so that the access takes the latency of a
    // hit, from whatever later cycle on.
    bool filtered_hit_by(uint64_t cycle, uint64_t address, AccessShape shape) {
        return data_.filtered_hit<true>(address, shape.at(address), cycle);
    }
    // The same of the fetch of a line.
    bool filtered_fetch(uint64_t line) { return instructions_.filtered_hit<false>(line, WHOLE_LINE, 0); }
    bool filtered_fetch_by(uint64_t cycle, uint64_t line) {
        return instructions_.filtered_hit<true>(line, WHOLE_LINE, cycle);
    }
    // Many, from `first` on; returns the first that is none, or `behind`.
    size_t filtered_hits(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t end);
    size_t filtered_fetches(const uint64_t* lines, size_t first, size_t end);
    void count_filtered_hits(uint64_t loads, uint64_t stores, uint64_t fetches) {
        uint64_t has_l1d = data_.cache != nullptr;
        totals_[static_cast<unsigned>(Probe::L1D_ACCESS_LOAD)] += loads & (0 - has_l1d);
        totals_[static_cast<unsigned>(Probe::L1D_ACCESS_STORE)] += stores & (0 - has_l1d);
        totals_[static_cast<unsigned>(Probe::L1I_ACCESS)] += fetches;
        totals_[static_cast<unsigned>(Probe::ITLB_ACCESS)] += fetches & (0 - uint64_t{has_itlb_});
        totals_[static_cast<unsigned>(Probe::DTLB_ACCESS_LOAD)] += loads & (0 - uint64_t{has_dtlb_});
        totals_[static_cast<unsigned>(Probe::DTLB_ACCESS_STORE)] += stores & (0 - uint64_t{has_dtlb_});
    }
    // Whether, as long as there are only filtered hits, fetches make no difference to data accesses and they none to
    // fetches, so that many of one kind may be looked up before the other's.
    bool independent_sides() const { return independent_sides_; }
    // For callers who never ask when: whether the cycle of a data access makes no difference to anything that is
    // counted, nor its pc.
    bool ignores_cycles() const { return ignores_cycles_; }
    // All of them then: those that the filter answers, and the others as `access`. Returns how many were others: loads,
    // and stores << 32.
    uint64_t access_batch(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t end,
                          uint64_t cycle);

    // By an instruction: brings the line, counts as no access. Returns when what it brings is there.
    uint64_t prefetch(uint64_t address, uint64_t pc, uint64_t cycle);

    // The kernel has just written a whole page, of the space in which the core executes: with [kernel] fresh_pages =
    // "l1d" its lines are in L1D then. No access is counted, and nobody waits.
    void place_page(uint64_t address, uint64_t cycle);

    // The space in which the core executes from now on. Until it is told, there is one without pages.
    void set_address_space(const std::shared_ptr<AddressTranslation>& space);
    // Before the core executes: pages may have been mapped otherwise.
    void notice_mappings();

    uint32_t fetch_line_bytes() const { return 1u << line_shift_; }
    // Of hits; 0 where there is no such cache.
    uint64_t data_latency() const { return data_.latency; }
    uint64_t fetch_latency() const { return instructions_.latency; }
    // The longest that an access waits for a line that others take, too.
    uint64_t longest_handover() const { return coherent_ ? shared_->longest_handover() : 0; }

    // What SharedMemory does to this core's private caches. Both return whether the line was dirty.
    // The line goes. `written_back`: towards memory, which counts as such; else another core gets it as it is.
    bool surrender(uint64_t line, bool written_back);
    // Another core reads the line: from now on it is shared. If it was dirty it is written back.
    bool demote(uint64_t line, uint64_t cycle);
    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }

    // What cores share is with the first of them. Which space the core executes in it must be told anew.
    void archive(Archive& state) {
        state(data_, instructions_, evictions_, l2tlb_clock_);
        for (auto& cache : private_) cache->archive(state);
        if (l2tlb_) l2tlb_->archive(state);
        if (core_ == 0) shared_->archive(state);
    }
    // When the last access of this kind was asked for that the L0 filter did not answer, its address was translated,
    // and its data were there.
    struct Times {
        uint64_t asked = 0, translated = 0, ready = 0;
    };
    const Times& last_times(Request kind) const { return times_[index(kind)]; }
    // When the last is there of all that the first level has asked for.
    uint64_t last_arrival() const { return std::max(data_.last_arrival(), instructions_.last_arrival()); }

  private:
    static constexpr unsigned PAGE_SHIFT = FirstLevel::PAGE_SHIFT;
    static constexpr uint64_t NO_LINE = TagArray::NO_TAG;
    static constexpr AccessShape::At WHOLE_LINE{.loads = 1, .leaves = 0};

    // How much of a first-level access there can be, which is known from the core file. SIMPLE: no limit of misses, no
    // prefetcher anywhere, LRU, no write-through; the next level is not exclusive; there is no other core. UNTIMED: and
    // nobody asks when, nor for accesses to be counted.
    enum class Detail : uint8_t { FULL, SIMPLE, UNTIMED };

    struct Arrival {
        uint64_t cycle;
        uint8_t flags;
    };
    // An access to one line of a cache, and what came of it.
    struct Lookup {
        CacheAccess access;  // as caches name it
        uint64_t line;
        uint64_t cycle;  // when it starts
        uint32_t slot = TagArray::NOWHERE;
        Arrival arrival{};
        bool is_news = false;       // for prefetchers
        uint64_t victim = NO_LINE;  // the line that made room
    };
    // A line that a prefetcher wants, and for which cache: a first-level one or one of outer_.
    static constexpr int IN_L1I = -2, IN_L1D = -1;
    struct Wanted {
        uint64_t line;
        uint64_t pc;  // of the instruction behind it
        int depth;
    };

    // One that comes to a cache behind the first level.
    void count_access(const Cache& cache, const CacheAccess& access) {
        if (access.demanded())
            count(cache.probes.access[index(access.kind)]);
        else if (cache.probes.prefetch_access)
            count(*cache.probes.prefetch_access);
    }
    static unsigned index(Request kind) { return static_cast<unsigned>(kind); }  // FETCH, LOAD, STORE

    // --- from the core file, in this order ---

    void add_outer_caches(const Config& config);
    void check_levels();
    void read_l1d(const Config& config);
    void read_translation(const Config& config);
    void choose_detail();

    // --- addresses ---

    // The address by which caches know what a virtual one leads to.
    uint64_t in_caches(uint64_t address) {
        return named_ ? name(address >> PAGE_SHIFT) << PAGE_SHIFT | (address & ((1 << PAGE_SHIFT) - 1)) : address;
    }
    uint64_t name(uint64_t page);
    // What TLBs call a page: the space's own.
    uint64_t in_tlbs(uint64_t page) const { return named_ ? page | space_number_ << PageNames::PAGE_BITS : page; }
    void forget_filters();
    // Each returns when the translation is known.
    template <Detail DETAIL>
    uint64_t translate(FirstLevel& level, const CacheAccess& access, uint64_t cycle) {
        static constexpr Probe ACCESS[] = {Probe::ITLB_ACCESS, Probe::DTLB_ACCESS_LOAD, Probe::DTLB_ACCESS_STORE};
        if (DETAIL != Detail::UNTIMED && level.tlb && access.demanded()) count(ACCESS[index(access.kind)]);
        const bool is_there = DETAIL == Detail::UNTIMED || cycle >= level.translated_by;
        if (is_there && level.is_newest(access.address >> PAGE_SHIFT)) return cycle;
        return translate_further(level, access, cycle);
    }
    uint64_t translate_further(FirstLevel& level, const CacheAccess& access, uint64_t cycle);
    uint64_t look_in_l2tlb(const CacheAccess& access, uint64_t page, uint64_t cycle);
    uint64_t walk(Request request, uint64_t page, uint64_t cycle);

    // --- the path of an access: first level, outer caches, memory ---

    uint64_t access_lines(const CacheAccess& access, uint32_t size, uint64_t cycle, uint32_t elements);
    uint64_t fetch_line(uint64_t address, uint64_t cycle);
    uint64_t access_line(FirstLevel& level, const CacheAccess& access, uint64_t cycle);
    template <Detail DETAIL>
    uint64_t access_line(FirstLevel& level, const CacheAccess& access, uint64_t cycle);
    template <Detail DETAIL>
    bool try_hit(FirstLevel& level, Lookup& lookup);
    template <Detail DETAIL>
    void handle_miss(FirstLevel& level, Lookup& lookup);
    template <Detail DETAIL>
    void handle_fill(FirstLevel& level, Lookup& lookup);
    void handle_fill(FirstLevel& level, Lookup lookup);
    // A store to a line that L1D holds: returns when it may be written. To one that L1D will not hold: when it is.
    uint64_t write_hit(uint32_t slot, uint64_t line, uint64_t cycle);
    uint64_t write_around(const Lookup& lookup);

    // Depth 0 is the first of outer_; depth outer_.size() is memory. `keep`: an exclusive cache does not give its line
    // away, because other cores hold it.
    Arrival request(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle);
    template <Detail DETAIL>
    Arrival request_from(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle, bool keep = false);
    template <Detail DETAIL>
    bool try_hit(OuterCache& cache, Lookup& lookup, bool keep);
    Lookup handle_miss(unsigned depth, Lookup lookup);
    // Returns the line that made room, or NO_LINE.
    uint64_t handle_fill(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle, Arrival arrival);
    // The first level's access as the outer caches are asked for it.
    CacheAccess outward(const CacheAccess& access, uint64_t line) const { return access.at(line << line_shift_); }
    // A demand's first use of a line that was prefetched.
    bool note_first_use(Cache& cache, const Lookup& lookup) {
        uint8_t& flags = cache.flags[lookup.slot];
        if (!(flags & PREFETCHED) || !lookup.access.demanded()) [[likely]]
            return false;
        flags &= static_cast<uint8_t>(~PREFETCHED);
        if (cache.probes.prefetch_used) count(*cache.probes.prefetch_used);
        return true;
    }

    // --- lines that leave ---

    void evict(unsigned depth, uint32_t slot, uint64_t cycle);
    // A line has left the cache before `depth`.
    void pass_on(unsigned depth, uint64_t line, uint8_t flags, uint64_t cycle);
    void write_back(unsigned depth, uint64_t line, uint64_t cycle);
    CacheAccess write_back_of(uint64_t line) const { return {0, line << line_shift_, Request::WRITE_BACK}; }
    // Whether another store to a line with these flags in L1D changes nothing.
    bool writes_silently(uint8_t flags) const {
        if (write_policy_ == WritePolicy::UNTRACKED) return !(flags & SHARED);
        return write_policy_ == WritePolicy::BACK && flags & DIRTY;
    }
    void place(uint64_t line, uint64_t cycle);

    // --- other cores ---

    Arrival request_among_cores(unsigned depth, const CacheAccess& access, uint64_t line, uint64_t cycle);
    // Calls act(cache, slot, level) for each copy of the line in the first level and in private caches before `depth`;
    // `level` is null behind the first.
    template <typename Act>
    void each_copy(uint64_t line, unsigned depth, Act act);
    // Out of the first level and the private caches before `depth`; as surrender.
    bool take_from_inner(unsigned depth, uint64_t line, bool written_back);
    void forget_if_gone(uint64_t line);
    uint64_t claim(uint64_t line, uint64_t cycle);

    // --- prefetchers ---

    void tell_prefetchers(int depth, const Cache& cache, const Lookup& lookup, bool hit);
    void run_prefetches(uint64_t cycle);
    uint64_t prefetch_into(const Wanted& wanted, uint64_t cycle);

    // What filtered hits read
    uint64_t* totals_;
    FirstLevel data_, instructions_;
    bool has_dtlb_ = false, has_itlb_ = false;

    unsigned line_shift_ = 6;
    uint64_t outside_line_ = ~uint64_t{63};
    WritePolicy write_policy_ = WritePolicy::BACK;
    bool write_allocate_ = true;
    bool coherent_ = false;
    bool places_pages_ = false, independent_sides_ = false, ignores_cycles_ = false;
    Channel evictions_{0};       // of written lines, out of L1D
    unsigned first_shared_ = 0;  // depth
    unsigned core_ = 0;          // number among its peers
    std::vector<std::unique_ptr<OuterCache>> private_;
    std::vector<OuterCache*> outer_;  // private ones, then those of shared_
    std::unique_ptr<Tlb> l2tlb_;
    uint64_t l2tlb_clock_ = 0;
    uint64_t walk_latency_ = 0;
    bool walk_reads_ = false;
    std::shared_ptr<SharedMemory> shared_;

    struct NamedPage {
        uint64_t page = NO_LINE;
        uint64_t name = 0;
    };
    std::shared_ptr<AddressTranslation> space_;
    uint64_t space_number_ = 0;
    bool named_ = false;  // lines are called by PageNames
    uint64_t seen_mappings_ = 0, seen_names_ = 0;
    std::array<NamedPage, 256> named_pages_;  // as far as they are known
    std::vector<Wanted> wanted_;
    std::vector<uint64_t> lines_;      // what a prefetcher has just asked for
    std::vector<uint64_t> uncounted_;  // instead of totals_, while the kernel works
    Times times_[3];                   // of fetches, loads, stores
};

}  // namespace perfemu
