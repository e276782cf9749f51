// Assembly, TLBs, and the first level of caches. What lies behind: memory_hierarchy.cpp.
#include "cache/memory_system.hpp"

#include <utility>

namespace perfemu {

static WritePolicy write_policy_of(const Config& table) {
    std::string name = table.has("write_policy") ? table.text("write_policy") : "write_back";
    if (name == "write_back") return WritePolicy::BACK;
    if (name == "write_through") return WritePolicy::THROUGH;
    if (name == "untracked") return WritePolicy::UNTRACKED;
    throw std::invalid_argument(table.path("write_policy") + ": \"" + name +
                                "\" is not one of write_back, write_through, untracked");
}

static bool file_places_pages(const Config& file) {
    if (!file.has_table("kernel") || !file.table("kernel").has("fresh_pages")) return false;
    const Config& kernel = file.table("kernel");
    const std::string& where = kernel.text("fresh_pages");
    if (where != "l1d" && where != "memory")
        throw std::invalid_argument(kernel.path("fresh_pages") + ": \"" + where + "\" is not one of memory, l1d");
    return where == "l1d";
}

MemorySystem::MemorySystem(const Config& config, std::shared_ptr<SharedMemory> shared, uint64_t* totals)
    : totals_(totals), shared_(std::move(shared)) {
    auto cache = [&](const char* name) {
        return config.has_table(name) ? std::make_unique<Cache>(config, name) : nullptr;
    };
    auto tlb = [&](const char* name) { return config.has_table(name) ? std::make_unique<Tlb>(config, name) : nullptr; };
    l1i_ = cache("l1i");
    l1d_ = cache("l1d");
    for (const char* name : {"l2", "llc"}) {
        if (!config.has_table(name)) continue;
        if (!l1d_) throw std::invalid_argument(std::string(name) + ": needs an [l1d] before it");
        if (is_shared(config, name)) continue;
        if (std::string_view(name) == "llc" && !shared_->caches().empty())
            throw std::invalid_argument("llc.scope: \"private\" behind an l2 that is shared: make both the same");
        private_.push_back(std::make_unique<OuterCache>(config, name));
        outer_.push_back(private_.back().get());
    }
    first_shared_ = static_cast<unsigned>(outer_.size());
    for (auto& level : shared_->caches()) outer_.push_back(level.get());

    const Cache* before = l1d_ ? l1d_.get() : l1i_.get();
    if (before) line_shift_ = before->line_shift;
    auto agree = [&](const Cache& level) {
        if (level.line_shift != before->line_shift)
            throw std::invalid_argument(level.name + ".line: " + std::to_string(1u << level.line_shift) +
                                        " bytes, but " + before->name + "'s are of " +
                                        std::to_string(1u << before->line_shift) + ": all must be the same");
    };
    if (l1i_) agree(*l1i_);
    for (const OuterCache* level : outer_) {
        agree(*level);
        if (level->latency < before->latency)
            throw std::invalid_argument(level->name + ".latency: " + std::to_string(level->latency) +
                                        " cycles is less than the " + std::to_string(before->latency) + " of " +
                                        before->name + ": latencies are totals from load to use");
        before = level;
    }

    outside_line_ = ~((uint64_t{1} << line_shift_) - 1);
    if (l1d_) {
        const Config& table = config.table("l1d");
        write_policy_ = write_policy_of(table);
        write_allocate_ = table.boolean("write_allocate", true);
        const int64_t cycles = table.integer("write_back_cycles", 0);
        if (cycles < 0 || cycles > 1000)
            throw std::invalid_argument(table.path("write_back_cycles") + ": " + std::to_string(cycles) +
                                        " is not between 0 and 1000");
        places_pages_ = file_places_pages(config);
        uncounted_.resize(places_pages_ ? PROBE_COUNT : 0);
        evictions_take_time_ = cycles > 0;
        evictions_ = Channel(static_cast<double>(cycles));
        data_latency_ = l1d_->latency;
        if (line_shift_ == FILTER_SHIFT) data_lines_ = L0Filter(*l1d_);
    }
    if (l1i_) {
        fetch_latency_ = l1i_->latency;
        if (line_shift_ == FILTER_SHIFT) fetch_lines_ = L0Filter(*l1i_);
    }

    itlb_ = tlb("itlb");
    dtlb_ = tlb("dtlb");
    l2tlb_ = tlb("l2tlb");
    if (l2tlb_ && !itlb_ && !dtlb_) throw std::invalid_argument("l2tlb: needs an [itlb] or a [dtlb] before it");
    if (config.has_table("page_walk")) {
        const Config& table = config.table("page_walk");
        walk_reads_ = table.boolean("reads_entries", false);
        if (walk_reads_ && outer_.empty())
            throw std::invalid_argument("page_walk.reads_entries: needs an [l2] or [llc] to read through");
        if (!walk_reads_ || table.has("latency")) walk_latency_ = latency_of(table);
    }
    has_dtlb_ = dtlb_ != nullptr;
    has_itlb_ = itlb_ != nullptr;
    data_pages_ = L0PageFilter(dtlb_ ? *dtlb_ : no_pages_);
    newest_pages_mask_ = dtlb_ ? dtlb_->set_mask() : 0;
    newest_pages_.assign(newest_pages_mask_ + 1, NO_LINE);
    fetch_pages_ = L0PageFilter(itlb_ ? *itlb_ : no_pages_);
    coherent_ = shared_->coherent();
    core_ = shared_->join(this);
    auto is_plain = [](const OuterCache* level) { return level->prefetchers.empty() && level->banks.empty(); };
    plain_ = l1d_ && l1d_->prefetchers.empty() && l1d_->only_last_use() && !l1d_->misses.limited() && write_allocate_ &&
             !evictions_take_time_ && write_policy_ != WritePolicy::THROUGH && !coherent_ && !outer_.empty() &&
             std::ranges::all_of(outer_, is_plain) && outer_[0]->inclusion != Inclusion::EXCLUSIVE;
    const TagArray* const arrays[] = {l1d_.get(), dtlb_.get(), l2tlb_.get()};
    auto wants_pc = [](const TagArray* array) { return array && array->hears() == HitsHeard::EVERY; };
    ignores_cycles_ =
        plain_ && !walk_reads_ && std::ranges::none_of(arrays, wants_pc) && std::ranges::none_of(outer_, wants_pc);
    // Where an outer cache is inclusive, or other cores are heard, one side's miss takes the other's lines out.
    independent_sides_ =
        line_shift_ == FILTER_SHIFT && !coherent_ &&
        std::ranges::none_of(outer_, [](const OuterCache* level) { return level->inclusion == Inclusion::INCLUSIVE; });
}

MemorySystem::~MemorySystem() = default;

// --- addresses ---

void MemorySystem::set_address_space(const std::shared_ptr<AddressSpace>& space) {
    space_ = space;
    space_number_ = shared_->names().enter(space);
    if (named_) forget_filters();
    notice_mappings();
}

void MemorySystem::notice_mappings() {
    const PageNames& names = shared_->names();
    if (!names.several() || !space_) return;
    if (named_ && seen_mappings_ == space_->generation() && seen_names_ == names.generation()) return;
    named_ = true;
    forget_filters();
}

// They lead from virtual addresses of one space.
void MemorySystem::forget_filters() {
    for (L0Filter* lines : {&data_lines_, &fetch_lines_}) lines->forget_all();
    for (L0PageFilter* pages : {&data_pages_, &fetch_pages_}) pages->forget_all();
    newest_pages_.assign(newest_pages_.size(), NO_LINE);
    named_pages_.fill({});
    seen_mappings_ = space_->generation();
    seen_names_ = shared_->names().generation();
}

uint64_t MemorySystem::name(uint64_t page) {
    NamedPage& known = named_pages_[page % named_pages_.size()];
    if (known.page != page) known = {page, shared_->names().name(*space_, space_number_, page)};
    return known.name;
}

uint64_t MemorySystem::translate_data(const CacheAccess& access, uint64_t cycle) {
    if (dtlb_ && access.demanded()) count(access.stores() ? Probe::DTLB_ACCESS_STORE : Probe::DTLB_ACCESS_LOAD);
    if (is_newest_page(access.address) && cycle >= translated_by_) return cycle;
    return translate_page(access, cycle);
}

uint64_t MemorySystem::translate_page(const CacheAccess& access, uint64_t cycle) {
    const uint64_t page = access.address >> PAGE_SHIFT;
    if (!dtlb_) {
        data_pages_.set(page, 0);
        return cycle;
    }
    Probe refill = access.stores() ? Probe::DTLB_REFILL_STORE : Probe::DTLB_REFILL_LOAD;
    uint64_t ready = translate(*dtlb_, data_pages_, access, refill, cycle);
    // A first use may be more than another.
    newest_page(access.address) = dtlb_->fill_is_use() ? page : NO_LINE;
    return ready;
}

uint64_t MemorySystem::translate_fetch(const CacheAccess& access, uint64_t cycle) {
    if (!itlb_) {
        fetch_pages_.set(access.address >> PAGE_SHIFT, 0);
        return cycle;
    }
    count(Probe::ITLB_ACCESS);
    return translate(*itlb_, fetch_pages_, access, Probe::ITLB_REFILL, cycle);
}

uint64_t MemorySystem::translate(Tlb& tlb, L0PageFilter& pages, const CacheAccess& access, Probe refill,
                                 uint64_t cycle) {
    const uint64_t page = access.address >> PAGE_SHIFT;
    const L0Filter::Entry entry = pages.at(page);
    if (!L0Filter::difference(entry, page)) {
        pages.use(entry, ++now_);
        pages.make_newest(page);
        return std::max(cycle, pages.arrival(entry));
    }
    const uint64_t tag = in_tlbs(page);
    uint32_t slot = tlb.find(tag);
    bool hit = slot != TagArray::NOWHERE;
    if (hit) {
        tlb.use(slot, access, ++now_);
    } else {
        if (access.demanded()) count(refill);
        uint64_t arrival = look_further(access, tag, cycle);
        translated_by_ = std::max(translated_by_, arrival);
        slot = tlb.room(tag, access);
        if (tlb.tag(slot) != TagArray::NO_TAG) pages.clear_slot(slot, tlb.tag(slot));
        tlb.fill(slot, tag, access, ++now_, arrival);
    }
    pages.age(tag);
    if (hit || tlb.fill_is_use()) pages.set(page, slot, tag);
    return std::max(cycle, tlb.arrival[slot]);
}

uint64_t MemorySystem::look_further(const CacheAccess& access, uint64_t page, uint64_t cycle) {
    if (!l2tlb_) return walk(access.kind, page, cycle);
    static constexpr Probe ACCESS[] = {Probe::L2TLB_ACCESS_FETCH, Probe::L2TLB_ACCESS_LOAD, Probe::L2TLB_ACCESS_STORE};
    if (access.demanded()) count(ACCESS[static_cast<unsigned>(access.kind)]);
    uint32_t slot = l2tlb_->find(page);
    cycle += l2tlb_->latency;
    if (slot != TagArray::NOWHERE) {
        l2tlb_->use(slot, access, ++now_);
        return std::max(cycle, l2tlb_->arrival[slot]);
    }
    uint64_t arrival = walk(access.kind, page, cycle);
    slot = l2tlb_->room(page, access);
    l2tlb_->fill(slot, page, access, ++now_, arrival);
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
        Arrival arrival = obtain_from(0, line, read, end, false);
        if (outer_[0]->inclusion == Inclusion::EXCLUSIVE) insert(0, line, arrival.flags, read, end, arrival.cycle);
        end = arrival.cycle;
    }
    if (request != Request::PREFETCH) {
        count(WALK[static_cast<unsigned>(request)]);
        count(request == Request::FETCH ? Probe::ITLB_WALK_CYCLES : Probe::DTLB_WALK_CYCLES, end - cycle);
    }
    return end;
}

