#include "predictor/gshare.hpp"

namespace perfemu {

static Kinds<DirectionPredictor>::Registered registered("gshare", [](const Config& parameters) {
    return std::unique_ptr<DirectionPredictor>(new Gshare(parameters));
});

}  // namespace perfemu
