// always_taken: what a machine does that knows nothing.
#include "predictor/direction.hpp"

namespace perfemu {

namespace {

class AlwaysTaken : public DirectionPredictor {
  public:
    bool learn(uint64_t, bool) override { return true; }
    void archive(Archive&) override {}
};

DirectionPredictor::Row registered("always_taken",
                                   [](const Config&) { return std::unique_ptr<DirectionPredictor>(new AlwaysTaken); });

}  // namespace

}  // namespace perfemu
