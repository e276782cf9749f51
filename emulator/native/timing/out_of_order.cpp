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
    const PreparedOp* op = block.ops.data() + first;
    const PreparedOp* const end = block.ops.data() + last;
    const CycleSlot limit_slot = limit > cycle_of(~CycleSlot{0}) ? ~CycleSlot{0} : limit << CYCLE;
    bool leaves = front_.leaves(hot.front.line, block.address + op->offset, op->length);
    Pair pair = last_pair_;
    uint8_t destination = last_destination_;
    while (true) {
        const uint64_t pc = block.address + op->offset;
        uint64_t supplied = fetch_and_decode(hot, block, *op, leaves, pc);
        switch (op->shape) {
            case Shape::SECOND_BRANCH:
                if (pair == Pair::BRANCH) {
                    count(Probe::FUSED);
                    break;
                }
                [[fallthrough]];
            case Shape::COMPUTES:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::COMPUTES_SOMEWHERE:
                wait_for_supply(hot, supplied);
                execute<COMPUTE, true, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::IS_ELIMINATED:
                wait_for_supply(hot, supplied);
                execute<ELIMINATED, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::LOADS:
                wait_for_supply(hot, supplied);
                execute<LOAD, true>(hot, block, *op, addresses, pc);
                break;
            case Shape::STORES:
                wait_for_supply(hot, supplied);
                execute<STORE, false>(hot, block, *op, addresses, pc);
                break;
            case Shape::LOADS_AND_COMPUTES:
                wait_for_supply(hot, supplied);
                execute<LOAD | COMPUTE, false>(hot, block, *op, addresses, pc);
                break;
            case Shape::OTHER:
                if (op->parts & SECOND_OF_PAIR && fuse(hot, *op, pair, destination)) break;
                wait_for_supply(hot, supplied);
                execute_any(hot, block, *op, addresses, pc);
                break;
        }
        if (op->parts & BRANCH) branch(hot, *op, pc, op + 1 == end ? next : pc + op->length, op + 1 == end);
        ++op;
        if (op == end || hot.retirement >= limit_slot) break;
        leaves = op->leaves_line;
        pair = op[-1].pair;
        destination = op[-1].destinations[0];
    }
    last_pair_ = op[-1].pair;
    last_destination_ = op[-1].destinations[0];
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    repeating_ = false;
    count_slots();
    return static_cast<unsigned>(op - block.ops.data());
}

// Fetch and decode: when the instruction may be dispatched.
[[gnu::always_inline]] inline uint64_t OutOfOrder::fetch_and_decode(Hot& hot, const Block& block, const PreparedOp& op,
                                                                    bool leaves, uint64_t pc) {
    auto fetch = [&](uint64_t line, uint64_t cycle) {
        auto question = [&] {
            return Question{
                .at = relative(cycle), .also = static_cast<int32_t>(line - block.address), .kind = Question::FETCH};
        };
        return cycle + ask(question, [&] { return memory_.fetch(line, cycle) - cycle; });
    };
    uint64_t supplied = front_.supply(hot.front, pc, op.length, leaves, hot.cycle(), fetch);
    if (decode_limits_) {
        if (supplied > hot.decode_cycle) hot.decode_cycle = supplied, hot.decodes = decode_width_;
        if (hot.decodes == 0) ++hot.decode_cycle, hot.decodes = decode_width_;
        --hot.decodes;
        supplied = hot.decode_cycle;
    }
    return supplied;
}

// Dispatch waits for it, at the next slot.
[[gnu::always_inline]] inline void OutOfOrder::wait_for_supply(Hot& hot, uint64_t supplied) {
    next_slot(hot);
    if (supplied << CYCLE <= hot.dispatch) return;
    lose_to_front_end(hot.cycle(), used_of(hot.dispatch), supplied);
    hot.dispatch = supplied << CYCLE;
}

