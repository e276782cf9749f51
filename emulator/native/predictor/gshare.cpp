#include "predictor/gshare.hpp"

namespace perfemu {

static DirectionPredictor::Row registered("gshare", [](const Config& parameters) {
    return std::unique_ptr<DirectionPredictor>(new Gshare(parameters));
});

}  // namespace perfemu
