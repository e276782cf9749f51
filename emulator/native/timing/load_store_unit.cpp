#include "timing/load_store_unit.hpp"

namespace perfemu::out_of_order {

LoadStoreUnit::LoadStoreUnit(const Config& config, MemorySystem& memory, uint64_t* totals)
    : memory_(memory), totals_(totals), stores_(checked(config.table("pipeline"), "store_buffer", 1, 4096)),
      line_mask_(~uint64_t{memory.fetch_line_bytes() - 1}) {
    const Config& keys = config.table("pipeline");
    store_forward_cycles_ = checked(keys, "store_forward_cycles", 0, 1000);
    stack_forward_cycles_ = checked(keys, "stack_forward_cycles", 0, 1000, store_forward_cycles_);
    predicts_forwards_ = keys.has("predicted_forward_cycles");
    predicted_forward_cycles_ = checked(keys, "predicted_forward_cycles", 0, 1000, store_forward_cycles_);
    forward_blocked_cycles_ = checked(keys, "store_forward_blocked_cycles", 0, 1000, 0);
    alias_4k_cycles = checked(keys, "alias_4k_cycles", 0, 1000, 0);
    stores_per_cycle_ = checked(keys, "stores_per_cycle", 1, 64, 1);
    line_stores_per_cycle_ = checked(keys, "line_stores_per_cycle", 1, 64, stores_per_cycle_);
    split_load_cycles = checked(keys, "split_load_cycles", 0, 1000, 0);
}

// What a store that has some of what a load wants means to it.
uint64_t LoadStoreUnit::look_at(const StoreQueue::Found& found, uint64_t address, AccessSize access, uint64_t pc,
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
            count(Probe::STORE_FORWARD);
            if (predicted())
                when = std::max(issued + traits.extra, store.data + predicted_forward_cycles_) - traits.extra;
            else if (traits.by_stack && store.by_stack)
                when = std::max(issued, store.data + stack_forward_cycles_);
            else
                when = std::max(issued, store.data) + store_forward_cycles_;
            break;
        case StoreQueue::Answer::PART:
            count(Probe::STORE_FORWARD_BLOCKED);
            when = store.written + forward_blocked_cycles_;
            break;
        case StoreQueue::Answer::ALIAS: count(Probe::ALIAS_4K); break;
        case StoreQueue::Answer::NONE: break;
    }
    return (when - issued) * HIT | static_cast<uint64_t>(found.answer) << ANSWER;
}

}  // namespace perfemu::out_of_order
