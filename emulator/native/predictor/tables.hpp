// What tables that are indexed by address have in common.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "config.hpp"
#include "named.hpp"

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

// The predictor that `branch` names at `key`, with the parameters from the table of its name.
template <typename Predictor>
std::unique_ptr<Predictor> make_predictor(const Config& branch, std::string_view key, const char* kind) {
    const std::string& name = branch.text(key);
    return Predictor::Row::find(name, branch.path(key), kind)(parameters(branch, name));
}

}  // namespace perfemu
