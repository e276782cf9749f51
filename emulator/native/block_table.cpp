#include "block_table.hpp"

namespace perfemu {

Block BlockTable::nothing_{
    .tag = ~uint64_t{0}, .cost = 0, .successor = &BlockTable::nothing_, .address = 0, .end = 0, .size = 0};

Block* BlockTable::find(uint64_t address, uint32_t size) {
    auto found = blocks_.find(tag(address, size));
    if (found == blocks_.end()) return nullptr;
    slots_[slot(address)] = found->second.get();
    return found->second.get();
}

Block& BlockTable::insert(std::unique_ptr<Block> block) {
    Block& inserted = *block;
    slots_[slot(inserted.address)] = &inserted;
    inserted.successor = &nothing_;
    blocks_[inserted.tag] = std::move(block);
    return inserted;
}

void BlockTable::replace(Block& block, Block&& now) {
    now.successor = &nothing_;
    block = std::move(now);
}

void BlockTable::clear() {
    slots_.fill(&nothing_);
    blocks_.clear();
}

}  // namespace perfemu
