// Functions of the engine's library that are no part of its API.
#pragma once

namespace perfemu {

// By its name; null where the library has none of that name.
const void* engine_function(const char* name);

}  // namespace perfemu