// When an instruction's data are there, at `start` or later.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::sources_ready(const PreparedOp& op, uint64_t start) const {
    const unsigned parts = parts_of<POSSIBLE>(op);
    if (!(parts & ~(LOAD | BY_STACK | PREFETCH))) return start;
    start = std::max(std::max(start, ready_[op.sources[2]]), std::max(ready_[op.sources[0]], ready_[op.sources[1]]));
    if (parts & MANY_OPERANDS)
        start =
            std::max(std::max(start, ready_[op.sources[3]]), std::max(ready_[op.sources[4]], ready_[op.sources[5]]));
    return start;
}

// ... and those of its address.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline uint64_t OutOfOrder::address_sources_ready(const PreparedOp& op, uint64_t start) const {
    const unsigned parts = parts_of<POSSIBLE>(op);
    if (!(parts & (LOAD | STORE | WRITE_BACK))) return start;
    start = std::max(start, std::max(ready_[op.address_sources[0]], ready_[op.address_sources[1]]));
    return parts & MANY_OPERANDS ? std::max(start, ready_[op.address_sources[2]]) : start;
}

// From dispatch to retirement.
template <unsigned POSSIBLE, bool ONE, bool CHOICE>
[[gnu::always_inline]] inline void OutOfOrder::execute(Hot& hot, const Block& block, const PreparedOp& op,
                                                       const uint64_t* addresses, uint64_t pc) {
    const unsigned parts = parts_of<POSSIBLE>(op);
    const unsigned slots = ONE ? 1 : op.slots;
    wait_for_room<POSSIBLE>(hot, op, slots);
    schedulers_.advance(hot.cycle());
    const bool computes =
        parts & COMPUTE && (!(parts & ELIMINATED) || !(parts & LIMITED_MOVE) || too_many_moves(hot.cycle()));
    Entry load_entry, entry, address_entry, data_entry;
    if (parts & LOAD) load_entry = enter<true>(hot, load_entry_);
    if (computes) entry = enter<CHOICE>(hot, op.entry);
    if (parts & STORE) {
        address_entry = enter<true>(hot, address_entry_);
        if (has_store_data_) data_entry = enter<true>(hot, is_vector(op.sources[0]) ? vector_data_entry_ : data_entry_);
    }
    hot.dispatch += slots;
    if (!ONE)
        while (carry(hot.dispatch, slots_.width())) {
        }
    const uint64_t dispatched = hot.cycle();
    if (!ONE) schedulers_.advance(dispatched);
    calendar_.advance(dispatched);

    const bool chained = parts & ACCUMULATES && op.accumulator == timed_register::NONE;
    uint64_t result = chained ? chain_start(op, dispatched + 1) : sources_ready<POSSIBLE>(op, dispatched + 1);
    const uint64_t address_ready = address_sources_ready<POSSIBLE>(op, dispatched + 1);
    uint64_t done = dispatched + 1;
    if (parts & LOAD) {
        uint64_t issued = issue<ONE>(load_entry, load_ports_, address_ready);
        if (!ONE)
            for (unsigned more = 1; more < op.load_micro_ops; ++more)
                issued = std::max(issued, calendar_.take(load_entry.use, address_ready));
        done = load<POSSIBLE>(block, op, addresses, pc, issued);
        result = parts & COMPUTE ? std::max(result, done) : done;
    }
    if (computes) {
        result = compute<POSSIBLE, ONE, CHOICE>(hot, op, entry, result);
        done = result;
    } else if (parts & ELIMINATED) {
        // The renamer gives the destination the source's register.
        result = std::max(std::max(ready_[op.sources[0]], ready_[op.sources[1]]), dispatched);
        if (op.op_class == OpClass::MOVE || op.op_class == OpClass::FP_MOVE) count(Probe::MOVE_ELIMINATED);
    }
    write(op.destinations[0], result);
    write(op.destinations[1], result);
    if (chained) chained_[op.destinations[0]] = true;
    if (parts & MANY_OPERANDS) write(op.destinations[2], result), write(op.destinations[3], result);
    if (parts & WRITE_BACK) {
        Entry update = enter<true>(hot, write_back_entry_);
        uint64_t updated = issue<false>(update, calendar_.simple_ports(update.use), address_ready) + 1;
        write(op.write_back, updated);
        done = std::max(done, updated);
    }
    if (!(parts & STORE)) {
        leave<POSSIBLE, ONE>(hot, op, slots, done);
    } else {
        uint64_t address_issued = issue<false>(address_entry, calendar_.simple_ports(address_entry.use), address_ready);
        uint64_t data = std::max(address_issued, result);
        if (has_store_data_) data = issue<false>(data_entry, calendar_.simple_ports(data_entry.use), result);
        for (unsigned more = 1; more < op.store_micro_ops; ++more) {
            address_issued = std::max(address_issued, calendar_.take(address_entry.use, address_ready));
            if (has_store_data_) data = std::max(data, calendar_.take(data_entry.use, result));
        }
        leave<POSSIBLE, ONE>(hot, op, slots, std::max(done, std::max(address_issued, data) + 1));
        store(block, op, addresses, pc, data, cycle_of(hot.retirement));
    }
    if (parts & HOLDS && op.serializes) {  // what follows is dispatched when this has retired
        next_slot(hot);
        wait_to(hot, cycle_of(hot.retirement));
    }
}

