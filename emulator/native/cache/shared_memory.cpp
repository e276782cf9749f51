#include "cache/shared_memory.hpp"

#include <algorithm>
#include <bit>

#include "cache/memory_system.hpp"

namespace perfemu {

static double cycles_per_line(const Config& config) {
    if (!config.has_table("memory") || !config.table("memory").has("cycles_per_line")) return 0;
    double cycles = config.table("memory").real("cycles_per_line");
    if (!(cycles >= 0) || cycles > 100'000)
        throw std::invalid_argument("memory.cycles_per_line: " + std::to_string(cycles) +
                                    " is not between 0 (no limit) and 100000");
    return cycles;
}

SharedMemory::SharedMemory(const Config& config, unsigned cores)
    : core_limit_(cores), channel_(cycles_per_line(config)) {
    if (cores < 1 || cores > MAXIMUM_CORES)
        throw std::invalid_argument("cores: " + std::to_string(cores) + " is not between 1 and " +
                                    std::to_string(MAXIMUM_CORES));
    uint64_t last_cache = 0;  // its latency
    for (const char* name : {"l1i", "l1d", "l2", "llc"})
        if (config.has_table(name)) last_cache = latency_of(config.table(name));
    for (const char* name : {"l2", "llc"})
        if (config.has_table(name) && is_shared(config, name))
            caches_.push_back(std::make_unique<OuterCache>(config, name));
    has_memory_ = config.has_table("memory");
    latency_ = has_memory_ ? latency_of(config.table("memory")) : last_cache;
    if (latency_ < last_cache)
        throw std::invalid_argument("memory.latency: " + std::to_string(latency_) + " cycles is less than the " +
                                    std::to_string(last_cache) +
                                    " of the last cache: latencies are totals from load to use");
    coherence_latency_ = caches_.empty() ? latency_ : caches_[0]->latency;
    if (!config.has_table("coherence")) return;
    const Config& coherence = config.table("coherence");
    if (coherence.has("latency")) coherence_latency_ = latency_of(coherence);
    std::string filter = coherence.has("filter") ? coherence.text("filter") : "directory";
    if (filter != "directory" && filter != "none")
        throw std::invalid_argument("coherence.filter: \"" + filter + "\" is not one of directory, none");
    snoops_all_ = filter == "none";
}

unsigned SharedMemory::join(MemorySystem* core) {
    if (cores_.size() == core_limit_)
        throw std::logic_error("SharedMemory was made for " + std::to_string(core_limit_) + " cores");
    cores_.push_back(core);
    return static_cast<unsigned>(cores_.size() - 1);
}

// Calls `act` with each core of a mask, the lowest first.
template <typename Act>
static void each(uint64_t cores, Act act) {
    for (; cores; cores &= cores - 1) act(static_cast<unsigned>(std::countr_zero(cores)));
}

bool SharedMemory::are_possible(const Holders& holders) const {
    const size_t cores = cores_.size();
    return (cores == MAXIMUM_CORES || !(holders.cores >> cores)) && holders.owner >= NOBODY &&
           holders.owner < static_cast<int>(cores) &&
           std::ranges::all_of(holders.handed, [&](const Handed& handed) { return handed.core < cores; });
}

SharedMemory::Answer SharedMemory::ask(unsigned core, uint64_t line, bool to_write, uint64_t cycle) {
    Holders& holders = holders_[line];
    uint64_t self = uint64_t{1} << core;
    Answer answer;
    answer.others = holders.cores & ~self;
    answer.owned = holders.owner != NOBODY && holders.owner != static_cast<int>(core);
    if (snoops_all_)
        for (unsigned other = 0; other < cores_.size(); ++other) {
            bool holds = answer.others >> other & 1;
            if (other == core || (holds && (to_write || answer.owned))) continue;  // those are counted below
            cores_[other]->count(Probe::SNOOP);
            if (holds) cores_[other]->count(Probe::SNOOP_HIT);
        }
    if (to_write) {
        each(answer.others, [&](unsigned other) {
            bool dirty = cores_[other]->surrender(line, false);
            cores_[other]->count(Probe::SNOOP);
            cores_[other]->count(dirty ? Probe::SNOOP_HITM : Probe::SNOOP_HIT);
            cores_[other]->count(Probe::INVALIDATED);
            answer.modified |= dirty;
        });
        holders.cores = self;
        holders.owner = static_cast<int>(core);
    } else {
        if (answer.owned) {
            MemorySystem& owner = *cores_[static_cast<unsigned>(holders.owner)];
            answer.modified = owner.demote(line, cycle);
            owner.count(Probe::SNOOP);
            owner.count(answer.modified ? Probe::SNOOP_HITM : Probe::SNOOP_HIT);
            holders.owner = NOBODY;
        } else if (!answer.others) {
            holders.owner = static_cast<int>(core);
        }
        holders.cores |= self;
    }
    return answer;
}

uint64_t SharedMemory::hand_over(unsigned core, uint64_t line, uint64_t cycle) {
    Holders& holders = holders_[line];
    auto own = std::ranges::find(holders.handed, core, &Handed::core);
    uint64_t start = cycle;
    if (own == holders.handed.end()) {
        holders.handed.push_back({core, 0, 0});
        own = holders.handed.end() - 1;
    } else {
        returns_ += holders.handovers != own->number;
        start = std::max(start, own->arrival + (holders.handovers - own->number) * coherence_latency_);
        start = std::min(start, cycle + MOST_HANDOVERS * coherence_latency_);
    }
    *own = {core, start + coherence_latency_, ++holders.handovers};
    return own->arrival;
}

void SharedMemory::ask_sharer(uint64_t others) {
    if (snoops_all_) return;  // it has been asked
    MemorySystem& sharer = *cores_[static_cast<unsigned>(std::countr_zero(others))];
    sharer.count(Probe::SNOOP);
    sharer.count(Probe::SNOOP_HIT);
}

void SharedMemory::forget(unsigned core, uint64_t line) {
    auto found = holders_.find(line);
    if (found == holders_.end()) return;
    Holders& holders = found->second;
    holders.cores &= ~(uint64_t{1} << core);
    if (holders.owner == static_cast<int>(core)) holders.owner = NOBODY;
    if (!holders.cores) holders_.erase(found);
}

bool SharedMemory::recall(uint64_t line) {
    auto found = holders_.find(line);
    if (found == holders_.end()) return false;
    uint64_t cores = found->second.cores;
    holders_.erase(found);
    bool dirty = false;
    each(cores, [&](unsigned core) { dirty |= cores_[core]->surrender(line, true); });
    return dirty;
}

}  // namespace perfemu
