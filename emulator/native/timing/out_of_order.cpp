// Out of order: each instruction, in program order, is given the cycles of its dispatch, issue, completion and
// retirement, from what the ones before it have left: slots, ROB and queue entries, ports, operands. No loop over
// cycles.
//
// Not modelled: what a wrong path executes or fetches; replays; loads that must not pass older stores; bypass delays
// between units other than what [ops] says.
#include <algorithm>
#include <bit>

#include "timing/forward_predictor.hpp"
#include "timing/front_end.hpp"
#include "timing/out_of_order_rows.hpp"
#include "timing/pipeline_model.hpp"
#include "timing/port_calendar.hpp"
#include "timing/schedulers.hpp"
#include "timing/slots.hpp"
#include "timing/store_queue.hpp"

namespace perfemu {
namespace out_of_order {
namespace {

// A cycle and how much of it is used, in one number: later ones are greater.
using Place = uint64_t;
constexpr unsigned CYCLE = 9;
constexpr Place USED = (1 << CYCLE) - 1;
constexpr Place WAITED_FOR_MEMORY = 1 << 8;  // in a ROB entry, above what is used of the cycle: at most 64

constexpr uint64_t cycle_of(Place place) { return place >> CYCLE; }
constexpr unsigned used_of(Place place) { return static_cast<unsigned>(place & USED); }
// In units of `width` from the cycle's start, which may be too many.
[[gnu::always_inline]] inline bool carry(Place& place, unsigned width) {
    if (used_of(place) <= width) [[likely]]
        return false;
    place += (1 << CYCLE) - width;
    return true;
}

// What every instruction changes. `retire` works on a copy, which the compiler can keep in registers: nothing that is
// not inlined may see it.
struct Hot {
    Place dispatch = 0;  // slots of the cycle
    FrontEnd::Place front;
    Place retirement = 0;    // of the last one
    uint64_t rob_count = 0;  // slots ever taken
    uint64_t retiring_cycles = 0;
    uint64_t done = 0;  // of the last instruction: when its results were there
    uint64_t decode_cycle = 0;
    unsigned decodes = 0;  // how many more in that cycle

    uint64_t cycle() const { return cycle_of(dispatch); }
};

// Of a row that may have these: a shape of its own has all of its shape's.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline unsigned parts_of(const Row& row) {
    return POSSIBLE == ANY ? row.parts : POSSIBLE;
}

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
    // The stages, in this order
    uint64_t fetch_and_decode(Hot& hot, const Row& row, bool leaves, uint64_t pc);
    void wait_for_supply(Hot& hot, uint64_t supplied);
    // `POSSIBLE`: the parts that it may have; `ONE`: it takes one slot. What it cannot have costs nothing.
    template <unsigned POSSIBLE, bool ONE, bool CHOICE = !ONE>
    [[gnu::always_inline]] void execute(Hot& hot, const Block& block, const Row& row, const uint64_t* addresses,
                                        uint64_t pc);
    void execute_any(Hot& hot, const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc);
    template <unsigned POSSIBLE>
    [[gnu::always_inline]] void wait_for_room(Hot& hot, const Row& row, unsigned slots);
    template <bool CHOICE>
    [[gnu::always_inline]] Entry enter(Hot& hot, Entry entry);
    template <bool AHEAD>
    [[gnu::always_inline]] uint64_t issue(Entry entry, uint32_t simple_ports, uint64_t ready);
    template <unsigned POSSIBLE>
    [[gnu::always_inline]] uint64_t load(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc,
                                         uint64_t dispatched, uint64_t issued);
    template <unsigned POSSIBLE, bool ONE, bool CHOICE>
    [[gnu::always_inline]] uint64_t compute(Hot& hot, const Row& row, Entry entry, uint64_t start);
    template <unsigned POSSIBLE, bool ONE>
    [[gnu::always_inline]] void leave(Hot& hot, const Row& row, unsigned slots, uint64_t done);
    void store(const Block& block, const Row& row, const uint64_t* addresses, uint64_t pc, uint64_t data,
               uint64_t retirement);
    void branch(Hot& hot, const Row& row, uint64_t pc, uint64_t next);

    bool fuse(const Hot& hot, const Row& row, Pair pair, uint8_t destination);
    void next_slot(Hot& hot);
    void wait(Hot& hot, uint64_t to, Probe reason);
    void wait_to(Hot& hot, uint64_t to);

