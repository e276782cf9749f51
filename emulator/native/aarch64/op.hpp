#pragma once

#include "aarch64/row.hpp"

namespace perfemu::aarch64 {

// One instruction, as the core counts it, on a core that has these features.
Op read_op(uint32_t word, Features features);

}  // namespace perfemu::aarch64
