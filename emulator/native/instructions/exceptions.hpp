// Exceptions that instructions of our own raise.
#pragma once

#include <cstdint>

#include "instructions/environment.hpp"

namespace perfemu {

// The vectors of Intel SDM vol. 3, "Exception and Interrupt Reference".
enum class Vector8664 : int { DIVIDE = 0, UNDEFINED = 6, PROTECTION = 13, FLOATING_POINT = 16, SIMD = 19 };

// Leaves the translation that called the helper which returns to `return_address`, and has the registers as they were
// before its instruction. Does not return: longjmp.
[[noreturn]] void raise_exception(Environment* environment, Vector8664 vector, uintptr_t return_address);

}  // namespace perfemu

// In a helper itself, not in what it calls.
#define HELPER_RETURN_ADDRESS() reinterpret_cast<uintptr_t>(__builtin_return_address(0))
