// An instruction as the out-of-order pipeline wants it: in one line of the host's cache, everything looked up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "timing/execution.hpp"
#include "timing/load_store_unit.hpp"
#include "timing/pipeline.hpp"
#include "timing/prepared_ops.hpp"

namespace perfemu::out_of_order {

enum Part : uint16_t {
    LOAD = 1 << 0,
    COMPUTE = 1 << 1,
    STORE = 1 << 2,
    BRANCH = 1 << 3,
    MANY_OPERANDS = 1 << 4,  // more than three sources or two destinations or addresses
    MANY_PORTS = 1 << 5,     // more than one micro-op of one port in its computation
    WRITE_BACK = 1 << 6,     // by a micro-op of its own
    ELIMINATED = 1 << 7,
    LIMITED_MOVE = 1 << 8,  // ... if not too many in one cycle
    PREFETCH = 1 << 9,
    BY_STACK = 1 << 10,
    ACCUMULATES = 1 << 11,
    HOLDS = 1 << 12,  // serializes, is microcoded
    DIVIDES = 1 << 13,
    SECOND_OF_PAIR = 1 << 14,  // AES: of an AES round, else of a compare
    AES_PAIR = 1 << 15,
};

constexpr unsigned ANY = ~0U;

// Where a micro-op waits, and the ports that it may then use.
struct Entry {
    static constexpr uint8_t SEVERAL = 254;  // the one that has most room decides

    uint8_t scheduler = 0;
    PortUse use;
};

// The schedulers, and for each group of ports where its micro-ops wait.
class Placement {
  public:
    Placement(const Config& config, Execution& execution);

    const std::vector<unsigned>& sizes() const { return sizes_; }  // entries, by scheduler
    Entry entry(PortUse use) const { return by_group_[use.group].entry; }
    const std::vector<Entry>& choices(PortUse use) const { return by_group_[use.group].choices; }

  private:
    struct Group {
        Entry entry;
        std::vector<Entry> choices;  // where the group's ports lie in several schedulers
    };
    std::vector<unsigned> sizes_;
    std::vector<Group> by_group_;
};

// What the pipeline's fast ways can do; the others go the long way.
enum class Shape : uint8_t {
    COMPUTES,            // one slot, one port in one scheduler
    COMPUTES_SOMEWHERE,  // ... in one of several
    IS_ELIMINATED,
    LOADS,   // one slot, one access, no computation
    STORES,  // no computation
    LOADS_AND_COMPUTES,
    SECOND_BRANCH,  // COMPUTES, if it is not the second of a pair
    OTHER,
};

struct alignas(64) PreparedOp {
    std::array<uint8_t, 6> sources;
    std::array<uint8_t, 4> destinations;
    std::array<uint8_t, 3> address_sources;
    uint8_t accumulator, write_back;
    uint8_t slots, length;
    uint8_t load_micro_ops, store_micro_ops;
    uint8_t load_sites, store_sites;
    Entry entry;  // of the computation's first micro-op
    BranchKind branch;
    OpClass op_class;
    uint16_t parts, offset, first_site;
    uint16_t latency, accumulate_saving, load_extra;
    bool serializes, microcoded, leaves_line;
    bool general;     // a store of a general register's data, which a load may predict
    uint8_t renames;  // bytes of a load that a predicted store may answer at once; ANY_SIZE; 0: never
    Pair pair;
    Shape shape;
    uint32_t simple_ports;  // of the computation's first micro-op, for PortCalendar::take
    const ClassTiming* timing;
};
static_assert(sizeof(PreparedOp) == 64);

struct Block final : PreparedBlock {
    uint64_t address;
    std::vector<PreparedOp> ops;
    std::vector<AccessSize> accesses;  // by site
    uint32_t number = 0;               // no other has it
    uint64_t first_line, second_line;  // of the first instruction's bytes
    unsigned stores = 0;
    PreparedOp iteration;  // of a REP instruction; its op is what is left of it when they are through
};

class OpPreparer {
  public:
    OpPreparer(const Config& config, const Execution& execution, const Placement& placement);

    PreparedOp prepare(const TimedOp& op, const SiteRange& sites) const;
    const Fusion& fusion() const { return fusion_; }

  private:
    bool eliminates(const TimedOp& op) const;
    unsigned add_computation(PreparedOp& prepared, const TimedOp& op, unsigned& parts) const;
    unsigned add_load(PreparedOp& prepared, const TimedOp& op, const SiteRange& sites, unsigned& parts) const;
    unsigned add_store(PreparedOp& prepared, const SiteRange& sites, unsigned& parts) const;
    uint8_t renames(const TimedOp& op, unsigned parts) const;

    const Execution& execution_;
    const Placement& placement_;
    Fusion fusion_;
    unsigned rob_entries_, vector_load_extra_, complex_address_extra_;
    bool micro_fusion_, stack_forward_, limited_moves_, microcode_waits_;
    bool move_ = false, fp_move_ = false, zero_ = false, constant_ = false, add_constant_ = false;
    bool forwards_unindexed_ = false;
};

}  // namespace perfemu::out_of_order
