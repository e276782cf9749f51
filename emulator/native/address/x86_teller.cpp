#include "address/x86_teller.hpp"

namespace perfemu::slice {

Value X86Teller::part(unsigned number, unsigned size) const {
    if (high_byte(number, size)) return builder_.extract(whole(number - RSP), 48, 56, false);
    return builder_.extend(whole(number), size, false);
}

// A write of 32 bits clears the upper half (as it is in `value`); of fewer, leaves the others alone.
void X86Teller::set_part(unsigned number, unsigned size, Value value) {
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

Address X86Teller::within_segment(Address at, X86Segment segment) {
    if (insn_.address_32) at = {.base = builder_.extend(builder_.address(at), 4, false)};
    if (segment == X86Segment::NONE) return at;
    Value base = whole(segment == X86Segment::FS ? THREAD_POINTER : GS_BASE);
    bool indexed = at.index.place != ZERO || at.index.displacement != 0;
    return {.base = indexed ? builder_.address(at) : at.base, .index = base};
}

Address X86Teller::effective(bool with_segment) {
    unsigned mode = insn_.modrm >> 6, low = insn_.modrm & 7;
    Address at{.base = constant(static_cast<uint64_t>(insn_.displacement))};
    if (insn_.has_sib) {
        unsigned base = insn_.sib & 7, index = (insn_.sib >> 3 & 7) | (insn_.rex_x ? 8U : 0);
        if (base != RBP || mode != 0) at = at_register(base | (insn_.rex_b ? 8U : 0), insn_.displacement);
        if (index != RSP) {
            at.index = whole(index);
            at.shift = insn_.sib >> 6;
        }
    } else if (mode == 0 && low == RBP) {
        // The engine forgets that SHLD, SHRD and RORX have an immediate behind the displacement.
        bool forgets = insn_.map == OpcodeMap::TWO_BYTE ? insn_.opcode == 0xa4 || insn_.opcode == 0xac
                                                        : insn_.map == OpcodeMap::THREE_BYTE_3A && insn_.vex;
        at.base = constant(next_ - forgets + static_cast<uint64_t>(insn_.displacement));
    } else {
        at = at_register(insn_.rm(), insn_.displacement);
    }
    return within_segment(at, with_segment ? insn_.segment : X86Segment::NONE);
}

Address X86Teller::string_source() { return within_segment(at_register(RSI), insn_.segment); }
Address X86Teller::string_destination() { return within_segment(at_register(RDI), X86Segment::NONE); }

namespace {
constexpr unsigned ENGINE_WORD = 8;  // bytes of its widest access
}

void X86Teller::loads(const Address& at, unsigned size) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, SliceBuilder::Direction::LOAD);
}

void X86Teller::stores(const Address& at, unsigned size, Value value) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, SliceBuilder::Direction::STORE);
    builder_.store(at, size, value);
}

Value X86Teller::load(const Address& at, unsigned size) {
    loads(at, size);
    return builder_.load(at, size, false);
}

void X86Teller::push(unsigned size, Value value) {
    auto bytes = static_cast<int64_t>(size);
    stores(at_register(RSP, -bytes), size, value);
    move_stack(-bytes);
}

Value X86Teller::pop(unsigned size) {
    Value value = load(at_register(RSP), size);
    move_stack(size);
    return value;
}

Value X86Teller::read_rm(unsigned size) {
    return insn_.in_register() ? part(insn_.rm(), size) : load(effective(), size);
}

void X86Teller::write_rm(unsigned size, Value value) {
    if (insn_.in_register()) {
        set_part(insn_.rm(), size, value);
    } else {
        stores(effective(), size, value);
    }
}

// By the low four bits of Jcc's, SETcc's and CMOVcc's opcodes.
Value X86Teller::condition(unsigned code) {
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

Value X86Teller::carry() { return condition(2); }

// Flags of 8 and 16 bits are those of 32 with the operands in the highest bits.
static Value at_the_top(SliceBuilder& builder, Value value, unsigned size) {
    return size < 4 ? builder.extract(value, 64 - 8 * size, 32, false) : value;
}

void X86Teller::set_logic_flags(Value result, unsigned size) {
    Value top = at_the_top(builder_, result, size);
    builder_.set_flags_of_and(top, top, width_of(size));
}

Value X86Teller::arithmetic(Arithmetic what, Value a, Value b, unsigned size) {
    Value top_a = at_the_top(builder_, a, size), top_b = at_the_top(builder_, b, size), result;
    switch (what) {
        case Arithmetic::ADD:
            builder_.set_flags_of_addition(top_a, top_b, width_of(size));
            return builder_.add(a, b, width_of(size));
        case Arithmetic::SUB:
        case Arithmetic::CMP:
            builder_.set_flags_of_subtraction(top_a, top_b, width_of(size));
            return builder_.subtract(a, b, width_of(size));
        case Arithmetic::ADC:
            result = builder_.add(builder_.add(a, b, width_of(size)), carry(), width_of(size));
            builder_.forget_flags();
            return result;
        case Arithmetic::SBB:
            result = builder_.subtract(builder_.subtract(a, b, width_of(size)), carry(), width_of(size));
            builder_.forget_flags();
            return result;
        case Arithmetic::OR: result = compute(Operation::OR, a, b, size); break;
        case Arithmetic::AND: result = compute(Operation::AND, a, b, size); break;
        case Arithmetic::XOR: result = compute(Operation::XOR, a, b, size); break;
    }
    set_logic_flags(result, size);
    return result;
}

Value X86Teller::shifted(Shift what, Value a, Value amount, unsigned size) {
    if (size < 4) return NOTHING_KNOWN;
    switch (what) {
        case Shift::ROL: return compute(Operation::ROTATE_RIGHT, a, builder_.subtract(constant(0), amount), size);
        case Shift::ROR: return compute(Operation::ROTATE_RIGHT, a, amount, size);
        case Shift::SHL:
        case Shift::SAL: return compute(Operation::SHIFT_LEFT, a, amount, size);
        case Shift::SHR: return compute(Operation::SHIFT_RIGHT, a, amount, size);
        case Shift::SAR: return compute(Operation::SHIFT_RIGHT_SIGNED, a, amount, size);
        default: return NOTHING_KNOWN;
    }
}

void X86Teller::tell() {
    switch (insn_.map) {
        case OpcodeMap::ONE_BYTE: one_byte(); break;
        case OpcodeMap::TWO_BYTE: two_bytes(); break;
        case OpcodeMap::THREE_BYTE_38: three_bytes_38(); break;
        case OpcodeMap::THREE_BYTE_3A: vector(); break;
    }
}

}  // namespace perfemu::slice
