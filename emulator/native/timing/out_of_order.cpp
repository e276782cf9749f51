// Out of order: each instruction, in program order, is given the cycles of its dispatch, issue, completion and
// retirement, from what the ones before it have left: slots, ROB and queue entries, ports, operands. No loop over
// cycles.
//
// Not modelled: what a wrong path executes or fetches; replays; loads that must not pass older stores; bypass delays
// between units other than what [ops] says.
#include <algorithm>
#include <stdexcept>

#include "timing/execution.hpp"
#include "timing/front_end.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/port_calendar.hpp"
#include "timing/scheduler.hpp"
#include "timing/slots.hpp"
#include "timing/store_queue.hpp"

namespace perfemu {
namespace {

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
    FIRST_OF_PAIR = 1 << 14,
    SECOND_OF_PAIR = 1 << 15,
};

// Registers' places in the table of when they are ready: NONE is always, NOWHERE is written and never read.
constexpr uint8_t NOWHERE = 254;
constexpr uint64_t MAYBE_MISSED = 1;  // in a ROB entry, below the cycle: it waited for memory

struct alignas(64) Row {
    std::array<uint8_t, 6> sources;
    std::array<uint8_t, 4> destinations;
    std::array<uint8_t, 3> address_sources;
    uint8_t accumulator, write_back;
    uint8_t slots, length;
    uint8_t load_micro_ops, store_micro_ops;
    uint8_t load_sites, store_sites;
    uint8_t group;  // of the computation's first port
    BranchKind branch;
    OpClass op_class;
    uint16_t parts, offset, first_site;
    uint16_t latency, accumulate_saving, load_extra;
    bool serializes, microcoded, aes;
    const ClassTiming* timing;
};

struct Block final : PreparedBlock {
    uint64_t address;
    std::vector<Row> rows;
    std::vector<Access> accesses;  // by site
    Row iteration;                 // of a REP instruction; its row is what is left of it when they are through
};

class OutOfOrder final : public Pipeline {
  public:
    OutOfOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);

    std::unique_ptr<PreparedBlock> prepare(uint64_t address, std::span<const TimedOp> ops,
                                           std::span<const AccessSite> sites) override;
    unsigned retire(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                    uint64_t limit) override;
    void iterate(const PreparedBlock& block, const uint64_t* addresses) override;
    void elapse(uint64_t cycles) override;

  private:
    // One group of ports may lie in one scheduler or in several.
    struct Placement {
        struct Choice {
            uint8_t scheduler;
            PortUse use;
        };
        std::vector<Choice> choices;  // none: it waits in no scheduler
        PortUse use;
        uint8_t only = NO_SCHEDULER;
    };
    static constexpr uint8_t NO_SCHEDULER = 255;

    void place(const Config& config);
    Row row_of(const TimedOp& op, const SiteRange& sites) const;

    void step(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t next);
    void execute(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    uint64_t load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t data);
    bool fuse(const Row& row);
    void hold(const Row& row);
    void wait_for_front_end(uint64_t supplied);
    void wait(uint64_t to, Probe reason);
    void wait_in_segments(uint64_t to, bool memory);
    bool too_many_moves();

    // Where a micro-op will wait, and the ports that it may then use; dispatch waits for an entry.
    PortUse enter(uint8_t group, uint8_t& scheduler) {
        const Placement& placement = placements_[group];
        scheduler = placement.only;
        PortUse use = placement.use;
        if (placement.choices.size() > 1) [[unlikely]] {
            unsigned fewest = ~0U;
            for (const Placement::Choice& choice : placement.choices) {
                unsigned held = schedulers_[choice.scheduler].held(slots_.cycle);
                if (held >= schedulers_[choice.scheduler].entries()) held += 1 << 16;
                if (held >= fewest) continue;
                fewest = held;
                scheduler = choice.scheduler;
                use = choice.use;
            }
        }
        if (scheduler == NO_SCHEDULER) return use;
        uint64_t free = schedulers_[scheduler].free_at(slots_.cycle);
        if (free > slots_.cycle) [[unlikely]]
            wait(free, Probe::STALL_SCHEDULER);
        return use;
    }
    uint64_t issue(PortUse use, uint8_t scheduler, uint64_t ready) {
        uint64_t cycle = calendar_.take(use, ready);
        if (scheduler != NO_SCHEDULER) schedulers_[scheduler].hold(cycle);
        return cycle;
    }

    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    Execution execution_;
    Fusion fusion_;
    FrontEnd front_;
    Slots slots_;
    PortCalendar calendar_;
    std::vector<Scheduler> schedulers_;
    std::vector<Placement> placements_;  // by group
    StoreQueue stores_;

