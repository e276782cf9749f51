// How a model's file makes itself known to Pipeline::make: one static PipelineModel.
#pragma once

#include "named.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

using PipelineMaker = std::unique_ptr<Pipeline> (*)(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                                    uint64_t* totals);
using PipelineModel = Named<PipelineMaker>;

template <typename Model>
std::unique_ptr<Pipeline> make_pipeline(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                        uint64_t* totals) {
    return std::make_unique<Model>(config, memory, branches, totals);
}

}  // namespace perfemu
