// Not a model of time that a core can have: what is given instructions while caches and predictors are only warmed.
#pragma once

#include <memory>

#include "timing/pipeline.hpp"

namespace perfemu {

// One instruction at a time, which waits for its fetch and for its accesses, as gem5's TimingSimpleCPU: so nothing
// queues up before memory that would be there still when a pipeline goes on.
std::unique_ptr<Pipeline> make_warming(MemorySystem& memory, BranchUnit& branches);

}  // namespace perfemu
