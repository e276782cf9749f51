#include "cache/tlb.hpp"

#include "cache/cache.hpp"

namespace perfemu {

static uint64_t entries(const Config& table) {
    int64_t entries = table.integer("entries");
    return entries < 0 ? 0 : static_cast<uint64_t>(entries);
}

Tlb::Tlb(const Config& file, const std::string& name)
    : TagArray(file.table(name), entries(file.table(name)), "entries") {
    if (name == "l2tlb") latency = latency_of(file.table(name));
}

}  // namespace perfemu
