// All registers that the engine keeps, as bytes that mean the same in another process.
#pragma once

#include <unicorn/unicorn.h>

#include "archive.hpp"

namespace perfemu {

// Between two runs. The same engine's library, and model of a processor, must load what it has saved.
void archive_context(uc_engine* engine, Archive& state);

}  // namespace perfemu