// When the sources are there, those that the same unit has computed a little earlier.
uint64_t OutOfOrder::chain_start(const PreparedOp& op, uint64_t start) const {
    for (uint8_t source : op.sources) {
        const uint64_t saved = chained_[source] ? op.accumulate_saving : 0;
        start = std::max(start, ready_[source] - saved);
    }
    return start;
}

[[gnu::always_inline]] inline void OutOfOrder::execute_any(Hot& hot, const Block& block, const PreparedOp& op,
                                                           const uint64_t* addresses, uint64_t pc) {
    execute<ANY, false>(hot, block, op, addresses, pc);
}

// ROB and queue entries.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline void OutOfOrder::wait_for_room(Hot& hot, const PreparedOp& op, unsigned slots) {
    const unsigned parts = parts_of<POSSIBLE>(op);
    if (parts & HOLDS) [[unlikely]] {
        if (op.serializes) wait_to(hot, cycle_of(hot.retirement));
        if (op.microcoded) wait_to(hot, hot.cycle() + microcode_cycles_);
    }
    CycleSlot left = rob_[(hot.rob_count + std::max(slots, 1u) - 1 - rob_size_) & rob_mask_];
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
[[gnu::always_inline]] inline uint64_t OutOfOrder::load(const Block& block, const PreparedOp& op,
                                                        const uint64_t* addresses, uint64_t pc, uint64_t issued) {
    auto question = [&](Question::Kind kind, unsigned site) {
        return Question{.at = relative(issued),
                        .offset = op.offset,
                        .site = static_cast<uint16_t>(site),
                        .access = block.accesses[site],
                        .kind = kind,
                        .forward_traits = forward_traits(op)};
    };
    if (parts_of<POSSIBLE>(op) & PREFETCH) [[unlikely]] {
        const unsigned site = op.first_site;
        if (op.load_sites)
            ask([&] { return question(Question::PREFETCH, site); },
                [&] { return memory_.prefetch(addresses[site], pc, issued), 0; });
        return issued + 1;
    }
    const unsigned sites = POSSIBLE == ANY ? op.load_sites : 1;
    if (sites == 0) return issued + default_load_latency_ + op.load_extra;
    uint64_t all = issued;
    for (unsigned site = op.first_site; site < op.first_site + sites; ++site) {
        const uint64_t answer =
            ask([&] { return question(Question::LOAD, site); },
                [&] { return ask_load(addresses[site], block.accesses[site], pc, issued, forward_traits(op)); });
        all = std::max(all, answer < HIT ? issued + answer : apply(answer, issued));
    }
    return all + op.load_extra;
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
[[gnu::always_inline]] inline uint64_t OutOfOrder::compute(Hot& hot, const PreparedOp& op, Entry entry,
                                                           uint64_t start) {
    const unsigned parts = parts_of<POSSIBLE>(op);
    if (parts & ACCUMULATES && ready_[op.accumulator] > start + op.accumulate_saving)
        start = ready_[op.accumulator] - op.accumulate_saving;
    // A choice among schedulers leaves fewer ports than the op has.
    const bool chosen = CHOICE && entry.use.group != op.entry.use.group;
    uint64_t issued = issue<ONE>(entry, chosen ? calendar_.simple_ports(entry.use) : op.simple_ports, start);
    if (parts & MANY_PORTS)
        for (PortUse other : op.timing->others) {
            Entry more = enter<true>(hot, placement_.entry(other));
            issued = std::max(issued, issue<false>(more, calendar_.simple_ports(more.use), start));
        }
    if (parts & DIVIDES) count(Probe::DIVIDER_ACTIVE, op.timing->busiest_cycles);
    return issued + op.latency;
}

// Retirement, in order.
template <unsigned POSSIBLE, bool ONE>
[[gnu::always_inline]] inline void OutOfOrder::leave(Hot& hot, const PreparedOp& op, unsigned slots, uint64_t done) {
    const CycleSlot earliest = done << CYCLE;
    const bool later = earliest > hot.retirement;
    hot.retirement = (later ? earliest : hot.retirement) + slots;
    hot.retiring_cycles += later;
    if (ONE)
        hot.retiring_cycles += carry(hot.retirement, retire_width_);
    else
        while (carry(hot.retirement, retire_width_)) ++hot.retiring_cycles;
    CycleSlot entry = hot.retirement;
    if (POSSIBLE & LOAD) entry |= later && parts_of<POSSIBLE>(op) & LOAD ? WAITED_FOR_MEMORY : 0;
    if (ONE)
        rob_[hot.rob_count++ & rob_mask_] = entry;
    else
        for (unsigned slot = 0; slot < slots; ++slot) rob_[hot.rob_count++ & rob_mask_] = entry;
    if (parts_of<POSSIBLE>(op) & LOAD && load_queue_size_) {
        load_queue_[load_next_] = cycle_of(hot.retirement);
        if (++load_next_ == load_queue_size_) load_next_ = 0;
    }
    hot.done = done;
}

// After retirement: written to the cache after the ones before it.
[[gnu::always_inline]] inline void OutOfOrder::store(const Block& block, const PreparedOp& op,
                                                     const uint64_t* addresses, uint64_t pc, uint64_t data,
                                                     uint64_t retirement) {
    const unsigned first = op.first_site + op.load_sites;
    const ForwardTraits traits = forward_traits(op);
    for (unsigned site = first; site < first + op.store_sites; ++site) {
        auto question = [&] {
            return Question{.at = relative(retirement),
                            .also = relative(data),
                            .offset = op.offset,
                            .site = static_cast<uint16_t>(site),
                            .access = block.accesses[site],
                            .kind = Question::STORE,
                            .forward_traits = traits};
        };
        ask(question, [&] { return write_store(addresses[site], block.accesses[site], pc, retirement, data, traits); });
    }
}

// Of a taken branch that was predicted.
unsigned OutOfOrder::bubble_of(BranchKind kind, Prediction prediction, uint64_t answer) const {
    if (prediction == Prediction::LATE) return front_.late_bubble;
    const bool indirect = kind >= BranchKind::INDIRECT && kind != BranchKind::CALL;
    const unsigned bubble = indirect ? front_.indirect_bubble : front_.taken_bubble;
    return answer & FAR ? std::max(bubble, front_.far_bubble) : bubble;
}

[[gnu::always_inline]] inline void OutOfOrder::branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next,
                                                      bool last) {
    const uint64_t fallthrough = pc + op.length;
    auto question = [&] {
        return Question{
            .offset = op.offset, .kind = Question::BRANCH, .length = op.length, .branch = op.branch, .is_last = last};
    };
    const uint64_t answer = ask(question, [&] { return ask_branch(pc, op.branch, next, fallthrough); });
    const auto prediction = static_cast<Prediction>(answer & PREDICTION);
    if (prediction == Prediction::WRONG) {
        resolved_ = hot.done;
        right_way_from_ = resolved_ + mispredict_cycles_;
        front_.restart(hot.front, right_way_from_, next);
    } else if (next != fallthrough) {
        front_.go_to(hot.front, next, bubble_of(op.branch, prediction, answer), hot.cycle(), next == pc - op.offset);
    }
}

