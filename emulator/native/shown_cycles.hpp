// What guests have seen of time: cores run in turns, so that one is ahead of another by up to a turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <utility>
#include <vector>

namespace perfemu {

// Shared by the cores of a machine: what one has shown, no other takes back.
struct ShownCycles {
    // From `cycle` on a core has `hz` cycles in a second. emulator/frequency.py, TimeBase.
    struct Step {
        uint64_t cycle, reference, hz;
    };

    uint64_t latest = 0;

    // `now`: the cycles of the core that asks.
    uint64_t show(uint64_t now) { return latest = std::max(latest, now); }

    // Whether cycles are reference cycles.
    bool is_constant() const { return steps.empty(); }

    // Reference cycles, of which there are always as many in a second, until a core has counted so many cycles.
    uint64_t reference(uint64_t cycles) const {
        if (steps.empty()) return cycles;
        const uint64_t laps = lap_cycles ? cycles / lap_cycles : 0;
        if (lap_cycles) cycles %= lap_cycles;
        const Step& step = step_of(cycles);
        const auto since = static_cast<unsigned __int128>(cycles - step.cycle) * reference_hz / step.hz;
        return laps * lap_reference + step.reference + static_cast<uint64_t>(since);
    }

    // Cycles in a second at that cycle; where they are always the same, `otherwise`.
    uint64_t hz(uint64_t cycles, uint64_t otherwise) const {
        return steps.empty() ? otherwise : step_of(lap_cycles ? cycles % lap_cycles : cycles).hz;
    }

    void set_steps(uint64_t hz, std::vector<Step> all, uint64_t cycles_of_lap, uint64_t reference_of_lap) {
        const auto is_zero = [](const Step& step) { return !step.hz; };
        if (all.empty() || all.front().cycle || !std::ranges::is_sorted(all, {}, &Step::cycle) ||
            std::ranges::any_of(all, is_zero))
            throw std::invalid_argument("steps begin at cycle 0, are in order, and have a frequency");
        reference_hz = hz;
        steps = std::move(all);
        lap_cycles = cycles_of_lap;
        lap_reference = reference_of_lap;
    }

  private:
    const Step& step_of(uint64_t cycle_of_lap) const {
        return *std::prev(std::ranges::upper_bound(steps, cycle_of_lap, {}, &Step::cycle));
    }

    uint64_t reference_hz = 0, lap_cycles = 0, lap_reference = 0;
    std::vector<Step> steps;  // none: cycles are reference cycles
};

}  // namespace perfemu
