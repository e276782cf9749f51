// CMPXCHG of 32 bits, MOV from CS and SS, CLFLUSH.
#pragma once

#include "instructions/executed.hpp"

namespace perfemu {

std::span<const ExecutedRow> general_rows();

}  // namespace perfemu
