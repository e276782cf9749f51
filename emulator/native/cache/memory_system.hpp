// Caches, TLBs and memory of one core, down to what it shares with others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config.hpp"

namespace perfemu {

// What several cores share: the last-level cache, memory, and who holds which line.
class SharedMemory {
  public:
    explicit SharedMemory(const Config& config);
};

// Each call returns the cycle at which the data are there, if the access starts at `cycle`; calls come in program
// order, which need not be the order of their cycles. Parts that `config` does not have cost nothing and count nothing.
class MemorySystem {
  public:
    MemorySystem(const Config& config, std::shared_ptr<SharedMemory> shared, uint64_t* totals);

    uint64_t load(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle);
    uint64_t store(uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle);
    // The line of instructions at `address`.
    uint64_t fetch(uint64_t address, uint64_t cycle);
    void prefetch(uint64_t address, uint64_t cycle);  // by an instruction
    uint32_t fetch_line_bytes() const { return 64; }
};

}  // namespace perfemu
