#include "core/access_witness.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/model.hpp"
#include "instructions/guest_memory.hpp"

namespace perfemu {

namespace {

constexpr uint64_t NOWHERE = ~uint64_t{0};
constexpr size_t MOST_OF_A_FAULT = 4;  // accesses that the engine tells of an instruction which then faults
constexpr uint64_t LARGEST_ELEMENT = 16;

std::string text(const char* who, uint64_t pc, uint64_t physical, uint64_t size, bool store) {
    char line[160];
    std::snprintf(line, sizeof line, "%s %s of %llu bytes at physical %#llx, instruction %#llx", who,
                  store ? "store" : "load", static_cast<unsigned long long>(size),
                  static_cast<unsigned long long>(physical), static_cast<unsigned long long>(pc));
    return line;
}

}  // namespace

AccessWitness::AccessWitness(Core& core, std::shared_ptr<AddressSpace> space) : core_(core), space_(std::move(space)) {
    uc_hook handle;
    uc_err error = uc_hook_add(core.engine(), &handle, UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE,
                               reinterpret_cast<void*>(&AccessWitness::on_access), this, 1, 0);
    accesses_are_told = true;
    if (error != UC_ERR_OK) throw std::runtime_error(std::string("uc_hook_add: ") + uc_strerror(error));
    core.start_trace();
}

void AccessWitness::on_access(uc_engine*, uc_mem_type type, uint64_t address, int size, int64_t, void* user) {
    AccessWitness& self = *static_cast<AccessWitness*>(user);
    self.note(self.core_.pc(), address, static_cast<uint64_t>(size), type == UC_MEM_WRITE);
}

// As the architecture has it, STXR only stores: the engine makes it a compare-and-swap, which reads first.
void AccessWitness::note(uint64_t pc, uint64_t physical, uint64_t size, bool store) {
    uint32_t word = 0;
    if (core_.isa().engine_arch() == UC_ARCH_ARM64) space_->read(pc, {reinterpret_cast<uint8_t*>(&word), sizeof word});
    bool exclusive_store = (word & 0x3fc00000) == 0x08000000;
    if (exclusive_store && !store) return;
    seen_.push_back({pc, physical, size, store});
}

uint64_t AccessWitness::physical(uint64_t address) const {
    const Page page = space_->lookup(address);
    return page.present ? (uint64_t{page.frame} << PAGE_SHIFT) + (address & PAGE_MASK) : NOWHERE;
}

// The engine stores DC ZVA's line, or FXSAVE's area, piece by piece: how many pieces, from seen_[at] on.
size_t AccessWitness::pieces(const SeenAccess& whole, uint64_t address, size_t at) const {
    uint64_t in_first_page = std::min(whole.size, PAGE_SIZE - (address & PAGE_MASK));
    uint64_t second_page = physical(address + in_first_page);
    size_t count = 0;
    for (; at + count < seen_.size(); count++) {
        const SeenAccess& piece = seen_[at + count];
        bool within = piece.physical - whole.physical < in_first_page ||
                      piece.physical - second_page < whole.size - in_first_page;
        if (piece.pc != whole.pc || piece.store != whole.store || !within) break;
    }
    return count;
}

// The second half of an unaligned vector is stored first.
void AccessWitness::order_halves(uint64_t first, size_t at) {
    const bool swapped = at + 1 < seen_.size() && seen_[at].pc == seen_[at + 1].pc && seen_[at].physical != first &&
                         seen_[at + 1].physical == first;
    if (swapped) std::swap(seen_[at], seen_[at + 1]);
}

uint64_t AccessWitness::compare() {
    uint64_t compared = 0;
    size_t at = 0;
    auto expect = [&](const SeenAccess& traced, uint64_t address) {
        std::string mine = text("traced", traced.pc, traced.physical, traced.size, traced.store);
        if (at == seen_.size()) throw std::logic_error(mine + "; the engine saw none");
        const SeenAccess& seen = seen_[at];
        bool large = traced.size > LARGEST_ELEMENT;
        size_t count = large ? pieces(traced, address, at) : seen == traced;
        if (count == 0)
            throw std::logic_error(mine + "; " + text("seen", seen.pc, seen.physical, seen.size, seen.store));
        at += count;
        compared++;
    };
    for (const TracedAccess& access : core_.take_trace()) {
        uint64_t size = access.size / access.elements;
        if (access.store && access.elements == 2) order_halves(physical(access.address), at);
        for (unsigned element = 0; element < access.elements; element++) {
            uint64_t address = access.address + element * size;
            expect({access.pc, physical(address), size, access.store}, address);
        }
    }
    // An instruction that faulted has told what it tried.
    size_t tried = 0;
    while (at + tried < seen_.size() && tried < MOST_OF_A_FAULT && seen_[at + tried].pc == core_.pc()) tried++;
    if (at + tried != seen_.size()) {
        const SeenAccess& seen = seen_[at];
        throw std::logic_error("not traced: " + text("seen", seen.pc, seen.physical, seen.size, seen.store));
    }
    seen_.clear();
    return compared;
}

}  // namespace perfemu
