// The out-of-order pipeline's stages from dispatch to retirement. Everything here becomes part of the loop over
// instructions (out_of_order.cpp), once for each shape of them.
#pragma once

#include <algorithm>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

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
    issued_ = dispatched;

    const bool chained = parts & ACCUMULATES && op.accumulator == timed_register::NONE;
    uint64_t result = chained ? chain_start(op, dispatched + 1) : sources_ready<POSSIBLE>(op, dispatched + 1);
    const uint64_t address_ready = address_sources_ready<POSSIBLE>(op, dispatched + 1);
    uint64_t done = dispatched + 1;
    if (parts & LOAD) {
        uint64_t issued = issue<ONE>(load_entry, load_ports_, address_ready);
        if (!ONE)
            for (unsigned more = 1; more < op.load_micro_ops; ++more)
                issued = std::max(issued, calendar_.take(load_entry.use, address_ready));
        issued_ = issued;
        done = load<POSSIBLE>(block, op, addresses, pc, issued);
        result = parts & COMPUTE ? std::max(result, done) : done;
    }
    if (computes) {
        result = compute<POSSIBLE, ONE, CHOICE>(hot, op, entry, result);
        if (!(parts & LOAD)) issued_ = result - op.latency;
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
        issued_ = address_issued;
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
        uint64_t free = now + ask(question, [&] { return std::max(load_store_.room_at(), now) - now; });
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

// When the loaded data are there. Here a load's latency enters the schedule, also that of a hit in L2:
// LoadStoreUnit::load asks MemorySystem::load for it (cache/access_path.cpp), and `write` puts the cycle where the
// sources of later instructions look. A block that the memo knows asks the same, in `replay` (out_of_order_memo.cpp).
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
        const uint64_t answer = ask(
            [&] { return question(Question::LOAD, site); },
            [&] { return load_store_.load(addresses[site], block.accesses[site], pc, issued, forward_traits(op)); });
        all = std::max(all, answer < HIT ? issued + answer : apply(answer, issued));
    }
    return all + op.load_extra;
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
        ask(question,
            [&] { return load_store_.store(addresses[site], block.accesses[site], pc, retirement, data, traits); });
    }
}

}  // namespace perfemu::out_of_order