// --- filtered hits ---

static constexpr size_t AHEAD = 32;  // accesses

size_t MemorySystem::filtered_hits(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t behind) {
    const Side side = data_side();
    const uint64_t before = now_ - first;
    for (; first != behind; ++first) {
        const auto [loads, leaves] = shapes[first].at(addresses[first]);
        if (!filter<false>(side, addresses[first], leaves, loads, before + first + 1, 0)) break;
    }
    now_ = before + first;
    return first;
}

uint64_t MemorySystem::access_batch(const uint64_t* addresses, const AccessShape* shapes, size_t first, size_t behind,
                                    uint64_t cycle) {
    uint64_t others = 0;
    size_t last = first, expected = first;
    for (;; ++first) {
        first = filtered_hits(addresses, shapes, first, behind);
        if (first == behind) return others;
        const uint64_t address = addresses[first];
        const AccessShape shape = shapes[first];
        const CacheAccess access{0, address, shape.stores() ? Request::STORE : Request::LOAD};
        const uint32_t size = shape.size(), alignment = shape.alignment();
        if (address & (alignment - 1) || (address ^ (address + size - 1)) & ~FILTER_MASK) [[unlikely]] {
            others += uint64_t{1} << 32 * access.stores();
            access_data(access, size, cycle, size / alignment);
            continue;
        }
        // Misses come in company: the next ones' sets are brought while this one is looked for.
        if (first - std::exchange(last, first) < AHEAD) {
            const size_t end = std::min(first + AHEAD, behind);
            for (expected = std::max(expected, first + 1); expected < end; ++expected) {
                const uint64_t tag = addresses[expected] >> FILTER_SHIFT;
                if (L0Filter::difference(data_lines_.line(tag), tag)) outer_[0]->expect(tag);
            }
        }
        access_in_line(access, cycle);
    }
}

