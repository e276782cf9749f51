// An instruction as the in-order pipeline wants it: in one line of the host's cache, everything looked up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "timing/execution.hpp"
#include "timing/prepared_ops.hpp"
#include "timing/recalling.hpp"

namespace perfemu::in_order {

enum Part : uint16_t {
    LOAD = 1 << 0,
    COMPUTE = 1 << 1,
    STORE = 1 << 2,
    BRANCH = 1 << 3,
    MANY_OPERANDS = 1 << 4,  // more than three sources or two destinations or addresses
    MANY_PORTS = 1 << 5,     // more than one is needed, or one for more than one cycle
    WRITE_BACK = 1 << 6,
    PREFETCH = 1 << 7,
    ACCUMULATES = 1 << 8,
    HOLDS = 1 << 9,  // serializes, is microcoded
    DIVIDES = 1 << 10,
    SECOND_OF_PAIR = 1 << 11,  // AES: of an AES round, else of a compare
    AES_PAIR = 1 << 12,
    PAIRING = 1 << 13,  // has a rule for dual issue
    FLAGS_LATE = 1 << 14,
};

constexpr unsigned MOST_USES = 64;

// What the fast ways can do; the others go the long way. All need one port for one cycle.
enum class Shape : uint8_t { COMPUTES, LOADS, STORES, OTHER };
constexpr unsigned FAST_COMPUTATION = COMPUTE | BRANCH | PAIRING | FLAGS_LATE;
constexpr unsigned FAST_LOAD = LOAD | PAIRING;
constexpr unsigned FAST_STORE = STORE | PAIRING;

struct Use {
    uint32_t ports;
    uint32_t busy_cycles;
};

struct alignas(64) PreparedOp {
    std::array<uint8_t, 6> sources;
    std::array<uint8_t, 4> destinations;
    std::array<uint8_t, 3> address_sources;
    uint8_t accumulator, write_back;
    uint8_t length, load_sites, store_sites;
    BranchKind branch;
    Pairing pairing;
    Pair pair;
    Shape shape;
    bool serializes, microcoded, leaves_line;
    uint16_t parts, offset, first_site;
    uint16_t latency, accumulate_saving, load_extra;
    uint16_t first_use, uses;  // of the block's
    uint16_t divider_cycles;
    uint32_t ports;  // if one of them for one cycle is all
};
static_assert(sizeof(PreparedOp) == 64);

struct Block final : RecalledBlock {
    uint64_t address;
    std::vector<PreparedOp> ops;
    std::vector<AccessSize> accesses;  // by site
    std::vector<Use> uses;
    PreparedOp iteration{};  // of a REP instruction; its op is what is left of it when they are through
};

class OpPreparer {
  public:
    OpPreparer(const Config& config, const Execution& execution);

    // Adds to the block's uses.
    PreparedOp prepare(const TimedOp& op, const SiteRange& sites, Block& block) const;

  private:
    void add_computation(PreparedOp& prepared, const TimedOp& op, unsigned& parts, std::vector<Use>& uses) const;

    const Execution& execution_;
    Fusion fusion_;
    unsigned vector_load_extra_, complex_address_extra_, load_ports_;
    bool microcode_waits_, flags_late_;
    Pairing load_pairing_, store_pairing_;
};

}  // namespace perfemu::in_order
