#include "cache/prefetcher.hpp"

#include <algorithm>

namespace perfemu {

uint32_t prefetcher_parameter(const Config& parameters, const char* key, uint32_t otherwise) {
    int64_t value = parameters.integer(key, otherwise);
    if (value < 1 || value > 1 << 20)
        throw std::invalid_argument(parameters.path(key) + ": " + std::to_string(value) +
                                    " is not between 1 and 1048576");
    return static_cast<uint32_t>(value);
}

void check_prefetcher_keys(const Config& parameters, std::initializer_list<std::string_view> known) {
    for (const auto& row : parameters.values()) {
        if (row.first == "crosses_pages" || std::ranges::find(known, row.first) != known.end()) continue;
        std::string names;
        for (std::string_view name : known) names += std::string(name) + ", ";
        throw std::invalid_argument(parameters.path(row.first) + ": no such parameter: there are " + names +
                                    "crosses_pages");
    }
}

}  // namespace perfemu