size_t MemorySystem::filtered_fetches(const uint64_t* lines, size_t first, size_t behind) {
    const Side side = fetch_side();
    const uint64_t before = now_ - first;
    while (first != behind && filter<false>(side, lines[first], 0, 1, before + first + 1, 0)) ++first;
    now_ = before + first;
    return first;
}

// --- data ---

// What access_data would do, but for L1D_ACCESS and DTLB_ACCESS: aligned and in one line, where cycles make no
// difference, see ignores_cycles_.
void MemorySystem::access_in_line(const CacheAccess& access, uint64_t cycle) {
    const uint64_t address = access.address;
    if (!is_newest_page(address)) translate_page(access, cycle);
    Cache& cache = *l1d_;
    const uint64_t line = in_caches(address) >> FILTER_SHIFT;
    uint32_t slot = cache.find(line);
    if (slot != TagArray::NOWHERE) {
        note_first_use(slot);
        cache.use(slot, access, ++now_);
        if (access.stores()) write_hit(slot, line, cycle);
        data_lines_.set(address >> FILTER_SHIFT, slot, line, writes_silently(cache.flags[slot]));
    } else {
        miss_plainly<false>(access, line, cycle);
    }
}

uint64_t MemorySystem::access_data(const CacheAccess& access, uint32_t size, uint64_t cycle, uint32_t elements) {
    if (!l1d_ && !dtlb_) return cycle;
    const uint64_t address = access.address;
    if (!outer_.empty()) outer_[0]->expect(address >> line_shift_);
    const bool loads = access.kind == Request::LOAD;
    if (l1d_) {
        uint32_t element = size / elements;
        uint32_t alignment = element & (0 - element);
        if (address & (alignment - 1)) count(loads ? Probe::UNALIGNED_LOAD : Probe::UNALIGNED_STORE);
    }
    uint64_t last = address + size - 1;
    if (((address ^ last) & outside_line_) == 0) {
        uint64_t start = translate_data(access, cycle);
        return l1d_ ? access_line(access, start) : start;
    }
    if (l1d_) count(loads ? Probe::L1D_SPLIT_LOAD : Probe::L1D_SPLIT_STORE);
    uint64_t ready = cycle, start = cycle, line_bytes = fetch_line_bytes();
    for (uint64_t at = address;; at = (at & outside_line_) + line_bytes) {
        if (at == address || (at & 0xFFF) == 0) start = translate_data(access.at(at), cycle);
        ready = std::max(ready, l1d_ ? access_line(access.at(at), start) : start);
        if (((at ^ last) & outside_line_) == 0) return ready;
    }
}

