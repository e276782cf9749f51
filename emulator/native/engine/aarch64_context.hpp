// What an A64 engine keeps besides registers that its guest may write: loaded from anybody's bytes, it must fit.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace perfemu {

class Aarch64Context {
  public:
    // Of an engine that has not been changed yet. `registers`: the bytes of `context`, which is saved here.
    Aarch64Context(uc_engine* engine, uc_context* context, std::span<const uint8_t> registers);

    // In bytes that are to be restored.
    void renew_derived(std::span<uint8_t> registers) const;
    // Of the engine, when they are. False: no engine can go on with them.
    bool settle_restored() const;

  private:
    static constexpr size_t FIXED_REGISTERS = 6;

    // PSTATE.nRW the other way round, and what the engine has derived from registers.
    struct BesidePc {
        uint32_t is_aarch64, derived;
    };
    std::array<uint64_t, FIXED_REGISTERS> fixed_registers() const;

    uc_engine* engine_;
    size_t beside_pc_at_;
    BesidePc beside_pc_{};
    std::array<uint64_t, FIXED_REGISTERS> fixed_;
};

}  // namespace perfemu
