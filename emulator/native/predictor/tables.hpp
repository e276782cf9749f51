// What tables that are indexed by address have in common.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config.hpp"

namespace perfemu {

// An address as the tables index it. On A64, where the two lowest bits are 0, the lowest n bits of this are as
// different as bits 2 to n + 1 of the address; on x86 as its lowest n.
inline uint64_t spread(uint64_t pc) { return pc ^ pc >> 2; }

// 32 bits of which the highest depend on all of the address.
inline uint32_t target_hash(uint64_t target) {
    return static_cast<uint32_t>(target ^ target >> 32) * 0x9E37'79B1u;  // 2^32 / golden ratio
}

// The number at `key`, which is a power of two, at most 2^`most_bits`.
inline uint32_t power_of_two(const Config& config, std::string_view key, int64_t otherwise, unsigned most_bits = 24) {
    int64_t value = config.integer(key, otherwise);
    if (value < 1 || value > int64_t{1} << most_bits || !std::has_single_bit(static_cast<uint64_t>(value)))
        throw std::invalid_argument(config.path(key) + ": " + std::to_string(value) + " is no power of two up to " +
                                    std::to_string(int64_t{1} << most_bits));
    return static_cast<uint32_t>(value);
}

// The number at `key`, from `least` to `most`.
inline int64_t within(const Config& config, std::string_view key, int64_t otherwise, int64_t least, int64_t most) {
    int64_t value = config.integer(key, otherwise);
    if (value < least || value > most)
        throw std::invalid_argument(config.path(key) + ": " + std::to_string(value) + " is not within " +
                                    std::to_string(least) + " to " + std::to_string(most));
    return value;
}

// The table of a predictor's own parameters, which may be missing.
inline const Config& parameters(const Config& branch, const std::string& name) {
    static const Config NONE;
    return branch.has_table(name) ? branch.table(name) : NONE;
}

// Kinds of one part by name. A kind registers itself by a static `Registered` object in its own file.
template <typename Part>
struct Kinds {
    using Make = std::unique_ptr<Part> (*)(const Config& parameters);

    static std::map<std::string, Make>& all() {
        static std::map<std::string, Make> kinds;
        return kinds;
    }

    struct Registered {
        Registered(const char* name, Make make) { all()[name] = make; }
    };

    static std::vector<std::string> names() {
        std::vector<std::string> names;
        for (const auto& [name, make] : all()) names.push_back(name);
        return names;
    }

    // The one that `branch` names at `key`, with the parameters from the table of its name.
    static std::unique_ptr<Part> make(const Config& branch, std::string_view key) {
        const std::string& name = branch.text(key);
        auto found = all().find(name);
        if (found != all().end()) return found->second(parameters(branch, name));
        std::string known;
        for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
        throw std::invalid_argument(branch.path(key) + ": no '" + name + "'; there are " + known);
    }
};

}  // namespace perfemu
