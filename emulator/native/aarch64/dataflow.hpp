// What one A64 instruction does to general registers, flags and memory, put into a SliceBuilder.
#pragma once

#include "aarch64/row.hpp"
#include "slice/builder.hpp"

namespace perfemu::aarch64 {

struct MemoryOperand;

class InstructionDataflow {
  public:
    using Value = slice::Value;
    using Address = slice::Address;
    using Operation = slice::Operation;
    using Width = slice::Width;

    InstructionDataflow(slice::SliceBuilder& builder, const Row* row, uint64_t pc, uint32_t word)
        : builder_(builder), row_(row), pc_(pc), word_(word) {}

    void build();

    // What rows name.
    void add_extended();
    void add_immediate();
    void add_shifted();
    void bit_field();
    void conditional_select();
    void extract();
    void keep_and_move();
    void label();
    void link();
    void logic();
    void logic_immediate();
    void move_wide();
    void multiply();
    void one_source();
    void read_thread_pointer();
    void two_sources();
    void write_thread_pointer();

  private:
    void forget_all();
    void forget_written();
    void access_memory();
    void store_registers(const MemoryOperand& operand, const Address& at);
    void load_registers(const MemoryOperand& operand, const Address& at);
    void write_back(const MemoryOperand& operand, Value base);
    Address address_of(const MemoryOperand& operand);

    Value general(uint32_t number) const { return number == ZERO_REGISTER ? constant(0) : builder_.get(number); }
    void set_general(uint32_t number, Value value) {
        if (number != ZERO_REGISTER) builder_.set(number, value);
    }
    void forget_general(uint32_t number) { set_general(number, slice::NOTHING_KNOWN); }
    Value general_or_stack(uint32_t number) const { return builder_.get(number); }
    void set_destination(Value value) { set_general(rd(word_), value); }

    static Value constant(uint64_t value) { return slice::SliceBuilder::constant(value); }
    bool is_64() const { return bit_of(word_, 31); }
    Width width() const { return is_64() ? Width::BITS_64 : Width::BITS_32; }
    unsigned width_bits() const { return is_64() ? 64 : 32; }
    Value shifted(Value value, unsigned kind, unsigned amount);
    void add_or_subtract(Value a, Value b);

    slice::SliceBuilder& builder_;
    const Row* row_;  // nullptr: no instruction
    uint64_t pc_;
    uint32_t word_;
};

}  // namespace perfemu::aarch64