// The second of a pair: no slot of its own, and done with the first.
[[gnu::always_inline]] inline bool OutOfOrder::fuse(const Hot& hot, const PreparedOp& op, Pair pair,
                                                    uint8_t destination) {
    const bool aes = op.parts & AES_PAIR;
    if (pair != (aes ? Pair::AES : Pair::BRANCH) || (aes && op.sources[0] != destination)) return false;
    count(Probe::FUSED);
    if (aes) write(op.destinations[0], hot.done);
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

void OutOfOrder::stand_still(CycleSlot from, uint64_t to, uint64_t rob_count, PipelineProbe reason) {
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
            CycleSlot entry = rob_[rob_oldest_ & rob_mask_];
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
    const PreparedOp& op = block.iteration;
    Hot hot = hot_;
    next_slot(hot);
    if (!repeating_) {
        repeating_ = true;
        repeat_left_ = 0;
        bool leaves = front_.leaves(hot.front.line, block.address, op.length);
        wait_for_supply(hot, fetch_and_decode(hot, block, op, leaves, block.address));
        wait_to(hot, hot.cycle() + repeat_start_cycles_);
    }
    unsigned bytes = op.load_sites + op.store_sites ? block.accesses[op.first_site].size : 0;
    if (bytes && repeat_left_ >= bytes) {
        feed_caches(block, addresses);
        repeat_left_ -= bytes;
    } else {
        execute_any(hot, block, op, addresses, block.address);
        repeat_left_ = repeat_bytes_ > bytes ? repeat_bytes_ - bytes : 0;
    }
    hot_ = hot;
    cycle_ = cycle_of(hot.retirement);
    count_slots();
}

// A part of what REP's last micro-ops have moved: no time, but the caches are accessed.
void OutOfOrder::feed_caches(const Block& block, const uint64_t* addresses) {
    const PreparedOp& op = block.iteration;
    unsigned site = op.first_site, stores = site + op.load_sites, end = stores + op.store_sites;
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

// What a store that has some of what a load wants means to it.
uint64_t OutOfOrder::ask_store(const StoreQueue::Found& found, uint64_t address, AccessSize access, uint64_t pc,
                               uint64_t issued, ForwardTraits traits) {
    const StoreQueue::Store& store = *found.store;
    // Between general registers the renamer forwards as it predicts: no address is needed then.
    auto predicted = [&] {
        if (!predicts_forwards_ || traits.renames == 0) return false;
        if (traits.renames != ANY_SIZE && (traits.renames != access.size || access.size < 4)) return false;
        return store.general && store.address == address && forwards_.learn(pc, found.distance);
    };
    uint64_t when = issued;
    switch (found.answer) {
        case StoreQueue::Answer::FORWARD:
            count_answer(Probe::STORE_FORWARD);
            if (predicted())
                when = std::max(issued + traits.extra, store.data + predicted_forward_cycles_) - traits.extra;
            else if (traits.by_stack && store.by_stack)
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
