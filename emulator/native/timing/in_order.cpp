// In order: a scoreboard. An instruction issues when the ones before it have, its operands are there and its ports are
// free, as many in a cycle as width and pairing rules allow; its result comes when its latency is over.
//
// Not modelled: what a wrong path fetches; loads that wait for an older store to the same address; write-after-write
// conflicts of results that overtake each other.
#include <algorithm>
#include <bit>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/prepared_rows.hpp"
#include "timing/slots.hpp"

namespace perfemu {
namespace in_order {
namespace {

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

constexpr uint64_t FROM_LOAD = 1;  // in a register's entry, below the cycle

constexpr unsigned MOST_USES = 64;

// What an instruction may be the first of.
enum class Pair : uint8_t { NONE, BRANCH, AES };

// What the fast ways can do; the others go the long way. All need one port for one cycle.
enum class Shape : uint8_t { COMPUTES, LOADS, STORES, OTHER };
constexpr unsigned FAST_COMPUTATION = COMPUTE | BRANCH | PAIRING | FLAGS_LATE;
constexpr unsigned FAST_LOAD = LOAD | PAIRING;
constexpr unsigned FAST_STORE = STORE | PAIRING;

struct Use {
    uint32_t ports;
    uint32_t busy_cycles;
};

struct alignas(64) Row {
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
static_assert(sizeof(Row) == 64);

struct Block final : PreparedBlock {
    uint64_t address;
    std::vector<Row> rows;
    std::vector<Access> accesses;  // by site
    std::vector<Use> uses;
    Row iteration{};  // of a REP instruction; its row is what is left of it when they are through
};

// What every instruction changes; see out_of_order.cpp.
struct Hot {
    uint64_t cycle = 0;  // of the next issue
    unsigned used = 0;   // slots of it
    FrontEnd::Place front;
    uint32_t taken = 0;  // ports, in this cycle
    uint64_t retirement = 0;
    uint64_t micro_ops = 0;
    uint64_t done = 0;  // of the last instruction

    // The last instruction, which may be the first of a pair.
    uint8_t destination = NOWHERE;
    Pair pair = Pair::NONE;
};

class InOrder final : public Pipeline {
  public:
    InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) override;
    unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                    uint64_t limit) override;
    void iterate(const PreparedBlock& block, const uint64_t* addresses) override;
    void elapse(uint64_t cycles) override;

  private:
    Row row_of(const TimedOp& op, const SiteRange& sites, Block& block) const;
    void add_computation(Row& row, const TimedOp& op, unsigned& parts, std::vector<Use>& uses) const;

    // The stages, in this order
    void supply(Hot& hot, const Row& row, uint64_t pc, bool leaves);
    bool supply_any(Hot& hot, const Row& row, uint64_t pc, bool leaves);
    void wait_for_supply(Hot& hot, uint64_t supplied);
    // `POSSIBLE`: the parts that it may have. What it cannot have costs nothing.
    template <unsigned POSSIBLE>
    void execute(Hot& hot, const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    template <unsigned POSSIBLE>
    uint64_t operands(const Row& row) const;
    template <unsigned POSSIBLE>
    void take_ports(Hot& hot, const Block& block, const Row& row);
    uint64_t load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void branch(Hot& hot, const Row& row, uint64_t pc, uint64_t next);

    bool fuse(Hot& hot, const Row& row);
    void next_slot(Hot& hot);
    void begin_cycle(Hot& hot, uint64_t cycle);
    void wait_to(Hot& hot, uint64_t to, bool memory);

    // Rare
    void lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied);
    uint32_t take_several(const Block& block, const Row& row, uint64_t cycle, uint32_t taken, bool first);
    uint32_t busy_ports(uint64_t cycle) const;
    void feed_caches(const Block& block, const uint64_t* addresses);
    void settle();
    uint64_t last_result() const;

    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    Execution execution_;
    Fusion fusion_;
    FrontEnd front_;

    unsigned mispredict_cycles_, stores_per_cycle_, vector_load_extra_, complex_address_extra_, split_load_cycles_;
    unsigned repeat_bytes_, repeat_start_cycles_, microcode_cycles_, address_extra_, store_data_late_, flags_late_;
    unsigned load_ports_;
    bool blocking_misses_;
    Pairing load_pairing_, store_pairing_;
    uint64_t load_latency_ = 1;

