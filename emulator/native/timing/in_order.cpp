// In order: a scoreboard. An instruction issues when the ones before it have, its operands are there and its ports are
// free, as many in a cycle as width and pairing rules allow; its result comes when its latency is over.
//
// Not modelled: what a wrong path fetches; loads that wait for an older store to the same address; write-after-write
// conflicts of results that overtake each other.
#include <algorithm>
#include <bit>

#include "timing/execution.hpp"
#include "timing/in_order_ops.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/recalling.hpp"
#include "timing/slots.hpp"

namespace perfemu {
namespace in_order {
namespace {

constexpr uint64_t FROM_LOAD = 1;  // in a register's entry, below the cycle

// What every instruction changes; see out_of_order.cpp.
struct Hot {
    uint64_t cycle = 0;  // of the next issue
    unsigned used = 0;   // slots of it
    FrontEnd::Progress front;
    uint32_t taken = 0;  // ports, in this cycle
    uint64_t retirement = 0;
    uint64_t micro_ops = 0;
    uint64_t done = 0;  // of the last instruction

    // The last instruction, which may be the first of a pair.
    uint8_t destination = NOWHERE;
    Pair pair = Pair::NONE;
};

class InOrder final : public RecallingPipeline {
  public:
    InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);

    std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                              std::span<const AccessSite> sites) override;

  private:
    unsigned run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                 uint64_t limit) override;
    void run_iteration(const PreparedBlock& block, const uint64_t* addresses) override;
    void run_to_end() override;
    void run_kernel(uint64_t cycles) override;
    uint64_t now() const override { return hot_.cycle; }
    uint64_t fetched_line() const override { return hot_.front.line; }
    bool save(StateWriter& state) override;
    void restore(StateReader& state) override;

    // The stages, in this order
    void supply(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves);
    bool supply_any(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves);
    void wait_for_supply(Hot& hot, uint64_t supplied);
    // `POSSIBLE`: the parts that it may have. What it cannot have costs nothing.
    template <unsigned POSSIBLE>
    void execute(Hot& hot, const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc);
    template <unsigned POSSIBLE>
    uint64_t operands(const PreparedOp& op) const;
    template <unsigned POSSIBLE>
    void take_ports(Hot& hot, const Block& block, const PreparedOp& op);
    uint64_t load(const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void store(const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next);

    bool fuse(Hot& hot, const PreparedOp& op);
    void next_slot(Hot& hot);
    void begin_cycle(Hot& hot, uint64_t cycle);
    void wait_to(Hot& hot, uint64_t to, bool memory);

    // Rare
    void lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied);
    uint32_t take_several(const Block& block, const PreparedOp& op, uint64_t cycle, uint32_t taken, bool first);
    uint32_t busy_ports(uint64_t cycle) const;
    void feed_caches(const Block& block, const uint64_t* addresses);
    void count_issued();
    uint64_t issuing_cycles() const;
    uint64_t last_result() const;

    Execution execution_;
    OpPreparer preparer_;

