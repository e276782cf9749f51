// Out of order: each instruction, in program order, is given the cycles of its dispatch, issue, completion and
// retirement, from what the ones before it have left: slots, ROB and queue entries, ports, operands. No loop over
// cycles.
//
// Not modelled: what a wrong path executes or fetches; replays; loads that must not pass older stores; bypass delays
// between units other than what [ops] says.
#include "timing/out_of_order.hpp"

#include <algorithm>
#include <bit>

#include "timing/pipeline_model.hpp"

namespace perfemu::out_of_order {

unsigned OutOfOrder::run_block(const Block& block, const uint64_t* addresses, unsigned first, unsigned last,
                              uint64_t next, uint64_t limit) {
    Hot hot = hot_;
    const Row* row = block.rows.data() + first;
    const Row* const end = block.rows.data() + last;
    const Place limit_place = limit > cycle_of(~Place{0}) ? ~Place{0} : limit << CYCLE;
    bool leaves = front_.leaves(hot.front.line, block.address + row->offset, row->length);
    Pair pair = last_pair_;
    uint8_t destination = last_destination_;
    while (true) {
        const uint64_t pc = block.address + row->offset;
        uint64_t supplied = fetch_and_decode(hot, block, *row, leaves, pc);
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
        if (row->parts & BRANCH) branch(hot, *row, pc, row + 1 == end ? next : pc + row->length, row + 1 == end);
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
    count_slots();
    return static_cast<unsigned>(row - block.rows.data());
}

// Fetch and decode: when the instruction may be dispatched.
[[gnu::always_inline]] inline uint64_t OutOfOrder::fetch_and_decode(Hot& hot, const Block& block, const Row& row,
                                                                    bool leaves, uint64_t pc) {
    auto fetch = [&](uint64_t line, uint64_t cycle) {
        auto question = [&] {
            return Question{
                .at = relative(cycle), .also = static_cast<int32_t>(line - block.address), .kind = Question::FETCH};
        };
        return cycle + ask(question, [&] { return memory_.fetch(line, cycle) - cycle; });
    };
    uint64_t supplied = front_.supply(hot.front, pc, row.length, leaves, hot.cycle(), fetch);
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

// When an instruction's data are there, at `start` or later.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::sources_ready(const Row& row, uint64_t start) const {
    const unsigned parts = parts_of<POSSIBLE>(row);
    if (!(parts & ~(LOAD | BY_STACK | PREFETCH))) return start;
    start = std::max(std::max(start, ready_[row.sources[2]]), std::max(ready_[row.sources[0]], ready_[row.sources[1]]));
    if (parts & MANY_OPERANDS)
        start =
            std::max(std::max(start, ready_[row.sources[3]]), std::max(ready_[row.sources[4]], ready_[row.sources[5]]));
    return start;
}

// ... and those of its address.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::address_sources_ready(const Row& row, uint64_t start) const {
    const unsigned parts = parts_of<POSSIBLE>(row);
    if (!(parts & (LOAD | STORE | WRITE_BACK))) return start;
    start = std::max(start, std::max(ready_[row.address_sources[0]], ready_[row.address_sources[1]]));
    return parts & MANY_OPERANDS ? std::max(start, ready_[row.address_sources[2]]) : start;
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

    const bool chained = parts & ACCUMULATES && row.accumulator == timed_register::NONE;
    uint64_t result = chained ? chain_start(row, dispatched + 1) : sources_ready<POSSIBLE>(row, dispatched + 1);
    const uint64_t address_ready = address_sources_ready<POSSIBLE>(row, dispatched + 1);
    uint64_t done = dispatched + 1;
    if (parts & LOAD) {
        uint64_t issued = issue<ONE>(load_entry, load_ports_, address_ready);
        if (!ONE)
            for (unsigned more = 1; more < row.load_micro_ops; ++more)
                issued = std::max(issued, calendar_.take(load_entry.use, address_ready));
        done = load<POSSIBLE>(block, row, addresses, pc, issued);
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
    write(row.destinations[0], result);
    write(row.destinations[1], result);
    if (chained) chained_[row.destinations[0]] = true;
    if (parts & MANY_OPERANDS) write(row.destinations[2], result), write(row.destinations[3], result);
    if (parts & WRITE_BACK) {
        Entry update = enter<true>(hot, write_back_entry_);
        uint64_t updated = issue<false>(update, calendar_.simple_ports(update.use), address_ready) + 1;
        write(row.write_back, updated);
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

// When the sources are there, those that the same unit has computed a little earlier.
uint64_t OutOfOrder::chain_start(const Row& row, uint64_t start) const {
    for (uint8_t source : row.sources) {
        const uint64_t saved = chained_[source] ? row.accumulate_saving : 0;
        start = std::max(start, ready_[source] - saved);
    }
    return start;
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
    Place left = rob_[(hot.rob_count + std::max(slots, 1u) - 1 - rob_size_) & rob_mask_];
    if (left > (hot.dispatch | USED)) [[unlikely]]
        wait(hot, cycle_of(left), Probe::STALL_ROB);
    if (parts & LOAD && load_queue_size_) {
        uint64_t free = load_queue_[load_next_];
        if (free > hot.cycle()) [[unlikely]]
            wait(hot, free, Probe::STALL_LOAD_QUEUE);
    }
    if (parts & STORE && !has_room_) {
        const uint64_t now = hot.cycle();
        auto question = [&] { return Question{.at = relative(now), .kind = Question::ROOM}; };
        uint64_t free = now + ask(question, [&] { return std::max(stores_.free_at(), now) - now; });
        if (free > now) [[unlikely]]
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

// When the loaded data are there. Here a load's latency enters the schedule, as that of a hit in L2: ask_load asks
// MemorySystem::load for it (cache/access_path.cpp), and `write` puts the cycle where the sources of later instructions
// look. A block that the memo knows asks the same, in `replay` (out_of_order_memo.cpp).
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::load(const Block& block, const Row& row, const uint64_t* addresses,
                                                        uint64_t pc, uint64_t issued) {
    auto question = [&](Question::Kind kind, unsigned site) {
        return Question{.at = relative(issued),
                        .offset = row.offset,
                        .site = static_cast<uint16_t>(site),
                        .access = block.accesses[site],
                        .kind = kind,
                        .access_kind = access_kind(row)};
    };
    if (parts_of<POSSIBLE>(row) & PREFETCH) [[unlikely]] {
        const unsigned site = row.first_site;
        if (row.load_sites)
            ask([&] { return question(Question::PREFETCH, site); },
                [&] { return memory_.prefetch(addresses[site], pc, issued), 0; });
        return issued + 1;
    }
    const unsigned sites = POSSIBLE == ANY ? row.load_sites : 1;
    if (sites == 0) return issued + default_load_latency_ + row.load_extra;
    uint64_t all = issued;
    for (unsigned site = row.first_site; site < row.first_site + sites; ++site) {
        const uint64_t answer =
            ask([&] { return question(Question::LOAD, site); },
                [&] { return ask_load(addresses[site], block.accesses[site], pc, issued, access_kind(row)); });
        all = std::max(all, answer < HIT ? issued + answer : apply(answer, issued));
    }
    return all + row.load_extra;
}

uint64_t OutOfOrder::apply(uint64_t answer, uint64_t issued) {
    uint64_t loaded = issued + answer % HIT, when = issued + answer / HIT % WHEN;
    if (answer & SPLIT) loaded = std::max(loaded, calendar_.take(load_entry_.use, issued)) + split_load_cycles_;
    switch (static_cast<StoreQueue::Answer>(answer >> ANSWER)) {
        case StoreQueue::Answer::FORWARD: return when;
        case StoreQueue::Answer::PART: return std::max(loaded, when);
        case StoreQueue::Answer::ALIAS: return loaded + alias_4k_cycles_;
        case StoreQueue::Answer::NONE: break;
    }
    return loaded;
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
    const unsigned first = row.first_site + row.load_sites;
    const AccessKind kind = access_kind(row);
    for (unsigned site = first; site < first + row.store_sites; ++site) {
        auto question = [&] {
            return Question{.at = relative(retirement),
                            .also = relative(data),
                            .offset = row.offset,
                            .site = static_cast<uint16_t>(site),
                            .access = block.accesses[site],
                            .kind = Question::STORE,
                            .access_kind = kind};
        };
        ask(question, [&] { return write_store(addresses[site], block.accesses[site], pc, retirement, data, kind); });
    }
}

// Of a taken branch that was foreseen.
unsigned OutOfOrder::bubble_of(BranchKind kind, Prediction prediction, uint64_t answer) const {
    if (prediction == Prediction::LATE) return front_.late_bubble;
    const bool indirect = kind >= BranchKind::INDIRECT && kind != BranchKind::CALL;
    const unsigned bubble = indirect ? front_.indirect_bubble : front_.taken_bubble;
    return answer & FAR ? std::max(bubble, front_.far_bubble) : bubble;
}

[[gnu::always_inline]] inline void OutOfOrder::branch(Hot& hot, const Row& row, uint64_t pc, uint64_t next, bool last) {
    const uint64_t fallthrough = pc + row.length;
    auto question = [&] {
        return Question{.offset = row.offset,
                        .kind = Question::BRANCH,
                        .length = row.length,
                        .branch = row.branch,
                        .is_last = last};
    };
    const uint64_t answer = ask(question, [&] { return ask_branch(pc, row.branch, next, fallthrough); });
    const auto prediction = static_cast<Prediction>(answer & PREDICTION);
    if (prediction == Prediction::WRONG) {
        resolved_ = hot.done;
        right_way_from_ = resolved_ + mispredict_cycles_;
        front_.restart(hot.front, right_way_from_, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, bubble_of(row.branch, prediction, answer), hot.cycle(), next == pc - row.offset);
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool OutOfOrder::fuse(const Hot& hot, const Row& row, Pair pair, uint8_t destination) {
    const bool aes = row.parts & AES_PAIR;
    if (pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && row.sources[0] != destination)) return false;
    count(Probe::FUSED);
    if (aes) write(row.destinations[0], hot.done);
    return true;
}

[[gnu::always_inline]] inline void OutOfOrder::next_slot(Hot& hot) {
    if (used_of(hot.dispatch) >= slots_.width()) hot.dispatch = (hot.dispatch | USED) + 1;
}

// Dispatch waits for an entry of something.
[[gnu::always_inline]] inline void OutOfOrder::wait(Hot& hot, uint64_t to, PipelineProbe reason) {
    stand_still(hot.dispatch, to, hot.rob_count, reason);
    hot.dispatch = to << CYCLE;
}

[[gnu::always_inline]] inline void OutOfOrder::wait_to(Hot& hot, uint64_t to) {
    if (to <= hot.cycle()) return;
    lose_in_segments(hot.cycle(), used_of(hot.dispatch), to, hot.rob_count, false);
    hot.dispatch = to << CYCLE;
}

void OutOfOrder::stand_still(Place from, uint64_t to, uint64_t rob_count, PipelineProbe reason) {
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

void OutOfOrder::run_iteration(const PreparedBlock& prepared, const uint64_t* addresses) {
    const Block& block = static_cast<const Block&>(prepared);
    const Row& row = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        bool leaves = front_.leaves(hot.front.line, block.address, row.length);
        wait_for_supply(hot, fetch_and_decode(hot, block, row, leaves, block.address));
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
    count_slots();
}

// A part of what REP's last micro-ops have moved: no time, but the caches ask of it.
void OutOfOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const Row& row = block.iteration;
    unsigned site = row.first_site, stores = site + row.load_sites, end = stores + row.store_sites;
    for (; site < stores; ++site) memory_.load(addresses[site], block.accesses[site].size, block.address, hot_.cycle());
    for (; site < end; ++site)
        memory_.store(addresses[site], block.accesses[site].size, block.address, cycle_of(hot_.retirement));
}

void OutOfOrder::run_kernel(uint64_t cycles) {
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

void OutOfOrder::count_slots() {
    count(Probe::UOPS_DISPATCHED, hot_.rob_count - counted_slots_);
    count(Probe::UOPS_RETIRED, hot_.rob_count - counted_slots_);
    count(Probe::CYCLES_RETIRING, hot_.retiring_cycles - counted_retiring_);
    counted_slots_ = hot_.rob_count;
    counted_retiring_ = hot_.retiring_cycles;
}

// What a load is told by a store that has some of what it wants.
uint64_t OutOfOrder::ask_store(const StoreQueue::Found& found, uint64_t address, Access access, uint64_t pc,
                               uint64_t issued, AccessKind kind) {
    const StoreQueue::Store& store = *found.store;
    // Between general registers the renamer forwards what it foresees: no address is needed then.
    auto foresees = [&] {
        if (!predicts_forwards_ || kind.renames == 0) return false;
        if (kind.renames != ANY_SIZE && (kind.renames != access.size || access.size < 4)) return false;
        return store.general && store.address == address && forwards_.learn(pc, found.place);
    };
    uint64_t when = issued;
    switch (found.answer) {
        case StoreQueue::Answer::FORWARD:
            count_answer(Probe::STORE_FORWARD);
            if (foresees())
                when = std::max(issued + kind.extra, store.data + predicted_forward_cycles_) - kind.extra;
            else if (kind.by_stack && store.by_stack)
                when = std::max(issued, store.data + stack_forward_cycles_);
            else
                when = std::max(issued, store.data) + store_forward_cycles_;
            break;
        case StoreQueue::Answer::PART:
            count_answer(Probe::STORE_FORWARD_BLOCKED);
            when = store.written + forward_blocked_cycles_;
            break;
        case StoreQueue::Answer::ALIAS: count_answer(Probe::ALIAS_4K); break;
        case StoreQueue::Answer::NONE: break;
    }
    return (when - issued) * HIT | static_cast<uint64_t>(found.answer) << ANSWER;
}

static const PipelineModel MODEL("out_of_order", make_pipeline<OutOfOrder>);

}  // namespace perfemu::out_of_order
