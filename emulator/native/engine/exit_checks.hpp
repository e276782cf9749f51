// The engine's checks for exit requests, which cost more than most instructions they follow.
#pragma once

#include <unicorn/unicorn.h>

namespace perfemu {

// Unicorn emits a call after every guest memory access that looks for an exit request, so that uc_emu_stop from a
// memory hook or another thread acts at once. This core stops only in block, interrupt and syscall hooks, behind which
// the engine looks again anyway. A flag in the engine, meant for Arm's IT blocks, leaves those calls out; it is no part
// of the API, so its place is read from the library's own code. Returns whether the flag was found and set; without it
// all is the same, but slower.
bool elide_exit_checks(uc_engine* engine);

}  // namespace perfemu
