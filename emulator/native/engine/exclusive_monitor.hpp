// The exclusive monitor of an AArch64 engine, which LDXR opens and STXR asks.
#pragma once

#include <unicorn/unicorn.h>

namespace perfemu {

// The engine keeps the address that was marked last, and compares values instead of watching stores. Its place in saved
// registers is no part of Unicorn's API: it is found by running exclusive loads in an engine made for that. Throws
// std::runtime_error where it cannot be found.
bool monitor_open(const uc_context* saved);
void close_monitor(uc_context* saved);

}  // namespace perfemu