uint64_t MemorySystem::access_line(const CacheAccess& access, uint64_t cycle) {
    Cache& cache = *l1d_;
    const bool stores = access.stores();
    const CacheAccess named = access.at(in_caches(access.address));
    const uint64_t line = named.address >> line_shift_;
    count(stores ? Probe::L1D_ACCESS_STORE : Probe::L1D_ACCESS_LOAD);
    uint32_t slot = cache.find(line);
    const bool hit = slot != TagArray::NOWHERE;
    bool is_news = !hit;
    uint64_t ready, victim = NO_LINE;
    if (hit) {
        ready = std::max(cycle + cache.latency, cache.arrival[slot]);
        is_news = note_first_use(slot);
        cache.use(slot, named, ++now_);
        if (stores) {
            is_news |= !writes_silently(cache.flags[slot]);
            ready = std::max(ready, write_hit(slot, line, cycle));
        }
    } else if (plain_) {
        return miss_plainly<true>(access, line, cycle);
    } else if (stores && !write_allocate_) {
        ready = write_past(line, named, cycle);
    } else {
        count(stores ? Probe::L1D_REFILL_STORE : Probe::L1D_REFILL_LOAD);
        MissQueue& misses = cache.misses;
        unsigned place = misses.limited() ? misses.choose(cycle) : 0;
        uint64_t start = misses.limited() ? misses.start(place, cycle) : cycle;
        Arrival arrival = obtain(0, line, to_line(access, line), start);
        if (misses.limited()) misses.hold(place, arrival.cycle);
        const Filled filled = fill_data(line, arrival.flags, named, arrival.cycle, cycle);
        slot = filled.slot;
        victim = filled.victim;
        arrival.cycle = cache.arrival[slot];
        if (stores && write_policy_ == WritePolicy::BACK) cache.flags[slot] |= DIRTY;
        if (stores && write_policy_ == WritePolicy::THROUGH) write_back(0, line, cycle);
        ready = arrival.cycle;
    }
    if (slot != TagArray::NOWHERE) {
        data_lines_.age(line);
        if (hit || cache.fill_is_use())
            data_lines_.set(access.address >> line_shift_, slot, line, writes_silently(cache.flags[slot]));
    }
    if (is_news && !cache.prefetchers.empty()) tell_prefetchers(IN_L1D, cache, named, {hit, line, victim});
    if (!wanted_.empty()) run_prefetches(cycle);
    return ready;
}

