#include "x86_64_system/page_tables.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace perfemu::x86_64 {
namespace {

namespace pte {
constexpr uint64_t PRESENT = bit_number(0), WRITABLE = bit_number(1), USER = bit_number(2), ACCESSED = bit_number(5),
                   DIRTY = bit_number(6), PAGE = bit_number(7), NO_EXECUTE = bit_number(63);
// Of an entry of 8 bytes, and of one of 4, whose large page has more address bits elsewhere.
constexpr uint64_t ADDRESS = 0x000f'ffff'ffff'f000, ADDRESS_32 = 0xffff'f000;
}  // namespace pte

constexpr unsigned PHYSICAL_BITS = 40;  // CPUID leaf 80000008H
constexpr uint64_t RESERVED = pte::ADDRESS & ~((uint64_t{1} << PHYSICAL_BITS) - 1);
constexpr uint64_t ALL_ONES = ~uint64_t{0};  // what a read finds where nothing is
constexpr unsigned PAE_ROOT_SHIFT = 30;

constexpr uint64_t mask_of(unsigned bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

std::span<const PageTables::Step> PageTables::steps() const {
    static constexpr Step LONG[] = {{39, 9, false}, {30, 9, true}, {21, 9, true}, {12, 9, false}};
    static constexpr Step PAE[] = {{PAE_ROOT_SHIFT, 2, false}, {21, 9, true}, {12, 9, false}};
    static constexpr Step PLAIN[] = {{22, 10, false}, {12, 10, false}};
    static constexpr Step LARGE[] = {{22, 10, true}, {12, 10, false}};
    if (state_.is_long()) return LONG;
    if (state_.cr4 & cr4::PAE) return PAE;
    if (state_.cr4 & cr4::PSE) return LARGE;
    return PLAIN;
}

GuestPageTables::Registers PageTables::read(uc_engine*, std::string&) {
    // What there is of instructions.
    const unsigned bases = (state_.cr4 & cr4::FSGSBASE) != 0, vectors = (state_.cr4 & cr4::OSFXSR) != 0;
    const unsigned refused = (state_.cr0 & (cr0::EM | cr0::TS)) != 0, waits = (state_.cr0 & cr0::MP) != 0;
    code_state_ = static_cast<uint8_t>(static_cast<unsigned>(state_.mode()) << 4 | waits << 3 | refused << 2 |
                                       vectors << 1 | bases);
    Registers now{.level = state_.level(), .state = code_state_};
    if (!state_.paging()) return now;
    constexpr uint64_t CR4 = cr4::PSE | cr4::PAE | cr4::SMEP, EFER = efer::NXE | efer::LMA;
    now.tables = {state_.cr3, 1 | (state_.cr0 & cr0::WP), state_.cr4 & CR4, state_.efer & EFER};
    return now;
}

uint64_t PageTables::entry(uint64_t physical, PageWalk& walk) const {
    const unsigned bytes = entry_bytes();
    const auto found = descriptor(physical & ~uint64_t{7}, walk);
    walk.descriptors[walk.reads - 1] = physical;
    if (!found) return bytes == 8 ? ALL_ONES : ALL_ONES >> 32;
    return bytes == 8 ? *found : static_cast<uint32_t>(*found >> 8 * (physical & 7));
}

bool PageTables::reserved_bits(uint64_t entry, const Step& step, bool is_page) const {
    if (entry_bytes() == 4) return is_page && step.shift > PAGE_SHIFT && entry & bit_number(21);
    uint64_t reserved = RESERVED;
    if (!(state_.efer & efer::NXE)) reserved |= pte::NO_EXECUTE;
    if (!state_.is_long()) {
        reserved |= 0x7ff0'0000'0000'0000;
        if (step.shift == PAE_ROOT_SHIFT) reserved |= pte::NO_EXECUTE | 0x1e6;
    }
    // Above bit 12, which is PAT's there.
    if (is_page && step.shift > PAGE_SHIFT) reserved |= mask_of(step.shift) & ~mask_of(PAGE_SHIFT + 1);
    if (!is_page && !step.may_be_page && step.shift > PAGE_SHIFT && step.shift != PAE_ROOT_SHIFT) reserved |= pte::PAGE;
    return entry & reserved;
}

uint8_t PageTables::protection(Rights rights, Level level) const {
    const bool is_user = level == Level::USER;
    if (is_user && !rights.user) return 0;
    uint8_t allowed = READ;
    if (rights.writable || (!is_user && !(state_.cr0 & cr0::WP))) allowed |= WRITE;
    const bool prevented = !is_user && rights.user && state_.cr4 & cr4::SMEP;
    if (!rights.no_execute && !prevented) allowed |= EXECUTE;
    return allowed;
}

PageWalk PageTables::walk(uint64_t address, Level level) const {
    PageWalk walk;
    if (!state_.is_long()) address = static_cast<uint32_t>(address);
    Rights rights;
    walk.output = address;
    if (state_.paging()) {
        walk.fault = WalkFault::TRANSLATION;
        if (state_.is_long() && !is_canonical(address)) return walk;
        uint64_t table = state_.cr3 & (state_.is_long()        ? pte::ADDRESS
                                       : state_.cr4 & cr4::PAE ? uint64_t{0xffff'ffe0}
                                                               : pte::ADDRESS_32);
        for (const Step& step : steps()) {
            walk.level++;
            const uint64_t index = address >> step.shift & mask_of(step.bits);
            const uint64_t found = entry(table + index * entry_bytes(), walk);
            if (!(found & pte::PRESENT)) return walk;
            const bool is_page = step.shift == PAGE_SHIFT || (step.may_be_page && found & pte::PAGE);
            if (reserved_bits(found, step, is_page)) {
                walk.fault = WalkFault::ADDRESS_SIZE;
                return walk;
            }
            if (state_.is_long() || step.shift != PAE_ROOT_SHIFT || entry_bytes() == 4) {
                rights.user &= (found & pte::USER) != 0;
                rights.writable &= (found & pte::WRITABLE) != 0;
                rights.no_execute |= entry_bytes() == 8 && found & pte::NO_EXECUTE;
            }
            table = found & (entry_bytes() == 8 ? pte::ADDRESS : pte::ADDRESS_32);
            if (!is_page) continue;
            const uint64_t within = mask_of(step.shift);
            const uint64_t high = entry_bytes() == 4 && step.shift > PAGE_SHIFT ? (found >> 13 & 0xff) << 32 : 0;
            walk.output = (table & ~within) | high | (address & within);
            break;
        }
    }
    const bool there = is_ram(walk.output);
    walk.fault = there ? WalkFault::NONE : WalkFault::EXTERNAL;
    walk.page = {.frame = there ? frame_of(walk.output) : Frame{},
                 .protection = protection(state_.paging() ? rights : Rights{.user = level == Level::USER}, level),
                 .present = there};
    return walk;
}

// As the processor's walker does, sets the entries' A, and the page's D before the first store.
Page PageTables::find(uint64_t address, Level level, uint8_t access) {
    const PageWalk found = walk(address, level);
    Page page = found.page;
    if (!page.present || !(page.protection & access) || !state_.paging()) return page;
    const bool pae = state_.cr4 & cr4::PAE && !state_.is_long();
    for (unsigned i = 0; i < found.reads; i++) {
        if (pae && i == 0) continue;
        const uint64_t at = found.descriptors[i];
        uint8_t& flags = memory_->host(frame_of(at))[at & PAGE_MASK];
        const bool is_page = i + 1u == found.reads;
        const auto wanted = static_cast<uint8_t>(pte::ACCESSED | (is_page && access == WRITE ? pte::DIRTY : 0));
        if ((flags & wanted) != wanted) flags |= wanted;
        if (is_page && !(flags & pte::DIRTY)) page.protection &= static_cast<uint8_t>(~WRITE);
    }
    return page;
}

uint32_t PageTables::error_code(uint64_t address, Level level, uint8_t access) const {
    constexpr uint32_t PROTECTION = 1, WRITING = 2, BY_USER = 4, RESERVED_BIT = 8, FETCH = 16;
    const WalkFault fault = walk(address, level).fault;
    uint32_t code = fault == WalkFault::TRANSLATION ? 0 : PROTECTION;
    if (fault == WalkFault::ADDRESS_SIZE) code |= RESERVED_BIT;
    if (access & WRITE) code |= WRITING;
    if (level == Level::USER) code |= BY_USER;
    const bool fetches_are_told = state_.cr4 & cr4::SMEP || (state_.cr4 & cr4::PAE && state_.efer & efer::NXE);
    if (access & EXECUTE && fetches_are_told) code |= FETCH;
    return code;
}

}  // namespace perfemu::x86_64