    // Rare. The next slot is (cycle, used).
    void stand_still(Place from, uint64_t to, uint64_t rob_count, Probe reason);
    void lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied);
    void lose_in_segments(uint64_t cycle, unsigned used, uint64_t to, uint64_t rob_count, bool memory);
    Entry choose(Entry entry);
    bool too_many_moves(uint64_t cycle);
    uint64_t answer(const StoreQueue::Found& found, const Row& row, uint64_t issued, uint64_t loaded);
    [[gnu::noinline]] bool foresees(const StoreQueue::Found& found, const Row& row, uint64_t pc, uint64_t address,
                                    unsigned size);
    uint64_t foreseen(const StoreQueue::Found& found, const Row& row, uint64_t dispatched);
    void feed_caches(const Block& block, const uint64_t* addresses);
    void settle(const Hot& hot);

    void count(Probe probe, uint64_t amount = 1) { totals_[static_cast<unsigned>(probe)] += amount; }

    MemorySystem& memory_;
    BranchUnit& branches_;
    uint64_t* totals_;
    Execution execution_;
    Placement placement_;
    RowMaker rows_;
    Surroundings surroundings_;
    FrontEnd front_;
    PortCalendar calendar_;
    Schedulers schedulers_;
    StoreQueue stores_;
    ForwardPredictor forwards_;
    Entry load_entry_, address_entry_, data_entry_, vector_data_entry_, write_back_entry_;

    uint32_t load_ports_ = 0;  // if all are in one scheduler
    bool has_store_data_;
    unsigned retire_width_, decode_width_, moves_per_cycle_, stores_per_cycle_;
    bool decode_limits_;
    unsigned mispredict_cycles_, store_forward_cycles_, stack_forward_cycles_, forward_blocked_cycles_;
    unsigned predicted_forward_cycles_;
    bool predicts_forwards_;
    unsigned alias_4k_cycles_, split_load_cycles_, repeat_bytes_, repeat_start_cycles_, microcode_cycles_;
    uint64_t default_load_latency_ = 1;

    Slots slots_;
    Hot hot_;
    uint64_t ready_[256] = {};      // by register: the cycle from which it may be used
    std::unique_ptr<Place[]> rob_;  // by slot: its retirement, WAITED_FOR_MEMORY
    uint64_t rob_oldest_ = 0;       // slots that had retired when dispatch last stood still
    unsigned rob_size_ = 0, rob_mask_ = 0;
    // The last instruction, which may be the first of a pair.
    Pair last_pair_ = Pair::NONE;
    uint8_t last_destination_ = NOWHERE;
    std::unique_ptr<uint64_t[]> load_queue_;  // by load: the cycle of retirement; empty: no limit
    unsigned load_queue_size_ = 0, load_next_ = 0;

    uint64_t write_cycle_ = 0, last_written_ = 0;  // of the last store
    unsigned written_ = 0;                         // stores in that cycle
    uint64_t moves_cycle_ = 0;
    unsigned moves_ = 0;
    uint64_t right_way_from_ = 0;  // after a mispredict: its first dispatch
    uint64_t resolved_ = 0;
    bool repeating_ = false;
    unsigned repeat_left_ = 0;  // bytes of the last micro-op that further iterations use
    uint64_t counted_slots_ = 0, counted_retiring_ = 0;
};

