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
#include "cache/l0_filter.hpp"
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

    // `elements`: so many accesses of size / elements bytes, one behind the other; they are aligned or not each by
    // itself. The instruction as a whole accesses each line once.
    uint64_t load(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements = 1) {
        if (!repeat(address, size, cycle, false, Probe::L1D_ACCESS_LOAD, Probe::DTLB_ACCESS_LOAD)) [[unlikely]]
            return access_data({pc, address, Request::LOAD}, size, cycle, elements);
        return cycle;
    }
    // When the store can write its line: the end of its time in the store buffer.
    uint64_t store(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements = 1) {
        if (!repeat(address, size, cycle, true, Probe::L1D_ACCESS_STORE, Probe::DTLB_ACCESS_STORE)) [[unlikely]]
            return access_data({pc, address, Request::STORE}, size, cycle, elements);
        return cycle;
    }
    // The line of instructions at `address`.
    uint64_t fetch(uint64_t address, uint64_t cycle) {
        const L0Filter::Entry line = fetch_lines_.line(address >> FILTER_SHIFT);
        const L0Filter::Entry page = fetch_pages_.at(address >> PAGE_SHIFT);
        if (L0Filter::difference(line, address >> FILTER_SHIFT) | L0Filter::difference(page, address >> PAGE_SHIFT))
            [[unlikely]]
            return access_instructions(address, cycle);
        ++totals_[static_cast<unsigned>(Probe::L1I_ACCESS)];
        totals_[static_cast<unsigned>(Probe::ITLB_ACCESS)] += has_itlb_;
        fetch_pages_.make_newest(address >> PAGE_SHIFT);
        return ready(cycle, fetch_latency_, fetch_lines_, line, fetch_pages_, page);
    }
    // A load or store that the filter does not answer, without another look. Returns as `load` and `store`.
    uint64_t access(bool stores, uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle, uint32_t elements) {
        return access_data({pc, address, stores ? Request::STORE : Request::LOAD}, size, cycle, elements);
    }

    // --- filtered hits ---
    // For callers who do not ask when the data are there. Whether a load or store hits in the L0 filter, and so changes
    // nothing but counts: then it is done, but for what count_filtered_hits counts for many at once. Otherwise nothing
    // is done.
    bool filtered_hit(uint64_t address, AccessShape shape) { return filter_data<false>(0, address, shape); }
    // For callers who do ask: everything must have been there before `cycle`, so that the access takes the latency of a
    // hit, from whatever later cycle on.
    bool filtered_hit_by(uint64_t cycle, uint64_t address, AccessShape shape) {
        return filter_data<true>(cycle, address, shape);
    }
    // The same of the fetch of a line.
    bool filtered_fetch(uint64_t line) { return filter_fetch<false>(0, line); }
    bool filtered_fetch_by(uint64_t cycle, uint64_t line) { return filter_fetch<true>(cycle, line); }
    // Many, from `first` on; returns the first that is none, or `behind`.
    size_t filtered_hits(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t behind);
    size_t filtered_fetches(const uint64_t* lines, size_t first, size_t behind);
    void count_filtered_hits(uint64_t loads, uint64_t stores, uint64_t fetches) {
        uint64_t has_l1d = l1d_ != nullptr;
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
    uint64_t access_batch(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t behind,
                          uint64_t cycle);

    // By an instruction: brings the line, counts as no access. Returns when what it brings is there.
    uint64_t prefetch(uint64_t address, uint64_t pc, uint64_t cycle);

    // The kernel has just written a whole page, of the space in which the core executes: with [kernel] fresh_pages =
    // "l1d" its lines are in L1D then. No access is counted, and nobody waits.
    void place_page(uint64_t address, uint64_t cycle);

    // The space in which the core executes from now on. Until it is told, there is one without pages.
    void set_address_space(const std::shared_ptr<AddressSpace>& space);
    // Before the core executes: pages may have been mapped otherwise.
    void notice_mappings();

    uint32_t fetch_line_bytes() const { return 1u << line_shift_; }
    // Of hits; 0 where there is no such cache.
    uint64_t data_latency() const { return data_latency_; }
    uint64_t fetch_latency() const { return fetch_latency_; }
    // The longest that an access waits for a line that others take, too.
    uint64_t longest_handover() const { return coherent_ ? shared_->longest_handover() : 0; }

    // What SharedMemory does to this core's private caches. Both return whether the line was dirty.
    // The line goes. `written_back`: towards memory, which counts as such; else another core gets it as it is.
    bool surrender(uint64_t line, bool written_back);
    // Another core reads the line: from now on it is shared. If it was dirty it is written back.
    bool demote(uint64_t line, uint64_t cycle);
    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }

  private:
    static constexpr unsigned PAGE_SHIFT = 12;
    static constexpr unsigned FILTER_SHIFT = 6;  // lines of another size than 64 bytes are not filtered
    static constexpr uint64_t FILTER_MASK = 63;
    static constexpr uint64_t NO_LINE = TagArray::NO_TAG;

    struct Arrival {
        uint64_t cycle;
        uint8_t flags;
    };
    // A line that a prefetcher wants, and for which cache: a first-level one or one of outer_.
    static constexpr int IN_L1I = -2, IN_L1D = -1;
    struct Wanted {
        uint64_t line;
        uint64_t pc;  // of the instruction behind it
        int depth;
    };
    struct Filled {
        uint32_t slot;
        uint64_t victim;  // or NO_LINE
    };

    // What filtered hits look at, of data or of fetches. A loop over many keeps it in the host's registers.
    struct Side {
        L0Filter::Lines lines;
        L0PageFilter& pages;
        uint64_t* newest_pages;  // by the TLB's set
        uint64_t newest_pages_mask;
    };
    Side data_side() { return {data_lines_.lines(), data_pages_, newest_pages_.data(), newest_pages_mask_}; }
    Side fetch_side() {
        const L0PageFilter::Newest newest = fetch_pages_.newest();
        return {fetch_lines_.lines(), fetch_pages_, newest.pages, newest.mask};
    }
    // `leaves`: not 0 if the access leaves its line or is not aligned. `loads`: 1, or 0 if it stores. `now`: what now_
    // is behind it.
    template <bool TIMED>
    [[gnu::always_inline]] bool filter(const Side& side, uint64_t address, uint64_t leaves, uint64_t loads,
                                       uint64_t now, uint64_t cycle) {
        const uint64_t tag = address >> FILTER_SHIFT, page = address >> PAGE_SHIFT;
        const L0Filter::Entry line = side.lines.at(tag);
        if (leaves | L0Filter::difference(line, tag, loads)) [[unlikely]]
            return false;
        if (TIMED && side.lines.arrives(line) > cycle) return false;
        uint64_t& newest = side.newest_pages[page & side.newest_pages_mask];
        if (newest != page || (TIMED && cycle < translated_by_)) [[unlikely]] {
            const L0Filter::Entry entry = side.pages.at(page);
            if (L0Filter::difference(entry, page)) return false;
            if (TIMED && side.pages.arrival(entry) > cycle) return false;
            side.pages.use(entry, now);
            newest = page;
        }
        side.lines.use(line, now);
        return true;
    }
    template <bool TIMED>
    bool filter_data(uint64_t cycle, uint64_t address, AccessShape shape) {
        const auto [loads, leaves] = shape.at(address);
        const bool hit = filter<TIMED>(data_side(), address, leaves, loads, now_ + 1, cycle);
        now_ += hit;
        return hit;
    }
    template <bool TIMED>
    bool filter_fetch(uint64_t cycle, uint64_t address) {
        const bool hit = filter<TIMED>(fetch_side(), address, 0, 1, now_ + 1, cycle);
        now_ += hit;
        return hit;
    }
    // An access that changes nothing but counts and times: aligned, so that it stays in one line and page, and these
    // are known to be there. Moves `cycle` on to when the data are there.
    bool repeat(uint64_t address, uint32_t size, uint64_t& cycle, bool stores, Probe access, Probe lookup) {
        const L0Filter::Entry line = data_lines_.line(address >> FILTER_SHIFT);
        const L0Filter::Entry page = data_pages_.at(address >> PAGE_SHIFT);
        if (((address | ~FILTER_MASK) & (size - 1)) | L0Filter::difference(line, address >> FILTER_SHIFT, !stores) |
            L0Filter::difference(page, address >> PAGE_SHIFT))
            return false;
        ++totals_[static_cast<unsigned>(access)];
        totals_[static_cast<unsigned>(lookup)] += has_dtlb_;
        cycle = ready(cycle, data_latency_, data_lines_, line, data_pages_, page);
        newest_page(address) = address >> PAGE_SHIFT;
        return true;
    }
    uint64_t ready(uint64_t cycle, uint64_t latency, L0Filter& lines, L0Filter::Entry line, L0Filter& pages,
                   L0Filter::Entry page) {
        lines.use(line, ++now_);
        pages.use(page, now_);
        return std::max(std::max(cycle, pages.arrival(page)) + latency, lines.arrival(line));
    }

    // The page used last in its set of the DTLB: another use of it changes nothing at all.
    uint64_t& newest_page(uint64_t address) { return newest_pages_[address >> PAGE_SHIFT & newest_pages_mask_]; }
    bool is_newest_page(uint64_t address) { return newest_page(address) == address >> PAGE_SHIFT; }

    uint64_t access_data(const CacheAccess& access, uint32_t size, uint64_t cycle, uint32_t elements);
    // The address by which caches know what a virtual one leads to.
    uint64_t in_caches(uint64_t address) {
        return named_ ? name(address >> PAGE_SHIFT) << PAGE_SHIFT | (address & ((1 << PAGE_SHIFT) - 1)) : address;
    }
    uint64_t name(uint64_t page);
    // What TLBs call a page: the space's own.
    uint64_t in_tlbs(uint64_t page) const { return named_ ? page | space_number_ << PageNames::PAGE_BITS : page; }
    void forget_filters();
    void access_in_line(const CacheAccess& access, uint64_t cycle);
    uint64_t access_line(const CacheAccess& access, uint64_t cycle);
    template <bool TIMED>
    uint64_t miss_plainly(const CacheAccess& access, uint64_t line, uint64_t cycle);
    uint64_t access_instructions(uint64_t address, uint64_t cycle);
    uint64_t translate_data(const CacheAccess& access, uint64_t cycle);
    uint64_t translate_page(const CacheAccess& access, uint64_t cycle);
    uint64_t translate_fetch(const CacheAccess& access, uint64_t cycle);
    uint64_t translate(Tlb& tlb, L0PageFilter& pages, const CacheAccess& access, Probe refill, uint64_t cycle);
    // A first-level TLB's miss. Returns when the translation is known.
    uint64_t look_further(const CacheAccess& access, uint64_t page, uint64_t cycle);
    uint64_t walk(Request request, uint64_t page, uint64_t cycle);

    // Towards memory. Depth 0 is the first of outer_; depth outer_.size() is memory.
    CacheAccess to_line(const CacheAccess& access, uint64_t line) const { return access.at(line << line_shift_); }
    CacheAccess write_back_of(uint64_t line) const { return {0, line << line_shift_, Request::WRITE_BACK}; }
    Arrival obtain(unsigned depth, uint64_t line, const CacheAccess& access, uint64_t cycle);
    Arrival obtain_among_cores(unsigned depth, uint64_t line, const CacheAccess& access, uint64_t cycle);
    // `keep`: an exclusive cache does not give its line away, because other cores hold it.
    Arrival obtain_from(unsigned depth, uint64_t line, const CacheAccess& access, uint64_t cycle, bool keep);
    // Returns the line that made room, or NO_LINE.
    uint64_t insert(unsigned depth, uint64_t line, uint8_t flags, const CacheAccess& access, uint64_t cycle,
                    uint64_t arrival);
    void write_back(unsigned depth, uint64_t line, uint64_t cycle);
    void evict(unsigned depth, uint32_t slot, uint64_t cycle);
    // A line has left the cache before `depth`.
    void pass_on(unsigned depth, uint64_t line, uint8_t flags, uint64_t cycle);

    // The first level
    Filled fill_data(uint64_t line, uint8_t flags, const CacheAccess& access, uint64_t arrival, uint64_t cycle);
    void place(uint64_t line, uint64_t cycle);
    Filled fill_instructions(uint64_t line, uint8_t flags, const CacheAccess& access, uint64_t arrival, uint64_t cycle);
    // Whether another store to a line with these flags in L1D changes nothing.
    bool writes_silently(uint8_t flags) const {
        if (write_policy_ == WritePolicy::UNTRACKED) return !(flags & SHARED);
        return write_policy_ == WritePolicy::BACK && flags & DIRTY;
    }
    // Whether a line of L1D was prefetched, and is used now for the first time.
    bool note_first_use(uint32_t slot) {
        uint8_t& flags = l1d_->flags[slot];
        if (!(flags & PREFETCHED)) [[likely]]
            return false;
        flags &= static_cast<uint8_t>(~PREFETCHED);
        count(Probe::L1D_PREFETCH_USED);
        return true;
    }
    uint64_t write_hit(uint32_t slot, uint64_t line, uint64_t cycle);
    uint64_t write_past(uint64_t line, const CacheAccess& access, uint64_t cycle);
    // Out of the first level and the outer caches before `depth`; as surrender.
    bool take_from_inner(unsigned depth, uint64_t line, bool written_back);
    void forget_if_gone(uint64_t line);
    uint64_t claim(uint64_t line, uint64_t cycle);

    void tell_prefetchers(int depth, const Cache& cache, const CacheAccess& access, const CacheResult& result);
    void run_prefetches(uint64_t cycle);
    uint64_t prefetch_into(const Wanted& wanted, uint64_t cycle);

    // What the inline path reads
    uint64_t* totals_;
    uint64_t now_ = 0;  // grows with each access
    L0Filter data_lines_, fetch_lines_;
    L0PageFilter data_pages_, fetch_pages_;
    std::vector<uint64_t> newest_pages_;  // by the DTLB's set
    uint64_t newest_pages_mask_ = 0;
    uint64_t translated_by_ = 0;  // the cycle by which all pages of both TLBs are there
    uint64_t outside_line_ = ~uint64_t{63};
    uint64_t data_latency_ = 0, fetch_latency_ = 0;
    unsigned line_shift_ = 6;
    uint8_t has_dtlb_ = 0, has_itlb_ = 0;

    WritePolicy write_policy_ = WritePolicy::BACK;
    bool write_allocate_ = true;
    bool coherent_ = false;
    // L1D has no limit of misses, and keeps what it is given; no prefetcher anywhere; the next level is not exclusive;
    // there is no other core.
    bool plain_ = false;
    bool evictions_take_time_ = false, places_pages_ = false;
    Channel evictions_{0};  // of written lines, out of L1D
    bool independent_sides_ = false, ignores_cycles_ = false;
    unsigned first_shared_ = 0;  // depth
    unsigned core_ = 0;          // number among its peers
    std::unique_ptr<Cache> l1i_, l1d_;
    std::vector<std::unique_ptr<OuterCache>> private_;
    std::vector<OuterCache*> outer_;  // private ones, then those of shared_
    TagArray no_pages_;               // stands for a TLB that is missing: all pages are there
    std::unique_ptr<Tlb> itlb_, dtlb_, l2tlb_;
    uint64_t walk_latency_ = 0;
    bool walk_reads_ = false;
    std::shared_ptr<SharedMemory> shared_;

    struct NamedPage {
        uint64_t page = NO_LINE;
        uint64_t name = 0;
    };
    std::shared_ptr<AddressSpace> space_;
    uint64_t space_number_ = 0;
    bool named_ = false;  // lines are called by PageNames
    uint64_t seen_mappings_ = 0, seen_names_ = 0;
    std::array<NamedPage, 256> named_pages_;  // as far as they are known
    std::vector<Wanted> wanted_;
    std::vector<uint64_t> lines_;      // what a prefetcher has just asked for
    std::vector<uint64_t> uncounted_;  // instead of totals_, while the kernel works
};

}  // namespace perfemu
