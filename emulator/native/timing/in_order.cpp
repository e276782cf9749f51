// In order: a scoreboard. An instruction issues when the ones before it have, its operands are there and its ports are
// free, as many in a cycle as width and pairing rules allow; its result comes when its latency is over.
//
// Not modelled: what a wrong path fetches; loads that wait for an older store to the same address; write-after-write
// conflicts of results that overtake each other.
#include "timing/in_order.hpp"

#include <algorithm>
#include <bit>

#include "timing/pipeline_model.hpp"

namespace perfemu::in_order {

InOrder::InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : RecallingPipeline(config, memory, branches, totals), execution_(config), preparer_(config, execution_),
      slots_(counts_, checked(config.table("pipeline"), "issue_width", 1, 16)), repeats_(config.table("pipeline")) {
    const Config& keys = config.table("pipeline");
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    store_buffer_.assign(checked(keys, "store_buffer", 1, 4096), 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    environment_.split_load_cycles = checked(keys, "split_load_cycles", 0, 1000, 0);
    microcode_cycles_ = checked(keys, "microcode_cycles", 0, 1000, 0);
    address_extra_ = checked(keys, "address_extra_cycles", 0, 100, 0);
    store_data_late_ = checked(keys, "store_data_late_cycles", 0, 100, 0);
    flags_late_ = checked(keys, "flags_late_cycles", 0, 100, 0);
    blocking_misses_ = keys.boolean("blocking_misses", false);
    if (config.has_table("l1d")) load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
}

std::unique_ptr<PreparedBlock> InOrder::make_block(uint64_t address, std::span<const TimedOp> ops,
                                                   std::span<const AccessSite> sites) {
    auto block = prepare_ops<Block>(address, ops, sites, front_,
                                    [this](const TimedOp& op, const SiteRange& range, Block& block) {
                                        return preparer_.prepare(op, range, block);
                                    });
    prepare_recall(*block, address, ops, sites);
    return block;
}

unsigned InOrder::run(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                      uint64_t next, uint64_t limit) {
    const Block& block = static_cast<const Block&>(prepared);
    if (first >= last) return first;
    Hot hot = hot_;
    const PreparedOp* op = block.ops.data() + first;
    const PreparedOp* const end = block.ops.data() + last;
    bool leaves = front_.leaves(hot.front.line, block.address + op->offset, op->length);
    while (true) {
        const uint64_t pc = block.address + op->offset;
        if (op->shape == Shape::COMPUTES) {
            supply(hot, *op, pc, leaves);
            execute<FAST_COMPUTATION>(hot, block, *op, addresses, pc);
        } else if (op->shape == Shape::LOADS) {
            supply(hot, *op, pc, leaves);
            execute<FAST_LOAD>(hot, block, *op, addresses, pc);
        } else if (op->shape == Shape::STORES) {
            supply(hot, *op, pc, leaves);
            execute<FAST_STORE>(hot, block, *op, addresses, pc);
        } else if (supply_any(hot, *op, pc, leaves)) {
            execute<~0U>(hot, block, *op, addresses, pc);
        }
        hot.pair = op->pair;
        hot.destination = op->destinations[0];
        if (op->parts & BRANCH) branch(hot, *op, pc, op + 1 == end ? next : pc + op->length);
        ++op;
        if (op == end || hot.retirement >= limit) break;
        leaves = op->leaves_line;
    }
    hot_ = hot;
    cycle_ = hot.retirement;
    repeats_.end();
    count_issued();
    return static_cast<unsigned>(op - block.ops.data());
}

// Fetch.
[[gnu::always_inline]] inline void InOrder::supply(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves) {
    uint64_t supplied = front_.supply(hot.front, pc, op.length, leaves, hot.cycle);
    next_slot(hot);
    wait_for_supply(hot, supplied);
}

[[gnu::always_inline]] inline void InOrder::wait_for_supply(Hot& hot, uint64_t supplied) {
    if (supplied <= hot.cycle) return;
    slots_.lose_to_supply(hot.cycle, hot.used, supplied, redirect_);
    begin_cycle(hot, supplied);
}

// False: the instruction is the second of a pair, and through.
[[gnu::always_inline]] inline bool InOrder::supply_any(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves) {
    uint64_t supplied = front_.supply(hot.front, pc, op.length, leaves, hot.cycle);
    if (op.parts & SECOND_OF_PAIR && fuse(hot, op)) return false;
    next_slot(hot);
    wait_for_supply(hot, supplied);
    return true;
}

// When they are there: cycle << 1, and whether the last of them comes from a load.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t InOrder::operands(const PreparedOp& op) const {
    const unsigned parts = op.parts & POSSIBLE;
    uint64_t all = 0;
    if (parts != LOAD) all = std::max(ready_[op.sources[2]], std::max(ready_[op.sources[0]], ready_[op.sources[1]]));
    if (parts & MANY_OPERANDS)
        all = std::max(std::max(all, ready_[op.sources[3]]), std::max(ready_[op.sources[4]], ready_[op.sources[5]]));
    if (parts & ACCUMULATES) {
        uint64_t addend = ready_[op.accumulator], saved = uint64_t{op.accumulate_saving} << 1;
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
        uint64_t address = std::max(ready_[op.address_sources[0]], ready_[op.address_sources[1]]);
        if (parts & MANY_OPERANDS) address = std::max(address, ready_[op.address_sources[2]]);
        all = std::max(all, address + (address ? uint64_t{address_extra_} << 1 : 0));
    }
    return all;
}

// From issue to the result.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void InOrder::execute(Hot& hot, const Block& block, const PreparedOp& op,
                                                    const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = op.parts & POSSIBLE;
    const uint64_t operands_at = operands<POSSIBLE>(op);
    wait_to(hot, operands_at >> 1, operands_at & FROM_LOAD);
    if (parts & STORE) {
        uint64_t free = store_buffer_[store_next_];
        if (free > hot.cycle) count(Probe::STALL_STORE_BUFFER, free - hot.cycle);
        wait_to(hot, free, true);
    }
    if (parts & HOLDS) [[unlikely]] {
        if (op.serializes) wait_to(hot, last_result(), false);
        if (op.microcoded) wait_to(hot, hot.cycle + microcode_cycles_, false);
    }
    if (parts & PAIRING && hot.used > 0 && op.pairing != Pairing::SECOND) wait_to(hot, hot.cycle + 1, false);
    take_ports<POSSIBLE>(hot, block, op);
    ++hot.used;
    ++hot.micro_ops;
    if (parts & PAIRING && (op.pairing == Pairing::NONE || op.pairing == Pairing::SECOND)) {
        // Nothing pairs with it.
        count(Probe::SLOTS_BACKEND, slots_.width() - hot.used);
        hot.used = slots_.width();
    }