OutOfOrder::OutOfOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : memory_(memory), branches_(branches), totals_(totals), execution_(config), placement_(config, execution_),
      rows_(config, execution_, placement_), surroundings_(memory, branches), front_(config, surroundings_),
      calendar_(execution_.groups()), schedulers_(placement_.sizes()),
      stores_(checked(config.table("pipeline"), "store_buffer", 1, 4096)),
      slots_(totals, checked(config.table("pipeline"), "dispatch_width", 1, 64)) {
    const Config& keys = config.table("pipeline");
    retire_width_ = checked(keys, "retire_width", 1, 64, slots_.width());
    hot_.decodes = decode_width_ = checked(keys, "decode_width", 1, 64, slots_.width());
    // Instructions are more than slots only where pairs fuse.
    const Fusion& fusion = rows_.fusion();
    decode_limits_ = decode_width_ < slots_.width() || fusion.compare_branch || fusion.arithmetic_branch || fusion.aes;
    rob_size_ = checked(keys, "rob_entries", 8, 65536);
    rob_mask_ = std::bit_ceil(rob_size_) - 1;
    rob_ = std::make_unique<Place[]>(rob_mask_ + 1);
    if (keys.has("load_queue")) load_queue_size_ = checked(keys, "load_queue", 1, 65536);
    load_queue_ = std::make_unique<uint64_t[]>(load_queue_size_);
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    store_forward_cycles_ = checked(keys, "store_forward_cycles", 0, 1000);
    stack_forward_cycles_ = checked(keys, "stack_forward_cycles", 0, 1000, store_forward_cycles_);
    predicts_forwards_ = keys.has("predicted_forward_cycles");
    predicted_forward_cycles_ = checked(keys, "predicted_forward_cycles", 0, 1000, store_forward_cycles_);
    forward_blocked_cycles_ = checked(keys, "store_forward_blocked_cycles", 0, 1000, 0);
    alias_4k_cycles_ = checked(keys, "alias_4k_cycles", 0, 1000, 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    split_load_cycles_ = checked(keys, "split_load_cycles", 0, 1000, 0);
    repeat_bytes_ = checked(keys, "repeat_bytes", 0, 4096, 0);
    repeat_start_cycles_ = checked(keys, "repeat_start_cycles", 0, 1000, 0);
    microcode_cycles_ = checked(keys, "microcode_cycles", 0, 1000, 0);
    moves_per_cycle_ = checked(keys, "eliminated_moves_per_cycle", 0, 64, 0);
    if (config.has_table("l1d")) default_load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
    load_entry_ = placement_.entry(execution_.load);
    address_entry_ = placement_.entry(execution_.store_address);
    data_entry_ = placement_.entry(execution_.store_data);
    vector_data_entry_ = placement_.entry(execution_.vector_store_data);
    write_back_entry_ = placement_.entry(execution_.write_back);
    load_ports_ = load_entry_.scheduler == Entry::SEVERAL ? 0 : calendar_.simple_ports(load_entry_.use);
    has_store_data_ = execution_.has_store_data;
}

std::unique_ptr<PreparedBlock> OutOfOrder::prepare(uint64_t address, std::span<const TimedOp> ops,
                                                   std::span<const AccessSite> sites) {
    return prepare_rows<Block>(address, ops, sites, front_, [this](const TimedOp& op, const SiteRange& range, Block&) {
        return rows_.row(op, range);
    });
}

unsigned OutOfOrder::retire(const PreparedBlock& prepared, const uint64_t* addresses, unsigned first, unsigned last,
                            uint64_t next, uint64_t limit) {
    const Block& block = static_cast<const Block&>(prepared);
    if (first >= last) return first;
    Hot hot = hot_;
    const Row* row = block.rows.data() + first;
    const Row* const end = block.rows.data() + last;
    const Place limit_place = limit > cycle_of(~Place{0}) ? ~Place{0} : limit << CYCLE;
    bool leaves = front_.leaves(hot.front.line, block.address + row->offset, row->length);
    Pair pair = last_pair_;
    uint8_t destination = last_destination_;
    while (true) {
        const uint64_t pc = block.address + row->offset;
        uint64_t supplied = fetch_and_decode(hot, *row, leaves, pc);
        switch (row->shape) {
            case Shape::SECOND_BRANCH:
                if (pair == Pair::BRANCH) {
                    count(Probe::FUSED);
                    break;
                }
                [[fallthrough]];
            case Shape::COMPUTES:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true>(hot, block, *row, addresses, pc);
                break;
            case Shape::COMPUTES_SOMEWHERE:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true, true>(hot, block, *row, addresses, pc);
                break;
            case Shape::IS_ELIMINATED:
                wait_for_supply(hot, supplied);
                execute<ELIMINATED, true>(hot, block, *row, addresses, pc);
                break;
            case Shape::LOADS:
                wait_for_supply(hot, supplied);
                execute<LOAD, true>(hot, block, *row, addresses, pc);
                break;
            case Shape::STORES:
                wait_for_supply(hot, supplied);
                execute<STORE, false>(hot, block, *row, addresses, pc);
                break;
            case Shape::LOADS_AND_COMPUTES:
                wait_for_supply(hot, supplied);
                execute<LOAD | COMPUTE, false>(hot, block, *row, addresses, pc);
                break;
            case Shape::OTHER:
                if (row->parts & SECOND_OF_PAIR && fuse(hot, *row, pair, destination)) break;
                wait_for_supply(hot, supplied);
                execute_any(hot, block, *row, addresses, pc);
                break;
        }
        if (row->parts & BRANCH) branch(hot, *row, pc, row + 1 == end ? next : pc + row->length);
        ++row;
        if (row == end || hot.retirement >= limit_place) break;
        leaves = row->leaves_line;
        pair = row[-1].pair;
        destination = row[-1].destinations[0];
    }
    last_pair_ = row[-1].pair;
    last_destination_ = row[-1].destinations[0];
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    repeating_ = false;
    settle(hot);
    return static_cast<unsigned>(row - block.rows.data());
}

// Fetch and decode: when the instruction may be dispatched.
[[gnu::always_inline]] inline uint64_t OutOfOrder::fetch_and_decode(Hot& hot, const Row& row, bool leaves,
                                                                    uint64_t pc) {
    uint64_t supplied = front_.supply(hot.front, pc, row.length, leaves, hot.cycle());
    if (decode_limits_) {
        if (supplied > hot.decode_cycle) hot.decode_cycle = supplied, hot.decodes = decode_width_;
        if (hot.decodes == 0) ++hot.decode_cycle, hot.decodes = decode_width_;
        --hot.decodes;
        supplied = hot.decode_cycle;
    }
    return supplied;
}

// The place of the next slot.
[[gnu::always_inline]] inline void OutOfOrder::wait_for_supply(Hot& hot, uint64_t supplied) {
    next_slot(hot);
    if (supplied << CYCLE <= hot.dispatch) return;
    lose_to_front_end(hot.cycle(), used_of(hot.dispatch), supplied);
    hot.dispatch = supplied << CYCLE;
}

// From dispatch to retirement.
template <unsigned POSSIBLE, bool ONE, bool CHOICE>
[[gnu::always_inline]] inline void OutOfOrder::execute(Hot& hot, const Block& block, const Row& row,
                                                       const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = parts_of<POSSIBLE>(row);
    const unsigned slots = ONE ? 1 : row.slots;
    wait_for_room<POSSIBLE>(hot, row, slots);
    schedulers_.advance(hot.cycle());
    const bool computes =
        parts & COMPUTE && (!(parts & ELIMINATED) || !(parts & LIMITED_MOVE) || too_many_moves(hot.cycle()));
    Entry load_entry, entry, address_entry, data_entry;
    if (parts & LOAD) load_entry = enter<true>(hot, load_entry_);
    if (computes) entry = enter<CHOICE>(hot, row.entry);
    if (parts & STORE) {
        address_entry = enter<true>(hot, address_entry_);
        if (has_store_data_)
            data_entry = enter<true>(hot, is_vector(row.sources[0]) ? vector_data_entry_ : data_entry_);
    }
    hot.dispatch += slots;
    if (!ONE)
        while (carry(hot.dispatch, slots_.width())) {
        }
    const uint64_t dispatched = hot.cycle();
    if (!ONE) schedulers_.advance(dispatched);
    calendar_.advance(dispatched);

    uint64_t result = dispatched + 1;  // when the destinations may be used
    if (parts & ~(LOAD | BY_STACK | PREFETCH)) {
        result = std::max(std::max(result, ready_[row.sources[2]]),
                          std::max(ready_[row.sources[0]], ready_[row.sources[1]]));
        if (parts & MANY_OPERANDS)
            result = std::max(std::max(result, ready_[row.sources[3]]),
                              std::max(ready_[row.sources[4]], ready_[row.sources[5]]));
    }
    uint64_t address_ready = dispatched + 1;
    if (parts & (LOAD | STORE | WRITE_BACK)) {
        address_ready =
            std::max(address_ready, std::max(ready_[row.address_sources[0]], ready_[row.address_sources[1]]));
        if (parts & MANY_OPERANDS) address_ready = std::max(address_ready, ready_[row.address_sources[2]]);
    }

    uint64_t done = dispatched + 1;
    if (parts & LOAD) {
        uint64_t issued = issue<ONE>(load_entry, load_ports_, address_ready);
        if (!ONE)
            for (unsigned more = 1; more < row.load_micro_ops; ++more)
                issued = std::max(issued, calendar_.take(load_entry.use, address_ready));
        done = load<POSSIBLE>(block, row, addresses, pc, dispatched, issued);
        result = parts & COMPUTE ? std::max(result, done) : done;
    }
    if (computes) {
        result = compute<POSSIBLE, ONE, CHOICE>(hot, row, entry, result);
        done = result;
    } else if (parts & ELIMINATED) {
        // The renamer gives the destination the source's register.
        result = std::max(std::max(ready_[row.sources[0]], ready_[row.sources[1]]), dispatched);
        if (row.op_class == OpClass::MOVE || row.op_class == OpClass::FP_MOVE) count(Probe::MOVE_ELIMINATED);
    }
    ready_[row.destinations[0]] = result;
    ready_[row.destinations[1]] = result;
    if (parts & MANY_OPERANDS) ready_[row.destinations[2]] = ready_[row.destinations[3]] = result;
    if (parts & WRITE_BACK) {
        Entry update = enter<true>(hot, write_back_entry_);
        uint64_t updated = issue<false>(update, calendar_.simple_ports(update.use), address_ready) + 1;
        ready_[row.write_back] = updated;
        done = std::max(done, updated);
    }
    if (!(parts & STORE)) {
        leave<POSSIBLE, ONE>(hot, row, slots, done);
    } else {
        uint64_t address_issued = issue<false>(address_entry, calendar_.simple_ports(address_entry.use), address_ready);
        uint64_t data = std::max(address_issued, result);
        if (has_store_data_) data = issue<false>(data_entry, calendar_.simple_ports(data_entry.use), result);
        for (unsigned more = 1; more < row.store_micro_ops; ++more) {
            address_issued = std::max(address_issued, calendar_.take(address_entry.use, address_ready));
            if (has_store_data_) data = std::max(data, calendar_.take(data_entry.use, result));
        }
        leave<POSSIBLE, ONE>(hot, row, slots, std::max(done, std::max(address_issued, data) + 1));
        store(block, row, addresses, pc, data, cycle_of(hot.retirement));
    }
    if (parts & HOLDS && row.serializes) {  // what follows is dispatched when this has retired
        next_slot(hot);
        wait_to(hot, cycle_of(hot.retirement));
    }
}

[[gnu::always_inline]] inline void OutOfOrder::execute_any(Hot& hot, const Block& block, const Row& row,
                                                           const uint64_t* addresses, uint64_t pc) {
    execute<ANY, false>(hot, block, row, addresses, pc);
}

// ROB and queue entries.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void OutOfOrder::wait_for_room(Hot& hot, const Row& row, unsigned slots) {
    const unsigned parts = parts_of<POSSIBLE>(row);
    if (parts & HOLDS) [[unlikely]] {
        if (row.serializes) wait_to(hot, cycle_of(hot.retirement));
        if (row.microcoded) wait_to(hot, hot.cycle() + microcode_cycles_);
    }
    Place left = rob_[(hot.rob_count + slots - 1 - rob_size_) & rob_mask_];
    if (left > (hot.dispatch | USED)) [[unlikely]]
        wait(hot, cycle_of(left), Probe::STALL_ROB);
    if (parts & LOAD && load_queue_size_) {
        uint64_t free = load_queue_[load_next_];
        if (free > hot.cycle()) [[unlikely]]
            wait(hot, free, Probe::STALL_LOAD_QUEUE);
    }
    if (parts & STORE) {
        uint64_t free = stores_.free_at();
        if (free > hot.cycle()) [[unlikely]]
            wait(hot, free, Probe::STALL_STORE_BUFFER);
    }
}