    unsigned mispredict_cycles_, stores_per_cycle_;
    unsigned repeat_bytes_, repeat_start_cycles_, microcode_cycles_, address_extra_, store_data_late_, flags_late_;
    bool blocking_misses_;
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
    : RecallingPipeline(config, memory, branches, totals), execution_(config), preparer_(config, execution_),
      slots_(counts_, checked(config.table("pipeline"), "issue_width", 1, 16)) {
    const Config& keys = config.table("pipeline");
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    store_buffer_.assign(checked(keys, "store_buffer", 1, 4096), 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    environment_.split_load_cycles = checked(keys, "split_load_cycles", 0, 1000, 0);
    repeat_bytes_ = checked(keys, "repeat_bytes", 0, 4096, 0);
    repeat_start_cycles_ = checked(keys, "repeat_start_cycles", 0, 1000, 0);
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
    repeating_ = false;
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
    lose_to_front_end(hot.cycle, hot.used, supplied);
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
        if (issued + 1 > write_cycle_) write_cycle_ = issued + 1, written_ = 0;
        if (written_ == stores_per_cycle_) ++write_cycle_, written_ = 0;
        ++written_;
        const auto [size, elements] = block.accesses[site];
        uint64_t there = environment_.store(addresses[site], size, pc, write_cycle_, elements);
        last_written_ = std::max(last_written_, std::max(there, write_cycle_ + 1));
        store_buffer_[store_next_] = last_written_;
        if (++store_next_ == store_buffer_.size()) store_next_ = 0;
    }
}

[[gnu::always_inline]] inline void InOrder::branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next) {
    uint64_t fallthrough = pc + op.length;
    Prediction prediction = environment_.resolve(pc, op.branch, next, fallthrough);
    if (prediction == Prediction::WRONG) {
        resolved_ = hot.done;
        right_way_from_ = resolved_ + mispredict_cycles_;
        front_.restart(hot.front, right_way_from_, next);
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

void InOrder::lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied) {
    if (right_way_from_ > cycle) {
        uint64_t to = std::min(supplied, right_way_from_);
        slots_.lose_to_bad_speculation(cycle, used, to, resolved_);
        cycle = to;
        used = 0;
    }
    if (supplied > cycle) slots_.lose_to_frontend(cycle, used, supplied);
}

void InOrder::run_iteration(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const PreparedOp& op = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        supply(hot, op, block.address, front_.leaves(hot.front.line, block.address, op.length));
        wait_to(hot, hot.cycle + repeat_start_cycles_, false);
    }
    unsigned bytes = op.load_sites + op.store_sites ? block.accesses[op.first_site].size : 0;
    if (bytes && repeat_left_ >= bytes) {
        feed_caches(block, addresses);
        repeat_left_ -= bytes;
    } else {
        execute<~0U>(hot, block, op, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
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
    right_way_from_ = 0;
    hot_.pair = Pair::NONE;
    repeating_ = false;
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

// Times that are over make no difference, however long they are: they are saved as 0, or not at all, and are then the
// distant past.
bool InOrder::save(StateWriter& state) {
    const uint64_t now = base_;
    auto put_later = [&](uint64_t cycle, uint64_t than) { state.put(cycle > than ? cycle - than : 0); };
    const bool full = hot_.used >= slots_.width();  // so that ports are free again before the next issue
    state.put(hot_.used);
    state.put(full ? 0 : hot_.taken);
    uint32_t long_ports = busy_ports(now + 1);
    state.put(long_ports);
    for (; long_ports; long_ports &= long_ports - 1) state.put(port_free_[std::countr_zero(long_ports)] - now);
    put_later(hot_.front.cycle, now - front_.ahead - 1);
    state.put(hot_.front.bytes);
    state.put(hot_.front.taken);
    state.put(now + 1 - hot_.retirement);
    state.put(static_cast<uint64_t>(hot_.pair));
    if (hot_.pair != Pair::NONE) {
        state.put(hot_.destination);
        state.put(hot_.done - now);
    }
    auto put_register = [&](unsigned number, uint64_t over) {
        if (ready_[number] >> 1 <= over) return;
        state.put(number + 1);
        state.put((ready_[number] >> 1) - over);
        state.put(ready_[number] & FROM_LOAD);
    };
    for (unsigned number = 0; number < timed_register::COUNT; ++number) put_register(number, now - address_extra_);
    put_register(NOWHERE, std::max(now - address_extra_, hot_.retirement));  // only last_result asks for it
    state.put(0);
    for (size_t number = store_buffer_.size(); number-- > 0;) {
        uint64_t free = store_buffer_[(store_next_ + number) % store_buffer_.size()];
        if (free <= now) break;
        state.put(free - now);
    }
    state.put(0);
    put_later(write_cycle_, now);
    if (write_cycle_ > now) state.put(written_);
    put_later(right_way_from_, now);
    if (right_way_from_ > now) put_later(resolved_, now);
    return true;
}

void InOrder::restore(StateReader& state) {
    const uint64_t now = base_;
    hot_ = {.cycle = now};
    hot_.used = static_cast<unsigned>(state.get());
    hot_.taken = static_cast<uint32_t>(state.get());
    long_ports_ = static_cast<uint32_t>(state.get());
    for (uint32_t ports = long_ports_; ports; ports &= ports - 1)
        port_free_[std::countr_zero(ports)] = now + state.get();
    hot_.front.cycle = now - front_.ahead - 1 + state.get();
    hot_.front.bytes = static_cast<unsigned>(state.get());
    hot_.front.taken = static_cast<unsigned>(state.get());
    hot_.front.line = line_;
    hot_.retirement = now + 1 - state.get();
    hot_.pair = static_cast<Pair>(state.get());
    if (hot_.pair != Pair::NONE) {
        hot_.destination = static_cast<uint8_t>(state.get());
        hot_.done = now + state.get();
    }
    std::ranges::fill(ready_, 0);
    while (uint64_t number = state.get()) {
        const uint64_t over =
            number - 1 == NOWHERE ? std::max(now - address_extra_, hot_.retirement) : now - address_extra_;
        const uint64_t ready = over + state.get();
        ready_[number - 1] = ready << 1 | state.get();
    }
    std::ranges::fill(store_buffer_, 0);
    store_next_ = 0;
    for (size_t number = store_buffer_.size(); uint64_t free = state.get();) store_buffer_[--number] = now + free;
    last_written_ = store_buffer_.back();
    if (uint64_t later = state.get()) {
        write_cycle_ = now + later;
        written_ = static_cast<unsigned>(state.get());
    } else {
        write_cycle_ = written_ = 0;
    }
    right_way_from_ = resolved_ = 0;
    if (uint64_t later = state.get()) {
        right_way_from_ = now + later;
        resolved_ = now + state.get();
    }
    repeating_ = false;
    counted_issuing_ = issuing_cycles();
}

const PipelineModel MODEL("in_order", make_pipeline<InOrder>);

}  // namespace
}  // namespace in_order
}  // namespace perfemu