    Slots slots_;
    Hot hot_;
    uint64_t ready_[256] = {};            // by register: the cycle from which it may be used << 1 | FROM_LOAD
    uint64_t port_free_[32] = {};         // of ports in long_ports_
    uint32_t long_ports_ = 0;             // taken for more than a cycle
    std::vector<uint64_t> store_buffer_;  // by store: the cycle in which its entry is free
    unsigned store_next_ = 0;
    uint64_t write_cycle_ = 0, last_written_ = 0;
    unsigned written_ = 0;
    uint64_t right_way_from_ = 0, resolved_ = 0;
    bool repeating_ = false;
    unsigned repeat_left_ = 0;
    uint64_t elapsed_ = 0, counted_issuing_ = 0;
};

InOrder::InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : memory_(memory), branches_(branches), totals_(totals), execution_(config), fusion_(config.table("pipeline")),
      front_(config, memory), slots_(totals, checked(config.table("pipeline"), "issue_width", 1, 16)) {
    const Config& keys = config.table("pipeline");
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    store_buffer_.assign(checked(keys, "store_buffer", 1, 4096), 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    vector_load_extra_ = checked(keys, "vector_load_extra_cycles", 0, 1000, 0);
    complex_address_extra_ = checked(keys, "complex_address_extra_cycles", 0, 1000, 0);
    split_load_cycles_ = checked(keys, "split_load_cycles", 0, 1000, 0);
    repeat_bytes_ = checked(keys, "repeat_bytes", 0, 4096, 0);
    repeat_start_cycles_ = checked(keys, "repeat_start_cycles", 0, 1000, 0);
    microcode_cycles_ = checked(keys, "microcode_cycles", 0, 1000, 0);
    address_extra_ = checked(keys, "address_extra_cycles", 0, 100, 0);
    store_data_late_ = checked(keys, "store_data_late_cycles", 0, 100, 0);
    flags_late_ = checked(keys, "flags_late_cycles", 0, 100, 0);
    load_ports_ = static_cast<unsigned>(std::popcount(execution_.groups()[execution_.load.group].ports));
    blocking_misses_ = keys.boolean("blocking_misses", false);
    load_pairing_ = pairing_of(keys, "load_dual_issue", "pipeline.load_dual_issue");
    store_pairing_ = pairing_of(keys, "store_dual_issue", "pipeline.store_dual_issue");
    if (config.has_table("l1d")) load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
}

// The stricter one; two contrary ones leave nothing to pair with.
Pairing stricter(Pairing left, Pairing right) {
    if (left == Pairing::BOTH || left == right) return right;
    return right == Pairing::BOTH ? left : Pairing::NONE;
}

void InOrder::add_computation(Row& row, const TimedOp& op, unsigned& parts, std::vector<Use>& uses) const {
    if (op.op_class == OpClass::NONE) return;
    const ClassTiming& timing = execution_.timing(op.op_class, op.width_bytes);
    auto need = [&](PortUse use) {
        const PortGroup& group = execution_.groups()[use.group];
        if (group.ports) uses.push_back({group.ports, group.busy_cycles});
    };
    need(timing.first);
    for (PortUse other : timing.others) need(other);
    row.latency = timing.latency;
    row.pairing = timing.pairing;
    if (row.latency > 0) parts |= COMPUTE;
    if (divides(op.op_class)) parts |= DIVIDES, row.divider_cycles = timing.busiest_cycles;
    if (op.accumulator != timed_register::NONE && timing.accumulate_latency < timing.latency) {
        parts |= ACCUMULATES;
        row.accumulate_saving = timing.latency - timing.accumulate_latency;
        // The addend is waited for by itself.
        auto addend = std::find(row.sources.begin(), row.sources.end(), op.accumulator);
        if (addend != row.sources.end()) *addend = timed_register::NONE;
    }
}

Row InOrder::row_of(const TimedOp& op, const SiteRange& sites, Block& block) const {
    Row row{};
    unsigned parts = 0;
    take_over(row, op, sites);
    row.microcoded = op.microcoded && microcode_cycles_;
    row.pairing = Pairing::BOTH;
    if (many_operands(op)) parts |= MANY_OPERANDS;
    if (flags_late_ && op.op_class != OpClass::ALU_CARRY) {
        auto flags = std::find(row.sources.begin(), row.sources.end(), timed_register::FLAGS);
        if (flags != row.sources.end()) *flags = timed_register::NONE, parts |= FLAGS_LATE;
    }
    std::vector<Use> uses;
    add_computation(row, op, parts, uses);
    // Several micro-ops on one port: it is busy for all of them.
    auto access = [&](PortUse use, unsigned times) {
        if (uint32_t ports = execution_.groups()[use.group].ports) uses.push_back({ports, times});
    };
    if (op.loads || op.prefetches || sites.loads) {
        parts |= LOAD;
        if (op.prefetches) parts |= PREFETCH;
        row.pairing = stricter(row.pairing, load_pairing_);
        unsigned micro_ops = execution_.load_micro_ops(op, sites.load_bytes);
        access(execution_.load, micro_ops);
        row.load_extra =
            static_cast<uint16_t>((loads_vector(op) ? vector_load_extra_ : 0) +
                                  (op.complex_address ? complex_address_extra_ : 0) + (micro_ops - 1) / load_ports_);
    }
    if (op.stores || sites.stores) {
        parts |= STORE;
        row.pairing = stricter(row.pairing, store_pairing_);
        access(execution_.store_address, pieces(sites.store_bytes, execution_.store_bytes));
        access(execution_.store_data, pieces(sites.store_bytes, execution_.store_bytes));
    }
    if (op.write_back != timed_register::NONE && execution_.has_write_back) {
        parts |= WRITE_BACK;
        access(execution_.write_back, 1);
    }
    if (op.branch != BranchKind::NONE) parts |= BRANCH;
    if (row.serializes || row.microcoded) parts |= HOLDS;
    if (fusion_.first_of_branch(op)) row.pair = Pair::BRANCH;
    if (fusion_.aes && op.aes_round) row.pair = Pair::AES;
    if (op.fuses_with_compare && (fusion_.compare_branch || fusion_.arithmetic_branch)) parts |= SECOND_OF_PAIR;
    if (fusion_.aes && op.fuses_with_aes_round) parts |= SECOND_OF_PAIR | AES_PAIR;
    if (row.pairing != Pairing::BOTH) parts |= PAIRING;
    if (uses.size() == 1 && uses[0].busy_cycles == 1) {
        row.ports = uses[0].ports;
    } else if (!uses.empty()) {
        parts |= MANY_PORTS;
        row.first_use = static_cast<uint16_t>(block.uses.size());
        uses.resize(std::min<size_t>(uses.size(), MOST_USES));
        row.uses = static_cast<uint16_t>(uses.size());
        block.uses.insert(block.uses.end(), uses.begin(), uses.end());
    }
    row.parts = static_cast<uint16_t>(parts);
    row.shape = Shape::OTHER;
    if (row.ports && parts & COMPUTE && (parts & ~FAST_COMPUTATION) == 0) row.shape = Shape::COMPUTES;
    if (row.ports && parts & LOAD && (parts & ~FAST_LOAD) == 0) row.shape = Shape::LOADS;
    if (row.ports && parts & STORE && (parts & ~FAST_STORE) == 0) row.shape = Shape::STORES;
    return row;
}

std::unique_ptr<PreparedBlock> InOrder::prepare(uint64_t address, std::span<const TimedOp> ops,
                                                std::span<const AccessSite> sites) {
    return prepare_rows<Block>(
        address, ops, sites, front_,
        [this](const TimedOp& op, const SiteRange& range, Block& block) { return row_of(op, range, block); });
}

unsigned InOrder::retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                         uint64_t next, uint64_t limit) {
    const Block& block = static_cast<const Block&>(prepared);
    if (first >= last) return first;
    Hot hot = hot_;
    const Row* row = block.rows.data() + first;
    const Row* const end = block.rows.data() + last;
    bool leaves = front_.leaves(hot.front.line, block.address + row->offset, row->length);
    while (true) {
        const uint64_t pc = block.address + row->offset;
        if (row->shape == Shape::COMPUTES) {
            supply(hot, *row, pc, leaves);
            execute<FAST_COMPUTATION>(hot, block, *row, addresses, pc);
        } else if (row->shape == Shape::LOADS) {
            supply(hot, *row, pc, leaves);
            execute<FAST_LOAD>(hot, block, *row, addresses, pc);
        } else if (row->shape == Shape::STORES) {
            supply(hot, *row, pc, leaves);
            execute<FAST_STORE>(hot, block, *row, addresses, pc);
        } else if (supply_any(hot, *row, pc, leaves)) {
            execute<~0U>(hot, block, *row, addresses, pc);
        }
        hot.pair = row->pair;
        hot.destination = row->destinations[0];
        if (row->parts & BRANCH) branch(hot, *row, pc, row + 1 == end ? next : pc + row->length);
        ++row;
        if (row == end || hot.retirement >= limit) break;
        leaves = row->leaves_line;
    }
    hot_ = hot;
    cycle_ = hot.retirement;
    repeating_ = false;
    settle();
    return static_cast<unsigned>(row - block.rows.data());
}

// Fetch.
[[gnu::always_inline]] inline void InOrder::supply(Hot& hot, const Row& row, uint64_t pc, bool leaves) {
    uint64_t supplied = front_.supply(hot.front, pc, row.length, leaves, hot.cycle);
    next_slot(hot);
    wait_for_supply(hot, supplied);
}

[[gnu::always_inline]] inline void InOrder::wait_for_supply(Hot& hot, uint64_t supplied) {
    if (supplied <= hot.cycle) return;
    lose_to_front_end(hot.cycle, hot.used, supplied);
    begin_cycle(hot, supplied);
}

// False: the instruction is the second of a pair, and through.
[[gnu::always_inline]] inline bool InOrder::supply_any(Hot& hot, const Row& row, uint64_t pc, bool leaves) {
    uint64_t supplied = front_.supply(hot.front, pc, row.length, leaves, hot.cycle);
    if (row.parts & SECOND_OF_PAIR && fuse(hot, row)) return false;
    next_slot(hot);
    wait_for_supply(hot, supplied);
    return true;
}

// When they are there: cycle << 1, and whether the last of them comes from a load.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t InOrder::operands(const Row& row) const {
    const unsigned parts = row.parts & POSSIBLE;
    uint64_t all = 0;
    if (parts != LOAD) all = std::max(ready_[row.sources[2]], std::max(ready_[row.sources[0]], ready_[row.sources[1]]));
    if (parts & MANY_OPERANDS)
        all = std::max(std::max(all, ready_[row.sources[3]]), std::max(ready_[row.sources[4]], ready_[row.sources[5]]));
    if (parts & ACCUMULATES) {
        uint64_t addend = ready_[row.accumulator], saved = uint64_t{row.accumulate_saving} << 1;
        all = std::max(all, addend > saved ? addend - saved : 0);
    }
    if (parts & FLAGS_LATE) {
        uint64_t flags = ready_[timed_register::FLAGS], late = uint64_t{flags_late_} << 1;
        all = std::max(all, flags > late ? flags - late : 0);
    }
    if (parts & (LOAD | STORE)) {
        if (parts & STORE && !(parts & COMPUTE)) {
            uint64_t late = uint64_t{store_data_late_} << 1;
            all = all > late ? all - late : 0;
        }
        uint64_t address = std::max(ready_[row.address_sources[0]], ready_[row.address_sources[1]]);
        if (parts & MANY_OPERANDS) address = std::max(address, ready_[row.address_sources[2]]);
        all = std::max(all, address + (address ? uint64_t{address_extra_} << 1 : 0));
    }
    return all;
}

// From issue to the result.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void InOrder::execute(Hot& hot, const Block& block, const Row& row,
                                                    const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = row.parts & POSSIBLE;
    const uint64_t operands_at = operands<POSSIBLE>(row);
    wait_to(hot, operands_at >> 1, operands_at & FROM_LOAD);
    if (parts & STORE) {
        uint64_t free = store_buffer_[store_next_];
        if (free > hot.cycle) count(Probe::STALL_STORE_BUFFER, free - hot.cycle);
        wait_to(hot, free, true);
    }
    if (parts & HOLDS) [[unlikely]] {
        if (row.serializes) wait_to(hot, last_result(), false);
        if (row.microcoded) wait_to(hot, hot.cycle + microcode_cycles_, false);
    }
    if (parts & PAIRING && hot.used > 0 && row.pairing != Pairing::SECOND) wait_to(hot, hot.cycle + 1, false);
    take_ports<POSSIBLE>(hot, block, row);
    ++hot.used;
    ++hot.micro_ops;
    if (parts & PAIRING && (row.pairing == Pairing::NONE || row.pairing == Pairing::SECOND)) {
        // Nothing pairs behind it.
        count(Probe::SLOTS_BACKEND, slots_.width() - hot.used);
        hot.used = slots_.width();
    }

