// In order: a scoreboard. An instruction issues when the ones before it have, its operands are there and its ports are
// free, as many in a cycle as width and pairing rules allow; its result comes when its latency is over.
//
// Not modelled: what a wrong path fetches; loads that wait for an older store to the same address; write-after-write
// conflicts of results that overtake each other.
#include <algorithm>
#include <stdexcept>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/slots.hpp"

namespace perfemu {
namespace {

enum Part : uint16_t {
    LOAD = 1 << 0,
    COMPUTE = 1 << 1,
    STORE = 1 << 2,
    BRANCH = 1 << 3,
    MANY_OPERANDS = 1 << 4,
    MANY_PORTS = 1 << 5,  // more than one port is needed
    WRITE_BACK = 1 << 6,
    PREFETCH = 1 << 7,
    ACCUMULATES = 1 << 8,
    SERIALIZES = 1 << 9,
    DIVIDES = 1 << 10,
    FIRST_OF_PAIR = 1 << 11,
    SECOND_OF_PAIR = 1 << 12,
    PAIRING = 1 << 13,  // has a rule for dual issue
};

constexpr uint8_t NOWHERE = 254;
constexpr uint64_t FROM_LOAD = 1;  // in a register's entry, below the cycle

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
    bool aes;
    uint16_t parts, offset, first_site;
    uint16_t latency, accumulate_saving, load_extra;
    uint16_t first_use, uses;  // of the block's
    uint16_t divider_cycles;
    Use use;  // if it is the only one
};

struct Block final : PreparedBlock {
    uint64_t address;
    std::vector<Row> rows;
    std::vector<Access> accesses;  // by site
    std::vector<Use> uses;
    Row iteration{};
};

class InOrder final : public Pipeline {
  public:
    InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
        : memory_(memory), branches_(branches), totals_(totals), execution_(config), fusion_(config.table("pipeline")),
          front_(config, memory), slots_{totals, checked(config.table("pipeline"), "issue_width", 1, 16)} {
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
        blocking_misses_ = keys.boolean("blocking_misses", false);
        load_pairing_ = pairing_of(keys, "load_dual_issue", "pipeline.load_dual_issue");
        store_pairing_ = pairing_of(keys, "store_dual_issue", "pipeline.store_dual_issue");
        if (config.has_table("l1d")) load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
    }

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) override;
    unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                    uint64_t limit) override;
    void iterate(const PreparedBlock& block, const uint64_t* addresses) override;
    void elapse(uint64_t cycles) override;

  private:
    Row row_of(const TimedOp& op, const SiteRange& sites, Block& block) const;
    void step(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t next);
    void execute(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    uint64_t load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    void store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    bool fuse(const Row& row);
    void wait_for_front_end(uint64_t supplied);
    uint64_t free_from(const Use& use) const;
    void take(const Use& use);
    void settle();

    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }
    // Of a register's entry, the later one: cycle << 1 | FROM_LOAD.
    uint64_t operand(uint8_t reg) const { return ready_[reg]; }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    Execution execution_;
    Fusion fusion_;
    FrontEnd front_;
    Slots slots_;  // its cycle is that of the next issue

    unsigned mispredict_cycles_, stores_per_cycle_, vector_load_extra_, complex_address_extra_, split_load_cycles_;
    unsigned repeat_bytes_, repeat_start_cycles_, microcode_cycles_, address_extra_, store_data_late_;
    bool blocking_misses_;
    Pairing load_pairing_, store_pairing_;
    uint64_t load_latency_ = 1;

    uint64_t ready_[256] = {};
    uint64_t port_free_[32] = {};
    std::vector<uint64_t> store_buffer_;  // by store: the cycle in which its entry is free
    unsigned store_next_ = 0;
    uint64_t write_cycle_ = 0, last_written_ = 0;
    unsigned written_ = 0;
    uint64_t last_result_ = 0;  // of all instructions

    uint64_t right_way_from_ = 0, resolved_ = 0;
    uint8_t before_destination_ = NOWHERE;
    bool before_is_compare_ = false, before_is_aes_ = false;
    uint64_t before_done_ = 0;
    uint64_t micro_ops_ = 0, retiring_cycles_ = 0;
    bool repeating_ = false;
    unsigned repeat_left_ = 0;
};

