// The registers of an x86-64 engine, and the modes in which it translates and executes code.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

#include "engine/registers.hpp"
#include "x86_64_system/state.hpp"

namespace perfemu::x86_64 {

class EngineRegisters {
  public:
    // Throws std::runtime_error if the engine is not one that we know.
    explicit EngineRegisters(uc_engine* engine);

    uint64_t& general(unsigned number) const { return general_[number]; }
    uint64_t rip() const { return read_register(engine_, UC_X86_REG_RIP); }
    void set_rip(uint64_t value) const { write_register(engine_, UC_X86_REG_RIP, value); }
    uint64_t flags() const { return read_register(engine_, UC_X86_REG_RFLAGS); }
    void set_flags(uint64_t value) const { write_register(engine_, UC_X86_REG_RFLAGS, value | rflags::FIXED); }
    uint64_t& base(unsigned segment) const;

    // From now on code executes as that state says; of FS and GS the bases stay.
    void follow(const State& state) const;

  private:
    struct Cache;
    uc_engine* engine_;
    uint64_t* general_;
    Cache* segments_;
    uint32_t* mode_;
};

}  // namespace perfemu::x86_64
