// Instructions of the one-byte opcode map. Intel SDM vol. 2, table A-2.
#include "address/x86_teller.hpp"

namespace perfemu::slice {

// The block 00..3F of the opcode map: six forms of eight operations.
void X86Teller::general_operand() {
    auto what = static_cast<Arithmetic>(insn_.opcode >> 3 & 7);
    unsigned form = insn_.opcode & 7, size = form & 1 ? size_ : 1;
    if (form > 5) return;
    bool accumulator = form >= 4, to_register = form >= 2;
    bool clears = what == Arithmetic::XOR || what == Arithmetic::SUB;
    if (!accumulator && clears && size >= 4 && insn_.in_register() && insn_.reg() == insn_.rm()) {
        arithmetic(what, constant(0), constant(0), size);
        set_part(insn_.reg(), size, constant(0));
    } else if (accumulator) {
        Value result = arithmetic(what, part(RAX, size), immediate(size), size);
        if (what != Arithmetic::CMP) set_part(RAX, size, result);
    } else if (to_register) {
        Value source = read_rm(size);
        Value result = arithmetic(what, part(insn_.reg(), size), source, size);
        if (what != Arithmetic::CMP) set_part(insn_.reg(), size, result);
    } else {
        Value before = read_rm(size);
        bool borrows = what == Arithmetic::SBB && insn_.in_register() && insn_.reg() == insn_.rm();
        Value result = borrows ? arithmetic(what, constant(0), constant(0), size)
                               : arithmetic(what, before, part(insn_.reg(), size), size);
        if (what != Arithmetic::CMP) write_rm(size, result);
    }
}

void X86Teller::group_1(unsigned size, uint64_t value) {
    auto what = static_cast<Arithmetic>(insn_.extension());
    Value before = read_rm(size);
    Value other = constant(size == 8 ? value : value & ((uint64_t{1} << 8 * size) - 1));
    Value result = arithmetic(what, before, other, size);
    if (what != Arithmetic::CMP) write_rm(size, result);
}

void X86Teller::one_byte() {
    unsigned opcode = insn_.opcode, size = opcode & 1 ? size_ : 1;
    if (opcode < 0x40) {
        general_operand();
        return;
    }
    if (opcode >= 0xd8 && opcode <= 0xdf) {
        x87();
        return;
    }
    unsigned in_opcode = insn_.opcode_register(), stack = insn_.stack_size();
    switch (opcode & 0xf8) {
        case 0x50: push(stack, part(in_opcode, stack)); return;
        case 0x58: {
            Value value = pop(stack);
            set_part(in_opcode, stack, value);
            return;
        }
        case 0x70:
        case 0x78: return;
        case 0x90: {
            if (in_opcode == RAX) return;
            Value other = part(in_opcode, size_);
            set_part(in_opcode, size_, part(RAX, size_));
            set_part(RAX, size_, other);
            return;
        }
        case 0xb0: set_part(in_opcode, 1, immediate(1)); return;
        case 0xb8: set_part(in_opcode, size_, immediate(size_)); return;
        default: break;
    }
    switch (opcode) {
        case 0x63: {  // MOVSXD
            Value value = read_rm(4);
            set_part(insn_.reg(), size_, builder_.extend(value, 4, true, width_of(size_)));
            return;
        }
        case 0x68:
        case 0x6a: push(stack, immediate(stack)); return;
        case 0x69:
        case 0x6b: {
            Value value = read_rm(size_);
            builder_.forget_flags();
            set_part(insn_.reg(), size_, compute(Operation::MULTIPLY_ADD, value, immediate(size_), size_));
            return;
        }
        case 0x80:
        case 0x81:
        case 0x83: group_1(size, insn_.immediate); return;
        case 0x84:
        case 0x85: {
            Value a = read_rm(size), b = part(insn_.reg(), size);
            arithmetic(Arithmetic::AND, a, b, size);
            return;
        }
        case 0x86:
        case 0x87: exchange(size); return;
        case 0x88:
        case 0x89: write_rm(size, part(insn_.reg(), size)); return;
        case 0x8a:
        case 0x8b: {
            Value value = read_rm(size);
            set_part(insn_.reg(), size, value);
            return;
        }
        case 0x8c:
        case 0x8e: move_segment(opcode == 0x8e); return;
        case 0x8d: {
            if (insn_.in_register()) return;
            Value address = builder_.address(effective(false));
            set_part(insn_.reg(), size_, size_ == 8 ? address : builder_.extend(address, size_, false));
            return;
        }
        case 0x8f: {
            Value value = pop(stack);
            write_rm(stack, value);
            return;
        }
        case 0x98: set_part(RAX, size_, builder_.extend(whole(RAX), size_ / 2, true, width_of(size_))); return;
        case 0x99: {  // CWD, CDQ, CQO
            unsigned above = 64 - 8 * size_;
            Value top = builder_.extract(whole(RAX), above, 63, true);
            set_part(RDX, size_, size_ == 8 ? top : builder_.extend(top, size_, false));
            return;
        }
        case 0x9c: push(stack, NOTHING_KNOWN); return;
        case 0x9d:
            pop(stack);
            builder_.forget_flags();
            return;
        case 0x9e: builder_.forget_flags(); return;  // SAHF
        case 0x9f:                                   // LAHF; with REX the engine writes SPL
            builder_.forget(insn_.has_rex ? RSP : RAX);
            return;
        case 0xa0:
        case 0xa1: {
            Value value = load(within_segment({.base = immediate(8)}, insn_.segment), size);
            set_part(RAX, size, value);
            return;
        }
        case 0xa2:
        case 0xa3: stores(within_segment({.base = immediate(8)}, insn_.segment), size, part(RAX, size)); return;
        case 0xa4:
        case 0xa5:
        case 0xa6:
        case 0xa7:
        case 0xaa:
        case 0xab:
        case 0xac:
        case 0xad:
        case 0xae:
        case 0xaf: string(); return;
        case 0xa8:
        case 0xa9: arithmetic(Arithmetic::AND, part(RAX, size), immediate(size), size); return;
        case 0xc0:
        case 0xc1: shift_operand(size, constant(insn_.immediate & (size == 8 ? 63 : 31))); return;
        case 0xd0:
        case 0xd1: shift_operand(size, constant(1)); return;
        case 0xd2:
        case 0xd3: shift_operand(size, whole(RCX)); return;
        case 0xc2:
        case 0xc3:
            pop(stack);
            if (opcode == 0xc2) move_stack(static_cast<int64_t>(insn_.immediate & 0xffff));
            return;
        case 0xc6:
        case 0xc7:
            if (insn_.extension() == 0 || insn_.in_register()) write_rm(size, immediate(size));
            return;
        case 0xc8: enter(); return;
        case 0xc9: {  // LEAVE
            Value frame = whole(RBP);
            Value value = load(at_register(RBP), stack);
            builder_.set(RSP, SliceBuilder::plus(frame, stack));
            set_part(RBP, stack, value);
            return;
        }
        case 0xd7: {  // XLAT
            Value index = part(RAX, 1);
            Address at{.base = whole(RBX), .index = index};
            Value value = load(within_segment(at, insn_.segment), 1);
            set_part(RAX, 1, value);
            return;
        }
        case 0xe0:
        case 0xe1:
        case 0xe2: {  // LOOP
            Value less = builder_.subtract(whole(RCX), constant(1));
            builder_.set(RCX, insn_.address_32 ? builder_.extend(less, 4, false) : less);
            return;
        }
        case 0xe8: push(stack, constant(next_)); return;
        case 0xf5:
        case 0xf8:
        case 0xf9: builder_.forget_flags(); return;  // CMC, CLC, STC
        case 0xf6:
        case 0xf7: group_3(size); return;
        case 0xfe:
        case 0xff:
            if (insn_.extension() >= 2) {
                if (opcode == 0xff) group_5();
                return;
            }
            {
                bool up = insn_.extension() == 0;
                Value before = read_rm(size);
                builder_.forget_flags();
                write_rm(size, up ? builder_.add(before, constant(1), width_of(size))
                                  : builder_.subtract(before, constant(1), width_of(size)));
            }
            return;
        case 0x90:
        case 0x9b:
        case 0xeb:
        case 0xe9:
        case 0xe3:
        case 0xfc:
        case 0xfd: return;
        default:  // far returns, interrupts, input and output: the block ends, or the instruction is not executed
            for (unsigned number = 0; number < 16; number++) builder_.forget(number);
            builder_.forget_flags();
            return;
    }
}

void X86Teller::exchange(unsigned size) {
    Value held = part(insn_.reg(), size);
    Value other = read_rm(size);
    write_rm(size, held);
    set_part(insn_.reg(), size, other);
}

void X86Teller::move_segment(bool to_segment) {
    constexpr unsigned FS = 4, GS = 5;
    if (to_segment) {
        read_rm(2);
        if (insn_.extension() == FS) builder_.forget(THREAD_POINTER);
        if (insn_.extension() == GS) builder_.forget(GS_BASE);
    } else if (insn_.in_register()) {
        builder_.forget(insn_.rm());
    } else {
        write_rm(2, NOTHING_KNOWN);
    }
}

void X86Teller::shift_operand(unsigned size, Value amount) {
    Value before = read_rm(size);
    builder_.forget_flags();
    write_rm(size, shifted(static_cast<Shift>(insn_.extension()), before, amount, size));
}

void X86Teller::group_3(unsigned size) {
    switch (insn_.extension()) {
        case 0:
        case 1: arithmetic(Arithmetic::AND, read_rm(size), immediate(size), size); return;
        case 2: {
            Value before = read_rm(size);
            write_rm(size, compute(Operation::OR_NOT, constant(0), before, size));
            return;
        }
        case 3: {
            Value before = read_rm(size);
            if (insn_.locked && insn_.in_memory()) loads(effective(), size);  // the engine compares and exchanges
            write_rm(size, arithmetic(Arithmetic::SUB, constant(0), before, size));
            if (insn_.locked) builder_.forget_flags();  // in the engine, those of something else
            return;
        }
        case 4:
        case 5: multiply(size, insn_.extension() == 5); return;
        default: divide(size, insn_.extension() == 7); return;
    }
}

// RDX:RAX = RAX * operand
void X86Teller::multiply(unsigned size, bool sign) {
    Value a = part(RAX, size), b = read_rm(size);
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
void X86Teller::divide(unsigned size, bool sign) {
    Value low = part(RAX, size), high = part(RDX, size), divisor = read_rm(size);
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

void X86Teller::group_5() {
    switch (insn_.extension()) {
        case 2:  // CALL
            read_rm(8);
            push(insn_.stack_size(), constant(next_));
            return;
        case 4: read_rm(8); return;  // JMP
        case 6: {                    // PUSH
            unsigned size = insn_.stack_size();
            Value value = read_rm(size);
            push(size, value);
            return;
        }
        default: return;
    }
}

// Intel SDM vol. 2, ENTER; the addresses of all that it copies follow from RBP and RSP.
void X86Teller::enter() {
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

// One iteration, without or with REP. The direction flag is not known, so the registers are not, behind it.
void X86Teller::string() {
    enum : uint8_t { MOVS = 0xa4, CMPS = 0xa6, STOS = 0xaa, LODS = 0xac, SCAS = 0xae };
    unsigned size = insn_.opcode & 1 ? size_ : 1;
    Address source = string_source(), destination = string_destination();
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

}  // namespace perfemu::slice