// A miss where nobody listens and nothing is in the way, see plain_: what access_line would do then, on a short way.
template <bool TIMED>
uint64_t MemorySystem::miss_plainly(const CacheAccess& access, uint64_t line, uint64_t cycle) {
    const bool stores = access.stores();
    const CacheAccess outward = to_line(access, line);
    count(stores ? Probe::L1D_REFILL_STORE : Probe::L1D_REFILL_LOAD);
    OuterCache& outer = *outer_[0];
    uint32_t slot = outer.find(line);
    uint64_t arrival = 0;
    if (slot == TagArray::NOWHERE) [[unlikely]] {
        arrival = obtain_from(0, line, outward, cycle, false).cycle;
    } else {
        count(outer.access[static_cast<unsigned>(access.kind)]);
        if (TIMED) arrival = std::max(cycle + outer.latency, outer.arrival[slot]);
        outer.use(slot, outward, ++outer.clock);
    }
    Cache& cache = *l1d_;
    slot = cache.room(line, access);
    uint64_t old = cache.tag(slot);
    if (old != NO_LINE) {
        data_lines_.clear_slot(slot, old);
        if (cache.flags[slot] & DIRTY) {
            count(Probe::L1D_WRITE_BACK);
            write_back(0, old, cycle);
        }
    }
    const uint8_t flags = stores && write_policy_ == WritePolicy::BACK ? DIRTY : 0;
    if (TIMED)
        cache.fill(slot, line, flags, access, ++now_, arrival);
    else
        cache.fill(slot, line, flags, access, ++now_);
    data_lines_.set(access.address >> line_shift_, slot, line, writes_silently(flags));
    return arrival;
}

// A store to a line that L1D holds. Returns when it may be written.
uint64_t MemorySystem::write_hit(uint32_t slot, uint64_t line, uint64_t cycle) {
    uint64_t ready = cycle;
    if (l1d_->flags[slot] & SHARED) ready = claim(line, cycle);
    if (write_policy_ == WritePolicy::BACK) {
        l1d_->flags[slot] |= DIRTY;
    } else if (write_policy_ == WritePolicy::THROUGH) {
        if (!outer_.empty()) count(outer_[0]->access[static_cast<unsigned>(Request::STORE)]);
        write_back(0, line, cycle);
    }
    return ready;
}

