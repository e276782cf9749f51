#pragma once

#include "aarch64/row.hpp"
#include "level.hpp"

namespace perfemu::aarch64 {

// One instruction, as the core counts it, on a core that has these features, where it executes at that level.
Op read_op(uint32_t word, Features features, Level level = Level::USER);

}  // namespace perfemu::aarch64