// A scheduler's entry: dispatch waits for one.
template <bool CHOICE>
[[gnu::always_inline]] inline Entry OutOfOrder::enter(Hot& hot, Entry entry) {
    if (CHOICE && entry.scheduler == Entry::SEVERAL) [[unlikely]]
        entry = choose(entry);
    if (schedulers_.full(entry.scheduler)) [[unlikely]]
        wait(hot, schedulers_.wait(entry.scheduler), Probe::STALL_SCHEDULER);
    return entry;
}

// `AHEAD`: there was no wait since its scheduler was entered, so that it issues later than that.
template <bool AHEAD>
[[gnu::always_inline]] inline uint64_t OutOfOrder::issue(Entry entry, uint32_t simple_ports, uint64_t ready) {
    uint64_t cycle = calendar_.take(entry.use, simple_ports, ready);
    if (!AHEAD || calendar_.far(cycle)) [[unlikely]] {
        schedulers_.hold_any(entry.scheduler, cycle);
    } else {
        schedulers_.hold(entry.scheduler, cycle);
    }
    return cycle;
}

// When the loaded data are there.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::load(const Block& block, const Row& row, const uint64_t* addresses,
                                                        uint64_t pc, uint64_t dispatched, uint64_t issued) {
    if (parts_of<POSSIBLE>(row) & PREFETCH) [[unlikely]] {
        if (row.load_sites) memory_.prefetch(addresses[row.first_site], issued);
        return issued + 1;
    }
    const unsigned sites = POSSIBLE == ANY ? row.load_sites : 1;
    if (sites == 0) return issued + default_load_latency_ + row.load_extra;
    uint64_t all = issued;
    for (unsigned site = row.first_site; site < row.first_site + sites; ++site) {
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t loaded = memory_.load(address, size, pc, issued, elements);
        if ((address ^ (address + size - 1)) & front_.line_mask && split_load_cycles_) [[unlikely]]
            loaded = std::max(loaded, calendar_.take(load_entry_.use, issued)) + split_load_cycles_;
        StoreQueue::Found found = stores_.find(address, address + size, issued, alias_4k_cycles_ != 0);
        if (found.answer != StoreQueue::Answer::NONE)
            loaded = predicts_forwards_ && foresees(found, row, pc, address, size) ? foreseen(found, row, dispatched)
                                                                                   : answer(found, row, issued, loaded);
        all = std::max(all, loaded);
    }
    return all + row.load_extra;
}

