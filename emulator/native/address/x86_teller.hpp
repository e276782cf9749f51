// Tells one x86-64 instruction to a SliceBuilder.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "address/slice_builder.hpp"
#include "address/x86_instruction.hpp"

namespace perfemu::slice {

// General registers, as instructions number them.
enum : unsigned { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R11 = 11 };

// As opcodes and ModRM number them.
enum class Arithmetic : uint8_t { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };
enum class Shift : uint8_t { ROL, ROR, RCL, RCR, SHL, SHR, SAL, SAR };

inline Width width_of(unsigned size) { return size == 8 ? Width::BITS_64 : Width::BITS_32; }

// Tells one instruction.
class X86Teller {
  public:
    X86Teller(SliceBuilder& builder, const X86Instruction& insn, uint64_t pc, bool after_sign_extension)
        : builder_(builder), insn_(insn), size_(insn.operand_size()), next_(pc + insn.length),
          after_sign_extension_(after_sign_extension) {}

    void tell();

  private:
    // Registers
    Value whole(unsigned number) const { return builder_.get(number); }
    Value part(unsigned number, unsigned size) const;  // zero-extended
    void set_part(unsigned number, unsigned size, Value value);
    bool high_byte(unsigned number, unsigned size) const {
        return size == 1 && !insn_.has_rex && number >= RSP && number <= RDI;
    }
    void move_stack(int64_t bytes) { builder_.set(RSP, SliceBuilder::plus(whole(RSP), bytes)); }
    static Value constant(uint64_t value) { return SliceBuilder::constant(value); }
    Value immediate(unsigned size) const {
        return constant(size == 8 ? insn_.immediate : insn_.immediate & ((uint64_t{1} << 8 * size) - 1));
    }
    void forget(std::initializer_list<unsigned> numbers) {
        for (unsigned number : numbers) builder_.forget(number);
    }

    // Memory
    Address at_register(unsigned number, int64_t displacement = 0) const {
        return {.base = SliceBuilder::plus(whole(number), displacement)};
    }
    Address within_segment(Address at, X86Segment segment);
    Address effective(bool with_segment = true);
    Address string_source();
    Address string_destination();
    void loads(const Address& at, unsigned size);
    void stores(const Address& at, unsigned size, Value value = NOTHING_KNOWN);
    Value load(const Address& at, unsigned size);
    void push(unsigned size, Value value);
    Value pop(unsigned size);

    // The operand that ModRM.rm names
    Value read_rm(unsigned size);
    void write_rm(unsigned size, Value value);

    // Values and flags
    Value compute(Operation operation, Value a, Value b, unsigned size) {
        return builder_.compute(operation, a, b, width_of(size));
    }
    Value condition(unsigned code);
    Value carry();
    void set_logic_flags(Value result, unsigned size);
    Value arithmetic(Arithmetic what, Value a, Value b, unsigned size);
    Value shifted(Shift what, Value a, Value amount, unsigned size);

    // The opcode maps
    void one_byte();
    void two_bytes();
    void three_bytes_38();

    // Groups of instructions, in x86_one_byte.cpp
    void general_operand();
    void group_1(unsigned size, uint64_t immediate);
    void group_3(unsigned size);
    void group_5();
    void exchange(unsigned size);
    void move_segment(bool to_segment);
    void shift_operand(unsigned size, Value amount);
    void multiply(unsigned size, bool sign);
    void divide(unsigned size, bool sign);
    void enter();
    void string();
    // In x86_two_bytes.cpp
    void bit_manipulation();
    void bit_test(bool writes, bool from_register);
    void compare_and_exchange(unsigned size);
    void double_shift(bool left, bool by_count);
    void exchange_and_add(unsigned size);
    void extend_operand(unsigned from, bool sign);
    void scan(bool reverse);
    // In x86_floating_point.cpp
    void group_15();
    void vector();
    void x87();
    void xsave();

    SliceBuilder& builder_;
    const X86Instruction& insn_;
    unsigned size_;  // of general operands
    uint64_t next_;
    bool after_sign_extension_;
};

}  // namespace perfemu::slice
