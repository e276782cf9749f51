#include "timing/surroundings.hpp"

namespace perfemu {

// The story's next event, as it was or as it is now.
uint64_t Surroundings::next(Request request, const Access& access, uint64_t cycle) {
    const unsigned event = event_++;
    const uint64_t latency = request == Request::FETCH ? memory.fetch_latency() : memory.data_latency();
    if (event >= story.told) {
        if (touch(request, access)) return cycle + latency;
        ++answer_;
        return ask(event, request, access, cycle);
    }
    if (answer_ == story.answers.size() || story.answers[answer_].event != event) return cycle + latency;
    const Story::Answer& answer = story.answers[answer_];
    if (answer.asked == cycle) ++answer_;  // else `end` finds it missing
    return cycle + answer.delay;
}

bool Surroundings::touch(Request request, const Access& access) {
    if (request == Request::FETCH) {
        if (!memory.touch_line_by(story.fetch_cycle, access.address)) return false;
        ++story.touches.fetches;
        return true;
    }
    return memory.touch_by(story.cycle, request == Request::STORE, access.address, access.size - 1,
                           memory.unaligned_bits(access.size, access.elements));
}

uint64_t Surroundings::ask(unsigned event, Request request, const Access& access, uint64_t cycle) {
    const auto [address, size, pc, elements] = access;
    uint64_t there;
    if (request == Request::FETCH) {
        there = memory.fetch(address, cycle);
    } else if (request == Request::LOAD) {
        --story.touches.loads;
        there = load_now(access, cycle);
    } else {
        --story.touches.stores;
        there = memory.store(address, size, pc, cycle, elements);
    }
    story.answers.push_back({event, cycle, there - cycle});
    return there;
}

Prediction Surroundings::resolve_in_story(uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
    if (!story.branch_told) story.prediction = branches.resolve(pc, kind, next, fallthrough);
    story.branch_told = true;
    return story.prediction;
}

}  // namespace perfemu
