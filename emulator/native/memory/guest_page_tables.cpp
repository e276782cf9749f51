#include "memory/guest_page_tables.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace perfemu {

GuestPageTables::GuestPageTables(std::shared_ptr<PhysicalMemory> memory, GuestRam ram, bool knows_common)
    : AddressTranslation(std::move(memory)), ram_(ram), kernel_executes_locally_(!knows_common) {
    is_guests_own_ = true;
}

void GuestPageTables::read_registers(uc_engine* engine) {
    refusal_.clear();
    const Registers now = read(engine, refusal_);
    level_ = now.level;
    if (registers_ == now) return;
    Registers at_this_level = registers_.value_or(now);
    at_this_level.level = now.level;
    if (!keeps_levels_apart() || at_this_level != now) generation_++;
    registers_ = now;
    find_id();
    if (regimes_.size() == MOST_IDS) regimes_.clear();
    regime_ = regimes_.try_emplace(now.tables, id_).first->second;
}

// What a kernel executes, it executes in all address spaces, as long as it is in pages that these have in common.
GuestPageTables::CodeKey GuestPageTables::code_key() const {
    const bool is_local = level_ == Level::USER || kernel_executes_locally_;
    const Tables& tables = is_local ? registers_->tables : registers_->common;
    CodeKey key{static_cast<uint64_t>(level_), is_local, code_state()};
    std::ranges::copy_backward(tables, key.end());
    return key;
}

// Each has an id, so that blocks found under one are found again when it comes back.
void GuestPageTables::find_id() {
    if (ids_.size() == MOST_IDS) ids_.clear();
    auto [known, is_new] = ids_.try_emplace(code_key(), 0);
    if (is_new) known->second = memory_->new_space_id();
    id_ = known->second;
}

bool GuestPageTables::note_local_code() {
    if (std::exchange(kernel_executes_locally_, true)) return false;
    find_id();
    return true;
}

std::optional<uint64_t> GuestPageTables::descriptor(uint64_t physical, PageWalk& walk) const {
    walk.descriptors[walk.reads++] = physical;
    if (!is_ram(physical)) return std::nullopt;
    uint64_t value;
    std::memcpy(&value, memory_->host(frame_of(physical)) + (physical & PAGE_MASK), sizeof value);
    return value;
}

}  // namespace perfemu
