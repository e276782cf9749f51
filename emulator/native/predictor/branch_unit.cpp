#include "predictor/branch_unit.hpp"

namespace perfemu {

const Config& branch_table(const Config& config) {
    static const Config NONE;
    return config.has_table("branch") ? config.table("branch") : NONE;
}

BranchUnit::BranchUnit(const Config& config, uint64_t* totals)
    : totals_(totals), targets_(branch_table(config)), returns_(branch_table(config)) {
    const Config& branch = branch_table(config);
    if (branch.has("direction")) direction_ = DirectionPredictor::make(branch);
    gshare_ = dynamic_cast<Gshare*>(direction_.get());
    if (branch.has("indirect")) indirect_ = IndirectPredictor::make(branch);
}

Prediction BranchUnit::learn_by_kind(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    return resolve(pc, kind, next, fallthrough);
}

bool BranchUnit::learn_target(uint64_t pc, bool mispredicted) {
    bool late = !targets_.learn(pc) && !mispredicted;
    if (late) count(Probe::BTB_MISS);
    return late;
}

Prediction BranchUnit::other(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    switch (kind) {
        case BranchKind::CALL: returns_.push(fallthrough); return found(pc);
        case BranchKind::INDIRECT: return indirect(pc, next);
        case BranchKind::INDIRECT_CALL: returns_.push(fallthrough); return indirect(pc, next);
        case BranchKind::RETURN: return returns(pc, next);
        default: return Prediction::RIGHT;
    }
}

Prediction BranchUnit::mispredicted(uint64_t pc, bool taken) {
    if (taken) targets_.learn(pc);
    count(Probe::BR_MISPREDICTED);
    count(Probe::BR_COND_MISPREDICTED);
    return Prediction::WRONG;
}

Prediction BranchUnit::indirect(uint64_t pc, uint64_t target) {
    bool right = !indirect_ || indirect_->learn(pc, path_, target);
    path_ = path_ << 4 | target_hash(target) >> 28;
    if (direction_) direction_->follow(target);
    if (right) return found(pc);
    targets_.learn(pc);
    count(Probe::BR_MISPREDICTED);
    count(Probe::BR_INDIRECT_MISPREDICTED);
    return Prediction::WRONG;
}

Prediction BranchUnit::returns(uint64_t pc, uint64_t target) {
    bool right = returns_.pop(target);
    if (direction_) direction_->follow(target);
    if (right) return found(pc);
    targets_.learn(pc);
    count(Probe::BR_MISPREDICTED);
    count(Probe::BR_RETURN_MISPREDICTED);
    return Prediction::WRONG;
}

}  // namespace perfemu