    unsigned retire_width_, decode_width_;
    bool decode_limits_ = false;
    unsigned mispredict_cycles_, store_forward_cycles_, stack_forward_cycles_, forward_blocked_cycles_,
        alias_4k_cycles_;
    unsigned stores_per_cycle_, vector_load_extra_, complex_address_extra_, split_load_cycles_;
    unsigned repeat_bytes_, repeat_start_cycles_, microcode_cycles_;
    bool micro_fusion_, separate_stack_forward_;
    bool eliminates_move_ = false, eliminates_fp_move_ = false, eliminates_zero_ = false, eliminates_constant_ = false;
    unsigned moves_per_cycle_;
    uint64_t default_load_latency_ = 1;

    uint64_t ready_[256] = {};   // by register: the cycle from which it may be used
    std::vector<uint64_t> rob_;  // by slot: the cycle of retirement << 1 | waited for memory
    unsigned rob_next_ = 0;
    uint64_t rob_count_ = 0;            // slots ever taken
    uint64_t rob_oldest_ = 0;           // ... of which these had retired when dispatch last stood still
    std::vector<uint64_t> load_queue_;  // by load: the cycle of retirement; empty: no limit
    unsigned load_next_ = 0;

    unsigned retired_ = 0;  // slots in this cycle
    unsigned decoded_ = 0;
    uint64_t decode_cycle_ = 0;
    uint64_t write_cycle_ = 0;  // of the last store
    unsigned written_ = 0;      // stores in that cycle
    uint64_t last_written_ = 0;
    uint64_t moves_cycle_ = 0;
    unsigned moves_ = 0;

    uint64_t right_way_from_ = 0;  // after a mispredict: its first dispatch
    uint64_t resolved_ = 0;
    // The instruction before, which may be the first of a pair.
    uint8_t before_destination_ = NOWHERE;
    bool before_is_compare_ = false, before_is_aes_ = false;
    uint64_t before_done_ = 0;
    uint64_t micro_ops_ = 0, retiring_cycles_ = 0;  // since the totals were last brought up to date

    bool repeating_ = false;
    unsigned repeat_left_ = 0;  // bytes of the last micro-op that further iterations use

    void settle() {
        count(Probe::UOPS_DISPATCHED, micro_ops_);
        count(Probe::UOPS_RETIRED, micro_ops_);
        count(Probe::CYCLES_RETIRING, retiring_cycles_);
        micro_ops_ = retiring_cycles_ = 0;
    }
};

