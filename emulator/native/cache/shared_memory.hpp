// What several cores share: the last cache, memory, and who holds which line.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cache/cache.hpp"
#include "cache/miss_queue.hpp"
#include "cache/page_names.hpp"
#include "config.hpp"

namespace perfemu {

class MemorySystem;

// Coherence is MESI among the cores' private caches, each core's taken together. With one core there is none, and no
// cost of it.
class SharedMemory {
  public:
    static constexpr unsigned MAXIMUM_CORES = 64;

    explicit SharedMemory(const Config& config, unsigned cores = 1);
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    // Called by MemorySystem's constructor; returns the core's number.
    unsigned join(MemorySystem* core);

    PageNames& names() { return names_; }
    bool coherent() const { return core_limit_ > 1; }
    std::vector<std::unique_ptr<OuterCache>>& caches() { return caches_; }
    bool has_memory() const { return has_memory_; }
    uint64_t read(uint64_t cycle) { return channel_.take(cycle) + latency_; }
    void write(uint64_t cycle) { channel_.take(cycle); }
    uint64_t coherence_latency() const { return coherence_latency_; }

    // Who had the line when a core asked for it.
    struct Answer {
        bool owned = false;     // another core alone: it answers
        bool modified = false;  // ... and has written it
        uint64_t others = 0;    // cores that held it, as a mask
    };
    // `core` asks for a line, to read it or to write it. Others' copies are demoted or taken; the directory is updated.
    Answer ask(unsigned core, uint64_t line, bool to_write, uint64_t cycle);
    // A clean copy is taken from the lowest of `others`, for want of any below.
    void ask_sharer(uint64_t others);
    // The line comes to `core`, which wanted it in `cycle`, from another one, or from now on it is the core's alone:
    // when it is there. A line is in one place at a time: it does not come back before those who took it meanwhile have
    // had it. Their clocks do not matter, which may be a turn ahead, but how often it changed hands.
    uint64_t hand_over(unsigned core, uint64_t line, uint64_t cycle);
    // The longest that hand_over lets a core wait.
    uint64_t longest_handover() const { return (MOST_HANDOVERS + 1) * coherence_latency_; }
    // How often a line has come back to a core that others had taken it from.
    uint64_t returns() const { return returns_; }
    // None of the core's private caches has the line any more.
    void forget(unsigned core, uint64_t line);
    // An inclusive shared cache loses the line. Returns whether some core had written it.
    bool recall(uint64_t line);

    void archive(Archive& state) {
        for (auto& cache : caches_) cache->archive(state);
        state(returns_, channel_, holders_);
        for (const auto& [line, holders] : holders_) state.expect(are_possible(holders));
    }

  private:
    static constexpr int NOBODY = -1;

    static constexpr uint64_t MOST_HANDOVERS = 32;  // that a core waits for

    // When a core last was handed the line, and how often it had changed hands by then.
    struct Handed {
        unsigned core;
        uint64_t arrival;
        uint64_t number;

        void archive(Archive& state) { state(core, arrival, number); }
    };
    struct Holders {
        uint64_t cores = 0;  // mask
        int owner = NOBODY;  // the one that may write it: E or M
        uint64_t handovers = 0;
        std::vector<Handed> handed;  // by core, in the order of their first time

        void archive(Archive& state) {
            state(cores, owner, handovers);
            state.growing(handed);
        }
    };

    // Of cores that there are.
    bool are_possible(const Holders& holders) const;

    unsigned core_limit_;
    std::vector<MemorySystem*> cores_;
    std::vector<std::unique_ptr<OuterCache>> caches_;
    bool has_memory_ = false;
    bool snoops_all_ = false;
    uint64_t latency_ = 0;
    uint64_t coherence_latency_ = 0;
    uint64_t returns_ = 0;
    Channel channel_;
    PageNames names_;
    std::unordered_map<uint64_t, Holders> holders_;  // by line; looked up, never walked
};

}  // namespace perfemu
