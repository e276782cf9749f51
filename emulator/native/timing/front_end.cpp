#include "timing/front_end.hpp"

#include <bit>
#include <stdexcept>

#include "timing/execution.hpp"

namespace perfemu {

FrontEnd::FrontEnd(const Config& config, ReplayEnvironment& environment) : environment(environment) {
    const Config& keys = config.table("pipeline");
    fetch_bytes = checked(keys, "fetch_bytes", 1, 4096, 16);
    aligned = keys.boolean("fetch_aligned", false);
    if (aligned && !std::has_single_bit(fetch_bytes))
        throw std::invalid_argument("pipeline.fetch_bytes: " + std::to_string(fetch_bytes) +
                                    ", must be a power of two with fetch_aligned");
    taken_bubble = checked(keys, "taken_branch_bubble", 0, 1000, 0);
    indirect_bubble = checked(keys, "indirect_branch_bubble", 0, 1000, taken_bubble);
    far_bubble = checked(keys, "far_branch_bubble", 0, 1000, 0);
    streams_loops = keys.boolean("loop_stream", false);
    late_bubble = checked(keys, "late_redirect_cycles", 0, 1000, taken_bubble);
    taken_per_cycle = checked(keys, "taken_branches_per_cycle", 1, 16, 1);
    ahead = checked(keys, "fetch_ahead_cycles", 0, 1000, 8);
    if (config.has_table("l1i")) hit_latency = static_cast<uint64_t>(config.table("l1i").integer("latency", 1));
    line_mask = ~uint64_t{environment.memory.fetch_line_bytes() - 1};
}

}  // namespace perfemu
