// All decoded blocks, found by address and size, and by the frames that their bytes lie in.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/block.hpp"
#include "memory/memory.hpp"

namespace perfemu {

// Blocks belong to frames: address spaces that have the same frames at the same addresses share them, as a fork's
// parent and child do, and processes of one program. What is at an address in the space that executes stands in that
// space's *slots*, which are right as long as its `code_generation` does not move.
class BlockTable {
  public:
    BlockTable();
    BlockTable(const BlockTable&) = delete;
    BlockTable& operator=(const BlockTable&) = delete;

    // A block may be translated again with another size (page ends, single-step): both are kept.
    static constexpr uint64_t tag(uint64_t address, uint32_t size) { return address ^ uint64_t{size} << 48; }

    // The block that was seen last in this address's slot. Its tag tells whether it is the wanted one.
    Block* cached(uint64_t address) const { return slots_[slot(address)]; }

    // A block that is none.
    static Block* nothing() { return &nothing_; }
    static std::array<Block*, 2> nothing_behind() { return {&nothing_, &nothing_}; }

    Block* find(uint64_t address, uint32_t size, BlockFrames frames);
    Block& insert(std::unique_ptr<Block> block);
    // By one of the same address and size, where it is: others may point to it.
    void replace(Block& block, Block&& now);
    void clear();
    // No block there is found by its tag, until `trust`.
    void doubt(uint64_t address);
    static void trust(Block& block) { block.tag = tag(block.address, block.size); }
    size_t size() const { return blocks_.size(); }
    // Of all blocks together.
    size_t instructions() const { return instructions_; }
    // From now on `cached` is about this space, as it is now. False: it already was, and nothing has changed.
    bool use_slots_of(const AddressTranslation& space);
    // The engine fetches from that page of a space of the guest's own, and finds that frame. False: it was another when
    // it did so before, so that this space's slots are wrong.
    bool holds(uint64_t space, uint64_t page, Frame frame);

    template <typename Visit>
    void each(Visit visit) {
        for (auto& entry : blocks_) visit(*entry.second);
    }

  private:
    static constexpr unsigned SLOT_BITS = 15;
    static constexpr size_t MOST_SPACES = 16;  // the slots of those that executed last are kept
    static constexpr size_t MOST_LISTED = 1 << 10;
    static constexpr size_t MOST_FETCHED = 1 << 16;
    static size_t slot(uint64_t address) { return (address ^ address >> SLOT_BITS) & ((1 << SLOT_BITS) - 1); }

    struct Key {
        uint64_t tag;
        BlockFrames frames;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        size_t operator()(const Key& key) const {
            constexpr uint64_t ODD = 0x9E3779B97F4A7C15;
            const uint64_t frames = uint64_t{key.frames.first} << 32 | key.frames.last;
            uint64_t mixed =
                (key.tag ^ (frames + static_cast<unsigned>(key.frames.level) + 2u * key.frames.state) * ODD) * ODD;
            return mixed ^ mixed >> 32;
        }
    };
    struct Fetched {
        uint64_t space, page;
        bool operator==(const Fetched&) const = default;
    };
    struct FetchedHash {
        size_t operator()(const Fetched& key) const { return key.page * 0x9E3779B97F4A7C15 ^ key.space; }
    };
    using Slots = std::array<Block*, size_t{1} << SLOT_BITS>;
    struct SpaceSlots {
        uint64_t space;  // its id
        uint64_t code_generation = 0;
        bool is_outdated = false;        // though the generation is what it was
        uint64_t used = 0;               // when: the higher, the later
        std::vector<uint32_t> filled{};  // some perhaps more than once; too many are not listed
        std::unique_ptr<Slots> slots;
    };
    static std::unique_ptr<Slots> make_slots();
    SpaceSlots& slots_of(uint64_t space);
    void fill_slot(Block& block);
    static void empty(SpaceSlots& slots);

    static Block nothing_;   // fills empty slots: its tag is no block's
    Block** slots_;          // of the space that executes
    SpaceSlots* executing_;  // whose slots these are
    uint64_t uses_ = 0;
    size_t instructions_ = 0;
    std::vector<SpaceSlots> spaces_;
    std::unordered_map<Fetched, Frame, FetchedHash> fetched_;
    std::unordered_multimap<uint64_t, Block*> by_address_;
    std::unordered_map<Key, std::unique_ptr<Block>, KeyHash> blocks_;
};

}  // namespace perfemu
