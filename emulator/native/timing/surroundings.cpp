#include "timing/surroundings.hpp"

namespace perfemu {

// The story's next event, as it was or as it is now.
uint64_t Surroundings::next(Request request, const Access& access, uint64_t cycle) {
    const unsigned event = event_++;
    const unsigned line = request == Request::FETCH ? line_++ : ~0U;
    const bool told = event < story.told || line < story.told_lines;
    const bool answered = answer_ < story.answers.size();
    if (told ? answered && story.answers[answer_].event == event : !touch(request, access)) {
        if (!told) ask(event, request, access, cycle);
        const Story::Answer& answer = story.answers[answer_];
        if (answer.asked == cycle) ++answer_;  // else `end` finds it missing
        return cycle + answer.delay;
    }
    using Counts = PipelineCounts;
    ++hits_[request == Request::FETCH ? Counts::FETCHES : request == Request::LOAD ? Counts::LOADS : Counts::STORES];
    return cycle + (request == Request::FETCH ? memory.fetch_latency() : memory.data_latency());
}

bool Surroundings::touch(Request request, const Access& access) {
    if (request == Request::FETCH) return memory.touch_line_by(story.fetch_cycle, access.address);
    return memory.touch_within_by(story.cycle, request == Request::STORE, access.address, access.size, access.elements);
}

uint64_t Surroundings::ask(unsigned event, Request request, const Access& access, uint64_t cycle) {
    const auto [address, size, pc, elements] = access;
    uint64_t there;
    switch (request) {
        case Request::LOAD: there = load_now(access, cycle); break;
        case Request::STORE: there = memory.store(address, size, pc, cycle, elements); break;
        default: there = memory.fetch(address, cycle);
    }
    story.answers.push_back({event, cycle, there - cycle});
    return arrives(there);
}

Prediction Surroundings::resolve_in_story(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    if (!story.branch_told) story.tell_branch(branches.resolve(pc, kind, next, fallthrough));
    return story.prediction;
}

}  // namespace perfemu
