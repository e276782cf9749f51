// last_target: the branch goes where it went last. A table without tags, so branches may share an entry.
#include "predictor/indirect.hpp"

namespace perfemu {

namespace {

class LastTarget : public IndirectPredictor {
  public:
    explicit LastTarget(const Config& parameters)
        : targets_(power_of_two(parameters, "entries", 512), 0), mask_(targets_.size() - 1) {}

    bool learn(uint64_t pc, uint64_t, uint64_t target) override {
        uint64_t& last = targets_[spread(pc) & mask_];
        bool right = last == target;
        last = target;
        return right;
    }

    void archive(Archive& state) override { state(targets_); }

  private:
    std::vector<uint64_t> targets_;
    uint64_t mask_;
};

IndirectPredictor::Row registered("last_target", [](const Config& parameters) {
    return std::unique_ptr<IndirectPredictor>(new LastTarget(parameters));
});

}  // namespace

}  // namespace perfemu
