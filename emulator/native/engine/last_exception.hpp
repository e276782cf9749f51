// The x86 engine remembers the last exception that it raised until it has delivered it itself, which here it never
// does.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

namespace perfemu {

// Whether a second exception after this one would make the engine report a double fault, and then nothing any more.
constexpr bool adds_up(uint32_t interrupt) { return interrupt == 0 || (interrupt >= 8 && interrupt <= 13); }

// The exception has been delivered. Throws std::runtime_error if this engine is not one that we know.
void forget_last_exception(uc_engine* engine);

}  // namespace perfemu
