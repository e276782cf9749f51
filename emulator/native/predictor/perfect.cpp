// perfect: never wrong; of directions and of targets.
#include "predictor/direction.hpp"
#include "predictor/indirect.hpp"

namespace perfemu {

namespace {

class PerfectDirection : public DirectionPredictor {
  public:
    bool learn(uint64_t, bool taken) override { return taken; }
    void archive(Archive&) override {}
};

class PerfectIndirect : public IndirectPredictor {
  public:
    bool learn(uint64_t, uint64_t, uint64_t) override { return true; }
    void archive(Archive&) override {}
};

DirectionPredictor::Row direction("perfect", [](const Config&) {
    return std::unique_ptr<DirectionPredictor>(new PerfectDirection);
});
IndirectPredictor::Row indirect("perfect",
                                [](const Config&) { return std::unique_ptr<IndirectPredictor>(new PerfectIndirect); });

}  // namespace

}  // namespace perfemu
