// The in-order pipeline's state as bytes, for its memo.
#include <algorithm>
#include <bit>

#include "timing/in_order.hpp"

namespace perfemu::in_order {

// Times that are over make no difference, however long they are: they are saved as 0, or not at all, and are then the
// distant past.
bool InOrder::save(StateWriter& state) {
    const uint64_t now = base_;
    auto put_later = [&](uint64_t cycle, uint64_t than) { state.put(cycle > than ? cycle - than : 0); };
    const bool full = hot_.used >= slots_.width();  // so that ports are free again before the next issue
    state.put(hot_.used << Slots::STATE_BITS | slots_.stalled_before(now, hot_.used));
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
    put_later(writes_.cycle, now);
    if (writes_.cycle > now) state.put(writes_.used);
    put_later(redirect_.right_way_from, now);
    if (redirect_.right_way_from > now) put_later(redirect_.resolved, now);
    return true;
}

void InOrder::restore(StateReader& state) {
    const uint64_t now = base_;
    hot_ = {.cycle = now};
    const auto slot = static_cast<unsigned>(state.get());
    hot_.used = slot >> Slots::STATE_BITS;
    slots_.set_stalled_before(now, slot & ((1 << Slots::STATE_BITS) - 1));
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
    writes_ = {.last = store_buffer_.back()};
    if (uint64_t later = state.get()) {
        writes_.cycle = now + later;
        writes_.used = static_cast<unsigned>(state.get());
    }
    redirect_ = {};
    if (uint64_t later = state.get()) {
        redirect_.right_way_from = now + later;
        redirect_.resolved = now + state.get();
    }
    repeats_.end();
    counted_issuing_ = issuing_cycles();
}

}  // namespace perfemu::in_order