uint64_t OutOfOrder::answer(const StoreQueue::Found& found, const Row& row, uint64_t issued, uint64_t loaded) {
    const StoreQueue::Store& store = *found.store;
    switch (found.answer) {
        case StoreQueue::Answer::FORWARD:
            count(Probe::STORE_FORWARD);
            if (row.parts & BY_STACK && store.by_stack) return std::max(issued, store.data + stack_forward_cycles_);
            return std::max(issued, store.data) + store_forward_cycles_;
        case StoreQueue::Answer::PART:
            count(Probe::STORE_FORWARD_BLOCKED);
            return std::max(loaded, store.written + forward_blocked_cycles_);
        case StoreQueue::Answer::ALIAS: count(Probe::ALIAS_4K); return loaded + alias_4k_cycles_;
        case StoreQueue::Answer::NONE: break;
    }
    return loaded;
}

// Between general registers the renamer forwards what it foresees: no address is needed then.
bool OutOfOrder::foresees(const StoreQueue::Found& found, const Row& row, uint64_t pc, uint64_t address,
                          unsigned size) {
    if (found.answer != StoreQueue::Answer::FORWARD || row.renames != size || size < 4) return false;
    if (!found.store->general || found.store->address != address) return false;
    return forwards_.learn(pc, found.place);
}

