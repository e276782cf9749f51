// Stores that have been executed, or will be, and are not yet in the cache: loads look here first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace perfemu {

class StoreQueue {
  public:
    struct Store {
        uint64_t address = 0, end = 0;
        uint64_t data = 0;     // cycle in which the data are known
        uint64_t written = 0;  // ... in which they are in the cache; later stores are not written earlier
        bool by_stack = false;
        bool general = false;  // of a general register
    };
    enum class Answer : uint8_t { NONE, FORWARD, PART, ALIAS };
    struct Found {
        Answer answer = Answer::NONE;
        const Store* store = nullptr;
        uint32_t distance = 0;  // in stores; 1: the last one
    };

    explicit StoreQueue(unsigned entries)
        : entries_(entries), stores_(std::bit_ceil(static_cast<size_t>(entries) + 1)), granules_(GRANULES) {}

    // The cycle in which a new store, or so many, find an entry.
    uint64_t free_at(uint64_t stores = 1) const {
        if (stores > entries_) return ~uint64_t{0};
        return count_ + stores <= entries_ ? 0 : at(count_ + stores - 1 - entries_).written;
    }

    void add(const Store& store) {
        at(count_) = store;
        last_written_ = store.written;
        uint64_t last = (store.end - 1) >> 3, first = store.address >> 3;
        if (last - first > 8) last = first + 8;
        for (uint64_t granule = first; granule <= last; ++granule) granules_[granule % GRANULES] = {granule, count_};
        ++count_;
    }

    // What the youngest store means to a load that issues in `cycle`.
    [[gnu::always_inline]] Found find(uint64_t address, uint64_t end, uint64_t cycle, bool aliases) const {
        if (last_written_ <= cycle) return {};
        return look(address, end, cycle, aliases);
    }

  private:
    [[gnu::noinline]] Found look(uint64_t address, uint64_t end, uint64_t cycle, bool aliases) const {
        Found found;
        for (uint64_t granule = address >> 3; granule <= (end - 1) >> 3; ++granule) {
            const Granule& entry = granules_[granule % GRANULES];
            if (entry.granule == granule || !in_flight(entry.number, cycle)) {
                if (entry.granule == granule && in_flight(entry.number, cycle))
                    return among(entry.number, address, end, cycle);
            } else if (aliases) {
                found = {Answer::ALIAS, &at(entry.number)};
            }
        }
        return found;
    }

    // By their offset in a page: what lies 4 KiB apart meets in one entry, as in the machines' own first comparison.
    static constexpr uint64_t GRANULES = 512;
    struct Granule {
        uint64_t granule = ~uint64_t{0};  // address / 8
        uint64_t number = ~uint64_t{0};
    };

    Store& at(uint64_t number) { return stores_[number & (stores_.size() - 1)]; }
    const Store& at(uint64_t number) const { return stores_[number & (stores_.size() - 1)]; }
    bool in_flight(uint64_t number, uint64_t cycle) const {
        return number < count_ && count_ - number <= entries_ && at(number).written > cycle;
    }

    // The granule's last store may be another part's: older ones are looked through.
    Found among(uint64_t number, uint64_t address, uint64_t end, uint64_t cycle) const {
        // A load of several granules may have a younger store in a later one.
        for (uint64_t granule = (address >> 3) + 1; granule <= (end - 1) >> 3; ++granule) {
            const Granule& entry = granules_[granule % GRANULES];
            if (entry.granule == granule && entry.number > number && in_flight(entry.number, cycle))
                number = entry.number;
        }
        for (;; --number) {
            if (!in_flight(number, cycle)) return {};
            const Store& store = at(number);
            if (store.address < end && address < store.end) {
                bool covered = store.address <= address && end <= store.end;
                return {covered ? Answer::FORWARD : Answer::PART, &store, static_cast<uint32_t>(count_ - number)};
            }
            if (number == 0) return {};
        }
    }

    unsigned entries_;
    uint64_t count_ = 0;
    uint64_t last_written_ = 0;
    std::vector<Store> stores_;
    std::vector<Granule> granules_;
};

}  // namespace perfemu