OutOfOrder::OutOfOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : memory_(memory), branches_(branches), totals_(totals), execution_(config), fusion_(config.table("pipeline")),
      front_(config, memory), slots_{totals, checked(config.table("pipeline"), "dispatch_width", 1, 64)}, calendar_({}),
      stores_(checked(config.table("pipeline"), "store_buffer", 1, 4096)) {
    const Config& keys = config.table("pipeline");
    retire_width_ = checked(keys, "retire_width", 1, 64, slots_.width);
    decode_width_ = checked(keys, "decode_width", 1, 64, slots_.width);
    // Slots can be fewer than instructions only where pairs fuse.
    decode_limits_ = decode_width_ < slots_.width || fusion_.compare_branch || fusion_.arithmetic_branch || fusion_.aes;
    rob_.assign(checked(keys, "rob_entries", 8, 65536), 0);
    if (keys.has("load_queue")) load_queue_.assign(checked(keys, "load_queue", 1, 65536), 0);
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    store_forward_cycles_ = checked(keys, "store_forward_cycles", 0, 1000);
    separate_stack_forward_ = keys.has("stack_forward_cycles");
    stack_forward_cycles_ = checked(keys, "stack_forward_cycles", 0, 1000, store_forward_cycles_);
    forward_blocked_cycles_ = checked(keys, "store_forward_blocked_cycles", 0, 1000, 0);
    alias_4k_cycles_ = checked(keys, "alias_4k_cycles", 0, 1000, 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    vector_load_extra_ = checked(keys, "vector_load_extra_cycles", 0, 1000, 0);
    complex_address_extra_ = checked(keys, "complex_address_extra_cycles", 0, 1000, 0);
    split_load_cycles_ = checked(keys, "split_load_cycles", 0, 1000, 0);
    repeat_bytes_ = checked(keys, "repeat_bytes", 0, 4096, 0);
    repeat_start_cycles_ = checked(keys, "repeat_start_cycles", 0, 1000, 0);
    microcode_cycles_ = checked(keys, "microcode_cycles", 0, 1000, 0);
    micro_fusion_ = keys.boolean("micro_fusion", false);
    moves_per_cycle_ = checked(keys, "eliminated_moves_per_cycle", 0, 64, 0);
    if (config.has_table("l1d")) default_load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
    for (const std::string& kind : keys.texts("eliminates")) {
        if (kind == "move")
            eliminates_move_ = true;
        else if (kind == "fp_move")
            eliminates_fp_move_ = true;
        else if (kind == "zero")
            eliminates_zero_ = true;
        else if (kind == "constant")
            eliminates_constant_ = true;
        else
            throw std::invalid_argument("pipeline.eliminates: there is no '" + kind +
                                        "', but move, fp_move, zero, constant");
    }
    place(config);
    calendar_ = PortCalendar(execution_.groups());
}

// The schedulers, and for each group of ports where its micro-ops wait.
void OutOfOrder::place(const Config& config) {
    const Config& keys = config.table("pipeline");
    std::vector<uint32_t> ports_of;
    if (keys.has_table("schedulers")) {
        uint32_t seen = 0;
        for (const auto& [name, table] : keys.table("schedulers").tables()) {
            uint32_t ports = execution_.mask(table.texts("ports"), table.path("ports"));
            if (ports == 0) throw std::invalid_argument(table.path("ports") + ": missing");
            if (ports & seen)
                throw std::invalid_argument(table.path("ports") + ": one of them has a scheduler already");
            seen |= ports;
            ports_of.push_back(ports);
            schedulers_.emplace_back(checked(table, "entries", 1, 1000));
        }
    } else if (keys.has("scheduler_entries")) {
        ports_of.push_back(~uint32_t{0});
        schedulers_.emplace_back(checked(keys, "scheduler_entries", 1, 1000));
    }
    size_t groups = execution_.groups().size();
    for (size_t index = 0; index < groups; ++index) {
        PortGroup group = execution_.groups()[index];
        Placement placement{.choices = {}, .use = {static_cast<uint8_t>(index)}};
        for (size_t number = 0; number < ports_of.size(); ++number)
            if (uint32_t common = group.ports & ports_of[number])
                placement.choices.push_back(
                    {static_cast<uint8_t>(number), {execution_.group(common, group.busy_cycles)}});
        if (placement.choices.size() == 1) {
            placement.only = placement.choices[0].scheduler;
            placement.use = placement.choices[0].use;
        }
        placements_.push_back(placement);
    }
}

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

// x86 RSP and RBP, A64 SP; asked only where the file gives such accesses a time of their own.
bool by_stack(const TimedOp& op) {
    uint8_t base = op.address_sources[0];
    return op.address_sources[1] == timed_register::NONE &&
           (base == timed_register::GENERAL + 4 || base == timed_register::GENERAL + 5 ||
            base == timed_register::STACK);
}

Row OutOfOrder::row_of(const TimedOp& op, const SiteRange& sites) const {
    Row row{};
    unsigned parts = 0;
    row.sources = op.sources;
    row.address_sources = op.address_sources;
    row.destinations = op.destinations;
    for (uint8_t& destination : row.destinations)
        if (destination == timed_register::NONE) destination = NOWHERE;
    row.accumulator = op.accumulator;
    row.write_back = op.write_back;
    row.length = op.length;
    row.offset = op.offset;
    row.branch = op.branch;
    row.op_class = op.op_class;
    row.serializes = op.serializes;
    row.microcoded = op.microcoded;
    row.first_site = sites.first;
    row.load_sites = sites.loads;
    row.store_sites = sites.stores;
    if (op.sources[3] != timed_register::NONE || op.destinations[2] != timed_register::NONE ||
        op.address_sources[2] != timed_register::NONE)
        parts |= MANY_OPERANDS;

    unsigned slots = 0;
    bool eliminated = (op.op_class == OpClass::MOVE && op.eliminable_move && eliminates_move_) ||
                      (op.op_class == OpClass::FP_MOVE && op.eliminable_move && eliminates_fp_move_) ||
                      (op.op_class == OpClass::ZERO && eliminates_zero_) ||
                      (op.op_class == OpClass::CONSTANT && eliminates_constant_);
    if (eliminated) parts |= ELIMINATED;
    if (eliminated && moves_per_cycle_ && op.op_class != OpClass::ZERO && op.op_class != OpClass::CONSTANT)
        parts |= LIMITED_MOVE;
    if (op.op_class != OpClass::NONE && !(eliminated && !(parts & LIMITED_MOVE))) {
        row.timing = &execution_.timing(op.op_class, op.width_bytes);
        row.latency = row.timing->latency;
        row.group = row.timing->first.group;
        if (row.latency > 0 || execution_.groups()[row.group].ports) parts |= COMPUTE;
        if (!row.timing->others.empty()) parts |= MANY_PORTS;
        if (divides(op.op_class)) parts |= DIVIDES;
        if (op.accumulator != timed_register::NONE && row.timing->accumulate_latency < row.latency) {
            parts |= ACCUMULATES;
            row.accumulate_saving = row.latency - row.timing->accumulate_latency;
            // The addend is waited for by itself.
            for (uint8_t& source : row.sources)
                if (source == op.accumulator) {
                    source = timed_register::NONE;
                    break;
                }
        }
        slots += row.timing->micro_ops;
    } else if (eliminated) {
        slots += 1;
    }

    bool loads = op.loads || op.prefetches || (sites.loads && !op.stores);
    if (loads) {
        parts |= LOAD;
        row.load_micro_ops = static_cast<uint8_t>(
            std::max<unsigned>(1, (sites.load_bytes + execution_.load_bytes - 1) / execution_.load_bytes));
        if (op.prefetches) row.load_micro_ops = 1;
        slots += row.load_micro_ops - (micro_fusion_ && parts & COMPUTE);
        bool to_vector =
            is_vector(op.destinations[0]) || (op.destinations[0] == timed_register::NONE && is_vector(op.sources[0]));
        row.load_extra = static_cast<uint16_t>((to_vector ? vector_load_extra_ : 0) +
                                               (op.complex_address ? complex_address_extra_ : 0));
        if (op.prefetches) parts |= PREFETCH;
    }
    if (op.stores) {
        parts |= STORE;
        row.store_micro_ops = static_cast<uint8_t>(
            std::max<unsigned>(1, (sites.store_bytes + execution_.store_bytes - 1) / execution_.store_bytes));
        slots += row.store_micro_ops * (execution_.has_store_data && !micro_fusion_ ? 2 : 1);
    }
    if ((loads || op.stores) && separate_stack_forward_ && by_stack(op)) parts |= BY_STACK;
    if (op.write_back != timed_register::NONE && execution_.has_write_back) {
        parts |= WRITE_BACK;
        slots += 1;
    }
    if (op.branch != BranchKind::NONE) parts |= BRANCH;
    if (op.serializes || (op.microcoded && microcode_cycles_)) parts |= HOLDS;
    if (fusion_.first_of_branch(op)) parts |= FIRST_OF_PAIR;
    if (fusion_.aes && op.aes_round) parts |= FIRST_OF_PAIR, row.aes = true;
    if (op.fuses_with_compare && (fusion_.compare_branch || fusion_.arithmetic_branch)) parts |= SECOND_OF_PAIR;
    if (fusion_.aes && op.fuses_with_aes_round) parts |= SECOND_OF_PAIR, row.aes = true;
    row.slots = static_cast<uint8_t>(std::clamp<unsigned>(slots, 1, 250));
    if (row.slots > rob_.size())
        throw std::invalid_argument(
            "pipeline.rob_entries: " + std::to_string(rob_.size()) + ", but an instruction of class " +
            OP_CLASS_NAMES[static_cast<unsigned>(op.op_class)] + " needs " + std::to_string(row.slots));
    row.parts = static_cast<uint16_t>(parts);
    return row;
}

std::unique_ptr<PreparedBlock> OutOfOrder::prepare(uint64_t address, std::span<const TimedOp> ops,
                                                   std::span<const AccessSite> sites) {
    auto block = std::make_unique<Block>();
    block->address = address;
    std::vector<SiteRange> ranges = sites_by_op(ops, sites);
    for (size_t index = 0; index < ops.size(); ++index) {
        if (ops[index].repeated) {
            block->iteration = row_of(ops[index], ranges[index]);
            block->rows.push_back(row_of({.offset = ops[index].offset, .length = ops[index].length}, {}));
        } else {
            block->rows.push_back(row_of(ops[index], ranges[index]));
        }
    }
    for (const AccessSite& site : sites) block->accesses.push_back({site.size, site.elements});
    return block;
}

unsigned OutOfOrder::retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
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

// One instruction, except what REP's iterations have done already.
inline void OutOfOrder::step(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc,
                             uint64_t next) {
    uint64_t supplied = front_.supply(pc, row.length, slots_.cycle);
    if (decode_limits_) {
        if (supplied > decode_cycle_) decode_cycle_ = supplied, decoded_ = 0;
        if (decoded_ == decode_width_) ++decode_cycle_, decoded_ = 0;
        ++decoded_;
        supplied = decode_cycle_;
    }
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

// Dispatch to retirement, of what fetch has supplied.
inline void OutOfOrder::execute(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = row.parts;
    if (parts & HOLDS) [[unlikely]]
        hold(row);

    // A slot, and entries for all that it needs.
    unsigned last = rob_next_ + row.slots - 1;
    if (last >= rob_.size()) last -= static_cast<unsigned>(rob_.size());
    if (rob_[last] >> 1 > slots_.cycle) wait(rob_[last] >> 1, Probe::STALL_ROB);
    if (parts & LOAD && !load_queue_.empty() && load_queue_[load_next_] > slots_.cycle)
        wait(load_queue_[load_next_], Probe::STALL_LOAD_QUEUE);
    if (parts & STORE) {
        uint64_t free = stores_.free_at();
        if (free > slots_.cycle) wait(free, Probe::STALL_STORE_BUFFER);
    }
    bool computes = parts & COMPUTE && (!(parts & ELIMINATED) || too_many_moves());

    uint8_t scheduler = NO_SCHEDULER, load_scheduler = NO_SCHEDULER;
    PortUse use, load_use;
    if (parts & LOAD) load_use = enter(execution_.load.group, load_scheduler);
    if (computes) use = enter(row.group, scheduler);
    uint8_t address_scheduler = NO_SCHEDULER, data_scheduler = NO_SCHEDULER;
    PortUse address_use, data_use;
    if (parts & STORE) {
        address_use = enter(execution_.store_address.group, address_scheduler);
        if (execution_.has_store_data) data_use = enter(execution_.store_data.group, data_scheduler);
    }
    slots_.used += row.slots;
    while (slots_.used > slots_.width) slots_.used -= slots_.width, ++slots_.cycle;
    const uint64_t dispatched = slots_.cycle;
    calendar_.advance(dispatched);

    // Operands.
    uint64_t operands = std::max(dispatched + 1, std::max(ready_[row.sources[0]], ready_[row.sources[1]]));
    operands = std::max(operands, ready_[row.sources[2]]);
    if (parts & MANY_OPERANDS)
        operands = std::max(operands,
                            std::max(ready_[row.sources[3]], std::max(ready_[row.sources[4]], ready_[row.sources[5]])));
    uint64_t address_ready = dispatched + 1;
    if (parts & (LOAD | STORE | WRITE_BACK)) {
        address_ready =
            std::max(address_ready, std::max(ready_[row.address_sources[0]], ready_[row.address_sources[1]]));
        if (parts & MANY_OPERANDS) address_ready = std::max(address_ready, ready_[row.address_sources[2]]);
    }

    // Load, computation.
    uint64_t result = operands;  // when the destinations may be used
    uint64_t done = dispatched + 1;
    bool memory = false;
    if (parts & LOAD) {
        uint64_t issued = issue(load_use, load_scheduler, address_ready);
        for (unsigned more = 1; more < row.load_micro_ops; ++more)
            issued = std::max(issued, calendar_.take(load_use, address_ready));
        uint64_t loaded = load(block, row, addresses, pc, issued);
        result = parts & COMPUTE ? std::max(operands, loaded) : loaded;
        done = loaded;
        memory = true;
    }
    if (computes) {
        uint64_t start = result;
        if (parts & ACCUMULATES && ready_[row.accumulator] > start + row.accumulate_saving)
            start = ready_[row.accumulator] - row.accumulate_saving;
        uint64_t issued = issue(use, scheduler, start);
        if (parts & MANY_PORTS) [[unlikely]]
            for (PortUse other : row.timing->others) {
                uint8_t waits_in;
                other = enter(other.group, waits_in);
                issued = std::max(issued, issue(other, waits_in, start));
            }
        if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, row.timing->busiest_cycles);
        result = issued + row.latency;
        done = result;
    } else if (parts & ELIMINATED) {
        // The renamer gives the destination the source's register.
        result = std::max(std::max(ready_[row.sources[0]], ready_[row.sources[1]]), dispatched);
        if (row.op_class == OpClass::MOVE || row.op_class == OpClass::FP_MOVE) count(Probe::MOVE_ELIMINATED);
    }
    ready_[row.destinations[0]] = result;
    ready_[row.destinations[1]] = result;
    if (parts & MANY_OPERANDS) {
        ready_[row.destinations[2]] = result;
        ready_[row.destinations[3]] = result;
    }
    if (parts & WRITE_BACK) {
        uint8_t waits_in;
        PortUse updates = enter(execution_.write_back.group, waits_in);
        uint64_t updated = issue(updates, waits_in, address_ready) + 1;
        ready_[row.write_back] = updated;
        done = std::max(done, updated);
    }

    uint64_t data = 0;
    if (parts & STORE) {
        uint64_t address_issued = issue(address_use, address_scheduler, address_ready);
        data = execution_.has_store_data ? issue(data_use, data_scheduler, result) : std::max(address_issued, result);
        for (unsigned more = 1; more < row.store_micro_ops; ++more) {
            address_issued = std::max(address_issued, calendar_.take(address_use, address_ready));
            if (execution_.has_store_data) data = std::max(data, calendar_.take(data_use, result));
        }
        done = std::max(done, std::max(address_issued, data) + 1);
    }

    // Retirement.
    if (done > cycle_) {
        cycle_ = done;
        retired_ = row.slots;
        ++retiring_cycles_;
    } else {
        retired_ += row.slots;
        memory = false;
    }
    while (retired_ > retire_width_) retired_ -= retire_width_, ++cycle_, ++retiring_cycles_;
    uint64_t entry = cycle_ << 1 | (memory ? MAYBE_MISSED : 0);
    for (unsigned slot = 0; slot < row.slots; ++slot) {
        rob_[rob_next_] = entry;
        if (++rob_next_ == rob_.size()) rob_next_ = 0;
    }
    rob_count_ += row.slots;
    micro_ops_ += row.slots;
    if (parts & LOAD && !load_queue_.empty()) {
        load_queue_[load_next_] = cycle_;
        if (++load_next_ == load_queue_.size()) load_next_ = 0;
    }
    if (parts & STORE) store(block, row, addresses, pc, data);

    before_done_ = done;
    before_is_compare_ = parts & FIRST_OF_PAIR && !row.aes;
    before_is_aes_ = parts & FIRST_OF_PAIR && row.aes;
    before_destination_ = row.destinations[0];
    if (row.serializes) [[unlikely]] {
        // What follows is dispatched when this has retired.
        slots_.next();
        if (cycle_ > slots_.cycle) wait_in_segments(cycle_, false);
    }
}

// When the loaded data are there; the micro-op has issued in cycle `issued`.
inline uint64_t OutOfOrder::load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc,
                                 uint64_t issued) {
    if (row.parts & PREFETCH) {
        if (row.load_sites) memory_.prefetch(addresses[row.first_site], issued);
        return issued + 1;
    }
    if (row.load_sites == 0) return issued + default_load_latency_ + row.load_extra;
    uint64_t all = issued;
    for (unsigned site = row.first_site; site < unsigned{row.first_site} + row.load_sites; ++site) {
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t loaded = memory_.load(address, size, pc, issued, elements);
        if (((address ^ (address + size - 1)) & front_.line_mask) && split_load_cycles_) [[unlikely]] {
            uint64_t again = calendar_.take(execution_.load, issued);
            loaded = std::max(loaded, again) + split_load_cycles_;
        }
        StoreQueue::Found found = stores_.find(address, address + size, issued, alias_4k_cycles_ != 0);
        if (found.answer != StoreQueue::Answer::NONE) [[unlikely]] {
            if (found.answer == StoreQueue::Answer::FORWARD) {
                count(Probe::STORE_FORWARD);
                if (row.parts & BY_STACK && found.store->by_stack)
                    loaded = std::max(issued, found.store->data + stack_forward_cycles_);
                else
                    loaded = std::max(issued, found.store->data) + store_forward_cycles_;
            } else if (found.answer == StoreQueue::Answer::PART) {
                count(Probe::STORE_FORWARD_BLOCKED);
                loaded = std::max(loaded, found.store->written + forward_blocked_cycles_);
            } else {
                count(Probe::ALIAS_4K);
                loaded += alias_4k_cycles_;
            }
        }
        all = std::max(all, loaded);
    }
    return all + row.load_extra;
}