uint64_t OutOfOrder::foreseen(const StoreQueue::Found& found, const Row& row, uint64_t dispatched) {
    count(Probe::STORE_FORWARD);
    return std::max(dispatched, found.store->data + predicted_forward_cycles_) - row.load_extra;
}

template <unsigned POSSIBLE, bool ONE, bool CHOICE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::compute(Hot& hot, const Row& row, Entry entry, uint64_t start) {
    const unsigned parts = parts_of<POSSIBLE>(row);
    if (parts & ACCUMULATES && ready_[row.accumulator] > start + row.accumulate_saving)
        start = ready_[row.accumulator] - row.accumulate_saving;
    // A choice among schedulers leaves fewer ports than the row has.
    const bool chosen = CHOICE && entry.use.group != row.entry.use.group;
    uint64_t issued = issue<ONE>(entry, chosen ? calendar_.simple_ports(entry.use) : row.simple_ports, start);
    if (parts & MANY_PORTS)
        for (PortUse other : row.timing->others) {
            Entry more = enter<true>(hot, placement_.entry(other));
            issued = std::max(issued, issue<false>(more, calendar_.simple_ports(more.use), start));
        }
    if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, row.timing->busiest_cycles);
    return issued + row.latency;
}

// Retirement, in order.
template <unsigned POSSIBLE, bool ONE>
[[gnu::always_inline]] inline void OutOfOrder::leave(Hot& hot, const Row& row, unsigned slots, uint64_t done) {
    const Place place = done << CYCLE;
    const bool later = place > hot.retirement;
    hot.retirement = (later ? place : hot.retirement) + slots;
    hot.retiring_cycles += later;
    if (ONE)
        hot.retiring_cycles += carry(hot.retirement, retire_width_);
    else
        while (carry(hot.retirement, retire_width_)) ++hot.retiring_cycles;
    Place entry = hot.retirement;
    if (POSSIBLE & LOAD) entry |= later && parts_of<POSSIBLE>(row) & LOAD ? WAITED_FOR_MEMORY : 0;
    if (ONE)
        rob_[hot.rob_count++ & rob_mask_] = entry;
    else
        for (unsigned slot = 0; slot < slots; ++slot) rob_[hot.rob_count++ & rob_mask_] = entry;
    if (parts_of<POSSIBLE>(row) & LOAD && load_queue_size_) {
        load_queue_[load_next_] = cycle_of(hot.retirement);
        if (++load_next_ == load_queue_size_) load_next_ = 0;
    }
    hot.done = done;
}

