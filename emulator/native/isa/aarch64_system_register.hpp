// AArch64's system registers, where the engine keeps them.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

#include "aarch64/system_register.hpp"

namespace perfemu::aarch64 {

inline uc_arm64_cp_reg in_engine(SystemRegister which, uint64_t value = 0) {
    return {.crn = which.crn, .crm = which.crm, .op0 = which.op0, .op1 = which.op1, .op2 = which.op2, .val = value};
}

inline uint64_t read_system_register(uc_engine* engine, SystemRegister which) {
    uc_arm64_cp_reg reg = in_engine(which);
    uc_reg_read(engine, UC_ARM64_REG_CP_REG, &reg);
    return reg.val;
}

// The engine notices a PSTATE that has been written when any of these is.
inline void write_system_register(uc_engine* engine, SystemRegister which, uint64_t value) {
    uc_arm64_cp_reg reg = in_engine(which, value);
    uc_reg_write(engine, UC_ARM64_REG_CP_REG, &reg);
}

}  // namespace perfemu::aarch64
