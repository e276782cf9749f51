#include "instructions/segments.hpp"

#include <stdexcept>

#include "instructions/exceptions.hpp"

namespace perfemu {
namespace {

// In the encodings' order.
enum Segment : int { ES, CS, SS, DS, FS, GS };

// Selectors of Linux: arch/x86/include/asm/segment.h. User mode's are of privilege level 3.
constexpr uint16_t CODE_SEGMENT = 0x33, STACK_SEGMENT = 0x2b;
constexpr unsigned REQUESTED_LEVEL = 3;
// Those that user mode can load into data segments, whatever level is requested: its code of 32 bits, its data, its
// code, and what tells the CPU's number. Every other is the kernel's, or there is none.
constexpr unsigned LOADABLE[] = {0x20, 0x28, 0x30, 0x78};

// What those descriptors say of themselves to LAR, LSL, VERR and VERW: all of memory, of 32 and of 64 bits. The one
// that tells the CPU's number is not modelled for them: none.
struct Descriptor {
    unsigned selector;  // without the requested level
    uint32_t rights;    // its second half, where LAR tells it
    bool writable;
};
constexpr Descriptor DESCRIPTORS[] = {{0x20, 0xcffb00, false}, {0x28, 0xcff300, true}, {0x30, 0xaffb00, false}};
constexpr uint32_t LIMIT = 0xffff'ffff;

// QEMU's SegmentCache: its base is found at start-up, its selector lies in front.
constexpr size_t CACHE_BYTES = 24, SELECTOR_BEFORE_BASE = 8;

size_t base_offset(int segment) {
    return environment_layout.segment_base_fs + static_cast<size_t>(segment) * CACHE_BYTES - FS * CACHE_BYTES;
}

bool loadable(unsigned selector) {
    const unsigned descriptor = selector & ~REQUESTED_LEVEL;
    if (!descriptor) return true;
    for (unsigned each : LOADABLE)
        if (descriptor == each) return true;
    return false;
}

// Bases are zero in all of these descriptors. Of null, that is Intel's, and AMD's that tell NullSelectorClearsBase.
void load_segment(Environment* environment, int segment, int value) {
    const unsigned selector = static_cast<unsigned>(value) & 0xffff;
    if (segment == SS ? selector != STACK_SEGMENT : !loadable(selector))
        raise_exception(environment, Vector8664::PROTECTION, HELPER_RETURN_ADDRESS());
    if (segment == SS) return;
    field<uint32_t>(environment, base_offset(segment) - SELECTOR_BEFORE_BASE) = selector;
    if (segment == FS || segment == GS) field<uint64_t>(environment, base_offset(segment)) = 0;
}

const Descriptor* descriptor(uint64_t selector) {
    for (const Descriptor& each : DESCRIPTORS)
        if (each.selector == (selector & 0xffff & ~uint64_t{REQUESTED_LEVEL})) return &each;
    return nullptr;
}

// The engine's own know no descriptor: they clear ZF, and leave the other flags where helpers leave them.
uint64_t (*engine_rights)(Environment*, uint64_t) = nullptr;
uint64_t (*engine_limit)(Environment*, uint64_t) = nullptr;
void (*engine_verify_read)(Environment*, uint64_t) = nullptr;
void (*engine_verify_write)(Environment*, uint64_t) = nullptr;

uint64_t load_rights(Environment* environment, uint64_t selector) {
    engine_rights(environment, selector);
    const Descriptor* found = descriptor(selector);
    if (!found) return 0;
    flags_source(environment) |= ZERO;
    return found->rights;
}

uint64_t load_limit(Environment* environment, uint64_t selector) {
    engine_limit(environment, selector);
    if (!descriptor(selector)) return 0;
    flags_source(environment) |= ZERO;
    return LIMIT;
}

void verify_read(Environment* environment, uint64_t selector) {
    engine_verify_read(environment, selector);
    if (descriptor(selector)) flags_source(environment) |= ZERO;
}

void verify_write(Environment* environment, uint64_t selector) {
    engine_verify_write(environment, selector);
    const Descriptor* found = descriptor(selector);
    if (found && found->writable) flags_source(environment) |= ZERO;
}

// The engine would let no single step end behind it.
void load_stack_segment(const Operands& operands) {
    const uint64_t selector =
        operands.in_memory() ? operands.load(2) : general_register(operands.environment(), operands.source_register());
    if ((selector & 0xffff) != STACK_SEGMENT)
        raise_exception(operands.environment(), Vector8664::PROTECTION, operands.return_address());
}

// To memory and to registers of 16 bits: as much; other registers are extended with zeros.
template <uint16_t SELECTOR, bool WHOLE>
void move_selector(const Operands& operands) {
    if (operands.in_memory()) {
        operands.store(2, SELECTOR);
        return;
    }
    uint64_t& destination = general_register(operands.environment(), operands.source_register());
    destination = WHOLE ? SELECTOR : (destination & ~uint64_t{0xffff}) | SELECTOR;
}

constexpr uint8_t ANY_PREFIX = Encoding::NONE | Encoding::P66 | Encoding::F3 | Encoding::F2;
constexpr uint8_t OF_16 = ExecutedRow::BITS_16, WIDE = ExecutedRow::BITS_32 | ExecutedRow::BITS_64;

template <uint16_t SELECTOR, bool WHOLE>
constexpr ExecutedRow move_row(uint8_t group) {
    return {.map = Encoding::ONE_BYTE,
            .opcode = 0x8c,
            .prefixes = ANY_PREFIX,
            .group = group,
            .widths = WHOLE ? WIDE : OF_16,
            .execute = move_selector<SELECTOR, WHOLE>};
}
constexpr ExecutedRow ROWS[] = {
    {.map = Encoding::ONE_BYTE, .opcode = 0x8e, .prefixes = ANY_PREFIX, .group = SS, .execute = load_stack_segment},
    move_row<CODE_SEGMENT, true>(CS),
    move_row<CODE_SEGMENT, false>(CS),
    move_row<STACK_SEGMENT, true>(SS),
    move_row<STACK_SEGMENT, false>(SS),
};

}  // namespace

std::span<const ExecutedRow> segment_rows() { return ROWS; }

InstructionFamily segment_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_load_seg", load_segment),
        in_place_of("helper_lar", load_rights, &engine_rights),
        in_place_of("helper_lsl", load_limit, &engine_limit),
        in_place_of("helper_verr", verify_read, &engine_verify_read),
        in_place_of("helper_verw", verify_write, &engine_verify_write),
    };
    const auto check = [](const Calibration&) {
        if (environment_layout.segment_base_gs - environment_layout.segment_base_fs != CACHE_BYTES)
            throw std::runtime_error("this Unicorn keeps GS where 2.1.4 does not");
    };
    return {REPLACEMENTS, check};
}

}  // namespace perfemu
