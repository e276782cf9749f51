// Makes a block's slice: follows what is known of its registers, flags and stores, instruction by instruction.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "slice/slice.hpp"

namespace perfemu::slice {

// What a new slice must do without.
struct Caution {
    bool loads_behind_stores = false;  // a load that may overlap an earlier store of the block is unknown
    bool every_op_alone = false;       // each instruction that accesses memory is a segment
};

class SliceBuilder {
  public:
    SliceBuilder() { start({}); }
    void start(Caution caution);
    Slice finish();

    // --- for the compilers of instructions ---

    // Registers by the numbers of slice.hpp. Parts of a register are the compiler's affair.
    Value get(unsigned number) const { return state_.registers[number]; }
    void set(unsigned number, Value value) { state_.registers[number] = value; }
    void forget(unsigned number) { set(number, NOTHING_KNOWN); }

    static Value constant(uint64_t value) { return {ZERO, static_cast<int64_t>(value)}; }
    static Value plus(Value value, int64_t bytes) { return {value.place, value.displacement + bytes}; }
    // Unknown if an operand is. Constants are folded.
    Value compute(Operation operation, Value a, Value b, Width width = Width::BITS_64);
    Value compute(Operation operation, Value a, Value b, Value c, Width width);
    Value add(Value a, Value b, Width width = Width::BITS_64);
    Value subtract(Value a, Value b, Width width = Width::BITS_64);
    // ((a << left) >> right) of 64 bits, and the upper half cut off if the width says so.
    Value extract(Value a, unsigned left, unsigned right, bool sign, Width width = Width::BITS_64);
    Value extend(Value a, unsigned size_bytes, bool sign, Width width = Width::BITS_64);  // its lowest bytes
    Value select(Value condition, Value if_true, Value if_false, Width width);
    // base + (extended index << shift), as an address and as a value.
    Address indexed(Value base, Value index, unsigned shift, Extension extension = {});
    Value address(const Address& at);

    // Flags are those of one of these computations, or of the block's entry, or unknown.
    void set_flags_of_subtraction(Value a, Value b, Width width) {
        set_flags(Operation::CONDITION_SUBTRACT, a, b, width);
    }
    void set_flags_of_addition(Value a, Value b, Width width) { set_flags(Operation::CONDITION_ADD, a, b, width); }
    void set_flags_of_and(Value a, Value b, Width width) { set_flags(Operation::CONDITION_AND, a, b, width); }
    void forget_flags() { state_.flags.known = false; }
    bool flags_known() const { return state_.flags.known; }
    // CONDITION_SUBTRACT, CONDITION_ADD, CONDITION_AND or CONDITION_ENTRY, if they are known.
    Operation flags_kind() const { return state_.flags.kind; }
    Value condition(Condition condition);  // 1 or 0

    // One site of the present instruction. Call them in the order in which it accesses memory. Where the address is not
    // known the instruction is compiled again, as the first of a new segment: all registers are known then.
    enum class Direction : uint8_t { LOAD, STORE };
    void access(const Address& at, unsigned size_bytes, unsigned elements, Direction direction);
    // What the present instruction stores there: after `access`, so that later loads see it. Every store must be told:
    // unknown if the value is, or larger than 8 bytes.
    void store(const Address& at, unsigned size_bytes, Value value = NOTHING_KNOWN);
    // What it loads from there, at most 8 bytes.
    Value load(const Address& at, unsigned size_bytes, bool sign, Width width = Width::BITS_64);

    // --- for the loop over a block's instructions ---

    void begin_op(unsigned op, unsigned offset);
    // Whether the instruction must be compiled once more.
    bool retry();

  private:
    struct Flags {
        bool known = true;
        Operation kind = Operation::CONDITION_ENTRY;
        Value a, b;
        Width width = Width::BITS_64;
    };
    struct Store {
        Address at;
        unsigned size = 0;
        Value value;
        uint32_t access = 0;  // its number in the segment
    };
    // All that an instruction changes.
    struct State {
        std::array<Value, ENTRY_REGISTERS> registers;
        Flags flags;
        size_t stores = 0, micro_ops = 0, addresses = 0, sites = 0;  // lengths of the lists
        unsigned results = 0;
    };
    void set_flags(Operation kind, Value a, Value b, Width width);
    Value emit(MicroOp micro_op);
    Value extended_index(const Address& at);
    void begin_segment();
    void end_segment();

    Caution caution_;
    Slice slice_;
    Segment segment_;            // the present one
    std::vector<Store> stores_;  // in it
    State state_;
    State before_op_;
    unsigned op_ = 0, offset_ = 0;
    bool address_missing_ = false;
};

}  // namespace perfemu::slice
