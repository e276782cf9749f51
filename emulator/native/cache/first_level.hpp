// The first level of a core's memory, of its data or of its instructions: a cache, a TLB, and the L0 filter before
// both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache/cache.hpp"
#include "cache/cache_access.hpp"
#include "cache/l0_filter.hpp"
#include "cache/tlb.hpp"

namespace perfemu {

struct FirstLevel {
    static constexpr unsigned PAGE_SHIFT = 12;
    static constexpr unsigned LINE_SHIFT = 6;  // of lines that are filtered
    static constexpr uint64_t NO_PAGE = TagArray::NO_TAG;

    FirstLevel() = default;
    // Either part may be missing. `filtered`: with an L0 filter, which makes no difference but in time.
    FirstLevel(std::unique_ptr<Cache> its_cache, std::unique_ptr<Tlb> its_tlb, bool filtered)
        : cache(std::move(its_cache)), tlb(std::move(its_tlb)), latency(cache ? cache->latency : 0),
          all_pages_(tlb ? nullptr : std::make_unique<TagArray>()) {
        TagArray& translations = tlb ? *tlb : *all_pages_;
        newest_mask_ = translations.set_mask();
        newest_.assign(newest_mask_ + 1, NO_PAGE);
        remembers_newest_ = filtered && translations.hits_needed() != HitsNeeded::EVERY;
        if (!filtered) return;
        pages = L0Filter(translations, true);
        if (cache && cache->line_shift == LINE_SHIFT) lines = L0Filter(*cache);
    }

    // Whether an access hits in the filter, and so changes nothing but counts. TIMED: and everything was there by
    // `cycle`. Then it is done, but for what it counts; otherwise nothing is done.
    template <bool TIMED>
    bool filtered_hit(uint64_t address, AccessShape::At at, uint64_t cycle) {
        const bool hit = filter<TIMED>(view(), address, at, clock + 1, cycle);
        clock += hit;
        return hit;
    }
    // Many, from `first` on: returns the first that is none, or `behind`. shape_of(n): AccessShape::At.
    template <typename ShapeOf>
    size_t filtered_hits(const uint64_t* addresses, size_t first, size_t end, ShapeOf shape_of) {
        const View its = view();
        const uint64_t before = clock - first;
        while (first != end && filter<false>(its, addresses[first], shape_of(first), before + first + 1, 0)) ++first;
        clock = before + first;
        return first;
    }
    // The same for one who asks when: `cycle` becomes the one at which the data are there.
    bool filtered_access(uint64_t address, AccessShape::At at, uint64_t& cycle) {
        const uint64_t line_tag = address >> LINE_SHIFT, page_tag = address >> PAGE_SHIFT;
        const L0Filter::Entry line = lines.line(line_tag), page = pages.at(page_tag);
        if (at.leaves | L0Filter::difference(line, line_tag, at.loads) | L0Filter::difference(page, page_tag))
            return false;
        lines.use(line, ++clock);
        pages.use(page, clock);
        newest(page_tag) = page_tag;
        cycle = std::max(std::max(cycle, pages.arrival(page)) + latency, lines.arrival(line));
        return true;
    }

    // Whether the page is the one used last in its set of the TLB: another use changes nothing at all.
    bool is_newest(uint64_t page) const { return newest_[page & newest_mask_] == page; }
    // A page is used. `again`: whether the next use of it, right behind, would change nothing.
    void use_page(uint64_t page, bool again) { newest(page) = again && remembers_newest_ ? page : NO_PAGE; }
    void forget_filters() {
        lines.forget_all();
        pages.forget_all();
        newest_.assign(newest_.size(), NO_PAGE);
    }

    // What is in the filters is forgotten.
    void archive(Archive& state) {
        forget_filters();
        if (cache) cache->archive(state);
        if (tlb) tlb->archive(state);
        state(clock, translated_by);
    }
    // When the last of all that has been asked for is there.
    uint64_t last_arrival() const {
        uint64_t last = translated_by;
        for (const TagArray* array :
             {static_cast<const TagArray*>(cache.get()), static_cast<const TagArray*>(tlb.get())})
            if (array) last = std::max(last, std::ranges::max(array->arrival));
        return last;
    }

    std::unique_ptr<Cache> cache;
    std::unique_ptr<Tlb> tlb;
    L0Filter lines, pages;
    uint64_t latency = 0;
    uint64_t clock = 0;          // for last_use: grows with each access
    uint64_t translated_by = 0;  // the cycle by which all pages of the TLB are there
    bool is_simple = false;      // see MemorySystem::Detail

  private:
    // What a loop over many keeps in the host's registers.
    struct View {
        L0Filter::Lines lines;
        uint64_t* newest;
        uint64_t newest_mask;
    };
    View view() { return {lines.lines(), newest_.data(), newest_mask_}; }
    uint64_t& newest(uint64_t page) { return newest_[page & newest_mask_]; }

    // `now`: what `clock` is behind the access.
    template <bool TIMED>
    [[gnu::always_inline]] bool filter(const View& its, uint64_t address, AccessShape::At at, uint64_t now,
                                       uint64_t cycle) {
        const uint64_t tag = address >> LINE_SHIFT, page = address >> PAGE_SHIFT;
        const L0Filter::Entry line = its.lines.at(tag);
        if (at.leaves | L0Filter::difference(line, tag, at.loads)) [[unlikely]]
            return false;
        if (TIMED && its.lines.arrives(line) > cycle) return false;
        uint64_t& newest_page = its.newest[page & its.newest_mask];
        if (newest_page != page || (TIMED && cycle < translated_by)) [[unlikely]] {
            const L0Filter::Entry entry = pages.at(page);
            if (L0Filter::difference(entry, page)) return false;
            if (TIMED && pages.arrival(entry) > cycle) return false;
            pages.use(entry, now);
            newest_page = page;
        }
        its.lines.use(line, now);
        return true;
    }

    std::unique_ptr<TagArray> all_pages_;  // stands for a TLB that is missing: they are all there
    std::vector<uint64_t> newest_ = std::vector<uint64_t>(1, NO_PAGE);  // by the TLB's set
    uint64_t newest_mask_ = 0;
    bool remembers_newest_ = false;
};

}  // namespace perfemu
