// How a model's file makes itself known to Pipeline::make: one static object of this.
#pragma once

#include "timing/pipeline.hpp"

namespace perfemu {

struct PipelineModel {
    using Maker = std::unique_ptr<Pipeline> (*)(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                                uint64_t* totals);
    PipelineModel(const char* name, Maker maker);
};

template <typename Model>
std::unique_ptr<Pipeline> make_pipeline(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                        uint64_t* totals) {
    return std::make_unique<Model>(config, memory, branches, totals);
}

}  // namespace perfemu
