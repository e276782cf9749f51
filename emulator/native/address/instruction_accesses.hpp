// The data accesses of a single instruction, found from the registers as they are before it executes.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "isa/isa.hpp"
#include "memory/memory.hpp"
#include "slice/compiler.hpp"

namespace perfemu {

class InstructionAccesses {
  public:
    explicit InstructionAccesses(uc_arch arch);

    // Of the instruction at `pc`, in the order in which it makes them; of a REP, those of its next iteration.
    std::vector<DataAccess> find(uc_engine* engine, const AddressTranslation& space, uint64_t pc,
                                 std::span<const uint8_t> bytes);

  private:
    uc_arch arch_;
    std::unique_ptr<slice::SliceCompiler> compiler_;
};

}  // namespace perfemu
