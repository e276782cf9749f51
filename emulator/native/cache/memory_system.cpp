// MemorySystem from a core file, and which address space it is in. What happens to an access: access_path.cpp.
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
    // Missing: true. Only tests turn it off, for what the core counts does not depend on it.
    const bool filtered = !config.has_table("l0_filter") || config.table("l0_filter").boolean("enabled", true);
    data_ = FirstLevel(cache("l1d"), tlb("dtlb"), filtered);
    instructions_ = FirstLevel(cache("l1i"), tlb("itlb"), filtered);
    add_outer_caches(config);
    check_levels();
    if (data_.cache) read_l1d(config);
    read_translation(config);
    coherent_ = shared_->coherent();
    core_ = shared_->join(this);
    choose_detail();
}

MemorySystem::~MemorySystem() = default;

void MemorySystem::add_outer_caches(const Config& config) {
    for (const char* name : {"l2", "llc"}) {
        if (!config.has_table(name)) continue;
        if (!data_.cache) throw std::invalid_argument(std::string(name) + ": needs an [l1d] before it");
        if (is_shared(config, name)) continue;
        if (std::string_view(name) == "llc" && !shared_->caches().empty())
            throw std::invalid_argument("llc.scope: \"private\" behind an l2 that is shared: make both the same");
        private_.push_back(std::make_unique<OuterCache>(config, name));
        outer_.push_back(private_.back().get());
    }
    first_shared_ = static_cast<unsigned>(outer_.size());
    for (auto& level : shared_->caches()) outer_.push_back(level.get());
}

// All lines are of one size, and what lies further out takes longer.
void MemorySystem::check_levels() {
    const Cache* const l1i = instructions_.cache.get();
    const Cache* before = data_.cache ? data_.cache.get() : l1i;
    if (before) line_shift_ = before->line_shift;
    outside_line_ = ~((uint64_t{1} << line_shift_) - 1);
    auto agree = [&](const Cache& level) {
        if (level.line_shift != before->line_shift)
            throw std::invalid_argument(level.name + ".line: " + std::to_string(1u << level.line_shift) +
                                        " bytes, but " + before->name + "'s are of " +
                                        std::to_string(1u << before->line_shift) + ": all must be the same");
    };
    if (l1i) agree(*l1i);
    for (const OuterCache* level : outer_) {
        agree(*level);
        if (level->latency < before->latency)
            throw std::invalid_argument(level->name + ".latency: " + std::to_string(level->latency) +
                                        " cycles is less than the " + std::to_string(before->latency) + " of " +
                                        before->name + ": latencies are totals from load to use");
        before = level;
    }
}

void MemorySystem::read_l1d(const Config& config) {
    const Config& table = config.table("l1d");
    write_policy_ = write_policy_of(table);
    write_allocate_ = table.boolean("write_allocate", true);
    const int64_t cycles = table.integer("write_back_cycles", 0);
    if (cycles < 0 || cycles > 1000)
        throw std::invalid_argument(table.path("write_back_cycles") + ": " + std::to_string(cycles) +
                                    " is not between 0 and 1000");
    evictions_ = Channel(static_cast<double>(cycles));
    places_pages_ = file_places_pages(config);
    uncounted_.resize(places_pages_ ? PROBE_COUNT : 0);
}

void MemorySystem::read_translation(const Config& config) {
    has_itlb_ = instructions_.tlb != nullptr;
    has_dtlb_ = data_.tlb != nullptr;
    if (config.has_table("l2tlb")) l2tlb_ = std::make_unique<Tlb>(config, "l2tlb");
    if (l2tlb_ && !has_itlb_ && !has_dtlb_) throw std::invalid_argument("l2tlb: needs an [itlb] or a [dtlb] before it");
    if (config.has_table("page_walk")) {
        const Config& table = config.table("page_walk");
        walk_reads_ = table.boolean("reads_entries", false);
        if (walk_reads_ && outer_.empty())
            throw std::invalid_argument("page_walk.reads_entries: needs an [l2] or [llc] to read through");
        if (!walk_reads_ || table.has("latency")) walk_latency_ = latency_of(table);
    }
}

// What cannot happen to an access, because the core has nothing for it.
void MemorySystem::choose_detail() {
    auto holds_up = [](const Cache& level) { return level.misses.limited() || !level.prefetchers.empty(); };
    auto is_plain = [](const OuterCache* level) { return level->prefetchers.empty() && level->banks.empty(); };
    const bool is_simple = write_allocate_ && !evictions_.takes_time() && write_policy_ != WritePolicy::THROUGH &&
                           !coherent_ && !outer_.empty() && std::ranges::all_of(outer_, is_plain) &&
                           outer_[0]->inclusion != Inclusion::EXCLUSIVE;
    for (FirstLevel* level : {&data_, &instructions_})
        level->is_simple = is_simple && level->cache && level->cache->only_last_use() && !holds_up(*level->cache);
    auto wants_pc = [](const TagArray* array) { return array && array->hits_needed() == HitsNeeded::EVERY; };
    ignores_cycles_ = data_.is_simple && !walk_reads_ && !wants_pc(data_.tlb.get()) && !wants_pc(l2tlb_.get()) &&
                      std::ranges::none_of(outer_, wants_pc);
    // Where an outer cache is inclusive, or other cores are heard, one side's miss takes the other's lines out.
    independent_sides_ =
        line_shift_ == FirstLevel::LINE_SHIFT && !coherent_ &&
        std::ranges::none_of(outer_, [](const OuterCache* level) { return level->inclusion == Inclusion::INCLUSIVE; });
}

// --- addresses ---

void MemorySystem::set_address_space(const std::shared_ptr<AddressTranslation>& space) {
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
    for (FirstLevel* level : {&data_, &instructions_}) level->forget_filters();
    named_pages_.fill({});
    seen_mappings_ = space_->generation();
    seen_names_ = shared_->names().generation();
}

uint64_t MemorySystem::name(uint64_t page) {
    NamedPage& known = named_pages_[page % named_pages_.size()];
    if (known.page != page) known = {page, shared_->names().name(*space_, space_number_, page)};
    return known.name;
}

// --- pages that the kernel writes ---

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
    if (uint32_t slot = data_.cache->find(line); slot != TagArray::NOWHERE) {
        write_hit(slot, line, cycle);
        return;
    }
    if (coherent_) shared_->ask(core_, line, true, cycle);
    for (auto depth = static_cast<unsigned>(outer_.size()); depth-- > 0;)
        if (outer_[depth]->inclusion != Inclusion::EXCLUSIVE) handle_fill(depth, access, line, cycle, {cycle, 0});
    handle_fill(data_, {.access = access, .line = line, .cycle = cycle, .arrival = {cycle, flags}});
}

}  // namespace perfemu
