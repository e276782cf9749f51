#include "core/block_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace perfemu {

static constexpr uint64_t NO_SPACE = ~uint64_t{0};
static constexpr uint64_t NO_TAG = ~uint64_t{0};

Block BlockTable::nothing_{
    .tag = NO_TAG, .cost = 0, .end = 0, .successors = {&nothing_, &nothing_}, .address = 0, .size = 0};

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
    instructions_ += inserted.ops.size();
    blocks_[{inserted.tag, inserted.frames}] = std::move(block);
    by_address_.emplace(inserted.address, &inserted);
    return inserted;
}

void BlockTable::replace(Block& block, Block&& now) {
    now.successors = nothing_behind();
    instructions_ += now.ops.size() - block.ops.size();
    block = std::move(now);
}

void BlockTable::doubt(uint64_t address) {
    const auto [begin, end] = by_address_.equal_range(address);
    for (auto block = begin; block != end; ++block) block->second->tag = NO_TAG;
}

void BlockTable::clear() {
    by_address_.clear();
    blocks_.clear();
    instructions_ = 0;
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
    if (executing_->space == space.id() && executing_->code_generation == space.code_generation() &&
        !executing_->is_outdated)
        return false;
    executing_ = &slots_of(space.id());
    slots_ = executing_->slots->data();
    executing_->used = ++uses_;
    const bool is_right = executing_->space == space.id() && executing_->code_generation == space.code_generation() &&
                          !executing_->is_outdated;
    executing_->space = space.id();
    executing_->code_generation = space.code_generation();
    executing_->is_outdated = false;
    if (!is_right) empty(*executing_);
    return true;
}

bool BlockTable::holds(uint64_t space, uint64_t page, Frame frame) {
    if (fetched_.size() == MOST_FETCHED) {
        fetched_.clear();
        for (SpaceSlots& slots : spaces_) slots.is_outdated = true;
    }
    const auto [known, is_new] = fetched_.try_emplace({space, page}, frame);
    if (is_new) return fetched_.size() > 1;
    if (std::exchange(known->second, frame) == frame) return true;
    for (SpaceSlots& slots : spaces_) slots.is_outdated |= slots.space == space;
    return false;
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
