// Instructions that the translator gets right only in another encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "instructions/encoding.hpp"

namespace perfemu {

// Changes the instruction at the front of `bytes` to one of the same length that the engine does right; whether it did.
bool substitute(const Encoding& encoding, std::span<uint8_t> bytes);

}  // namespace perfemu
