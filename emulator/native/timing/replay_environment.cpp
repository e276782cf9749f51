#include "timing/replay_environment.hpp"

namespace perfemu {

// The log's next event, as it was or as it is now.
uint64_t ReplayEnvironment::next(Request request, const Access& access, uint64_t cycle) {
    const unsigned event = event_++;
    const unsigned line = request == Request::FETCH ? line_++ : ~0U;
    const bool known = event < log.known || line < log.known_lines;
    const bool answered = answer_ < log.answers.size();
    if (known ? answered && log.answers[answer_].event == event : !filtered_hit(request, access)) {
        if (!known) ask(event, request, access, cycle);
        const ReplayLog::Answer& answer = log.answers[answer_];
        if (answer.asked == cycle) ++answer_;  // else `end` finds it missing
        return cycle + answer.delay;
    }
    using Counts = PipelineCounts;
    ++hits_[request == Request::FETCH ? Counts::FETCHES : request == Request::LOAD ? Counts::LOADS : Counts::STORES];
    return cycle + (request == Request::FETCH ? memory.fetch_latency() : memory.data_latency());
}

bool ReplayEnvironment::filtered_hit(Request request, const Access& access) {
    if (request == Request::FETCH) return memory.filtered_fetch_by(log.fetch_cycle, access.address);
    const AccessShape shape = AccessShape::of(request == Request::STORE, access.size, access.elements);
    return memory.filtered_hit_by(log.cycle, access.address, shape);
}

uint64_t ReplayEnvironment::ask(unsigned event, Request request, const Access& access, uint64_t cycle) {
    const auto [address, size, pc, elements] = access;
    uint64_t there;
    switch (request) {
        case Request::LOAD: there = load_now(access, cycle); break;
        case Request::STORE: there = memory.store(address, size, pc, cycle, elements); break;
        default: there = memory.fetch(address, cycle);
    }
    log.answers.push_back({event, cycle, there - cycle});
    return arrives(there);
}

Prediction ReplayEnvironment::resolve_in_replay(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    if (!log.branch_known) log.set_branch(branches.resolve(pc, kind, next, fallthrough));
    return log.prediction;
}

}  // namespace perfemu
