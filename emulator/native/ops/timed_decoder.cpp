#include <stdexcept>
#include <string>

#include "ops/timed_op.hpp"

namespace perfemu {

// Whether `op` computes on what `move` has just written.
static bool fuses_with(const TimedOp& move, const TimedOp& op) {
    const bool may = (move.eliminable_move && op.fuses_with_move) || (move.loads_whole && op.fuses_with_load);
    return may && op.destinations[0] == move.destinations[0];
}

void tell_what_follows(std::span<TimedOp> ops) {
    for (size_t index = 1; index < ops.size(); ++index) {
        ops[index - 1].before_branch = ops[index].fuses_with_compare;
        ops[index - 1].before_computation = fuses_with(ops[index - 1], ops[index]);
    }
}

std::unique_ptr<TimedDecoder> TimedDecoder::make(std::string_view isa) {
    if (isa == "aarch64") return make_timed_aarch64();
    if (isa == "x86_64") return make_timed_x86_64();
    throw std::invalid_argument("isa " + std::string(isa) + " is not one of aarch64, x86_64");
}

}  // namespace perfemu
