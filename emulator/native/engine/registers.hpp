// The guest's registers, by the engine's numbers.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

namespace perfemu {

inline uint64_t read_register(uc_engine* engine, int number) {
    uint64_t value = 0;
    uc_reg_read(engine, number, &value);
    return value;
}

inline void write_register(uc_engine* engine, int number, uint64_t value) { uc_reg_write(engine, number, &value); }

}  // namespace perfemu
