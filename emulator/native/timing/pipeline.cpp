#include "timing/pipeline.hpp"

#include <stdexcept>

#include "timing/pipeline_model.hpp"

namespace perfemu {

// Filled before main by the static objects of the models' files, in whatever order; the map sorts.
static std::map<std::string, PipelineModel::Maker>& models() {
    static std::map<std::string, PipelineModel::Maker> registered;
    return registered;
}

PipelineModel::PipelineModel(const char* name, Maker maker) { models()[name] = maker; }

std::vector<std::string> Pipeline::names() {
    std::vector<std::string> names;
    for (const auto& [name, maker] : models()) names.push_back(name);
    return names;
}

std::unique_ptr<Pipeline> Pipeline::make(const Config& config, MemorySystem& memory, BranchUnit& branches,
                                         uint64_t* totals) {
    const std::string& name = config.table("pipeline").text("model");
    auto found = models().find(name);
    if (found == models().end()) {
        std::string known;
        for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
        throw std::invalid_argument("pipeline.model: there is no '" + name + "', but " + known);
    }
    return found->second(config, memory, branches, totals);
}

}  // namespace perfemu
