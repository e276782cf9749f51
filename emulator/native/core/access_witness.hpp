// What the engine itself says of a core's data accesses, for tests: its MEM hooks, which cost many times the run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/core.hpp"
#include "memory/memory.hpp"

namespace perfemu {

class AccessWitness {
  public:
    // Before the core's first run. The core must trace its accesses.
    AccessWitness(Core& core, std::shared_ptr<AddressSpace> space);
    AccessWitness(const AccessWitness&) = delete;
    AccessWitness& operator=(const AccessWitness&) = delete;

    void set_address_space(std::shared_ptr<AddressSpace> space) { space_ = std::move(space); }
    // After a run has ended, and before anything is mapped anew: that what the core traced since the last call is what
    // the engine did. Returns how many accesses that were; throws std::logic_error with the first that differs.
    uint64_t compare();

  private:
    // The engine tells physical addresses.
    struct SeenAccess {
        uint64_t pc, physical, size;
        bool store;

        bool operator==(const SeenAccess&) const = default;
    };
    static void on_access(uc_engine*, uc_mem_type type, uint64_t address, int size, int64_t value, void* user);
    void note(uint64_t pc, uint64_t physical, uint64_t size, bool store);
    uint64_t physical(uint64_t address) const;
    void order_halves(uint64_t first, size_t at);
    size_t pieces(const SeenAccess& whole, uint64_t address, size_t at) const;

    Core& core_;
    std::shared_ptr<AddressSpace> space_;
    std::vector<SeenAccess> seen_;
};

}  // namespace perfemu
