#include "timing/pipeline.hpp"

#include "timing/pipeline_model.hpp"

namespace perfemu {

std::vector<std::string> Pipeline::names() { return PipelineModel::names(); }

std::unique_ptr<Pipeline> Pipeline::make(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                         uint64_t* totals) {
    const Config& pipeline = config.table("pipeline");
    return PipelineModel::find(pipeline.text("model"), pipeline.path("model"), "pipeline model")(config, memory,
                                                                                                 branches, totals);
}

}  // namespace perfemu
