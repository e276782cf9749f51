#include "x86_64/dataflow.hpp"

namespace perfemu::x86_64 {

using slice::Condition;
using slice::GS_BASE;
using slice::NOTHING_KNOWN;
using slice::SliceBuilder;
using slice::THREAD_POINTER;
using slice::ZERO;
using Value = slice::Value;
using Address = slice::Address;

Value InstructionDataflow::part(unsigned number, unsigned size) const {
    if (high_byte(number, size)) return builder_.extract(whole(number - RSP), 48, 56, false);
    return builder_.extend(whole(number), size, false);
}

// A write of 32 bits clears the upper half (as it is in `value`); of fewer, leaves the others alone.
void InstructionDataflow::set_part(unsigned number, unsigned size, Value value) {
    if (size >= 4) {
        builder_.set(number, value);
    } else {
        unsigned shift = high_byte(number, size) ? 8 : 0;
        unsigned whole_number = shift ? number - RSP : number;
        uint64_t mask = ((uint64_t{1} << 8 * size) - 1) << shift;
        unsigned above = 64 - 8 * size;
        Value placed = builder_.extract(value, above, above - shift, false);
        Value others = builder_.compute(Operation::AND, whole(whole_number), constant(~mask));
        builder_.set(whole_number, builder_.compute(Operation::OR, others, placed));
    }
}

Address InstructionDataflow::within_segment(Address at, Segment segment) {
    if (insn_.address_32) at = {.base = builder_.extend(builder_.address(at), 4, false)};
    if (segment == Segment::NONE) return at;
    Value base = whole(segment == Segment::FS ? THREAD_POINTER : GS_BASE);
    bool indexed = at.index.place != ZERO || at.index.displacement != 0;
    return {.base = indexed ? builder_.address(at) : at.base, .index = base};
}

Address InstructionDataflow::effective(bool with_segment) {
    Address at{.base = constant(static_cast<uint64_t>(insn_.displacement))};
    if (insn_.base() != Instruction::NO_REGISTER) at = at_register(insn_.base(), insn_.displacement);
    if (insn_.index() != Instruction::NO_REGISTER) {
        at.index = whole(insn_.index());
        at.shift = static_cast<uint8_t>(insn_.shift());
    }
    if (insn_.relative_to_ip()) {
        // The engine forgets that SHLD, SHRD and RORX have an immediate behind the displacement.
        const Dataflow what = insn_.row->dataflow;
        bool forgets = (what == &InstructionDataflow::double_shift && !(insn_.opcode & 1)) ||
                       what == &InstructionDataflow::rotate_x;
        at.base = constant(next_ - forgets + static_cast<uint64_t>(insn_.displacement));
    }
    return within_segment(at, with_segment ? insn_.segment : Segment::NONE);
}

Address InstructionDataflow::address_of(const Operand& operand) {
    switch (operand.method) {
        case AddressingMethod::OFFSET: return within_segment({.base = constant(insn_.immediate)}, insn_.segment);
        case AddressingMethod::SOURCE: return within_segment(at_register(RSI), insn_.segment);
        case AddressingMethod::DESTINATION: return within_segment(at_register(RDI), Segment::NONE);
        default: return effective();
    }
}

namespace {
constexpr unsigned ENGINE_WORD = 8;  // bytes of its widest access
}

void InstructionDataflow::loads(const Address& at, unsigned size) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, SliceBuilder::Direction::LOAD);
}

void InstructionDataflow::stores(const Address& at, unsigned size, Value value) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, SliceBuilder::Direction::STORE);
    builder_.store(at, size, value);
}

Value InstructionDataflow::load(const Address& at, unsigned size) {
    loads(at, size);
    return builder_.load(at, size, false);
}

void InstructionDataflow::push(unsigned size, Value value) {
    auto bytes = static_cast<int64_t>(size);
    stores(at_register(RSP, -bytes), size, value);
    move_stack(-bytes);
}

Value InstructionDataflow::pop(unsigned size) {
    Value value = load(at_register(RSP), size);
    move_stack(size);
    return value;
}

unsigned InstructionDataflow::register_of(unsigned index) const {
    switch (operands_[index].method) {
        case AddressingMethod::RM: return insn_.rm();
        case AddressingMethod::REG: return insn_.reg();
        case AddressingMethod::IN_OPCODE: return insn_.opcode_register();
        case AddressingMethod::VEX: return insn_.vex_register;
        default: return operands_[index].reg;
    }
}

Value InstructionDataflow::read(unsigned index, unsigned size) {
    const Operand& operand = operands_[index];
    if (operand.is_memory()) return load(address_of(operand), size);
    if (operand.is_general()) return part(register_of(index), size);
    if (!operand.is_immediate()) return NOTHING_KNOWN;
    return constant(size == 8 ? insn_.immediate : insn_.immediate & ((uint64_t{1} << 8 * size) - 1));
}

void InstructionDataflow::write(unsigned index, unsigned size, Value value) {
    const Operand& operand = operands_[index];
    if (operand.is_memory())
        stores(address_of(operand), size, value);
    else if (operand.is_general())
        set_part(register_of(index), size, value);
}