bool divides(OpClass op_class) {
    switch (op_class) {
        case OpClass::DIV32:
        case OpClass::DIV64:
        case OpClass::FP_DIV32:
        case OpClass::FP_DIV64:
        case OpClass::FP_SQRT32:
        case OpClass::FP_SQRT64:
        case OpClass::VECTOR_DIV32:
        case OpClass::VECTOR_DIV64:
        case OpClass::VECTOR_SQRT32:
        case OpClass::VECTOR_SQRT64:
        case OpClass::X87_DIV: return true;
        default: return false;
    }
}

bool is_vector(uint8_t reg) { return reg >= timed_register::VECTOR && reg < timed_register::VECTOR + 32; }

// The stricter one; two contrary ones leave nothing to pair with.
Pairing stricter(Pairing left, Pairing right) {
    if (left == Pairing::BOTH || left == right) return right;
    return right == Pairing::BOTH ? left : Pairing::NONE;
}

Row InOrder::row_of(const TimedOp& op, const SiteRange& sites, Block& block) const {
    Row row{};
    unsigned parts = 0;
    row.sources = op.sources;
    row.address_sources = op.address_sources;
    row.destinations = op.destinations;
    for (uint8_t& destination : row.destinations)
        if (destination == timed_register::NONE) destination = NOWHERE;
    row.accumulator = op.accumulator;
    row.write_back = op.write_back == timed_register::NONE ? NOWHERE : op.write_back;
    row.length = op.length;
    row.offset = op.offset;
    row.branch = op.branch;
    row.first_site = sites.first;
    row.load_sites = sites.loads;
    row.store_sites = sites.stores;
    row.pairing = Pairing::BOTH;
    if (op.sources[3] != timed_register::NONE || op.destinations[2] != timed_register::NONE ||
        op.address_sources[2] != timed_register::NONE)
        parts |= MANY_OPERANDS;
    std::vector<Use> uses;
    auto need = [&](PortUse use, unsigned times = 1) {
        const PortGroup& group = execution_.groups()[use.group];
        if (group.ports)
            for (; times > 0; --times) uses.push_back({group.ports, group.busy_cycles});
    };
    auto pieces = [](unsigned bytes, unsigned each) { return std::max(1U, (bytes + each - 1) / each); };
    if (op.op_class != OpClass::NONE) {
        const ClassTiming& timing = execution_.timing(op.op_class, op.width_bytes);
        row.latency = timing.latency;
        row.pairing = timing.pairing;
        if (row.latency > 0) parts |= COMPUTE;
        need(timing.first);
        for (PortUse other : timing.others) need(other);
        if (divides(op.op_class)) parts |= DIVIDES, row.divider_cycles = timing.busiest_cycles;
        if (op.accumulator != timed_register::NONE && timing.accumulate_latency < timing.latency) {
            parts |= ACCUMULATES;
            row.accumulate_saving = timing.latency - timing.accumulate_latency;
            for (uint8_t& source : row.sources)
                if (source == op.accumulator) {
                    source = timed_register::NONE;
                    break;
                }
        }
    }
    // Several micro-ops on one port: it is busy for all of them.
    auto access = [&](PortUse use, unsigned times) {
        const PortGroup& group = execution_.groups()[use.group];
        if (group.ports) uses.push_back({group.ports, times});
    };
    bool loads = op.loads || op.prefetches || (sites.loads && !op.stores);
    if (loads) {
        parts |= LOAD;
        if (op.prefetches) parts |= PREFETCH;
        row.pairing = stricter(row.pairing, load_pairing_);
        access(execution_.load, op.prefetches ? 1 : pieces(sites.load_bytes, execution_.load_bytes));
        bool to_vector =
            is_vector(op.destinations[0]) || (op.destinations[0] == timed_register::NONE && is_vector(op.sources[0]));
        row.load_extra = static_cast<uint16_t>((to_vector ? vector_load_extra_ : 0) +
                                               (op.complex_address ? complex_address_extra_ : 0));
    }
    if (op.stores) {
        parts |= STORE;
        row.pairing = stricter(row.pairing, store_pairing_);
        access(execution_.store_address, pieces(sites.store_bytes, execution_.store_bytes));
        access(execution_.store_data, pieces(sites.store_bytes, execution_.store_bytes));
    }
    if (op.write_back != timed_register::NONE) {
        need(execution_.write_back);
        if (execution_.has_write_back) parts |= WRITE_BACK;
    }
    if (op.branch != BranchKind::NONE) parts |= BRANCH;
    if (op.serializes || (op.microcoded && microcode_cycles_)) parts |= SERIALIZES;
    if (fusion_.first_of_branch(op)) parts |= FIRST_OF_PAIR;
    if (fusion_.aes && op.aes_round) parts |= FIRST_OF_PAIR, row.aes = true;
    if (op.fuses_with_compare && (fusion_.compare_branch || fusion_.arithmetic_branch)) parts |= SECOND_OF_PAIR;
    if (fusion_.aes && op.fuses_with_aes_round) parts |= SECOND_OF_PAIR, row.aes = true;
    if (row.pairing != Pairing::BOTH) parts |= PAIRING;
    if (uses.size() == 1) row.use = uses[0];
    if (uses.size() > 1) {
        parts |= MANY_PORTS;
        row.first_use = static_cast<uint16_t>(block.uses.size());
        row.uses = static_cast<uint16_t>(uses.size());
        block.uses.insert(block.uses.end(), uses.begin(), uses.end());
    }
    row.parts = static_cast<uint16_t>(parts);
    return row;
}

