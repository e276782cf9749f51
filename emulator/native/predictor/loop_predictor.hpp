// Loops that turn the same number of times every time, also far beyond what a history remembers.
#pragma once

#include <cstdint>
#include <vector>

#include "archive.hpp"
#include "predictor/tables.hpp"

namespace perfemu {

// As in L-TAGE (A. Seznec, CBP-2, 2006): once a branch has gone the same number of times in one direction before each
// change, CONFIDENT times in a row, the change is foreseen. A direct-mapped table with whole addresses as tags.
class LoopPredictor {
  public:
    // Of `loop_entries`; 0: does nothing.
    explicit LoopPredictor(const Config& parameters)
        : entries_(parameters.integer("loop_entries", 64) ? power_of_two(parameters, "loop_entries", 64) : 0) {}

    // Returns the prediction, which is `otherwise` unless it knows the loop; learns.
    bool learn(uint64_t pc, bool taken, bool otherwise) {
        if (entries_.empty()) return otherwise;
        Entry& entry = entries_[spread(pc) & (entries_.size() - 1)];
        if (entry.pc != pc) {
            if (otherwise == taken) return otherwise;
            if (entry.age) {
                entry.age--;
            } else {  // what was mispredicted is taken for the end of a loop
                entry = {.pc = pc, .age = START_AGE, .direction = !taken};
            }
            return otherwise;
        }
        bool predicted = otherwise;
        if (entry.confidence == CONFIDENT) {
            predicted = entry.direction != (entry.turns == entry.last_turns);
            if (predicted != taken) {
                entry.confidence = entry.age = 0;
            } else if (otherwise != taken && entry.age < OLDEST) {
                entry.age++;
            }
        }
        if (taken == entry.direction) {
            entry.turns++;
        } else if (entry.turns == 0) {  // so this is the direction in which it turns
            entry.direction = taken;
            entry.turns = 1;
            entry.last_turns = entry.confidence = 0;
        } else {
            if (entry.turns != entry.last_turns) {
                entry.confidence = 0;
            } else if (entry.confidence < CONFIDENT) {
                entry.confidence++;
            }
            entry.last_turns = entry.turns;
            entry.turns = 0;
        }
        return predicted;
    }

    void archive(Archive& state) { state(entries_); }

  private:
    static constexpr uint8_t CONFIDENT = 3;
    static constexpr uint8_t START_AGE = 31;  // so many mispredicted others it survives
    static constexpr uint8_t OLDEST = 255;

    struct Entry {
        uint64_t pc = ~uint64_t{0};  // where no branch can be
        uint32_t last_turns = 0;
        uint32_t turns = 0;
        uint8_t confidence = 0;
        uint8_t age = 0;
        bool direction = false;  // while the loop turns

        void archive(Archive& state) { state(pc, last_turns, turns, confidence, age, direction); }
    };

    std::vector<Entry> entries_;
};

}  // namespace perfemu
