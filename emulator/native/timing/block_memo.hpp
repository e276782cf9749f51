// The memo of a pipeline that says only of a block's unusual requests what memory answered (recalling.hpp). A
// transition leads from a state to the next by `what`: how the block ends; or a request, or the answer to it, and then
// the state lies between two blocks' and has no bytes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "timing/memo.hpp"

namespace perfemu {

struct alignas(32) BlockTransition {
    uint64_t key = ~uint64_t{0};  // where it comes from, and what happened
    StateTable::State to = StateTable::NONE;
    uint32_t runs = 0;
    int32_t cycles = 0;              // by which `now` moves on; of a request: when memory is asked
    std::array<uint32_t, 3> next{};  // numbers of the transitions that followed it last, in so many ways
};

class BlockMemo : public Memo<BlockTransition> {
  public:
    using Transition = BlockTransition;

    BlockMemo() : Memo(MOST_TRANSITIONS) {}

    // The transition that leads from there, or null. `last` has led there, or is NONE's; `way` is one of three, and the
    // same for what is most often the same: most are found without hashing.
    Transition* find(Transition& last, unsigned way, State from, uint32_t what) {
        const uint64_t key = key_of(from, what);
        Transition& likely = (*this)[last.next[way]];
        if (likely.key == key) [[likely]]
            return &likely;
        return search(key, last.next[way]);
    }
    Transition* find(State from, uint32_t what) {
        uint32_t found;
        return search(key_of(from, what), found);
    }
    // Brings the one that followed it that way to the host's cache.
    void prefetch(const Transition& last, unsigned way) const { __builtin_prefetch(&(*this)[last.next[way]], 1); }

    // One that `find` has not found.
    Transition& add(State from, uint32_t what, State to) {
        const uint64_t key = key_of(from, what);
        const uint32_t added = Memo::add({.key = key, .to = to});
        enter(key, added);
        retired_.push_back(0);
        return (*this)[added];
    }
    void clear() {
        Memo::clear();
        retired_.assign(1, 0);
    }

    // When the last instruction retired, from where the block began: needed less often than the rest.
    void set_retired(const Transition& transition, int32_t cycles) { retired_[number(transition)] = cycles; }
    int32_t retired(const Transition& transition) const { return retired_[number(transition)]; }

  private:
    static constexpr size_t MOST_TRANSITIONS = 1 << 18;

    // Changes `found` only if it is there.
    [[gnu::noinline]] Transition* search(uint64_t key, uint32_t& found) {
        const uint32_t number = Memo::find(key);
        if (number == NONE) return nullptr;
        found = number;
        return &(*this)[number];
    }

    std::vector<int32_t> retired_{0};  // by transition
};

}  // namespace perfemu