    const uint64_t issued = hot.cycle;
    uint64_t result = issued;
    uint64_t from_load = 0;
    if (parts & LOAD) {
        result = load(block, row, addresses, pc, issued);
        from_load = FROM_LOAD;
        if (blocking_misses_ && result > issued + load_latency_ + row.load_extra) {
            next_slot(hot);
            wait_to(hot, result, true);
        }
    }
    if (parts & COMPUTE) {
        result += row.latency;
        from_load = 0;
        if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, row.divider_cycles);
    }
    result = std::max(result, issued + 1);
    const uint64_t entry = result << 1 | from_load;
    ready_[row.destinations[0]] = entry;
    ready_[row.destinations[1]] = entry;
    if (parts & MANY_OPERANDS) ready_[row.destinations[2]] = ready_[row.destinations[3]] = entry;
    if (parts & WRITE_BACK) ready_[row.write_back] = (issued + 1) << 1;
    if (parts & STORE) store(block, row, addresses, pc, issued);

    hot.retirement = issued + 1;
    hot.done = result;
    if (parts & HOLDS && row.serializes) {
        next_slot(hot);
        wait_to(hot, result, false);
    }
}

// What it needs in this cycle, or in the first in which all of that is free.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void InOrder::take_ports(Hot& hot, const Block& block, const Row& row) {
    while (true) {
        uint32_t taken = row.ports & ~hot.taken;
        taken &= ~taken + 1;
        if (row.parts & POSSIBLE & MANY_PORTS) taken = take_several(block, row, hot.cycle, hot.taken, hot.used == 0);
        hot.taken |= taken;
        if (taken || (POSSIBLE & MANY_PORTS && !(row.ports || row.uses))) return;
        wait_to(hot, hot.cycle + 1, false);
    }
}

