// What a core has besides its engine if its time, caches or branches are modelled.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "address/addresses.hpp"
#include "cache/memory_system.hpp"
#include "core/block.hpp"
#include "engine/translated_calls.hpp"
#include "predictor/branch_unit.hpp"
#include "timing/pipeline.hpp"

namespace perfemu {

class Core;

// A block as the models know it.
struct alignas(64) ModelledBlock {
    // What every run touches, on one cache line.
    AddressSlice slice;
    std::unique_ptr<PreparedBlock> prepared;
    static_assert(sizeof(slice) + sizeof(prepared) <= 64);

    bool ends_with_branch = false;
    uint8_t raises = 0;  // bits of Raises, of all of its instructions
};

// The block that was entered last, and of which not everything has been consumed by the models.
struct Visit {
    Block* block = nullptr;
    unsigned first = 0;      // the first instruction that the models have not heard of
    bool iteration = false;  // of a REP
};

// The blocks that were entered last, where nothing can become due in them and nobody traces: the models hear of many at
// once. All but the last have run to their ends; as long as there are some, there is no Visit.
struct alignas(64) VisitLog {
    static constexpr uint32_t INSTRUCTIONS = 2048;  // at most
    static constexpr uint32_t SITES_OF_AN_INSTRUCTION = 16;

    // `exhausted`: the bits of `room` that tell. `otherwise`: a hook for blocks that cannot be logged as they are.
    VisitLog(Core& core, Block*& previous, uint64_t exhausted, const void* otherwise)
        : exhausted(exhausted), previous(&previous), otherwise(otherwise), core(&core) {
        clear();
    }

    // What every block touches, on one cache line.
    RunBlock* end;        // behind the last
    uint64_t* found_end;  // its addresses
    uint64_t room = 0;    // as Core's budget: it is taken from there while there is a log
    uint64_t held = 0;    // ... instead, as long as the next block has to be looked at
    const uint64_t exhausted;
    Block** const previous;
    const void* const otherwise;
    Core* const core;
    const RunBlock* called = nullptr;  // the last one whose addresses have come, or are to come, while it runs

    // Not written before they are used: most programs leave the end of them alone. One block tells what follows.
    std::unique_ptr<RunBlock[]> blocks = std::make_unique_for_overwrite<RunBlock[]>(INSTRUCTIONS + 1);
    std::unique_ptr<uint64_t[]> found =
        std::make_unique_for_overwrite<uint64_t[]>(INSTRUCTIONS * SITES_OF_AN_INSTRUCTION);

    bool empty() const { return end == blocks.get(); }
    size_t size() const { return static_cast<size_t>(end - blocks.get()); }
    void clear() {
        end = blocks.get();
        found_end = found.get();
        called = nullptr;
    }
};

// One memory access as a test sees it.
struct TracedAccess {
    uint64_t pc, address;
    uint16_t size;
    uint8_t elements;
    bool store;
};

struct Model {
    // `shared`: with other cores; null where there is none.
    Model(const Config& config, std::string_view isa, uint64_t* totals, std::shared_ptr<SharedMemory> shared,
          VisitLog log);

    // A new pipeline, which begins at that cycle, with all that was under way completed.
    void begin_pipeline(uint64_t cycle);

    const Config config;
    uint64_t* const totals;
    MemorySystem memory;
    BranchUnit branches;
    std::unique_ptr<Pipeline> detailed, warming;  // the second is made when it is wanted
    Pipeline* pipeline;                           // the one that hears
    std::unique_ptr<TimedDecoder> decoder;
    uint64_t cycles_of_an_instruction;  // at most
    std::unique_ptr<Addresses> addresses;
    std::optional<TranslatedCalls> calls;

    VisitLog log;
    Visit visit;
    std::vector<uint64_t> found;  // the addresses of the visited block's accesses
    unsigned steps_ahead = 0;     // instructions that the models have heard of, and the engine has yet to step
    uint64_t kernel_cycles = 0;
    std::unordered_map<uint64_t, std::unique_ptr<PreparedBlock>> device_accesses;  // by PC

    uint64_t due_cycle = 0;  // the first cycle at which something is due
    struct Target {
        ProbeMask probes;
        uint64_t sum;  // their total when the counter wraps
    };
    std::vector<Target> targets;    // of armed counters on modelled occurrences
    uint64_t uneventful_until = 0;  // so many instructions retire, at least, before the first target is reached

    bool tracing = false;
    std::vector<TracedAccess> trace;
};

}  // namespace perfemu