// Has retired; is written to the cache behind the ones before it.
inline void OutOfOrder::store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc,
                              uint64_t data) {
    for (unsigned site = row.first_site + row.load_sites;
         site < unsigned{row.first_site} + row.load_sites + row.store_sites; ++site) {
        if (cycle_ > write_cycle_) write_cycle_ = cycle_, written_ = 0;
        if (written_ == stores_per_cycle_) ++write_cycle_, written_ = 0;
        ++written_;
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t there = memory_.store(address, size, pc, write_cycle_, elements);
        uint64_t written = std::max(std::max(there, write_cycle_ + 1), last_written_);
        last_written_ = written;
        stores_.add({address, address + size, data, written, (row.parts & BY_STACK) != 0});
    }
}

// The second of a pair: no slot of its own, and done with the first.
bool OutOfOrder::fuse(const Row& row) {
    if (row.aes ? !(before_is_aes_ && row.sources[0] == before_destination_) : !before_is_compare_) return false;
    count(Probe::FUSED);
    if (row.aes) ready_[row.destinations[0]] = before_done_;
    before_is_compare_ = before_is_aes_ = false;
    return true;
}

// What stands still before it is dispatched.
void OutOfOrder::hold(const Row& row) {
    if (row.serializes && cycle_ > slots_.cycle) wait_in_segments(cycle_, false);
    if (row.microcoded && microcode_cycles_) wait_in_segments(slots_.cycle + microcode_cycles_, false);
}