// After retirement: written to the cache behind the ones before it.
[[gnu::always_inline]] inline void OutOfOrder::store(const Block& block, const Row& row, const uint64_t* addresses,
                                                     uint64_t pc, uint64_t data, uint64_t retirement) {
    unsigned first = row.first_site + row.load_sites;
    for (unsigned site = first; site < first + row.store_sites; ++site) {
        if (retirement > write_cycle_) write_cycle_ = retirement, written_ = 0;
        if (written_ == stores_per_cycle_) ++write_cycle_, written_ = 0;
        ++written_;
        uint64_t address = addresses[site];
        const auto [size, elements] = block.accesses[site];
        uint64_t there = memory_.store(address, size, pc, write_cycle_, elements);
        last_written_ = std::max(last_written_, std::max(there, write_cycle_ + 1));
        stores_.add({address, address + size, data, last_written_, (row.parts & BY_STACK) != 0, row.general});
    }
}

[[gnu::always_inline]] inline void OutOfOrder::branch(Hot& hot, const Row& row, uint64_t pc, uint64_t next) {
    uint64_t fallthrough = pc + row.length;
    Prediction prediction = branches_.resolve(pc, row.branch, next, fallthrough);
    if (prediction == Prediction::WRONG) {
        resolved_ = hot.done;
        right_way_from_ = resolved_ + mispredict_cycles_;
        front_.restart(hot.front, right_way_from_, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, prediction == Prediction::RIGHT, hot.cycle());
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool OutOfOrder::fuse(const Hot& hot, const Row& row, Pair pair, uint8_t destination) {
    const bool aes = row.parts & AES_PAIR;
    if (pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && row.sources[0] != destination)) return false;
    count(Probe::FUSED);
    if (aes) ready_[row.destinations[0]] = hot.done;
    return true;
}

[[gnu::always_inline]] inline void OutOfOrder::next_slot(Hot& hot) {
    if (used_of(hot.dispatch) >= slots_.width()) hot.dispatch = (hot.dispatch | USED) + 1;
}

// Dispatch waits for an entry of something.
[[gnu::always_inline]] inline void OutOfOrder::wait(Hot& hot, uint64_t to, Probe reason) {
    stand_still(hot.dispatch, to, hot.rob_count, reason);
    hot.dispatch = to << CYCLE;
}

[[gnu::always_inline]] inline void OutOfOrder::wait_to(Hot& hot, uint64_t to) {
    if (to <= hot.cycle()) return;
    lose_in_segments(hot.cycle(), used_of(hot.dispatch), to, hot.rob_count, false);
    hot.dispatch = to << CYCLE;
}

void OutOfOrder::stand_still(Place from, uint64_t to, uint64_t rob_count, Probe reason) {
    count(reason, to - cycle_of(from));
    lose_in_segments(cycle_of(from), used_of(from), to, rob_count, reason == Probe::STALL_STORE_BUFFER);
}

void OutOfOrder::lose_to_front_end(uint64_t cycle, unsigned used, uint64_t supplied) {
    if (right_way_from_ > cycle) {
        uint64_t to = std::min(supplied, right_way_from_);
        slots_.lose_to_bad_speculation(cycle, used, to, resolved_);
        cycle = to;
        used = 0;
    }
    if (supplied > cycle) slots_.lose_to_frontend(cycle, used, supplied);
}

// Each cycle is memory's if the oldest micro-op then was a load.
void OutOfOrder::lose_in_segments(uint64_t cycle, unsigned used, uint64_t to, uint64_t rob_count, bool memory) {
    if (rob_count - rob_oldest_ > rob_size_) rob_oldest_ = rob_count - rob_size_;
    while (cycle < to) {
        uint64_t until = to;
        bool waits = memory;
        for (; rob_oldest_ < rob_count; ++rob_oldest_) {
            Place entry = rob_[rob_oldest_ & rob_mask_];
            if (cycle_of(entry) > cycle) {
                until = std::min(to, cycle_of(entry));
                waits |= (entry & WAITED_FOR_MEMORY) != 0;
                break;
            }
        }
        slots_.lose_to_backend(cycle, used, until, waits);
        cycle = until;
        used = 0;
    }
}

Entry OutOfOrder::choose(Entry entry) {
    unsigned fewest = ~0U;
    for (const Entry& choice : placement_.choices(entry.use)) {
        unsigned held = schedulers_.held(choice.scheduler);
        if (schedulers_.full(choice.scheduler)) held += 1 << 16;
        if (held >= fewest) continue;
        fewest = held;
        entry = choice;
    }
    return entry;
}

bool OutOfOrder::too_many_moves(uint64_t cycle) {
    if (cycle != moves_cycle_) moves_cycle_ = cycle, moves_ = 0;
    return ++moves_ > moves_per_cycle_;
}

void OutOfOrder::iterate(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const Row& row = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        bool leaves = front_.leaves(hot.front.line, block.address, row.length);
        wait_for_supply(hot, fetch_and_decode(hot, row, leaves, block.address));
        wait_to(hot, hot.cycle() + repeat_start_cycles_);
    }
    unsigned bytes = row.load_sites + row.store_sites ? block.accesses[row.first_site].size : 0;
    if (bytes && repeat_left_ >= bytes) {
        feed_caches(block, addresses);
        repeat_left_ -= bytes;
    } else {
        execute_any(hot, block, row, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    settle(hot);
}

// A part of what REP's last micro-ops have moved: no time, but the caches hear of it.
void OutOfOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const Row& row = block.iteration;
    unsigned site = row.first_site, stores = site + row.load_sites, end = stores + row.store_sites;
    for (; site < stores; ++site) memory_.load(addresses[site], block.accesses[site].size, block.address, hot_.cycle());
    for (; site < end; ++site)
        memory_.store(addresses[site], block.accesses[site].size, block.address, cycle_of(hot_.retirement));
}

void OutOfOrder::elapse(uint64_t cycles) {
    next_slot(hot_);
    uint64_t retired = cycle_of(hot_.retirement);
    wait_to(hot_, retired + (used_of(hot_.dispatch) > 0 && retired == hot_.cycle()));
    cycle_ = hot_.cycle() + cycles;
    hot_.dispatch += cycles << CYCLE;
    hot_.retirement = cycle_ << CYCLE;
    front_.restart(hot_.front, cycle_, 0);
    hot_.front.line = FrontEnd::NO_LINE;
    right_way_from_ = 0;
    last_pair_ = Pair::NONE;
    repeating_ = false;
}

void OutOfOrder::settle(const Hot& hot) {
    count(Probe::UOPS_DISPATCHED, hot.rob_count - counted_slots_);
    count(Probe::UOPS_RETIRED, hot.rob_count - counted_slots_);
    count(Probe::CYCLES_RETIRING, hot.retiring_cycles - counted_retiring_);
    counted_slots_ = hot.rob_count;
    counted_retiring_ = hot.retiring_cycles;
}

const PipelineModel MODEL("out_of_order", make_pipeline<OutOfOrder>);

}  // namespace
}  // namespace out_of_order
}  // namespace perfemu
