#include "cache/cache.hpp"

#include <bit>
#include <map>

namespace perfemu {

uint64_t latency_of(const Config& table, const char* key) {
    int64_t cycles = table.integer(key);
    if (cycles < 1 || cycles > 1'000'000)
        throw std::invalid_argument(table.path(key) + ": " + std::to_string(cycles) +
                                    " cycles is not between 1 and 1000000");
    return static_cast<uint64_t>(cycles);
}

static uint64_t line_bytes(const Config& table) {
    int64_t line = table.integer("line", 64);
    if (line < 16 || line > 4096 || !std::has_single_bit(static_cast<uint64_t>(line)))
        throw std::invalid_argument(table.path("line") + ": " + std::to_string(line) +
                                    " bytes is not a power of two from 16 to 4096");
    return static_cast<uint64_t>(line);
}

static uint64_t lines(const Config& table) {
    int64_t size = table.integer("size");
    uint64_t line = line_bytes(table);
    if (size < 1 || static_cast<uint64_t>(size) % line)
        throw std::invalid_argument(table.path("size") + ": " + std::to_string(size) +
                                    " bytes is not a whole number of lines of " + std::to_string(line));
    return static_cast<uint64_t>(size) / line;
}

static unsigned miss_registers(const Config& table) {
    if (!table.has("mshrs")) return 0;
    int64_t registers = table.integer("mshrs");
    if (registers < 1 || registers > 1024)
        throw std::invalid_argument(table.path("mshrs") + ": " + std::to_string(registers) +
                                    " is not between 1 and 1024 (leave it out for no limit)");
    return static_cast<unsigned>(registers);
}

static const CacheProbes& probes_of(const std::string& name) {
    using enum Probe;
    static const std::map<std::string, CacheProbes> of = {
        {"l1i", {{L1I_ACCESS, L1I_ACCESS, L1I_ACCESS}, {L1I_REFILL, L1I_REFILL, L1I_REFILL}, {}, L1I_PREFETCH, {}}},
        {"l1d",
         {{L1D_ACCESS_LOAD, L1D_ACCESS_LOAD, L1D_ACCESS_STORE},
          {L1D_REFILL_LOAD, L1D_REFILL_LOAD, L1D_REFILL_STORE},
          L1D_WRITE_BACK,
          L1D_PREFETCH,
          L1D_PREFETCH_USED}},
        {"l2",
         {{L2_ACCESS_FETCH, L2_ACCESS_LOAD, L2_ACCESS_STORE},
          {L2_REFILL_FETCH, L2_REFILL_LOAD, L2_REFILL_STORE},
          L2_WRITE_BACK,
          L2_PREFETCH,
          L2_PREFETCH_USED}},
        {"llc",
         {{LL_ACCESS_FETCH, LL_ACCESS_LOAD, LL_ACCESS_STORE},
          {LL_REFILL_FETCH, LL_REFILL_LOAD, LL_REFILL_STORE},
          LL_WRITE_BACK,
          {},
          {},
          LL_ACCESS_PREFETCH,
          LL_REFILL_PREFETCH}},
    };
    return of.at(name);
}

Cache::Cache(const Config& file, const std::string& name)
    : TagArray(file.table(name), lines(file.table(name)), "size", line_bytes(file.table(name))), name(name),
      probes(probes_of(name)), misses(miss_registers(file.table(name))) {
    const Config& table = file.table(name);
    line_shift = static_cast<unsigned>(std::countr_zero(line_bytes(table)));
    latency = latency_of(table);
    flags.assign(slots(), 0);
    static const Config none;
    for (const std::string& policy : table.texts("prefetchers")) {
        auto maker = Prefetcher::Row::find(policy, table.path("prefetchers"), "prefetcher");
        bool has_parameters = file.has_table("prefetcher") && file.table("prefetcher").has_table(policy);
        prefetchers.push_back(maker(has_parameters ? file.table("prefetcher").table(policy) : none, line_shift));
    }
}

static Inclusion inclusion_of(const Config& table) {
    std::string name = table.has("inclusion") ? table.text("inclusion") : "non_inclusive";
    if (name == "inclusive") return Inclusion::INCLUSIVE;
    if (name == "exclusive") return Inclusion::EXCLUSIVE;
    if (name == "non_inclusive") return Inclusion::NON_INCLUSIVE;
    throw std::invalid_argument(table.path("inclusion") + ": \"" + name +
                                "\" is not one of inclusive, exclusive, non_inclusive");
}

bool is_shared(const Config& file, const std::string& name) {
    const Config& table = file.table(name);
    if (!table.has("scope")) return name == "llc";
    const std::string& scope = table.text("scope");
    if (scope != "private" && scope != "shared")
        throw std::invalid_argument(table.path("scope") + ": \"" + scope + "\" is not one of private, shared");
    return scope == "shared";
}

static std::vector<Channel> banks_of(const Config& table) {
    if (!table.has("banks")) return {};
    int64_t banks = table.integer("banks");
    if (banks < 1 || banks > 1024 || !std::has_single_bit(static_cast<uint64_t>(banks)))
        throw std::invalid_argument(table.path("banks") + ": " + std::to_string(banks) +
                                    " is not a power of two from 1 to 1024");
    const uint64_t cycles = table.has("bank_cycles") ? latency_of(table, "bank_cycles") : 1;
    return std::vector<Channel>(static_cast<size_t>(banks), Channel(static_cast<double>(cycles)));
}

OuterCache::OuterCache(const Config& file, const std::string& name)
    : Cache(file, name), banks(banks_of(file.table(name))), inclusion(inclusion_of(file.table(name))) {
    shared = is_shared(file, name);
}

}  // namespace perfemu