// The ports that it takes, each of its micro-ops another; none if not all can be had in this cycle. The first one of a
// cycle may have more micro-ops than there are ports: some then stay taken for longer.
uint32_t InOrder::take_several(const Block& block, const Row& row, uint64_t cycle, uint32_t taken, bool first) {
    const Use* uses = block.uses.data() + row.first_use;
    uint32_t mine[MOST_USES], all = 0;
    for (unsigned index = 0; index < row.uses; ++index) {
        uint32_t free = uses[index].ports & ~taken & ~all;
        if (free == 0 && first) free = uses[index].ports & ~taken;
        if (free == 0) return 0;
        all |= mine[index] = free & (~free + 1);
    }
    for (unsigned index = 0; index < row.uses; ++index) {
        uint64_t& port_free = port_free_[std::countr_zero(mine[index])];
        port_free = std::max(port_free, cycle) + uses[index].busy_cycles;
        if (port_free > cycle + 1) long_ports_ |= mine[index];
    }
    return all;
}

uint32_t InOrder::busy_ports(uint64_t cycle) const {
    uint32_t busy = 0;
    for (uint32_t ports = long_ports_; ports; ports &= ports - 1) {
        unsigned port = static_cast<unsigned>(std::countr_zero(ports));
        if (port_free_[port] > cycle) busy |= uint32_t{1} << port;
    }
    return busy;
}