    const uint64_t issued = hot.cycle;
    uint64_t result = issued;
    uint64_t from_load = 0;
    if (parts & LOAD) {
        result = load(block, op, addresses, pc, issued);
        from_load = FROM_LOAD;
        if (blocking_misses_ && result > issued + load_latency_ + op.load_extra) {
            next_slot(hot);
            wait_to(hot, result, true);
        }
    }
    if (parts & COMPUTE) {
        result += op.latency;
        from_load = 0;
        if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, op.divider_cycles);
    }
    result = std::max(result, issued + 1);
    const uint64_t entry = result << 1 | from_load;
    ready_[op.destinations[0]] = entry;
    ready_[op.destinations[1]] = entry;
    if (parts & MANY_OPERANDS) ready_[op.destinations[2]] = ready_[op.destinations[3]] = entry;
    if (parts & WRITE_BACK) ready_[op.write_back] = (issued + 1) << 1;
    if (parts & STORE) store(block, op, addresses, pc, issued);

    hot.retirement = issued + 1;
    hot.done = result;
    if (parts & HOLDS && op.serializes) {
        next_slot(hot);
        wait_to(hot, result, false);
    }
}

// What it needs in this cycle, or in the first in which all of that is free.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void InOrder::take_ports(Hot& hot, const Block& block, const PreparedOp& op) {
    while (true) {
        uint32_t taken = op.ports & ~hot.taken;
        taken &= ~taken + 1;
        if (op.parts & POSSIBLE & MANY_PORTS) taken = take_several(block, op, hot.cycle, hot.taken, hot.used == 0);
        hot.taken |= taken;
        if (taken || (POSSIBLE & MANY_PORTS && !(op.ports || op.uses))) return;
        wait_to(hot, hot.cycle + 1, false);
    }
}

