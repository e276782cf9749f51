// BZHI, BEXTR, BLSI, BLSMSK, BLSR, PDEP, PEXT.
#pragma once

#include "instructions/executed.hpp"

namespace perfemu {

std::span<const ExecutedRow> bit_manipulation_rows();

}  // namespace perfemu
