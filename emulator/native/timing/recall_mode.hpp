// Whether a pipeline may recall what it has done before. Core files cannot choose; tests can.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "config.hpp"

namespace perfemu {

enum class RecallMode : uint8_t {
    RECALL,
    CHECK,  // and work it out, too, for every block: both must be the same
    NEVER,
};

inline RecallMode recall_mode(const Config& pipeline) {
    if (!pipeline.has("recall")) return RecallMode::RECALL;
    const std::string& mode = pipeline.text("recall");
    if (mode == "check") return RecallMode::CHECK;
    if (mode == "never") return RecallMode::NEVER;
    throw std::invalid_argument(pipeline.path("recall") + ": \"" + mode + "\" is not one of check, never");
}

}  // namespace perfemu
