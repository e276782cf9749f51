// BZHI, BEXTR, BLSI, BLSMSK, BLSR.
#pragma once

#include "executed.hpp"

namespace perfemu {

std::span<const ExecutedRow> bit_manipulation_rows();

}  // namespace perfemu