// A store to a line that L1D does not hold and will not.
uint64_t MemorySystem::write_past(uint64_t line, const CacheAccess& access, uint64_t cycle) {
    uint64_t ready = cycle + data_latency_;
    if (!outer_.empty())
        ready = obtain(0, line, to_line(access, line), cycle).cycle;
    else if (coherent_)
        ready = claim(line, cycle);
    if (write_policy_ != WritePolicy::UNTRACKED) write_back(0, line, cycle);
    if (coherent_) forget_if_gone(line);
    return ready;
}

uint64_t MemorySystem::prefetch(uint64_t address, uint64_t pc, uint64_t cycle) {
    if (!l1d_) return cycle;
    const uint64_t start = translate_data({pc, address, Request::PREFETCH}, cycle);
    const uint64_t arrival = prefetch_into({in_caches(address) >> line_shift_, pc, IN_L1D}, start);
    if (!wanted_.empty()) run_prefetches(start);
    return std::max(start, arrival);
}

void MemorySystem::place_page(uint64_t address, uint64_t cycle) {
    if (!places_pages_) return;
    notice_mappings();
    uint64_t* const totals = std::exchange(totals_, uncounted_.data());
    for (uint64_t at = 0; at < uint64_t{1} << PAGE_SHIFT; at += fetch_line_bytes())
        place(in_caches(address + at) >> line_shift_, cycle);
    totals_ = totals;
}

// All of the line has been written: nothing was read for it.
void MemorySystem::place(uint64_t line, uint64_t cycle) {
    const uint8_t flags = write_policy_ == WritePolicy::BACK ? DIRTY : 0;
    const CacheAccess access{0, line << line_shift_, Request::STORE};
    if (uint32_t slot = l1d_->find(line); slot != TagArray::NOWHERE) {
        write_hit(slot, line, cycle);
        return;
    }
    if (coherent_) shared_->ask(core_, line, true, cycle);
    for (auto depth = static_cast<unsigned>(outer_.size()); depth-- > 0;)
        if (outer_[depth]->inclusion != Inclusion::EXCLUSIVE) insert(depth, line, 0, access, cycle, cycle);
    fill_data(line, flags, access, cycle, cycle);
}

MemorySystem::Filled MemorySystem::fill_data(uint64_t line, uint8_t flags, const CacheAccess& access, uint64_t arrival,
                                             uint64_t cycle) {
    Cache& cache = *l1d_;
    uint32_t slot = cache.room(line, access);
    uint64_t old = cache.tag(slot);
    if (old != NO_LINE) {
        uint8_t old_flags = cache.flags[slot];
        cache.take_out(slot, Removal::EVICTED);
        data_lines_.clear_slot(slot, old);
        if (old_flags & DIRTY) {
            count(Probe::L1D_WRITE_BACK);
            arrival = std::max(arrival, evictions_.take(cycle));
        }
        pass_on(0, old, old_flags, cycle);
    }
    cache.fill(slot, line, flags, access, ++now_, arrival);
    data_lines_.age(line);
    return {slot, old};
}

// --- instructions ---

uint64_t MemorySystem::access_instructions(uint64_t address, uint64_t cycle) {
    const CacheAccess access{address, address, Request::FETCH};
    cycle = translate_fetch(access, cycle);
    if (!l1i_) return cycle;
    Cache& cache = *l1i_;
    const CacheAccess named = access.at(in_caches(address));
    const uint64_t line = named.address >> line_shift_;
    count(Probe::L1I_ACCESS);
    uint32_t slot = cache.find(line);
    const bool hit = slot != TagArray::NOWHERE;
    bool is_news = !hit;
    uint64_t ready, victim = NO_LINE;
    if (hit) {
        ready = std::max(cycle + cache.latency, cache.arrival[slot]);
        is_news = cache.flags[slot] & PREFETCHED;
        cache.flags[slot] &= static_cast<uint8_t>(~PREFETCHED);
        cache.use(slot, named, ++now_);
    } else {
        count(Probe::L1I_REFILL);
        MissQueue& misses = cache.misses;
        unsigned place = misses.limited() ? misses.choose(cycle) : 0;
        uint64_t start = misses.limited() ? misses.start(place, cycle) : cycle;
        Arrival arrival = obtain(0, line, to_line(access, line), start);
        if (misses.limited()) misses.hold(place, arrival.cycle);
        const Filled filled = fill_instructions(line, arrival.flags, named, arrival.cycle, cycle);
        slot = filled.slot;
        victim = filled.victim;
        ready = arrival.cycle;
    }
    fetch_lines_.age(line);
    if (hit || cache.fill_is_use()) fetch_lines_.set(address >> line_shift_, slot, line, true);
    if (is_news && !cache.prefetchers.empty()) tell_prefetchers(IN_L1I, cache, named, {hit, line, victim});
    if (!wanted_.empty()) run_prefetches(cycle);
    return ready;
}