[[gnu::always_inline]] inline uint64_t InOrder::load(const Block& block, const Row& row, const uint64_t* addresses,
                                                     uint64_t pc, uint64_t issued) {
    if (row.parts & PREFETCH) [[unlikely]] {
        if (row.load_sites) memory_.prefetch(addresses[row.first_site], issued);
        return issued + 1;
    }
    if (row.load_sites == 0) return issued + load_latency_ + row.load_extra;
    uint64_t all = issued + 1;
    for (unsigned site = row.first_site; site < unsigned{row.first_site} + row.load_sites; ++site) {
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t loaded = memory_.load(address, size, pc, issued, elements);
        if ((address ^ (address + size - 1)) & front_.line_mask) [[unlikely]]
            loaded += split_load_cycles_;
        all = std::max(all, loaded);
    }
    return all + row.load_extra;
}

[[gnu::always_inline]] inline void InOrder::store(const Block& block, const Row& row, const uint64_t* addresses,
                                                  uint64_t pc, uint64_t issued) {
    unsigned first = row.first_site + row.load_sites;
    for (unsigned site = first; site < first + row.store_sites; ++site) {
        if (issued + 1 > write_cycle_) write_cycle_ = issued + 1, written_ = 0;
        if (written_ == stores_per_cycle_) ++write_cycle_, written_ = 0;
        ++written_;
        const auto [size, elements] = block.accesses[site];
        uint64_t there = memory_.store(addresses[site], size, pc, write_cycle_, elements);
        last_written_ = std::max(last_written_, std::max(there, write_cycle_ + 1));
        store_buffer_[store_next_] = last_written_;
        if (++store_next_ == store_buffer_.size()) store_next_ = 0;
    }
}

