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
    static const EngineReplacement REPLACEMENTS[] = {in_place_of("helper_load_seg", load_segment)};
    const auto check = [](const Calibration&) {
        if (environment_layout.segment_base_gs - environment_layout.segment_base_fs != CACHE_BYTES)
            throw std::runtime_error("this Unicorn keeps GS where 2.1.4 does not");
    };
    return {REPLACEMENTS, check};
}

}  // namespace perfemu