// The ports that it takes, each of its micro-ops another; none if not all can be had in this cycle. The first one of a
// cycle may have more micro-ops than there are ports: some then stay taken for longer.
uint32_t InOrder::take_several(const Block& block, const PreparedOp& op, uint64_t cycle, uint32_t taken, bool first) {
    const Use* uses = block.uses.data() + op.first_use;
    uint32_t mine[MOST_USES], all = 0;
    for (unsigned index = 0; index < op.uses; ++index) {
        uint32_t free = uses[index].ports & ~taken & ~all;
        if (free == 0 && first) free = uses[index].ports & ~taken;
        if (free == 0) return 0;
        all |= mine[index] = free & (~free + 1);
    }
    for (unsigned index = 0; index < op.uses; ++index) {
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

// When the loaded data are there: as OutOfOrder::load, where a load's latency enters the schedule.
[[gnu::always_inline]] inline uint64_t InOrder::load(const Block& block, const PreparedOp& op,
                                                     const uint64_t* addresses, uint64_t pc, uint64_t issued) {
    if (op.parts & PREFETCH) [[unlikely]] {
        if (op.load_sites) environment_.prefetch(addresses[op.first_site], pc, issued);
        return issued + 1;
    }
    if (op.load_sites == 0) return issued + load_latency_ + op.load_extra;
    uint64_t all = issued + 1;
    for (unsigned site = op.first_site; site < unsigned{op.first_site} + op.load_sites; ++site) {
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t loaded = environment_.load(address, size, pc, issued, elements);
        all = std::max(all, loaded);
    }
    return all + op.load_extra;
}

[[gnu::always_inline]] inline void InOrder::store(const Block& block, const PreparedOp& op, const uint64_t* addresses,
                                                  uint64_t pc, uint64_t issued) {
    unsigned first = op.first_site + op.load_sites;
    for (unsigned site = first; site < first + op.store_sites; ++site) {
        const uint64_t cycle = writes_.take(issued + 1, stores_per_cycle_);
        const auto [size, elements] = block.accesses[site];
        store_buffer_[store_next_] = writes_.written(environment_.store(addresses[site], size, pc, cycle, elements));
        if (++store_next_ == store_buffer_.size()) store_next_ = 0;
    }
}

[[gnu::always_inline]] inline void InOrder::branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next) {
    uint64_t fallthrough = pc + op.length;
    Prediction prediction = environment_.resolve(pc, op.branch, next, fallthrough);
    if (prediction == Prediction::WRONG) {
        redirect_ = {hot.done, hot.done + mispredict_cycles_};
        front_.restart(hot.front, redirect_.right_way_from, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, prediction == Prediction::RIGHT ? front_.taken_bubble : front_.late_bubble,
                     hot.cycle);
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool InOrder::fuse(Hot& hot, const PreparedOp& op) {
    const bool aes = op.parts & AES_PAIR;
    if (hot.pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && op.sources[0] != hot.destination)) return false;
    count(Probe::FUSED);
    if (aes) ready_[op.destinations[0]] = hot.done << 1;
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

void InOrder::run_iteration(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const PreparedOp& op = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (repeats_.begin()) {
        supply(hot, op, block.address, front_.leaves(hot.front.line, block.address, op.length));
        wait_to(hot, hot.cycle + repeats_.start_cycles, false);
    }
    if (repeats_.moved(op.load_sites + op.store_sites ? block.accesses[op.first_site].size : 0))
        feed_caches(block, addresses);
    else
        execute<~0U>(hot, block, op, addresses, block.address);
    hot_ = hot;
    cycle_ = hot.retirement;
    count_issued();
}

// A part of what REP's last micro-ops have moved: no time, but the caches are accessed.
void InOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const PreparedOp& op = block.iteration;
    unsigned site = op.first_site, stores = site + op.load_sites, end = stores + op.store_sites;
    for (; site < stores; ++site)
        environment_.load(addresses[site], block.accesses[site].size, block.address, hot_.cycle, 1);
    for (; site < end; ++site)
        environment_.store(addresses[site], block.accesses[site].size, block.address, hot_.cycle, 1);
}

void InOrder::run_to_end() {
    next_slot(hot_);
    wait_to(hot_, last_result(), false);
    cycle_ = hot_.retirement = hot_.cycle;
}

void InOrder::run_kernel(uint64_t cycles) {
    run_to_end();
    begin_cycle(hot_, hot_.cycle + cycles);
    cycle_ = hot_.retirement = hot_.cycle;
    elapsed_ += cycles;
    front_.restart(hot_.front, cycle_, 0);
    hot_.front.line = FrontEnd::NO_LINE;
    redirect_ = {};
    hot_.pair = Pair::NONE;
    repeats_.end();
}

// The cycles in which something issued: all but those that were lost as a whole, and the kernel's.
uint64_t InOrder::issuing_cycles() const { return hot_.cycle + (hot_.used > 0) - slots_.lost_cycles() - elapsed_; }

void InOrder::count_issued() {
    const uint64_t issuing = issuing_cycles();
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

static const PipelineModel MODEL("in_order", make_pipeline<InOrder>);

}  // namespace perfemu::in_order