void OutOfOrder::wait_for_front_end(uint64_t supplied) {
    if (right_way_from_ > slots_.cycle) slots_.lose_to_bad_speculation(std::min(supplied, right_way_from_), resolved_);
    if (supplied > slots_.cycle) slots_.lose_to_frontend(supplied);
}

// Dispatch waits for an entry of something.
void OutOfOrder::wait(uint64_t to, Probe reason) {
    count(reason, to - slots_.cycle);
    wait_in_segments(to, reason == Probe::STALL_STORE_BUFFER);
}

// Each cycle is memory's if the oldest micro-op then was a load.
void OutOfOrder::wait_in_segments(uint64_t to, bool memory) {
    while (slots_.cycle < to) {
        if (rob_count_ - rob_oldest_ > rob_.size()) rob_oldest_ = rob_count_ - rob_.size();
        uint64_t until = to;
        bool waits = memory;
        for (; rob_oldest_ < rob_count_; ++rob_oldest_) {
            uint64_t entry = rob_[rob_oldest_ % rob_.size()];
            if (entry >> 1 <= slots_.cycle) continue;
            until = std::min(to, entry >> 1);
            waits |= entry & MAYBE_MISSED;
            break;
        }
        slots_.lose_to_backend(until, waits);
    }
}

bool OutOfOrder::too_many_moves() {
    if (slots_.cycle != moves_cycle_) moves_cycle_ = slots_.cycle, moves_ = 0;
    return ++moves_ > moves_per_cycle_;
}

