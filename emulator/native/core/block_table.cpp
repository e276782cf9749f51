#include "core/block_table.hpp"

#include <algorithm>
#include <utility>

namespace perfemu {

static constexpr uint64_t NO_SPACE = ~uint64_t{0};

Block BlockTable::nothing_{
    .tag = ~uint64_t{0}, .cost = 0, .end = 0, .successors = {&nothing_, &nothing_}, .address = 0, .size = 0};

BlockTable::BlockTable() {
    executing_ = &spaces_.emplace_back(SpaceSlots{.space = NO_SPACE, .slots = make_slots()});
    slots_ = executing_->slots->data();
}

std::unique_ptr<BlockTable::Slots> BlockTable::make_slots() {
    auto slots = std::make_unique_for_overwrite<Slots>();
    slots->fill(&nothing_);
    return slots;
}

Block* BlockTable::find(uint64_t address, uint32_t size, BlockFrames frames) {
    auto found = blocks_.find({tag(address, size), frames});
    if (found == blocks_.end()) return nullptr;
    fill_slot(*found->second);
    return found->second.get();
}

Block& BlockTable::insert(std::unique_ptr<Block> block) {
    Block& inserted = *block;
    fill_slot(inserted);
    inserted.successors = nothing_behind();
    blocks_[{inserted.tag, inserted.frames}] = std::move(block);
    return inserted;
}

void BlockTable::replace(Block& block, Block&& now) {
    now.successors = nothing_behind();
    block = std::move(now);
}

void BlockTable::clear() {
    blocks_.clear();
    for (SpaceSlots& slots : spaces_)
        if (&slots != executing_) slots.space = NO_SPACE;
    empty(*executing_);
}

void BlockTable::fill_slot(Block& block) {
    const size_t number = slot(block.address);
    slots_[number] = &block;
    if (executing_->filled.size() < MOST_LISTED) executing_->filled.push_back(static_cast<uint32_t>(number));
}

// A guest's own kernel says often that what is remembered of its page tables is wrong.
void BlockTable::empty(SpaceSlots& slots) {
    if (slots.filled.size() == MOST_LISTED) {
        slots.slots->fill(&nothing_);
    } else {
        for (uint32_t number : slots.filled) (*slots.slots)[number] = &nothing_;
    }
    slots.filled.clear();
}

bool BlockTable::use_slots_of(const AddressTranslation& space) {
    if (executing_->space == space.id() && executing_->code_generation == space.code_generation()) return false;
    executing_ = &slots_of(space.id());
    slots_ = executing_->slots->data();
    executing_->used = ++uses_;
    if (std::exchange(executing_->space, space.id()) != space.id() ||
        std::exchange(executing_->code_generation, space.code_generation()) != space.code_generation()) {
        executing_->code_generation = space.code_generation();
        empty(*executing_);
    }
    return true;
}

// The slots that this space has, or those that it may take.
BlockTable::SpaceSlots& BlockTable::slots_of(uint64_t space) {
    auto has = [space](const SpaceSlots& slots) { return slots.space == space; };
    if (auto own = std::ranges::find_if(spaces_, has); own != spaces_.end()) return *own;
    auto free = std::ranges::find(spaces_, NO_SPACE, &SpaceSlots::space);
    if (free != spaces_.end()) return *free;
    if (spaces_.size() < MOST_SPACES) return spaces_.emplace_back(SpaceSlots{.space = NO_SPACE, .slots = make_slots()});
    return *std::ranges::min_element(spaces_, {}, &SpaceSlots::used);
}

}  // namespace perfemu
