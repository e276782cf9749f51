// What one x86-64 instruction does to general registers, flags and memory, put into a SliceBuilder.
//
// As the engine executes them: its accesses are held against its MEM hooks by a test, instruction by instruction.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "slice/builder.hpp"
#include "x86_64/row.hpp"

namespace perfemu::x86_64 {

// As opcodes and ModRM number them.
enum class ArithmeticKind : uint8_t { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };
enum class ShiftKind : uint8_t { ROL, ROR, RCL, RCR, SHL, SHR, SAL, SAR };

class InstructionDataflow {
  public:
    using Value = slice::Value;
    using Address = slice::Address;
    using Operation = slice::Operation;
    using Width = slice::Width;

    InstructionDataflow(slice::SliceBuilder& builder, const Instruction& insn, uint64_t pc, bool after_sign_extension)
        : builder_(builder), insn_(insn), operands_(insn), size_(insn.operand_size()), next_(pc + insn.length),
          after_sign_extension_(after_sign_extension) {}

    void build();

    // What rows name.
    void nothing_left();
    // ... in dataflow_general.cpp
    void arithmetic();
    void call();
    void complement();
    void convert_sign();
    void count();
    void divide();
    void enter();
    void exchange();
    void extend();
    void extend_signed();
    void flags_to_ah();
    void leave();
    void load_address();
    void loop();
    void move();
    void move_segment();
    void multiply();
    void multiply_high();
    void negate();
    void pop_operand();
    void push_operand();
    void return_near();
    void shift_operand();
    void string();
    void table_lookup();
    void test();
    void widen();
    // ... in dataflow_extended.cpp
    void and_not();
    void bit_test();
    void compare_pair();
    void conditional_move();
    void double_shift();
    void exchange_and_add();
    void far_pointer();
    void lowest_bit();
    void masked_store();
    void multiply_x();
    void reverse_bytes();
    void rotate_x();
    void scan();
    void segment_base();
    void set_condition();
    void shift_x();
    void xrstor();
    void xsave();

  private:
    void forget_written();
    // Registers
    Value whole(unsigned number) const { return builder_.get(number); }
    Value part(unsigned number, unsigned size) const;  // zero-extended
    void set_part(unsigned number, unsigned size, Value value);
    bool high_byte(unsigned number, unsigned size) const {
        return size == 1 && !insn_.has_rex && number >= RSP && number <= RDI;
    }
    void move_stack(int64_t bytes) { builder_.set(RSP, slice::SliceBuilder::plus(whole(RSP), bytes)); }
    static Value constant(uint64_t value) { return slice::SliceBuilder::constant(value); }
    static Width width_of(unsigned size) { return size == 8 ? Width::BITS_64 : Width::BITS_32; }
    void forget(std::initializer_list<unsigned> numbers) {
        for (unsigned number : numbers) builder_.forget(number);
    }

    // Memory
    Address at_register(unsigned number, int64_t displacement = 0) const {
        return {.base = slice::SliceBuilder::plus(whole(number), displacement)};
    }
    Address within_segment(Address at, Segment segment);
    Address effective(bool with_segment = true);
    Address address_of(const Operand& operand);
    void loads(const Address& at, unsigned size);
    void stores(const Address& at, unsigned size, Value value = slice::NOTHING_KNOWN);
    Value load(const Address& at, unsigned size);
    void push(unsigned size, Value value);
    Value pop(unsigned size);

    // Operands, by their position; of another size than their own, if one is given
    unsigned register_of(unsigned index) const;
    Value read(unsigned index) { return read(index, operands_[index].size); }
    Value read(unsigned index, unsigned size);
    void write(unsigned index, Value value) { write(index, operands_[index].size, value); }
    void write(unsigned index, unsigned size, Value value);

    // Values and flags
    Value compute(Operation operation, Value a, Value b, unsigned size) {
        return builder_.compute(operation, a, b, width_of(size));
    }
    Value condition(unsigned code);
    Value carry();
    void set_logic_flags(Value result, unsigned size);
    Value compute(ArithmeticKind what, Value a, Value b, unsigned size);
    Value shift(ShiftKind what, Value a, Value amount, unsigned size);

    slice::SliceBuilder& builder_;
    const Instruction& insn_;
    Operands operands_;
    unsigned size_;  // of general operands
    uint64_t next_;
    bool after_sign_extension_;
};

}  // namespace perfemu::x86_64
