#include "instructions/stack_frame.hpp"

#include "instructions/guest_memory.hpp"

namespace perfemu {
namespace {

constexpr unsigned STACK_POINTER = 4, FRAME_POINTER = 5;
constexpr unsigned LEVELS = 32;  // nesting levels are modulo that

// Intel SDM vol. 2, "ENTER": pushes of the frame pointer, of the pointers to frames around this one, and of that to
// this one; then the new top of the stack must be one that could be stored to. SIZE: of each push.
template <uint64_t SIZE>
void enter(const Operands& operands) {
    Environment* const environment = operands.environment();
    const uintptr_t return_address = operands.return_address();
    const auto push = [&](uint64_t address, uint64_t value) {
        if constexpr (SIZE == 8)
            guest_memory.store_64(environment, address, value, return_address);
        else
            guest_memory.store_16(environment, address, static_cast<uint16_t>(value), return_address);
    };
    const auto load = [&](uint64_t address) -> uint64_t {
        return SIZE == 8 ? guest_memory.load_64(environment, address, return_address)
                         : guest_memory.load_16(environment, address, return_address);
    };
    uint64_t& stack = general_register(environment, STACK_POINTER);
    uint64_t& base = general_register(environment, FRAME_POINTER);
    const unsigned levels = operands.immediate() % LEVELS;
    const uint64_t frame = stack - SIZE;
    const uint64_t top = frame - levels * SIZE - operands.displacement();
    push(frame, base);
    for (unsigned level = 1; level < levels; level++) push(frame - level * SIZE, load(base - level * SIZE));
    if (levels) push(frame - levels * SIZE, frame);
    check_writable(environment, top, return_address);
    base = SIZE == 8 ? frame : (base & ~uint64_t{0xffff}) | (frame & 0xffff);
    stack = top;
}

template <uint64_t SIZE>
constexpr ExecutedRow row(uint8_t widths) {
    return {.map = Encoding::ONE_BYTE,
            .opcode = 0xc8,
            .prefixes = Encoding::NONE | Encoding::P66 | Encoding::F3 | Encoding::F2,
            .widths = widths,
            .execute = enter<SIZE>};
}
constexpr ExecutedRow ROWS[] = {row<8>(ExecutedRow::BITS_32 | ExecutedRow::BITS_64), row<2>(ExecutedRow::BITS_16)};

}  // namespace

std::span<const ExecutedRow> stack_frame_rows() { return ROWS; }

}  // namespace perfemu
