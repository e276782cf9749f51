// Functions in the host's machine code that are made while the emulator runs: an assembler with the few instructions
// that addresses need, and the memory for them, of which there are two views: one is written, the other executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace perfemu {

// x86-64's encodings (Intel SDM volume 2). Operands have 64 bits.
class HostAssembler {
  public:
    enum Register : uint8_t { RAX = 0, RCX = 1, RDX = 2, RSI = 6, RDI = 7, R8 = 8, R9 = 9 };
    enum Arithmetic : uint8_t { ADD = 0x01, OR = 0x09, AND = 0x21, SUBTRACT = 0x29, XOR = 0x31 };
    enum Shift : uint8_t { ROTATE_RIGHT = 1, LEFT = 4, RIGHT = 5, RIGHT_SIGNED = 7 };
    enum Condition : uint8_t {
        OVERFLOW_SET = 0,
        OVERFLOW_CLEAR = 1,
        BELOW = 2,  // the carry is set
        ABOVE_OR_EQUAL = 3,
        EQUAL = 4,
        NOT_EQUAL = 5,
        BELOW_OR_EQUAL = 6,
        ABOVE = 7,
        MINUS = 8,
        PLUS = 9,
        LESS = 12,
        GREATER_OR_EQUAL = 13,
        LESS_OR_EQUAL = 14,
        GREATER = 15,
    };
    enum FlagSetter : uint8_t { OF_ADDITION = 0x01, OF_AND = 0x85, OF_SUBTRACTION = 0x39 };

    void load(Register into, Register base, int32_t displacement) { memory(into, 0x8B, base, displacement); }
    void store(Register base, int32_t displacement, Register from) { memory(from, 0x89, base, displacement); }
    void load_address(Register into, Register base, int32_t displacement) { memory(into, 0x8D, base, displacement); }
    void compare(Register left, Register base, int32_t displacement) { memory(left, 0x3B, base, displacement); }
    void subtract(Register from, Register base, int32_t displacement) { memory(from, 0x2B, base, displacement); }
    void test(Register left, Register base, int32_t displacement) { memory(left, 0x85, base, displacement); }
    // Of the 32 bits there.
    void compare_with_zero(Register base, int32_t displacement);
    void increment(Register base, int32_t displacement);
    // The zero- or sign-extended bytes at base + index; `size` 1, 2, 4 or 8.
    void load_bytes(Register into, Register base, Register index, unsigned size, bool sign);
    void load_constant(Register into, uint64_t value);
    void move(Register into, Register from) { registers(into, 0x89, from); }
    void apply(Arithmetic what, Register into, Register from) { registers(into, what, from); }
    void multiply(Register into, Register from);
    void shift(Shift how, Register of, unsigned bits);
    // By the low six bits of RCX; or of its low half by the low five, and zeros above.
    void shift_by_count(Shift how, Register of, bool low_half);
    // RDX:RAX = RAX * from
    void multiply_wide(Register from, bool sign) { with_one(sign ? 5 : 4, from); }
    void and_constant(Register into, int32_t value) { with_constant(4, into, value); }
    void compare_constant(Register left, int32_t value) { with_constant(7, left, value); }
    void negate(Register of) { with_one(3, of); }
    void invert(Register of) { with_one(2, of); }
    // `left` may be changed; by the low halves alone, or by all 64 bits.
    void set_flags(FlagSetter how, Register left, Register right, bool low_half);
    // 1 if the condition holds, else 0. One of the first four registers.
    void set_if(Condition condition, Register into);
    void move_if(Condition condition, Register into, Register from);
    void clear_high_half(Register of);
    void extend_low_half(Register of);  // with its sign
    // To what `fail` will make.
    void fail_if(Condition condition);

    void return_value() { byte(0xC3); }
    // Returns 0; here all the conditions lead.
    void fail();
    // Goes on in the function whose address is there, with the arguments that it has then; here all the conditions
    // lead.
    void fail_to(Register base, int32_t displacement);
    bool can_fail() const { return !failures_.empty(); }

    std::span<const uint8_t> code() const { return code_; }

  private:
    void byte(unsigned value) { code_.push_back(static_cast<uint8_t>(value)); }
    void word(int32_t value);
    void prefix(Register reg, Register base) { byte(0x48 | (reg >> 3) << 2 | base >> 3); }
    void memory(Register reg, unsigned opcode, Register base, int32_t displacement);
    void operand(unsigned reg, Register base, int32_t displacement);
    void half_memory(unsigned opcode, unsigned extension, Register base, int32_t displacement);
    void bind_failures();
    void registers(Register into, unsigned opcode, Register from);
    void with_constant(unsigned extension, Register reg, int32_t value);
    void with_one(unsigned extension, Register of);

    std::vector<uint8_t> code_;
    std::vector<size_t> failures_;  // where the displacement of a jump lies
};

// Keeps functions until it is destroyed.
class HostCode {
  public:
    ~HostCode();
    HostCode() = default;
    HostCode(const HostCode&) = delete;

    // Null where there is no room, or the host is not one of those that HostAssembler writes for.
    const void* add(std::span<const uint8_t> code);
    // Nobody will call any of them again.
    void clear();

  private:
    static constexpr size_t CHUNK_BYTES = 256 << 10, MOST_CHUNKS = 256;

    struct Chunk {
        uint8_t *written, *executed;
    };
    bool add_chunk();

    std::vector<Chunk> chunks_;
    size_t used_ = CHUNK_BYTES;  // of the last chunk
};

}  // namespace perfemu
