// All decoded blocks, found by address and size.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "block.hpp"

namespace perfemu {

class BlockTable {
  public:
    BlockTable() { slots_.fill(&nothing_); }

    // A block may be translated again with another size (page ends, single-step): both are kept.
    static constexpr uint64_t tag(uint64_t address, uint32_t size) { return address ^ uint64_t{size} << 48; }

    // The block that was seen last in this address's slot. Its tag tells whether it is the wanted one.
    Block* cached(uint64_t address) const { return slots_[slot(address)]; }

    // A block that is none.
    static Block* nothing() { return &nothing_; }

    Block* find(uint64_t address, uint32_t size);
    Block& insert(std::unique_ptr<Block> block);
    // By one of the same address and size, where it is: others may point to it.
    void replace(Block& block, Block&& now);
    void clear();

    template <typename Visit>
    void each(Visit visit) {
        for (auto& entry : blocks_) visit(*entry.second);
    }

  private:
    static constexpr unsigned SLOT_BITS = 15;
    static size_t slot(uint64_t address) { return (address ^ address >> SLOT_BITS) & ((1 << SLOT_BITS) - 1); }

    static Block nothing_;  // fills empty slots: its tag is no block's
    std::array<Block*, size_t{1} << SLOT_BITS> slots_;
    std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks_;
};

}  // namespace perfemu
