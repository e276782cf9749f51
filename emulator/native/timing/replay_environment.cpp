#include "timing/replay_environment.hpp"

namespace perfemu {

// The log's next request, answered as it was or as it is now.
uint64_t ReplayEnvironment::next(Request kind, const Packet& access, uint64_t cycle) {
    const unsigned number = number_++;
    const unsigned line = kind == Request::FETCH ? line_++ : ~0U;
    const bool known = number < log.known || line < log.known_lines;
    const bool answered = answer_ < log.answers.size();
    if (known ? answered && log.answers[answer_].number == number : !filtered_hit(kind, access)) {
        if (!known) ask(number, kind, access, cycle);
        const ReplayLog::Answer& answer = log.answers[answer_];
        if (answer.asked == cycle) ++answer_;  // else `end` finds it missing
        return cycle + answer.delay;
    }
    using Counts = PipelineCounts;
    ++hits_[kind == Request::FETCH ? Counts::FETCHES : kind == Request::LOAD ? Counts::LOADS : Counts::STORES];
    return cycle + (kind == Request::FETCH ? memory.fetch_latency() : memory.data_latency());
}

bool ReplayEnvironment::filtered_hit(Request kind, const Packet& access) {
    if (kind == Request::FETCH) return memory.filtered_fetch_by(log.fetch_cycle, access.address);
    const AccessShape shape = AccessShape::of(kind == Request::STORE, access.size, access.elements);
    return memory.filtered_hit_by(log.cycle, access.address, shape);
}

uint64_t ReplayEnvironment::ask(unsigned number, Request kind, const Packet& access, uint64_t cycle) {
    const auto [address, size, pc, elements] = access;
    uint64_t there;
    switch (kind) {
        case Request::LOAD: there = load_now(access, cycle); break;
        case Request::STORE: there = memory.store(address, size, pc, cycle, elements); break;
        default: there = memory.fetch(address, cycle);
    }
    log.answers.push_back({number, cycle, there - cycle});
    return arrives(there);
}

Prediction ReplayEnvironment::resolve_in_replay(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    if (!log.branch_known) log.set_branch(branches.resolve(pc, kind, next, fallthrough));
    return log.prediction;
}

}  // namespace perfemu
