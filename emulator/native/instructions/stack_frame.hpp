// ENTER
#pragma once

#include <span>

#include "instructions/executed.hpp"

namespace perfemu {

std::span<const ExecutedRow> stack_frame_rows();

}  // namespace perfemu