MemorySystem::Filled MemorySystem::fill_instructions(uint64_t line, uint8_t flags, const CacheAccess& access,
                                                     uint64_t arrival, uint64_t cycle) {
    Cache& cache = *l1i_;
    uint32_t slot = cache.room(line, access);
    uint64_t old = cache.tag(slot);
    if (old != NO_LINE) {
        uint8_t old_flags = cache.flags[slot];
        cache.take_out(slot, Removal::EVICTED);
        fetch_lines_.clear_slot(slot, old);
        pass_on(0, old, old_flags, cycle);
    }
    cache.fill(slot, line, flags, access, ++now_, arrival);
    fetch_lines_.age(line);
    return {slot, old};
}

// --- prefetchers ---

void MemorySystem::tell_prefetchers(int depth, const Cache& cache, const CacheAccess& access,
                                    const CacheResult& result) {
    for (const auto& prefetcher : cache.prefetchers) {
        lines_.clear();
        prefetcher->operate(access, result, lines_);
        for (uint64_t line : lines_) wanted_.push_back({line, access.pc, depth});
    }
}

// At the end of an access, so that no line moves below it. What one brings to L1 another may hear in L2, no further.
void MemorySystem::run_prefetches(uint64_t cycle) {
    for (size_t index = 0; index < wanted_.size(); ++index) prefetch_into(Wanted(wanted_[index]), cycle);
    wanted_.clear();
}

// A prefetch that finds no miss register free is dropped. Returns when the line is there, 0 if nothing is brought.
uint64_t MemorySystem::prefetch_into(const Wanted& wanted, uint64_t cycle) {
    OuterCache* outer = wanted.depth >= 0 ? outer_[static_cast<unsigned>(wanted.depth)] : nullptr;
    Cache& cache = outer ? *outer : wanted.depth == IN_L1D ? *l1d_ : *l1i_;
    if (cache.find(wanted.line) != TagArray::NOWHERE) return 0;
    if (outer && outer->inclusion == Inclusion::EXCLUSIVE && l1d_->find(wanted.line) != TagArray::NOWHERE) return 0;
    unsigned place = 0;
    if (cache.misses.limited()) {
        place = cache.misses.choose(cycle);
        if (cache.misses.start(place, cycle) > cycle) return 0;
    }
    const CacheAccess access{wanted.pc, wanted.line << line_shift_, Request::PREFETCH};
    Arrival arrival =
        obtain(static_cast<unsigned>(wanted.depth < 0 ? 0 : wanted.depth + 1), wanted.line, access, cycle);
    if (cache.misses.limited()) cache.misses.hold(place, arrival.cycle);
    uint8_t flags = arrival.flags | PREFETCHED;
    if (outer) {
        if (outer->counts_prefetches) count(Probe::L2_PREFETCH);
        insert(static_cast<unsigned>(wanted.depth), wanted.line, flags, access, cycle, arrival.cycle);
    } else if (wanted.depth == IN_L1D) {
        count(Probe::L1D_PREFETCH);
        fill_data(wanted.line, flags, access, arrival.cycle, cycle);
    } else {
        count(Probe::L1I_PREFETCH);
        fill_instructions(wanted.line, flags, access, arrival.cycle, cycle);
    }
    return arrival.cycle;
}

}  // namespace perfemu