std::unique_ptr<PreparedBlock> InOrder::prepare(uint64_t address, std::span<const TimedOp> ops,
                                                std::span<const AccessSite> sites) {
    auto block = std::make_unique<Block>();
    block->address = address;
    std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    for (size_t index = 0; index < ops.size(); ++index) {
        if (ops[index].repeated) {
            block->iteration = row_of(ops[index], ranges[index], *block);
            block->rows.push_back(row_of({.offset = ops[index].offset, .length = ops[index].length}, {}, *block));
        } else {
            block->rows.push_back(row_of(ops[index], ranges[index], *block));
        }
    }
    for (const AccessSite& site : sites) block->accesses.push_back({site.size, site.elements});
    return block;
}

void InOrder::settle() {
    count(Probe::UOPS_DISPATCHED, micro_ops_);
    count(Probe::UOPS_RETIRED, micro_ops_);
    count(Probe::CYCLES_RETIRING, retiring_cycles_);
    micro_ops_ = retiring_cycles_ = 0;
}

unsigned InOrder::retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                         uint64_t next, uint64_t limit) {
    const Block& block = static_cast<const Block&>(prepared);
    unsigned index = first;
    while (index < last) {
        const Row& row = block.rows[index];
        uint64_t pc = block.address + row.offset;
        ++index;
        step(block, row, addresses, pc, index == last ? next : pc + row.length);
        if (cycle_ >= limit) break;
    }
    repeating_ = false;
    settle();
    return index;
}

inline void InOrder::step(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t next) {
    uint64_t supplied = front_.supply(pc, row.length, slots_.cycle);
    if (!(row.parts & SECOND_OF_PAIR && fuse(row))) {
        slots_.next();
        if (supplied > slots_.cycle) [[unlikely]]
            wait_for_front_end(supplied);
        execute(block, row, addresses, pc);
    }
    if (row.parts & BRANCH) {
        uint64_t fallthrough = pc + row.length;
        Prediction prediction = branches_.resolve(pc, row.branch, next, fallthrough);
        if (prediction == Prediction::WRONG) {
            resolved_ = before_done_;
            right_way_from_ = resolved_ + mispredict_cycles_;
            front_.restart(right_way_from_, next);
        } else if (next != fallthrough) {
            front_.go_to(next, prediction == Prediction::RIGHT);
        }
    }
}

// The first cycle in which one of the ports is free.
inline uint64_t InOrder::free_from(const Use& use) const {
    uint64_t first = ~uint64_t{0};
    for (uint32_t ports = use.ports; ports; ports &= ports - 1)
        first = std::min(first, port_free_[__builtin_ctz(ports)]);
    return use.ports ? first : 0;
}

inline void InOrder::take(const Use& use) {
    for (uint32_t ports = use.ports; ports; ports &= ports - 1) {
        unsigned port = static_cast<unsigned>(__builtin_ctz(ports));
        if (port_free_[port] > slots_.cycle) continue;
        port_free_[port] = slots_.cycle + use.busy_cycles;
        return;
    }
}