void OutOfOrder::iterate(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const Row& row = block.iteration;
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        uint64_t supplied = front_.supply(block.address, row.length, slots_.cycle);
        slots_.next();
        if (supplied > slots_.cycle) wait_for_front_end(supplied);
        if (repeat_start_cycles_) wait_in_segments(slots_.cycle + repeat_start_cycles_, false);
    }
    unsigned bytes = row.load_sites + row.store_sites ? block.accesses[row.first_site].size : 0;
    if (repeat_left_ >= bytes && bytes) {
        // Part of what the last micro-ops have moved: the caches hear of it.
        for (unsigned site = row.first_site; site < unsigned{row.first_site} + row.load_sites + row.store_sites; ++site)
            if (site < unsigned{row.first_site} + row.load_sites)
                memory_.load(addresses[site], block.accesses[site].size, block.address, slots_.cycle);
            else
                memory_.store(addresses[site], block.accesses[site].size, block.address, cycle_);
        repeat_left_ -= bytes;
    } else {
        slots_.next();
        execute(block, row, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
    settle();
}

void OutOfOrder::elapse(uint64_t cycles) {
    slots_.next();
    if (cycle_ > slots_.cycle) wait_in_segments(cycle_, false);
    cycle_ = std::max(cycle_, slots_.cycle) + cycles;
    slots_.cycle = cycle_;
    slots_.used = 0;
    retired_ = 0;
    front_.restart(cycle_, 0);
    front_.line = FrontEnd::NO_LINE;
    right_way_from_ = 0;
    before_is_compare_ = before_is_aes_ = false;
    repeating_ = false;
}

const PipelineModel MODEL("out_of_order", make_pipeline<OutOfOrder>);

}  // namespace
}  // namespace perfemu