[[gnu::always_inline]] inline void InOrder::branch(Hot& hot, const Row& row, uint64_t pc, uint64_t next) {
    uint64_t fallthrough = pc + row.length;
    Prediction prediction = branches_.resolve(pc, row.branch, next, fallthrough);
    if (prediction == Prediction::WRONG) {
        resolved_ = hot.done;
        right_way_from_ = resolved_ + mispredict_cycles_;
        front_.restart(hot.front, right_way_from_, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, prediction == Prediction::RIGHT, hot.cycle);
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool InOrder::fuse(Hot& hot, const Row& row) {
    const bool aes = row.parts & AES_PAIR;
    if (hot.pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && row.sources[0] != hot.destination)) return false;
    count(Probe::FUSED);
    if (aes) ready_[row.destinations[0]] = hot.done << 1;
    hot.pair = Pair::NONE;
    return true;
}

[[gnu::always_inline]] inline void InOrder::next_slot(Hot& hot) {
    if (hot.used >= slots_.width()) begin_cycle(hot, hot.cycle + 1);
}

[[gnu::always_inline]] inline void InOrder::begin_cycle(Hot& hot, uint64_t cycle) {
    hot.cycle = cycle;
    hot.used = 0;
    if (long_ports_) long_ports_ = busy_ports(cycle);  // those that are free again are like any other
    hot.taken = long_ports_;
}

[[gnu::always_inline]] inline void InOrder::wait_to(Hot& hot, uint64_t to, bool memory) {
    if (to <= hot.cycle) return;
    slots_.lose_to_backend(hot.cycle, hot.used, to, memory);
    begin_cycle(hot, to);
}

void InOrder::lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied) {
    if (right_way_from_ > cycle) {
        uint64_t to = std::min(supplied, right_way_from_);
        slots_.lose_to_bad_speculation(cycle, used, to, resolved_);
        cycle = to;
        used = 0;
    }
    if (supplied > cycle) slots_.lose_to_frontend(cycle, used, supplied);
}

void InOrder::iterate(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const Row& row = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        supply(hot, row, block.address, front_.leaves(hot.front.line, block.address, row.length));
        wait_to(hot, hot.cycle + repeat_start_cycles_, false);
    }
    unsigned bytes = row.load_sites + row.store_sites ? block.accesses[row.first_site].size : 0;
    if (bytes && repeat_left_ >= bytes) {
        feed_caches(block, addresses);
        repeat_left_ -= bytes;
    } else {
        execute<~0U>(hot, block, row, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
    hot_ = hot;
    cycle_ = hot.retirement;
    settle();
}

// A part of what REP's last micro-ops have moved: no time, but the caches hear of it.
void InOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const Row& row = block.iteration;
    unsigned site = row.first_site, stores = site + row.load_sites, end = stores + row.store_sites;
    for (; site < stores; ++site) memory_.load(addresses[site], block.accesses[site].size, block.address, hot_.cycle);
    for (; site < end; ++site) memory_.store(addresses[site], block.accesses[site].size, block.address, hot_.cycle);
}

void InOrder::elapse(uint64_t cycles) {
    next_slot(hot_);
    wait_to(hot_, last_result(), false);
    begin_cycle(hot_, hot_.cycle + cycles);
    cycle_ = hot_.retirement = hot_.cycle;
    elapsed_ += cycles;
    front_.restart(hot_.front, cycle_, 0);
    hot_.front.line = FrontEnd::NO_LINE;
    right_way_from_ = 0;
    hot_.pair = Pair::NONE;
    repeating_ = false;
}

void InOrder::settle() {
    // The cycles in which something issued: all but those that were lost as a whole, and the kernel's.
    uint64_t issuing = hot_.cycle + (hot_.used > 0) - slots_.lost_cycles() - elapsed_;
    count(Probe::UOPS_DISPATCHED, hot_.micro_ops);
    count(Probe::UOPS_RETIRED, hot_.micro_ops);
    count(Probe::CYCLES_RETIRING, issuing - counted_issuing_);
    hot_.micro_ops = 0;
    counted_issuing_ = issuing;
}

// When all results are there.
uint64_t InOrder::last_result() const {
    return std::max(hot_.retirement, *std::max_element(std::begin(ready_), std::end(ready_)) >> 1);
}

const PipelineModel MODEL("in_order", make_pipeline<InOrder>);

}  // namespace
}  // namespace in_order
}  // namespace perfemu