inline void InOrder::execute(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = row.parts;
    // When the operands are there: cycle << 1, and whether the last of them comes from a load.
    uint64_t operands = std::max(ready_[row.sources[0]], ready_[row.sources[1]]);
    operands = std::max(operands, ready_[row.sources[2]]);
    if (parts & MANY_OPERANDS)
        operands = std::max(operands,
                            std::max(ready_[row.sources[3]], std::max(ready_[row.sources[4]], ready_[row.sources[5]])));
    if (parts & ACCUMULATES) {
        uint64_t addend = ready_[row.accumulator], saved = uint64_t{row.accumulate_saving} << 1;
        operands = std::max(operands, addend > saved ? addend - saved : 0);
    }
    if (parts & (LOAD | STORE)) {
        if (parts & STORE && !(parts & COMPUTE)) {
            uint64_t late = uint64_t{store_data_late_} << 1;
            operands = operands > late ? operands - late : 0;
        }
        uint64_t address = std::max(ready_[row.address_sources[0]], ready_[row.address_sources[1]]);
        if (parts & MANY_OPERANDS) address = std::max(address, ready_[row.address_sources[2]]);
        if (address) operands = std::max(operands, address + (uint64_t{address_extra_} << 1));
    }

    if (operands >> 1 > slots_.cycle) slots_.lose_to_backend(operands >> 1, operands & FROM_LOAD);
    if (parts & STORE && store_buffer_[store_next_] > slots_.cycle) {
        count(Probe::STALL_STORE_BUFFER, store_buffer_[store_next_] - slots_.cycle);
        slots_.lose_to_backend(store_buffer_[store_next_], true);
    }
    if (parts & SERIALIZES) [[unlikely]] {
        uint64_t from = std::max(last_result_, slots_.cycle + microcode_cycles_);
        if (from > slots_.cycle) slots_.lose_to_backend(from, false);
    }
    if (parts & PAIRING && slots_.used > 0 && row.pairing != Pairing::SECOND)
        slots_.lose_to_backend(slots_.cycle + 1, false);
    if (!(parts & MANY_PORTS)) {
        uint64_t free = free_from(row.use);
        if (free > slots_.cycle) slots_.lose_to_backend(free, false);
        take(row.use);
    } else {
        // Two of them may want the same port: each is taken before the next is looked for, in the cycle of the last.
        for (unsigned index = row.first_use; index < unsigned{row.first_use} + row.uses; ++index) {
            uint64_t free = free_from(block.uses[index]);
            if (free > slots_.cycle) slots_.lose_to_backend(free, false);
            take(block.uses[index]);
        }
    }
    if (slots_.used == 0) ++retiring_cycles_;
    ++slots_.used;
    ++micro_ops_;
    if (parts & PAIRING && (row.pairing == Pairing::NONE || row.pairing == Pairing::SECOND)) {
        // Nothing pairs behind it.
        count(Probe::SLOTS_BACKEND, slots_.width - slots_.used);
        slots_.used = slots_.width;
    }

    const uint64_t issued = slots_.cycle;
    uint64_t result = issued;
    uint64_t from_load = 0;
    if (parts & LOAD) {
        result = load(block, row, addresses, pc);
        from_load = FROM_LOAD;
        if (blocking_misses_ && result > issued + load_latency_ + row.load_extra) {
            slots_.next();
            if (result > slots_.cycle) slots_.lose_to_backend(result, true);
        }
    }
    if (parts & COMPUTE) {
        result += row.latency;
        from_load = 0;
        if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, row.divider_cycles);
    }
    result = std::max(result, issued + 1);
    uint64_t entry = result << 1 | from_load;
    ready_[row.destinations[0]] = entry;
    ready_[row.destinations[1]] = entry;
    if (parts & MANY_OPERANDS) {
        ready_[row.destinations[2]] = entry;
        ready_[row.destinations[3]] = entry;
    }
    if (parts & WRITE_BACK) ready_[row.write_back] = (issued + 1) << 1;
    if (parts & STORE) store(block, row, addresses, pc);
    last_result_ = std::max(last_result_, result);
    cycle_ = issued + 1;

    before_done_ = result;
    before_is_compare_ = parts & FIRST_OF_PAIR && !row.aes;
    before_is_aes_ = parts & FIRST_OF_PAIR && row.aes;
    before_destination_ = row.destinations[0];
    if (parts & SERIALIZES) [[unlikely]] {
        slots_.next();
        if (result > slots_.cycle) slots_.lose_to_backend(result, false);
    }
}

