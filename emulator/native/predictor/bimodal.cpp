// bimodal: a two-bit counter for each branch address (J. E. Smith, ISCA 1981).
#include "predictor/direction.hpp"

namespace perfemu {

namespace {

class Bimodal : public DirectionPredictor {
  public:
    explicit Bimodal(const Config& parameters)
        : counters_(power_of_two(parameters, "entries", 4096), WEAKLY_NOT_TAKEN), mask_(counters_.size() - 1) {}

    bool learn(uint64_t pc, bool taken) override {
        uint8_t& counter = counters_[spread(pc) & mask_];
        bool predicted = predicts_taken(counter);
        counter = trained(counter, taken);
        return predicted;
    }

    void archive(Archive& state) override { state(counters_); }

  private:
    std::vector<uint8_t> counters_;
    uint64_t mask_;
};

DirectionPredictor::Row registered("bimodal", [](const Config& parameters) {
    return std::unique_ptr<DirectionPredictor>(new Bimodal(parameters));
});

}  // namespace

}  // namespace perfemu
