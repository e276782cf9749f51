// A TLB: pages of 4 KiB, and from when on their translation is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/tag_array.hpp"
#include "config.hpp"

namespace perfemu {

class Tlb : public TagArray {
  public:
    Tlb(const Config& file, const std::string& name);

    uint64_t latency = 0;  // of a hit, added to the access; 0 in the first level
};

}  // namespace perfemu
