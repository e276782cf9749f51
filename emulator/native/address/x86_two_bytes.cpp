// Instructions on general registers of the opcode maps behind 0F. Intel SDM vol. 2, tables.
#include "address/x86_teller.hpp"
#include "address/x86_vector_operands.hpp"

namespace perfemu::slice {

void X86Teller::two_bytes() {
    unsigned opcode = insn_.opcode, size = opcode & 1 ? size_ : 1;
    if (insn_.vex) {
        bit_manipulation();
        return;
    }
    switch (opcode >> 4) {
        case 4: {  // CMOVcc
            Value value = read_rm(size_), old = part(insn_.reg(), size_);
            set_part(insn_.reg(), size_, builder_.select(condition(opcode & 15), value, old, width_of(size_)));
            return;
        }
        case 8: return;
        case 9: write_rm(1, condition(opcode & 15)); return;
        default: break;
    }
    if (vector_operand(insn_).size || writes_general_reg(insn_) || writes_general_rm(insn_)) {
        vector();
        return;
    }
    switch (opcode) {
        case 0x00:  // SLDT, STR; LLDT, LTR; VERR, VERW
            if (insn_.extension() < 2) move_segment(false);
            if (insn_.extension() >= 2 && insn_.extension() < 6) read_rm(2);
            builder_.forget_flags();
            return;
        case 0x01:
            if (!insn_.in_register()) {
                if (insn_.extension() < 2) stores(effective(), 10);  // SGDT, SIDT
                if (insn_.extension() == 2 || insn_.extension() == 3) loads(effective(), 10);
                if (insn_.extension() == 4) stores(effective(), 2);  // SMSW
                if (insn_.extension() == 6) loads(effective(), 2);
                return;
            }
            forget({RAX, RCX, RDX, insn_.rm()});
            return;
        case 0x02:
        case 0x03:
            read_rm(2);
            builder_.forget(insn_.reg());
            builder_.forget_flags();
            return;
        case 0x05: forget({RCX, R11}); return;
        case 0x20:
        case 0x21: builder_.forget(insn_.rm()); return;
        case 0x31:
        case 0x32:
        case 0x33: forget({RAX, RDX}); return;
        case 0xa0:
        case 0xa8: push(insn_.stack_size(), NOTHING_KNOWN); return;
        case 0xa1:
        case 0xa9:
            pop(insn_.stack_size());
            builder_.forget(opcode == 0xa1 ? THREAD_POINTER : GS_BASE);
            return;
        case 0xa2: forget({RAX, RBX, RCX, RDX}); return;
        case 0xa3: bit_test(false, true); return;
        case 0xab:
        case 0xb3:
        case 0xbb: bit_test(true, true); return;
        case 0xba:
            if (insn_.extension() >= 4) bit_test(insn_.extension() > 4, false);
            return;
        case 0xa4:
        case 0xa5: double_shift(true, opcode == 0xa5); return;
        case 0xac:
        case 0xad: double_shift(false, opcode == 0xad); return;
        case 0xae: group_15(); return;
        case 0xaf: {
            Value value = read_rm(size_);
            builder_.forget_flags();
            Value product = compute(Operation::MULTIPLY_ADD, part(insn_.reg(), size_), value, size_);
            set_part(insn_.reg(), size_, product);
            return;
        }
        case 0xb0:
        case 0xb1: compare_and_exchange(size); return;
        case 0xb2:  // LSS, LFS, LGS: the engine has no 64-bit form
        case 0xb4:
        case 0xb5:
            if (insn_.in_register()) return;
            loads(effective(), size_ == 2 ? 4 : 6);
            builder_.forget(insn_.reg());
            if (opcode != 0xb2) builder_.forget(opcode == 0xb4 ? THREAD_POINTER : GS_BASE);
            return;
        case 0xb6:
        case 0xb7: extend_operand(opcode & 1 ? 2 : 1, false); return;
        case 0xbe:
        case 0xbf: extend_operand(opcode & 1 ? 2 : 1, true); return;
        case 0xb8:  // POPCNT
            read_rm(size_);
            builder_.forget(insn_.reg());
            builder_.forget_flags();
            return;
        case 0xbc:
        case 0xbd: scan(opcode == 0xbd); return;
        case 0xc0:
        case 0xc1: exchange_and_add(size); return;
        case 0xc3:  // MOVNTI
            if (!insn_.in_register()) write_rm(insn_.rex_w ? 8 : 4, part(insn_.reg(), insn_.rex_w ? 8 : 4));
            return;
        case 0xc7:
            if (insn_.in_register()) {  // RDRAND, RDSEED
                builder_.forget(insn_.rm());
            } else if (insn_.extension() == 1) {  // CMPXCHG8B, CMPXCHG16B
                unsigned both = insn_.rex_w ? 16 : 8;
                Address at = effective();
                loads(at, both);
                stores(at, both);
                forget({RAX, RDX});
            }
            builder_.forget_flags();
            return;
        case 0xf7: {  // MASKMOVQ, MASKMOVDQU
            Address at = within_segment(at_register(RDI), insn_.segment);
            stores(at, insn_.operand_16 ? 16 : 8);
            return;
        }
        default:
            if (opcode >= 0xc8 && opcode <= 0xcf) {
                unsigned number = insn_.opcode_register();
                Value swapped = compute(Operation::REVERSE_BYTES, part(number, size_), constant(0), size_);
                set_part(number, size_, size_ < 4 ? NOTHING_KNOWN : swapped);
            }
            return;
    }
}

void X86Teller::extend_operand(unsigned from, bool sign) {
    Value value = read_rm(from);
    if (sign) value = builder_.extend(value, from, true, width_of(size_));
    set_part(insn_.reg(), size_, value);
}

// BT, BTS, BTR, BTC. A bit number in a register reaches beyond the operand.
void X86Teller::bit_test(bool writes, bool from_register) {
    if (insn_.in_register()) {
        if (writes) {
            Value bit = from_register ? part(insn_.reg(), size_) : constant(insn_.immediate);
            Value one = shifted(Shift::SHL, constant(1), bit, size_), before = part(insn_.rm(), size_);
            unsigned what = from_register ? insn_.opcode >> 3 & 7 : insn_.extension();
            enum : unsigned { BTS = 5, BTR = 6 };
            Operation operation = what == BTS ? Operation::OR : what == BTR ? Operation::AND_NOT : Operation::XOR;
            set_part(insn_.rm(), size_, compute(operation, before, one, size_));
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
void X86Teller::scan(bool reverse) {
    Value value = read_rm(size_), old = part(insn_.reg(), size_), result = NOTHING_KNOWN;
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
    set_part(insn_.reg(), size_, result);
}

void X86Teller::three_bytes_38() {
    if (insn_.vex) {
        bit_manipulation();
        return;
    }
    bool crc = insn_.repeat == 0xf2;
    if (insn_.opcode == 0xf0 || insn_.opcode == 0xf1) {
        if (crc) {
            read_rm(insn_.opcode == 0xf0 ? 1 : size_);
            builder_.forget(insn_.reg());
        } else if (insn_.opcode == 0xf0) {  // MOVBE
            Value value = read_rm(size_);
            set_part(insn_.reg(), size_,
                     size_ < 4 ? NOTHING_KNOWN : compute(Operation::REVERSE_BYTES, value, constant(0), size_));
        } else {
            write_rm(size_, NOTHING_KNOWN);
        }
    } else if (insn_.opcode == 0xf6) {  // ADCX, ADOX
        read_rm(insn_.rex_w ? 8 : 4);
        builder_.forget(insn_.reg());
        builder_.forget_flags();
    } else {
        vector();
    }
}

// BMI1 and BMI2
void X86Teller::bit_manipulation() {
    unsigned size = insn_.rex_w ? 8 : 4, variant = insn_.variant();
    if (insn_.map == OpcodeMap::THREE_BYTE_3A) {  // RORX
        Value value = read_rm(size);
        set_part(insn_.reg(), size, shifted(Shift::ROR, value, constant(insn_.immediate & (8 * size - 1)), size));
        return;
    }
    if (insn_.map != OpcodeMap::THREE_BYTE_38) return;
    Value value = read_rm(size), other = part(insn_.vex_register, size);
    bool leaves_flags = insn_.opcode == 0xf6 || (insn_.opcode == 0xf7 && variant) || (insn_.opcode == 0xf5 && variant);
    if (!leaves_flags) builder_.forget_flags();
    switch (insn_.opcode) {
        case 0xf2: set_part(insn_.reg(), size, compute(Operation::AND_NOT, value, other, size)); return;
        case 0xf3: {
            Value less = builder_.subtract(value, constant(1), width_of(size)), result = NOTHING_KNOWN;
            if (insn_.extension() == 1) result = compute(Operation::AND, value, less, size);      // BLSR
            if (insn_.extension() == 2) result = compute(Operation::XOR, value, less, size);      // BLSMSK
            if (insn_.extension() == 3) result = compute(Operation::AND_NOT, value, less, size);  // BLSI
            set_part(insn_.vex_register, size, result);
            return;
        }
        case 0xf6: {  // MULX
            Value factor = part(RDX, size);
            Value low = compute(Operation::MULTIPLY_ADD, value, factor, size);
            Value high = size == 8
                             ? compute(Operation::MULTIPLY_HIGH, value, factor, 8)
                             : builder_.extract(compute(Operation::MULTIPLY_LONG, value, factor, 8), 0, 32, false);
            set_part(insn_.vex_register, size, low);
            set_part(insn_.reg(), size, high);
            return;
        }
        case 0xf7: {
            constexpr Shift BY_VARIANT[] = {Shift::RCL, Shift::SHL, Shift::SAR, Shift::SHR};  // BEXTR: unknown
            set_part(insn_.reg(), size, shifted(BY_VARIANT[variant], value, other, size));
            return;
        }
        default: builder_.forget(insn_.reg()); return;  // BZHI, PDEP, PEXT
    }
}

void X86Teller::compare_and_exchange(unsigned size) {
    read_rm(size);
    write_rm(size, NOTHING_KNOWN);
    builder_.forget(RAX);
    builder_.forget_flags();
}

void X86Teller::exchange_and_add(unsigned size) {
    Value held = part(insn_.reg(), size);
    Value before = read_rm(size);
    Value sum = arithmetic(Arithmetic::ADD, before, held, size);
    if (insn_.in_register()) {
        set_part(insn_.reg(), size, before);
        write_rm(size, sum);
    } else {
        write_rm(size, sum);
        set_part(insn_.reg(), size, before);
    }
}

// SHLD, SHRD. By CL the result is left unknown.
void X86Teller::double_shift(bool left, bool by_count) {
    Value before = read_rm(size_), other = part(insn_.reg(), size_);
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
    write_rm(size_, result);
}

}  // namespace perfemu::slice
