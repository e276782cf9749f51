#include "timing/out_of_order_ops.hpp"

#include <algorithm>
#include <stdexcept>

namespace perfemu::out_of_order {

Placement::Placement(const Config& config, Execution& execution) {
    const Config& keys = config.table("pipeline");
    std::vector<uint32_t> ports_of;
    if (keys.has_table("schedulers")) {
        uint32_t seen = 0;
        for (const auto& [name, table] : keys.table("schedulers").tables()) {
            uint32_t ports = execution.mask(table.texts("ports"), table.path("ports"));
            if (ports == 0) throw std::invalid_argument(table.path("ports") + ": missing");
            if (ports & seen)
                throw std::invalid_argument(table.path("ports") + ": one of them has a scheduler already");
            seen |= ports;
            ports_of.push_back(ports);
            sizes_.push_back(checked(table, "entries", 1, 1000));
        }
    } else if (keys.has("scheduler_entries")) {
        ports_of.push_back(~uint32_t{0});
        sizes_.push_back(checked(keys, "scheduler_entries", 1, 1000));
    }
    size_t groups = execution.groups().size();
    for (size_t index = 0; index < groups; ++index) {
        PortGroup ports = execution.groups()[index];
        // Where its ports are in no scheduler: the one after the last, which is never full.
        Group group{.entry = {static_cast<uint8_t>(ports_of.size()), {static_cast<uint8_t>(index)}}, .choices = {}};
        for (size_t number = 0; number < ports_of.size(); ++number)
            if (uint32_t common = ports.ports & ports_of[number])
                group.choices.push_back({static_cast<uint8_t>(number), {execution.group(common, ports.busy_cycles)}});
        if (group.choices.size() == 1) group.entry = group.choices[0];
        if (group.choices.size() > 1) group.entry.scheduler = Entry::SEVERAL;
        by_group_.push_back(std::move(group));
    }
}

OpPreparer::OpPreparer(const Config& config, const Execution& execution, const Placement& placement)
    : execution_(execution), placement_(placement), fusion_(config.table("pipeline")) {
    const Config& keys = config.table("pipeline");
    rob_entries_ = checked(keys, "rob_entries", 8, 65536);
    vector_load_extra_ = checked(keys, "vector_load_extra_cycles", 0, 1000, 0);
    complex_address_extra_ = checked(keys, "complex_address_extra_cycles", 0, 1000, 0);
    micro_fusion_ = keys.boolean("micro_fusion", false);
    stack_forward_ = keys.has("stack_forward_cycles");
    limited_moves_ = keys.has("eliminated_moves_per_cycle");
    microcode_waits_ = checked(keys, "microcode_cycles", 0, 1000, 0) != 0;
    for (const std::string& kind : keys.texts("eliminates")) {
        if (kind == "move")
            move_ = true;
        else if (kind == "fp_move")
            fp_move_ = true;
        else if (kind == "zero")
            zero_ = true;
        else if (kind == "constant")
            constant_ = true;
        else if (kind == "add_constant")
            add_constant_ = true;
        else
            throw std::invalid_argument("pipeline.eliminates: there is no '" + kind +
                                        "', but move, fp_move, zero, constant, add_constant");
    }
    if (keys.has("predicted_forwards")) forwards_unindexed_ = keys.text("predicted_forwards") == "unindexed";
}

bool OpPreparer::eliminates(const TimedOp& op) const {
    switch (op.op_class) {
        case OpClass::MOVE: return move_ && op.eliminable_move;
        case OpClass::FP_MOVE: return fp_move_ && op.eliminable_move;
        case OpClass::ZERO: return zero_;
        case OpClass::CONSTANT: return constant_;
        // With a branch on its result it is executed.
        default: return add_constant_ && op.adds_little && !(fusion_.first_of_branch(op) && op.before_branch);
    }
}

// x86 RSP and RBP, A64 SP; asked only where the file gives such accesses a time of their own.
static bool by_stack(const TimedOp& op) {
    uint8_t base = op.address_sources[0];
    return op.address_sources[1] == timed_register::NONE &&
           (base == timed_register::GENERAL + 4 || base == timed_register::GENERAL + 5 ||
            base == timed_register::STACK);
}

// These return the slots that they take.
unsigned OpPreparer::add_computation(PreparedOp& prepared, const TimedOp& op, unsigned& parts) const {
    if (op.op_class == OpClass::NONE) return 0;
    if (eliminates(op)) {
        parts |= ELIMINATED;
        bool move = op.op_class == OpClass::MOVE || op.op_class == OpClass::FP_MOVE;
        if (!move || !limited_moves_) return 1;
        parts |= LIMITED_MOVE;
    }
    const ClassTiming& timing = execution_.timing(op.op_class, op.width_bytes);
    prepared.timing = &timing;
    prepared.latency = timing.latency;
    // A pair goes where branches go; if it has a result, where its first goes, too.
    PortUse use = timing.first;
    if (prepared.pair == Pair::BRANCH && op.before_branch)
        use = op.compare_only ? execution_.timing(OpClass::BRANCH, 8).first : timing.with_branch;
    prepared.entry = placement_.entry(use);
    if (prepared.latency > 0 || execution_.groups()[use.group].ports) parts |= COMPUTE;
    if (!timing.others.empty()) parts |= MANY_PORTS;
    if (divides(op.op_class)) parts |= DIVIDES;
    if (op.accumulator != timed_register::NONE && timing.accumulate_latency < timing.latency) {
        parts |= ACCUMULATES;
        prepared.accumulate_saving = timing.latency - timing.accumulate_latency;
        // The addend is waited for by itself.
        auto addend = std::find(prepared.sources.begin(), prepared.sources.end(), op.accumulator);
        if (addend != prepared.sources.end()) *addend = timed_register::NONE;
    } else if (timing.chain_latency < timing.latency) {
        parts |= ACCUMULATES;
        prepared.accumulate_saving = timing.latency - timing.chain_latency;
    }
    return timing.micro_ops;
}

unsigned OpPreparer::add_load(PreparedOp& prepared, const TimedOp& op, const SiteRange& sites, unsigned& parts) const {
    parts |= LOAD;
    if (op.prefetches) parts |= PREFETCH;
    prepared.load_micro_ops = static_cast<uint8_t>(execution_.load_micro_ops(op, sites.load_bytes));
    prepared.load_extra = static_cast<uint16_t>((loads_vector(op) ? vector_load_extra_ : 0) +
                                                (op.complex_address ? complex_address_extra_ : 0));
    return prepared.load_micro_ops - (micro_fusion_ && parts & COMPUTE);
}

unsigned OpPreparer::add_store(PreparedOp& prepared, const SiteRange& sites, unsigned& parts) const {
    parts |= STORE;
    prepared.store_micro_ops = static_cast<uint8_t>(pieces(sites.store_bytes, execution_.store_bytes));
    return prepared.store_micro_ops * (execution_.has_store_data && !micro_fusion_ ? 2 : 1);
}

static bool by_base_alone(const TimedOp& op) {
    return op.address_sources[0] != timed_register::NONE && !op.complex_address;
}

// The bytes of a load that the renamer may do, if it predicts the store.
uint8_t OpPreparer::renames(const TimedOp& op, unsigned parts) const {
    const bool fuses = fusion_.move_computation && op.before_computation;
    if (forwards_unindexed_) return by_base_alone(op) && !fuses ? ANY_SIZE : 0;
    return parts & STORE || !(parts & COMPUTE) ? op.width_bytes : 0;
}

PreparedOp OpPreparer::prepare(const TimedOp& op, const SiteRange& sites) const {
    PreparedOp prepared{};
    unsigned parts = 0;
    copy_operands(prepared, op, sites);
    prepared.op_class = op.op_class;
    prepared.microcoded = op.microcoded && microcode_waits_;
    if (many_operands(op)) parts |= MANY_OPERANDS;
    if (fusion_.first_of_branch(op)) prepared.pair = Pair::BRANCH;
    if (fusion_.aes && op.aes_round) prepared.pair = Pair::AES;

    unsigned slots = add_computation(prepared, op, parts);
    if (op.loads || op.prefetches || sites.loads) slots += add_load(prepared, op, sites, parts);
    if (op.stores || sites.stores) slots += add_store(prepared, sites, parts);
    if (op.write_back != timed_register::NONE && execution_.has_write_back) {
        parts |= WRITE_BACK;
        slots += 1;
    }
    if (stack_forward_ && parts & (LOAD | STORE) && by_stack(op)) parts |= BY_STACK;
    if (op.branch != BranchKind::NONE) parts |= BRANCH;
    prepared.general = parts & STORE && !is_vector(op.sources[0]) && (!forwards_unindexed_ || by_base_alone(op));
    if (parts & LOAD && !loads_vector(op)) prepared.renames = renames(op, parts);
    if (prepared.serializes || prepared.microcoded) parts |= HOLDS;
    if (op.fuses_with_compare && (fusion_.compare_branch || fusion_.arithmetic_branch)) parts |= SECOND_OF_PAIR;
    if (fusion_.aes && op.fuses_with_aes_round) parts |= SECOND_OF_PAIR | AES_PAIR;

    // one with more slots than the ROB has entries takes all of it
    prepared.slots = static_cast<uint8_t>(std::clamp<unsigned>(slots, 1, std::min(rob_entries_, 250u)));
    if (fusion_.move_computation && op.before_computation) prepared.slots = 0;  // the other one's
    prepared.parts = static_cast<uint16_t>(parts);
    prepared.shape = Shape::OTHER;
    const PortGroup& ports = execution_.groups()[prepared.entry.use.group];
    if (ports.busy_cycles == 1) prepared.simple_ports = ports.ports;
    // What else they may have plays no part in these ways, or only where it is looked up in the op.
    const unsigned shape = parts & ~(BRANCH | BY_STACK);
    const bool simple_load = prepared.load_micro_ops == 1 && prepared.load_sites == 1;
    const bool simple_computation = prepared.slots == 1 && prepared.entry.scheduler != Entry::SEVERAL;
    if (shape == COMPUTE && prepared.slots == 1)
        prepared.shape = simple_computation ? Shape::COMPUTES : Shape::COMPUTES_SOMEWHERE;
    if (shape == ELIMINATED && prepared.slots == 1) prepared.shape = Shape::IS_ELIMINATED;
    if (shape == (COMPUTE | SECOND_OF_PAIR) && simple_computation) prepared.shape = Shape::SECOND_BRANCH;
    if (shape == LOAD && simple_load && prepared.slots == 1) prepared.shape = Shape::LOADS;
    if (shape == STORE) prepared.shape = Shape::STORES;
    if (shape == (LOAD | COMPUTE) && simple_load) prepared.shape = Shape::LOADS_AND_COMPUTES;
    return prepared;
}

}  // namespace perfemu::out_of_order