inline uint64_t InOrder::load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc) {
    uint64_t issued = slots_.cycle;
    if (row.parts & PREFETCH) {
        if (row.load_sites) memory_.prefetch(addresses[row.first_site], issued);
        return issued + 1;
    }
    if (row.load_sites == 0) return issued + load_latency_ + row.load_extra;
    uint64_t all = issued + 1;
    for (unsigned site = row.first_site; site < unsigned{row.first_site} + row.load_sites; ++site) {
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t loaded = memory_.load(address, size, pc, issued, elements);
        if ((address ^ (address + size - 1)) & front_.line_mask) loaded += split_load_cycles_;
        all = std::max(all, loaded);
    }
    return all + row.load_extra;
}

inline void InOrder::store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc) {
    unsigned first = row.first_site + row.load_sites;
    for (unsigned site = first; site < first + row.store_sites; ++site) {
        uint64_t from = slots_.cycle + 1;
        if (from > write_cycle_) write_cycle_ = from, written_ = 0;
        if (written_ == stores_per_cycle_) ++write_cycle_, written_ = 0;
        ++written_;
        uint64_t there =
            memory_.store(addresses[site], block.accesses[site].size, pc, write_cycle_, block.accesses[site].elements);
        last_written_ = std::max(last_written_, std::max(there, write_cycle_ + 1));
        store_buffer_[store_next_] = last_written_;
        if (++store_next_ == store_buffer_.size()) store_next_ = 0;
    }
}

bool InOrder::fuse(const Row& row) {
    if (row.aes ? !(before_is_aes_ && row.sources[0] == before_destination_) : !before_is_compare_) return false;
    count(Probe::FUSED);
    if (row.aes) ready_[row.destinations[0]] = before_done_ << 1;
    before_is_compare_ = before_is_aes_ = false;
    return true;
}

void InOrder::wait_for_front_end(uint64_t supplied) {
    if (right_way_from_ > slots_.cycle) slots_.lose_to_bad_speculation(std::min(supplied, right_way_from_), resolved_);
    if (supplied > slots_.cycle) slots_.lose_to_frontend(supplied);
}

void InOrder::iterate(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const Row& row = block.iteration;
    slots_.next();
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        uint64_t supplied = front_.supply(block.address, row.length, slots_.cycle);
        if (supplied > slots_.cycle) wait_for_front_end(supplied);
        if (repeat_start_cycles_) slots_.lose_to_backend(slots_.cycle + repeat_start_cycles_, false);
    }
    unsigned bytes = row.load_sites + row.store_sites ? block.accesses[row.first_site].size : 0;
    if (repeat_left_ >= bytes && bytes) {
        unsigned site = row.first_site, stores = site + row.load_sites, end = stores + row.store_sites;
        for (; site < stores; ++site)
            memory_.load(addresses[site], block.accesses[site].size, block.address, slots_.cycle);
        for (; site < end; ++site)
            memory_.store(addresses[site], block.accesses[site].size, block.address, slots_.cycle);
        repeat_left_ -= bytes;
    } else {
        execute(block, row, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
    settle();
}

void InOrder::elapse(uint64_t cycles) {
    cycle_ = std::max(cycle_, last_result_);
    slots_.next();
    cycle_ = std::max(cycle_, slots_.cycle);
    if (cycle_ > slots_.cycle) slots_.lose_to_backend(cycle_, false);
    cycle_ += cycles;
    slots_.cycle = cycle_;
    front_.restart(cycle_, 0);
    front_.line = FrontEnd::NO_LINE;
    right_way_from_ = 0;
    before_is_compare_ = before_is_aes_ = false;
    repeating_ = false;
}

const PipelineModel MODEL("in_order", make_pipeline<InOrder>);

}  // namespace
}  // namespace perfemu
