// Instructions of the opcode map of one byte.
#include "x86_64/dataflow.hpp"

namespace perfemu::x86_64 {

using slice::FIRST_RESULT;
using slice::GS_BASE;
using slice::NOTHING_KNOWN;
using slice::SliceBuilder;
using slice::THREAD_POINTER;
using Value = slice::Value;
using Address = slice::Address;

void InstructionDataflow::arithmetic() {
    constexpr unsigned GROUP_1 = 0x80;
    const auto what = static_cast<ArithmeticKind>(insn_.opcode < GROUP_1 ? insn_.opcode >> 3 : insn_.extension());
    const unsigned size = operands_[0].size;
    const bool same = operands_.are_registers(2) && register_of(0) == register_of(1);
    const bool clears = what == ArithmeticKind::XOR || what == ArithmeticKind::SUB;
    if (same && clears && size >= 4) {
        compute(what, constant(0), constant(0), size);
        write(0, constant(0));
        return;
    }
    const bool source_first = operands_[1].method == AddressingMethod::RM;  // which may be in memory
    Value source = source_first ? read(1) : NOTHING_KNOWN;
    const Value before = read(0);
    const bool borrows = what == ArithmeticKind::SBB && same && !source_first;
    if (!source_first && !borrows) source = read(1, size);
    const Value result = borrows ? compute(what, constant(0), constant(0), size) : compute(what, before, source, size);
    if (what != ArithmeticKind::CMP) write(0, result);
}

void InstructionDataflow::test() {
    const Value a = read(0), b = read(1, operands_[0].size);
    compute(ArithmeticKind::AND, a, b, operands_[0].size);
}

void InstructionDataflow::move() { write(0, read(1, operands_[0].size)); }

void InstructionDataflow::extend() { write(0, read(1)); }

void InstructionDataflow::extend_signed() {
    const unsigned from = operands_[1].size;
    write(0, builder_.extend(read(1), from, true, width_of(size_)));
}

void InstructionDataflow::load_address() {
    const Value address = builder_.address(effective(false));
    write(0, size_ == 8 ? address : builder_.extend(address, size_, false));
}

void InstructionDataflow::exchange() {
    const Value held = read(1);
    const Value other = read(0);
    write(0, held);
    write(1, other);
}

void InstructionDataflow::push_operand() {
    const unsigned size = insn_.stack_size();
    push(size, operands_.count() ? read(0, size) : NOTHING_KNOWN);
}

void InstructionDataflow::pop_operand() {
    constexpr uint8_t POP_FS = 0xa1;
    const unsigned size = insn_.stack_size();
    const Value value = pop(size);
    if (!operands_.count())
        builder_.forget_flags();
    else if (operands_[0].method == AddressingMethod::OTHER)
        builder_.forget(insn_.opcode == POP_FS ? THREAD_POINTER : GS_BASE);
    else
        write(0, size, value);
}

void InstructionDataflow::leave() {
    const unsigned size = insn_.stack_size();
    const Value frame = whole(RBP);
    const Value value = load(at_register(RBP), size);
    builder_.set(RSP, SliceBuilder::plus(frame, size));
    set_part(RBP, size, value);
}

// Intel SDM vol. 2, ENTER; the addresses of all that it copies follow from RBP and RSP.
void InstructionDataflow::enter() {
    unsigned size = insn_.stack_size(), level = insn_.second_immediate & 31;
    auto bytes = static_cast<int64_t>(size);
    Value frame = SliceBuilder::plus(whole(RSP), -bytes), old_frame = whole(RBP);
    stores({.base = frame}, size, part(RBP, size));
    for (unsigned i = 1; i < level; i++) {
        Value value = load({.base = SliceBuilder::plus(old_frame, -bytes * i)}, size);
        stores({.base = SliceBuilder::plus(frame, -bytes * i)}, size, value);
    }
    if (level) stores({.base = SliceBuilder::plus(frame, -bytes * level)}, size, builder_.extend(frame, size, false));
    builder_.set(RBP, frame);
    auto reserved = static_cast<int64_t>(insn_.immediate & 0xffff);
    builder_.set(RSP, SliceBuilder::plus(frame, -reserved - bytes * level));
}

// XLATB
void InstructionDataflow::table_lookup() {
    const Address at{.base = whole(RBX), .index = part(RAX, 1)};
    set_part(RAX, 1, load(within_segment(at, insn_.segment), 1));
}

void InstructionDataflow::call() {
    if (operands_[0].is_memory()) read(0);
    push(insn_.stack_size(), constant(next_));
}

void InstructionDataflow::return_near() {
    pop(insn_.stack_size());
    if (operands_.count()) move_stack(static_cast<int64_t>(insn_.immediate & 0xffff));
}

void InstructionDataflow::loop() {
    const Value less = builder_.subtract(whole(RCX), constant(1));
    builder_.set(RCX, insn_.address_32 ? builder_.extend(less, 4, false) : less);
}

void InstructionDataflow::move_segment() {
    constexpr unsigned FS = 4, GS = 5;
    if (operands_[0].method == AddressingMethod::OTHER) {
        read(1, 2);
        if (insn_.extension() == FS) builder_.forget(THREAD_POINTER);
        if (insn_.extension() == GS) builder_.forget(GS_BASE);
    } else if (insn_.in_register()) {
        builder_.forget(insn_.rm());
    } else {
        write(0, 2, NOTHING_KNOWN);
    }
}

void InstructionDataflow::shift_operand() {
    const unsigned size = operands_[0].size;
    Value amount = constant(1);
    if (operands_.count() == 2)
        amount = operands_[1].is_immediate() ? constant(insn_.immediate & (size == 8 ? 63 : 31)) : whole(RCX);
    const Value before = read(0);
    builder_.forget_flags();
    write(0, shift(static_cast<ShiftKind>(insn_.extension()), before, amount, size));
}

void InstructionDataflow::complement() {
    const Value before = read(0);
    write(0, compute(Operation::OR_NOT, constant(0), before, operands_[0].size));
}

void InstructionDataflow::negate() {
    const unsigned size = operands_[0].size;
    const Value before = read(0);
    if (insn_.locked && insn_.in_memory()) loads(effective(), size);  // the engine compares and exchanges
    write(0, compute(ArithmeticKind::SUB, constant(0), before, size));
    if (insn_.locked) builder_.forget_flags();  // in the engine, those of something else
}

// INC, DEC
void InstructionDataflow::count() {
    const Width width = width_of(operands_[0].size);
    const Value before = read(0);
    builder_.forget_flags();
    write(0, insn_.extension() == 0 ? builder_.add(before, constant(1), width)
                                    : builder_.subtract(before, constant(1), width));
}

// Of two factors into the one of them, or into a third register.
void InstructionDataflow::multiply() {
    const bool three = operands_.count() == 3;
    const Value value = read(1);
    builder_.forget_flags();
    const Value other = three ? read(2, size_) : read(0);
    write(0, three ? compute(Operation::MULTIPLY_ADD, value, other, size_)
                   : compute(Operation::MULTIPLY_ADD, other, value, size_));
}

// RDX:RAX = RAX * operand
void InstructionDataflow::multiply_high() {
    const unsigned size = operands_[0].size;
    const bool sign = insn_.extension() == 5;
    const Value a = part(RAX, size), b = read(0);
    builder_.forget_flags();
    if (size == 8) {
        builder_.set(RAX, compute(Operation::MULTIPLY_ADD, a, b, 8));
        builder_.set(RDX, compute(sign ? Operation::MULTIPLY_HIGH_SIGNED : Operation::MULTIPLY_HIGH, a, b, 8));
    } else if (size == 4) {
        Value product = compute(sign ? Operation::MULTIPLY_LONG_SIGNED : Operation::MULTIPLY_LONG, a, b, 8);
        builder_.set(RAX, builder_.extend(product, 4, false));
        builder_.set(RDX, builder_.extract(product, 0, 32, false));
    } else {
        builder_.forget(RAX);
        if (size == 2) builder_.forget(RDX);
    }
}

// RDX:RAX / operand. Known where RDX only extends RAX, as compilers' code has it.
void InstructionDataflow::divide() {
    const unsigned size = operands_[0].size;
    const bool sign = insn_.extension() == 7;
    const Value low = part(RAX, size), high = part(RDX, size), divisor = read(0);
    builder_.forget_flags();
    bool extends =
        sign ? after_sign_extension_ && whole(RDX).place >= FIRST_RESULT : high.constant() && high.displacement == 0;
    if (size >= 4 && extends) {
        Value quotient = compute(sign ? Operation::DIVIDE_SIGNED : Operation::DIVIDE, low, divisor, size);
        Value remainder = builder_.compute(Operation::MULTIPLY_SUBTRACT, quotient, divisor, low, width_of(size));
        builder_.set(RAX, quotient);
        builder_.set(RDX, remainder);
    } else {
        forget({RAX, RDX});
    }
}

// CBW, CWDE, CDQE
void InstructionDataflow::widen() {
    set_part(RAX, size_, builder_.extend(whole(RAX), size_ / 2, true, width_of(size_)));
}

// CWD, CDQ, CQO
void InstructionDataflow::convert_sign() {
    const Value top = builder_.extract(whole(RAX), 64 - 8 * size_, 63, true);
    set_part(RDX, size_, size_ == 8 ? top : builder_.extend(top, size_, false));
}

// LAHF; with REX the engine writes SPL.
void InstructionDataflow::flags_to_ah() { builder_.forget(insn_.has_rex ? RSP : RAX); }

// One iteration, without or with REP. The direction flag is not known, so the registers are not, behind it.
void InstructionDataflow::string() {
    enum : uint8_t { MOVS = 0xa4, CMPS = 0xa6, STOS = 0xaa, LODS = 0xac, SCAS = 0xae };
    const unsigned size = operands_[0].size;
    const Address source = within_segment(at_register(RSI), insn_.segment);
    const Address destination = within_segment(at_register(RDI), Segment::NONE);
    Value value;
    switch (insn_.opcode & 0xfe) {
        case MOVS:
            value = load(source, size);
            stores(destination, size, value);
            forget({RSI, RDI});
            break;
        case CMPS:
            loads(destination, size);
            loads(source, size);
            builder_.forget_flags();
            forget({RSI, RDI});
            break;
        case STOS:
            stores(destination, size, part(RAX, size));
            builder_.forget(RDI);
            break;
        case LODS:
            set_part(RAX, size, load(source, size));
            builder_.forget(RSI);
            break;
        case SCAS:
            loads(destination, size);
            builder_.forget_flags();
            builder_.forget(RDI);
            break;
        default: break;
    }
    if (insn_.repeat) {
        builder_.forget(RCX);
        builder_.forget_flags();
    }
}

}  // namespace perfemu::x86_64
