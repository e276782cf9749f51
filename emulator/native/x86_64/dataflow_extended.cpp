// Instructions of the opcode maps behind 0F, and behind VEX.
#include "x86_64/dataflow.hpp"

namespace perfemu::x86_64 {

using slice::Condition;
using slice::GS_BASE;
using slice::NOTHING_KNOWN;
using slice::THREAD_POINTER;
using Value = slice::Value;
using Address = slice::Address;

void InstructionDataflow::conditional_move() {
    const Value value = read(1), old = read(0);
    write(0, builder_.select(condition(insn_.opcode & 15), value, old, width_of(size_)));
}

void InstructionDataflow::set_condition() { write(0, condition(insn_.opcode & 15)); }

// BT, BTS, BTR, BTC. A bit number in a register reaches beyond the operand.
void InstructionDataflow::bit_test() {
    const bool writes = insn_.row->form == Form::UPDATE, from_register = operands_[1].is_register();
    if (insn_.in_register()) {
        if (writes) {
            Value bit = from_register ? read(1) : constant(insn_.immediate);
            Value one = shift(ShiftKind::SHL, constant(1), bit, size_), before = read(0);
            unsigned what = from_register ? insn_.opcode >> 3 & 7 : insn_.extension();
            enum : unsigned { BTS = 5, BTR = 6 };
            Operation operation = what == BTS ? Operation::OR : what == BTR ? Operation::AND_NOT : Operation::XOR;
            write(0, compute(operation, before, one, size_));
        }
    } else {
        Address at = effective();
        if (from_register) {
            constexpr unsigned LOG2[] = {0, 0, 1, 0, 2, 0, 0, 0, 3};
            unsigned above = 64 - 8 * size_, log = LOG2[size_];
            Value word = builder_.extract(whole(insn_.reg()), above, above + 3 + log, true);
            at.base = builder_.add(builder_.address(at), builder_.extract(word, log, 0, false));
            at.index = constant(0);
            at.shift = 0;
        }
        loads(at, size_);
        if (writes) stores(at, size_);
    }
    builder_.forget_flags();
}

// BSF, BSR; TZCNT, LZCNT with F3.
void InstructionDataflow::scan() {
    const bool reverse = insn_.opcode & 1;
    Value value = read(1), old = read(0), result = NOTHING_KNOWN;
    builder_.forget_flags();
    if (size_ >= 4) {
        Value from_low = reverse ? value : compute(Operation::REVERSE_BITS, value, constant(0), size_);
        Value zeros = compute(Operation::COUNT_LEADING_ZEROS, from_low, constant(0), size_);
        if (insn_.repeat == 0xf3) {
            result = zeros;
        } else {
            if (reverse) zeros = builder_.subtract(constant(8 * size_ - 1), zeros, width_of(size_));
            set_logic_flags(value, size_);
            result = builder_.select(builder_.condition(Condition::NOT_EQUAL), zeros, old, width_of(size_));
            builder_.forget_flags();
        }
    }
    write(0, result);
}

// BSWAP, and MOVBE from memory.
void InstructionDataflow::reverse_bytes() {
    const Value value = read(operands_.count() - 1);
    write(0, size_ < 4 ? NOTHING_KNOWN : compute(Operation::REVERSE_BYTES, value, constant(0), size_));
}

void InstructionDataflow::exchange_and_add() {
    const Value held = read(1);
    const Value before = read(0);
    const Value sum = compute(ArithmeticKind::ADD, before, held, operands_[0].size);
    if (insn_.in_register()) {
        write(1, before);
        write(0, sum);
    } else {
        write(0, sum);
        write(1, before);
    }
}

// CMPXCHG8B, CMPXCHG16B
void InstructionDataflow::compare_pair() {
    const Address at = effective();
    loads(at, operands_[0].size);
    stores(at, operands_[0].size);
    forget({RAX, RDX});
    builder_.forget_flags();
}

// SHLD, SHRD. By CL the result is left unknown.
void InstructionDataflow::double_shift() {
    const bool by_count = operands_[2].is_register(), left = insn_.opcode < 0xa8;
    Value before = read(0), other = read(1);
    unsigned bits = 8 * size_, amount = static_cast<unsigned>(insn_.immediate) & (size_ == 8 ? 63U : 31U);
    Value result = NOTHING_KNOWN;
    if (!by_count && size_ >= 4) {
        Value up = constant(left ? amount : bits - amount), down = constant(left ? bits - amount : amount);
        Value high = left ? before : other, low = left ? other : before;
        result = amount ? compute(Operation::OR, compute(Operation::SHIFT_LEFT, high, up, size_),
                                  compute(Operation::SHIFT_RIGHT, low, down, size_), size_)
                        : before;
    }
    builder_.forget_flags();
    write(0, result);
}

// LSS, LFS, LGS
void InstructionDataflow::far_pointer() {
    enum : uint8_t { LSS = 0xb2, LFS = 0xb4 };
    loads(effective(), operands_[1].size);
    builder_.forget(insn_.reg());
    if (insn_.opcode != LSS) builder_.forget(insn_.opcode == LFS ? THREAD_POINTER : GS_BASE);
}

// RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE
void InstructionDataflow::segment_base() {
    const unsigned base = insn_.extension() & 1 ? GS_BASE : THREAD_POINTER, size = operands_[0].size;
    if (insn_.row->form == Form::READ)
        builder_.set(base, read(0));
    else
        write(0, size == 8 ? whole(base) : builder_.extend(whole(base), 4, false));
}

// MASKMOVQ, MASKMOVDQU: told as the whole of what the mask may select.
void InstructionDataflow::masked_store() {
    stores(within_segment(at_register(RDI), insn_.segment), insn_.operand_16 ? 16 : 8);
}

// It updates which components are there.
void InstructionDataflow::xsave() {
    const Address at = effective(), components = at.plus(operands_[0].size);
    stores(at, operands_[0].size);
    loads(components, 8);
    stores(components, 8);
}

// Reads the header first.
void InstructionDataflow::xrstor() {
    constexpr unsigned HEADER_BYTES = 24;
    const Address at = effective();
    loads(at.plus(operands_[0].size), HEADER_BYTES);
    loads(at, operands_[0].size);
}

// BMI1 and BMI2

void InstructionDataflow::and_not() {
    const Value value = read(2), other = read(1);
    builder_.forget_flags();
    write(0, compute(Operation::AND_NOT, value, other, operands_[0].size));
}

// BLSR, BLSMSK, BLSI
void InstructionDataflow::lowest_bit() {
    constexpr Operation BY_EXTENSION[] = {Operation::ADD, Operation::AND, Operation::XOR, Operation::AND_NOT};
    const unsigned size = operands_[0].size;
    const Value value = read(1);
    builder_.forget_flags();
    const Value less = builder_.subtract(value, constant(1), width_of(size));
    write(0, compute(BY_EXTENSION[insn_.extension()], value, less, size));
}

void InstructionDataflow::multiply_x() {
    const unsigned size = operands_[0].size;
    const Value value = read(2), factor = part(RDX, size);
    const Value low = compute(Operation::MULTIPLY_ADD, value, factor, size);
    const Value high = size == 8 ? compute(Operation::MULTIPLY_HIGH, value, factor, 8)
                                 : builder_.extract(compute(Operation::MULTIPLY_LONG, value, factor, 8), 0, 32, false);
    write(1, low);
    write(0, high);
}

// RORX
void InstructionDataflow::rotate_x() {
    const unsigned size = operands_[0].size;
    write(0, shift(ShiftKind::ROR, read(1), constant(insn_.immediate & (8 * size - 1)), size));
}

// SHLX, SARX, SHRX
void InstructionDataflow::shift_x() {
    constexpr ShiftKind BY_VARIANT[] = {ShiftKind::RCL, ShiftKind::SHL, ShiftKind::SAR, ShiftKind::SHR};
    const Value value = read(1), amount = read(2);
    write(0, shift(BY_VARIANT[insn_.variant()], value, amount, operands_[0].size));
}

}  // namespace perfemu::x86_64
