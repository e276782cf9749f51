// What an x86-64 processor has besides what user mode sees: control registers, descriptor tables, segments, privilege.
//
// Names and layouts: Intel SDM vol. 3, chapters 2 to 6; of MSRs, vol. 4.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "archive.hpp"
#include "level.hpp"
#include "x86_64/instruction.hpp"

namespace perfemu::x86_64 {

constexpr uint64_t bit_number(unsigned number) { return uint64_t{1} << number; }

namespace cr0 {
inline constexpr uint64_t PE = bit_number(0), MP = bit_number(1), EM = bit_number(2), TS = bit_number(3),
                          ET = bit_number(4), NE = bit_number(5), WP = bit_number(16), AM = bit_number(18),
                          NW = bit_number(29), CD = bit_number(30), PG = bit_number(31);
}
namespace cr4 {
inline constexpr uint64_t TSD = bit_number(2), DE = bit_number(3), PSE = bit_number(4), PAE = bit_number(5),
                          PGE = bit_number(7), PCE = bit_number(8), OSFXSR = bit_number(9), OSXMMEXCPT = bit_number(10),
                          UMIP = bit_number(11), FSGSBASE = bit_number(16), SMEP = bit_number(20);
inline constexpr uint64_t MODELLED = TSD | DE | PSE | PAE | PGE | PCE | OSFXSR | OSXMMEXCPT | UMIP | FSGSBASE | SMEP;
}  // namespace cr4
namespace efer {
inline constexpr uint64_t SCE = bit_number(0), LME = bit_number(8), LMA = bit_number(10), NXE = bit_number(11);
}
namespace dr7 {
static constexpr uint64_t GD = 1 << 13;  // whoever reaches for debug registers is a fault
}
namespace rflags {
inline constexpr uint64_t CF = bit_number(0), FIXED = bit_number(1), PF = bit_number(2), AF = bit_number(4),
                          ZF = bit_number(6), SF = bit_number(7), TF = bit_number(8), IF = bit_number(9),
                          DF = bit_number(10), OF = bit_number(11), IOPL = 3 << 12, NT = bit_number(14),
                          RF = bit_number(16), VM = bit_number(17), AC = bit_number(18), VIF = bit_number(19),
                          VIP = bit_number(20), ID = bit_number(21);
inline constexpr unsigned IOPL_AT = 12;
}  // namespace rflags

enum class Vector : uint8_t {
    DIVIDE,
    DEBUG,
    NMI,
    BREAKPOINT,
    OVERFLOW_TRAP,
    BOUND,
    UNDEFINED,
    NO_MATH,
    DOUBLE_FAULT,
    INVALID_TSS = 10,
    NOT_PRESENT,
    STACK,
    PROTECTION,
    PAGE_FAULT,
    MATH = 16,
    ALIGNMENT,
    SIMD = 19,
};

// What an instruction raises in place of retiring.
struct Fault {
    Vector vector;
    std::optional<uint32_t> error{};    // the error code that the exception pushes
    std::optional<uint64_t> address{};  // CR2
};
[[noreturn]] inline void raise(Vector vector, uint32_t error) { throw Fault{vector, error}; }
[[noreturn]] inline void raise_protection(uint32_t selector = 0) { raise(Vector::PROTECTION, selector & 0xfffc); }
[[noreturn]] inline void raise_undefined() { throw Fault{Vector::UNDEFINED}; }

// In the encodings' order; then the two that have registers of their own.
enum SegmentNumber : unsigned { ES, CS, SS, DS, FS, GS, LDTR, TR };
inline constexpr unsigned SEGMENTS = 8;

// Attributes are laid out as VMX has access rights: bits 8 to 23 of a descriptor's second word.
namespace attribute {
inline constexpr uint32_t TYPE = 0xf, S = 1 << 4, DPL = 3 << 5, PRESENT = 1 << 7, L = 1 << 13, DB = 1 << 14,
                          G = 1 << 15, UNUSABLE = 1 << 16;
inline constexpr unsigned DPL_AT = 5;
inline constexpr uint32_t ACCESSED = 1, WRITABLE = 2, READABLE = 2, CONFORMING = 4, EXPANDS_DOWN = 4, CODE = 8;
}  // namespace attribute

struct SegmentRegister {
    uint16_t selector = 0;
    uint64_t base = 0;
    uint32_t limit = 0xffff;
    uint32_t attributes = 0x93;

