#include "timing/in_order_ops.hpp"

#include <algorithm>
#include <bit>

namespace perfemu::in_order {

OpPreparer::OpPreparer(const Config& config, const Execution& execution)
    : execution_(execution), fusion_(config.table("pipeline")) {
    const Config& keys = config.table("pipeline");
    vector_load_extra_ = checked(keys, "vector_load_extra_cycles", 0, 1000, 0);
    complex_address_extra_ = checked(keys, "complex_address_extra_cycles", 0, 1000, 0);
    load_ports_ = static_cast<unsigned>(std::popcount(execution_.groups()[execution_.load.group].ports));
    microcode_waits_ = checked(keys, "microcode_cycles", 0, 1000, 0) != 0;
    flags_late_ = checked(keys, "flags_late_cycles", 0, 100, 0) != 0;
    load_pairing_ = pairing_of(keys, "load_dual_issue", "pipeline.load_dual_issue");
    store_pairing_ = pairing_of(keys, "store_dual_issue", "pipeline.store_dual_issue");
}

// The stricter one; two contrary ones leave nothing to pair with.
static Pairing stricter(Pairing left, Pairing right) {
    if (left == Pairing::BOTH || left == right) return right;
    return right == Pairing::BOTH ? left : Pairing::NONE;
}

void OpPreparer::add_computation(PreparedOp& prepared, const TimedOp& op, unsigned& parts,
                                 std::vector<Use>& uses) const {
    if (op.op_class == OpClass::NONE) return;
    const ClassTiming& timing = execution_.timing(op.op_class, op.width_bytes);
    auto need = [&](PortUse use) {
        const PortGroup& group = execution_.groups()[use.group];
        if (group.ports) uses.push_back({group.ports, group.busy_cycles});
    };
    need(timing.first);
    for (PortUse other : timing.others) need(other);
    prepared.latency = timing.latency;
    prepared.pairing = timing.pairing;
    if (prepared.latency > 0) parts |= COMPUTE;
    if (divides(op.op_class)) parts |= DIVIDES, prepared.divider_cycles = timing.busiest_cycles;
    if (op.accumulator != timed_register::NONE && timing.accumulate_latency < timing.latency) {
        parts |= ACCUMULATES;
        prepared.accumulate_saving = timing.latency - timing.accumulate_latency;
        // The addend is waited for by itself.
        auto addend = std::find(prepared.sources.begin(), prepared.sources.end(), op.accumulator);
        if (addend != prepared.sources.end()) *addend = timed_register::NONE;
    }
}

PreparedOp OpPreparer::prepare(const TimedOp& op, const SiteRange& sites, Block& block) const {
    PreparedOp prepared{};
    unsigned parts = 0;
    copy_operands(prepared, op, sites);
    prepared.microcoded = op.microcoded && microcode_waits_;
    prepared.pairing = Pairing::BOTH;
    if (many_operands(op)) parts |= MANY_OPERANDS;
    if (flags_late_ && op.op_class != OpClass::ALU_CARRY) {
        auto flags = std::find(prepared.sources.begin(), prepared.sources.end(), timed_register::FLAGS);
        if (flags != prepared.sources.end()) *flags = timed_register::NONE, parts |= FLAGS_LATE;
    }
    std::vector<Use> uses;
    add_computation(prepared, op, parts, uses);
    // Several micro-ops on one port: it is busy for all of them.
    auto access = [&](PortUse use, unsigned times) {
        if (uint32_t ports = execution_.groups()[use.group].ports) uses.push_back({ports, times});
    };
    if (op.loads || op.prefetches || sites.loads) {
        parts |= LOAD;
        if (op.prefetches) parts |= PREFETCH;
        prepared.pairing = stricter(prepared.pairing, load_pairing_);
        unsigned micro_ops = execution_.load_micro_ops(op, sites.load_bytes);
        access(execution_.load, micro_ops);
        prepared.load_extra =
            static_cast<uint16_t>((loads_vector(op) ? vector_load_extra_ : 0) +
                                  (op.complex_address ? complex_address_extra_ : 0) + (micro_ops - 1) / load_ports_);
    }
    if (op.stores || sites.stores) {
        parts |= STORE;
        prepared.pairing = stricter(prepared.pairing, store_pairing_);
        access(execution_.store_address, pieces(sites.store_bytes, execution_.store_bytes));
        access(execution_.store_data, pieces(sites.store_bytes, execution_.store_bytes));
    }
    if (op.write_back != timed_register::NONE && execution_.has_write_back) {
        parts |= WRITE_BACK;
        access(execution_.write_back, 1);
    }
    if (op.branch != BranchKind::NONE) parts |= BRANCH;
    if (prepared.serializes || prepared.microcoded) parts |= HOLDS;
    if (fusion_.first_of_branch(op)) prepared.pair = Pair::BRANCH;
    if (fusion_.aes && op.aes_round) prepared.pair = Pair::AES;
    if (op.fuses_with_compare && (fusion_.compare_branch || fusion_.arithmetic_branch)) parts |= SECOND_OF_PAIR;
    if (fusion_.aes && op.fuses_with_aes_round) parts |= SECOND_OF_PAIR | AES_PAIR;
    if (prepared.pairing != Pairing::BOTH) parts |= PAIRING;
    if (uses.size() == 1 && uses[0].busy_cycles == 1) {
        prepared.ports = uses[0].ports;
    } else if (!uses.empty()) {
        parts |= MANY_PORTS;
        prepared.first_use = static_cast<uint16_t>(block.uses.size());
        uses.resize(std::min<size_t>(uses.size(), MOST_USES));
        prepared.uses = static_cast<uint16_t>(uses.size());
        block.uses.insert(block.uses.end(), uses.begin(), uses.end());
    }
    prepared.parts = static_cast<uint16_t>(parts);
    prepared.shape = Shape::OTHER;
    if (prepared.ports && parts & COMPUTE && (parts & ~FAST_COMPUTATION) == 0) prepared.shape = Shape::COMPUTES;
    if (prepared.ports && parts & LOAD && (parts & ~FAST_LOAD) == 0) prepared.shape = Shape::LOADS;
    if (prepared.ports && parts & STORE && (parts & ~FAST_STORE) == 0) prepared.shape = Shape::STORES;
    return prepared;
}

}  // namespace perfemu::in_order