// By the low four bits of Jcc's, SETcc's and CMOVcc's opcodes.
Value InstructionDataflow::condition(unsigned code) {
    constexpr Condition PLAIN[] = {Condition::OVERFLOW_SET,  Condition::OVERFLOW_CLEAR,
                                   Condition::CARRY_SET,     Condition::CARRY_CLEAR,
                                   Condition::EQUAL,         Condition::NOT_EQUAL,
                                   Condition::EQUAL,         Condition::NOT_EQUAL,
                                   Condition::MINUS,         Condition::PLUS,
                                   Condition::ALWAYS,        Condition::ALWAYS,
                                   Condition::LESS,          Condition::GREATER_OR_EQUAL,
                                   Condition::LESS_OR_EQUAL, Condition::GREATER};
    enum : unsigned { BELOW = 2, ABOVE_OR_EQUAL = 3, BELOW_OR_EQUAL = 6, ABOVE = 7, PARITY = 10, NO_PARITY = 11 };
    if (!builder_.flags_known() || code == PARITY || code == NO_PARITY) return NOTHING_KNOWN;
    if (builder_.flags_kind() == Operation::CONDITION_SUBTRACT) {
        if (code == BELOW) return builder_.condition(Condition::CARRY_CLEAR);
        if (code == ABOVE_OR_EQUAL) return builder_.condition(Condition::CARRY_SET);
        if (code == BELOW_OR_EQUAL) return builder_.condition(Condition::LOWER_OR_SAME);
        if (code == ABOVE) return builder_.condition(Condition::HIGHER);
    }
    Value value = builder_.condition(PLAIN[code]);
    if (code != BELOW_OR_EQUAL && code != ABOVE) return value;
    Value carry = builder_.condition(code == ABOVE ? Condition::CARRY_CLEAR : Condition::CARRY_SET);
    return builder_.compute(code == ABOVE ? Operation::AND : Operation::OR, value, carry);
}

Value InstructionDataflow::carry() { return condition(2); }

// Flags of 8 and 16 bits are those of 32 with the operands in the highest bits.
static Value at_the_top(SliceBuilder& builder, Value value, unsigned size) {
    return size < 4 ? builder.extract(value, 64 - 8 * size, 32, false) : value;
}

void InstructionDataflow::set_logic_flags(Value result, unsigned size) {
    Value top = at_the_top(builder_, result, size);
    builder_.set_flags_of_and(top, top, width_of(size));
}

Value InstructionDataflow::compute(ArithmeticKind what, Value a, Value b, unsigned size) {
    Value top_a = at_the_top(builder_, a, size), top_b = at_the_top(builder_, b, size), result;
    switch (what) {
        case ArithmeticKind::ADD:
            builder_.set_flags_of_addition(top_a, top_b, width_of(size));
            return builder_.add(a, b, width_of(size));
        case ArithmeticKind::SUB:
        case ArithmeticKind::CMP:
            builder_.set_flags_of_subtraction(top_a, top_b, width_of(size));
            return builder_.subtract(a, b, width_of(size));
        case ArithmeticKind::ADC:
            result = builder_.add(builder_.add(a, b, width_of(size)), carry(), width_of(size));
            builder_.forget_flags();
            return result;
        case ArithmeticKind::SBB:
            result = builder_.subtract(builder_.subtract(a, b, width_of(size)), carry(), width_of(size));
            builder_.forget_flags();
            return result;
        case ArithmeticKind::OR: result = compute(Operation::OR, a, b, size); break;
        case ArithmeticKind::AND: result = compute(Operation::AND, a, b, size); break;
        case ArithmeticKind::XOR: result = compute(Operation::XOR, a, b, size); break;
    }
    set_logic_flags(result, size);
    return result;
}

Value InstructionDataflow::shift(ShiftKind what, Value a, Value amount, unsigned size) {
    if (size < 4) return NOTHING_KNOWN;
    switch (what) {
        case ShiftKind::ROL: return compute(Operation::ROTATE_RIGHT, a, builder_.subtract(constant(0), amount), size);
        case ShiftKind::ROR: return compute(Operation::ROTATE_RIGHT, a, amount, size);
        case ShiftKind::SHL:
        case ShiftKind::SAL: return compute(Operation::SHIFT_LEFT, a, amount, size);
        case ShiftKind::SHR: return compute(Operation::SHIFT_RIGHT, a, amount, size);
        case ShiftKind::SAR: return compute(Operation::SHIFT_RIGHT_SIGNED, a, amount, size);
        default: return NOTHING_KNOWN;
    }
}

// What is not followed: the memory that operands are in is accessed, and what is written is not known.
void InstructionDataflow::forget_written() {
    const Row& row = *insn_.row;
    for (unsigned i = 0; i < operands_.count(); i++) {
        const Operand& operand = operands_[i];
        if (!operand.is_memory() || row.form == Form::IMPLICIT) continue;
        if (i >= row.written() || row.updates()) loads(address_of(operand), operand.size);
        if (i < row.written()) stores(address_of(operand), operand.size);
    }
    for (unsigned i = 0; i < row.written(); i++)
        if (operands_[i].is_general()) builder_.forget(operands_[i].reg);
    if (row.has(effect::RAX_OUT)) builder_.forget(RAX);
    if (row.has(effect::RDX_OUT)) builder_.forget(RDX);
    if (row.has(effect::RCX_OUT)) builder_.forget(RCX);
    if (row.has(effect::STATUS)) builder_.forget_flags();
}

// Far returns, interrupts, input and output: the block ends, or the instruction is not executed.
void InstructionDataflow::nothing_left() {
    for (unsigned number = 0; number < 16; number++) builder_.forget(number);
    builder_.forget_flags();
}

void InstructionDataflow::build() {
    (this->*(insn_.row->dataflow ? insn_.row->dataflow : &InstructionDataflow::forget_written))();
}

}  // namespace perfemu::x86_64