    void archive(Archive& state) { state(selector, base, limit, attributes); }
    bool has(uint32_t some) const { return attributes & some; }
    unsigned dpl() const { return attributes >> attribute::DPL_AT & 3; }
    unsigned type() const { return attributes & attribute::TYPE; }
    bool is_code() const { return has(attribute::S) && has(attribute::CODE); }
};

struct TableRegister {
    uint64_t base = 0;
    uint16_t limit = 0xffff;

    void archive(Archive& state) { state(base, limit); }
};

// As a reset leaves it: Intel SDM vol. 3, table 10-1.
struct State {
    uint64_t cr0 = cr0::CD | cr0::NW | cr0::ET, cr2 = 0, cr3 = 0, cr4 = 0, cr8 = 0, efer = 0;
    std::array<uint64_t, 8> debug{0, 0, 0, 0, 0, 0, 0xffff0ff0, 0x400};
    TableRegister gdtr, idtr;
    // Of FS and GS the base is the engine's.
    std::array<SegmentRegister, SEGMENTS> segments{};
    unsigned cpl = 0;
    uint64_t star = 0, lstar = 0, cstar = 0, sfmask = 0, kernel_gs_base = 0;
    uint64_t sysenter_cs = 0, sysenter_esp = 0, sysenter_eip = 0, tsc_aux = 0;
    uint64_t tsc_offset = 0;   // to the core's cycles
    bool handles_nmi = false;  // until the next IRET
    bool is_amd = false;       // SYSCALL and SYSENTER are AMD's, not Intel's

    State() {
        segments[CS] = {.selector = 0xf000, .base = 0xffff'0000, .attributes = 0x9b};
        segments[LDTR].attributes = 0x82;
        segments[TR].attributes = 0x8b;
    }

    void archive(Archive& state) {
        state(cr0, cr2, cr3, cr4, cr8, efer, debug, gdtr, idtr, star, lstar, cstar, sfmask, kernel_gs_base);
        state(sysenter_cs, sysenter_esp, sysenter_eip, tsc_aux, tsc_offset, handles_nmi);
        for (SegmentRegister& segment : segments) segment.archive(state);
        state.up_to(cpl, 3U);
    }
    bool paging() const { return cr0 & cr0::PG; }
    bool is_protected() const { return cr0 & cr0::PE; }
    bool is_long() const { return efer & efer::LMA; }
    CodeMode mode() const {
        if (is_long() && segments[CS].has(attribute::L)) return CodeMode::BITS_64;
        return segments[CS].has(attribute::DB) ? CodeMode::BITS_32 : CodeMode::BITS_16;
    }
    bool is_64() const { return mode() == CodeMode::BITS_64; }
    Level level() const { return cpl == 3 ? Level::USER : Level::KERNEL; }
    uint64_t stack_at(uint64_t pointer) const {
        if (is_64()) return pointer;
        const SegmentRegister& stack = segments[SS];
        return static_cast<uint32_t>(stack.base +
                                     (stack.has(attribute::DB) ? pointer : static_cast<uint16_t>(pointer)));
    }
    // Where RIP counts from.
    uint64_t code_base() const { return is_64() ? 0 : segments[CS].base; }
    uint64_t linear(uint64_t rip) const { return is_64() ? rip : static_cast<uint32_t>(code_base() + rip); }
};

inline bool is_canonical(uint64_t address) {
    constexpr int BITS = 48;
    const auto sign = static_cast<int64_t>(address) >> (BITS - 1);
    return sign == 0 || sign == -1;
}

}  // namespace perfemu::x86_64
