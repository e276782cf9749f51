// What x86-64 instructions do to general registers, flags and memory. Opcodes: Intel SDM vol. 2, appendix A.
//
// As the engine executes them: its accesses are held against its MEM hooks by a test, instruction by instruction.
//
// Some instructions access what their operands' values choose. They are told as the whole of what they may access:
// MASKMOVQ and MASKMOVDQU (the bytes that the mask selects), FXSAVE, FSAVE, FSTENV and their opposites (which leave out
// reserved bytes), XSAVE and XRSTOR (the components that EDX:EAX selects). Far transfers of control and loads of
// segment registers read descriptor tables, too, of which user programs have none.
#include <algorithm>

#include "address/slice_compiler.hpp"
#include "address/x86_instruction.hpp"
#include "address/x86_vector_operands.hpp"

namespace perfemu::slice {
namespace {

using Direction = SliceBuilder::Direction;

constexpr unsigned RAX = 0, RCX = 1, RDX = 2, RBX = 3, RSP = 4, RBP = 5, RSI = 6, RDI = 7, R11 = 11;
constexpr unsigned ENGINE_WORD = 8;  // bytes of its widest access
constexpr unsigned FXSAVE_BYTES = 512, XSAVE_HEADER_BYTES = 24;

enum class Arithmetic : uint8_t { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };
enum class Shift : uint8_t { ROL, ROR, RCL, RCR, SHL, SHR, SAL, SAR };

Width width_of(unsigned size) { return size == 8 ? Width::BITS_64 : Width::BITS_32; }

// Tells one instruction.
class Teller {
  public:
    Teller(SliceBuilder& builder, const X86Instruction& insn, uint64_t pc, bool after_sign_extension)
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

    // Groups of instructions
    void one_byte();
    void two_bytes();
    void three_bytes_38();
    void bit_manipulation();
    void vector();
    void x87();
    void string();
    void group_1(unsigned size, uint64_t immediate);
    void group_3(unsigned size);
    void group_5();
    void multiply(unsigned size, bool sign);
    void divide(unsigned size, bool sign);
    void enter();
    void bit_test(bool writes, bool from_register);
    void scan(bool reverse);
    void compare_and_exchange(unsigned size);
    void group_15();
    void xsave();
    void general_operand();
    void extend_operand(unsigned from, bool sign);
    void shift_operand(unsigned size, Value amount);
    void double_shift(bool left, bool by_count);
    void exchange(unsigned size);
    void exchange_and_add(unsigned size);
    void move_segment(bool from_memory);

    SliceBuilder& builder_;
    const X86Instruction& insn_;
    unsigned size_;  // of general operands
    uint64_t next_;
    bool after_sign_extension_;
};

Value Teller::part(unsigned number, unsigned size) const {
    if (high_byte(number, size)) return builder_.extract(whole(number - RSP), 48, 56, false);
    return builder_.extend(whole(number), size, false);
}

// A write of 32 bits clears the upper half (as it is in `value`); of fewer, leaves the others alone.
void Teller::set_part(unsigned number, unsigned size, Value value) {
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

Address Teller::within_segment(Address at, X86Segment segment) {
    if (insn_.address_32) at = {.base = builder_.extend(builder_.address(at), 4, false)};
    if (segment == X86Segment::NONE) return at;
    Value base = whole(segment == X86Segment::FS ? THREAD_POINTER : GS_BASE);
    bool indexed = at.index.place != ZERO || at.index.displacement != 0;
    return {.base = indexed ? builder_.address(at) : at.base, .index = base};
}

Address Teller::effective(bool with_segment) {
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

Address Teller::string_source() { return within_segment(at_register(RSI), insn_.segment); }
Address Teller::string_destination() { return within_segment(at_register(RDI), X86Segment::NONE); }

void Teller::loads(const Address& at, unsigned size) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, Direction::LOAD);
}

void Teller::stores(const Address& at, unsigned size, Value value) {
    builder_.access(at, size, size == 2 * ENGINE_WORD ? 2 : 1, Direction::STORE);
    builder_.store(at, size, value);
}

Value Teller::load(const Address& at, unsigned size) {
    loads(at, size);
    return builder_.load(at, size, false);
}

void Teller::push(unsigned size, Value value) {
    auto bytes = static_cast<int64_t>(size);
    stores(at_register(RSP, -bytes), size, value);
    move_stack(-bytes);
}

Value Teller::pop(unsigned size) {
    Value value = load(at_register(RSP), size);
    move_stack(size);
    return value;
}

Value Teller::read_rm(unsigned size) { return insn_.in_register() ? part(insn_.rm(), size) : load(effective(), size); }

void Teller::write_rm(unsigned size, Value value) {
    if (insn_.in_register()) {
        set_part(insn_.rm(), size, value);
    } else {
        stores(effective(), size, value);
    }
}

// By the low four bits of Jcc's, SETcc's and CMOVcc's opcodes.
Value Teller::condition(unsigned code) {
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

Value Teller::carry() { return condition(2); }

// Flags of 8 and 16 bits are those of 32 with the operands in the highest bits.
Value at_the_top(SliceBuilder& builder, Value value, unsigned size) {
    return size < 4 ? builder.extract(value, 64 - 8 * size, 32, false) : value;
}

void Teller::set_logic_flags(Value result, unsigned size) {
    Value top = at_the_top(builder_, result, size);
    builder_.set_flags_of_and(top, top, width_of(size));
}

Value Teller::arithmetic(Arithmetic what, Value a, Value b, unsigned size) {
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

Value Teller::shifted(Shift what, Value a, Value amount, unsigned size) {
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

void Teller::tell() {
    switch (insn_.map) {
        case OpcodeMap::ONE_BYTE: one_byte(); break;
        case OpcodeMap::TWO_BYTE: two_bytes(); break;
        case OpcodeMap::THREE_BYTE_38: three_bytes_38(); break;
        case OpcodeMap::THREE_BYTE_3A: vector(); break;
    }
}

// The block 00..3F of the opcode map: six forms of eight operations.
void Teller::general_operand() {
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

void Teller::group_1(unsigned size, uint64_t value) {
    auto what = static_cast<Arithmetic>(insn_.extension());
    Value before = read_rm(size);
    Value other = constant(size == 8 ? value : value & ((uint64_t{1} << 8 * size) - 1));
    Value result = arithmetic(what, before, other, size);
    if (what != Arithmetic::CMP) write_rm(size, result);
}

void Teller::one_byte() {
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

void Teller::exchange(unsigned size) {
    Value held = part(insn_.reg(), size);
    Value other = read_rm(size);
    write_rm(size, held);
    set_part(insn_.reg(), size, other);
}

void Teller::exchange_and_add(unsigned size) {
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

void Teller::move_segment(bool to_segment) {
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

void Teller::shift_operand(unsigned size, Value amount) {
    Value before = read_rm(size);
    builder_.forget_flags();
    write_rm(size, shifted(static_cast<Shift>(insn_.extension()), before, amount, size));
}

// SHLD, SHRD. By CL the result is left unknown.
void Teller::double_shift(bool left, bool by_count) {
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

void Teller::group_3(unsigned size) {
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
void Teller::multiply(unsigned size, bool sign) {
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
void Teller::divide(unsigned size, bool sign) {
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

void Teller::group_5() {
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
void Teller::enter() {
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
void Teller::string() {
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

void Teller::two_bytes() {
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

void Teller::extend_operand(unsigned from, bool sign) {
    Value value = read_rm(from);
    if (sign) value = builder_.extend(value, from, true, width_of(size_));
    set_part(insn_.reg(), size_, value);
}

// BT, BTS, BTR, BTC. A bit number in a register reaches beyond the operand.
void Teller::bit_test(bool writes, bool from_register) {
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
void Teller::scan(bool reverse) {
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

void Teller::compare_and_exchange(unsigned size) {
    read_rm(size);
    write_rm(size, NOTHING_KNOWN);
    builder_.forget(RAX);
    builder_.forget_flags();
}

void Teller::group_15() {
    unsigned what = insn_.extension();
    if (insn_.in_register()) {
        if (insn_.repeat != 0xf3) return;  // fences
        unsigned size = insn_.rex_w ? 8 : 4, base = what & 1 ? GS_BASE : THREAD_POINTER;
        if (what < 2) set_part(insn_.rm(), size, size == 8 ? whole(base) : builder_.extend(whole(base), 4, false));
        if (what == 2 || what == 3) builder_.set(base, part(insn_.rm(), size));
        return;
    }
    switch (what) {
        case 0: stores(effective(), FXSAVE_BYTES); return;
        case 1: loads(effective(), FXSAVE_BYTES); return;
        case 2: loads(effective(), 4); return;   // LDMXCSR
        case 3: stores(effective(), 4); return;  // STMXCSR
        case 4: xsave(); return;
        case 5: {  // XRSTOR reads the header first
            Address at = effective();
            loads(at.plus(FXSAVE_BYTES), XSAVE_HEADER_BYTES);
            loads(at, FXSAVE_BYTES);
            return;
        }
        case 6:
            if (!insn_.operand_16) xsave();  // XSAVEOPT; with 66 CLWB
            return;
        default: return;  // CLFLUSH
    }
}

// It updates which components are there.
void Teller::xsave() {
    Address at = effective(), components = at.plus(FXSAVE_BYTES);
    stores(at, FXSAVE_BYTES);
    loads(components, 8);
    stores(components, 8);
}

void Teller::three_bytes_38() {
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
void Teller::bit_manipulation() {
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

void Teller::vector() {
    VectorOperand operand = vector_operand(insn_);
    if (insn_.vex) {
        bit_manipulation();
        return;
    }
    if (insn_.in_memory() && operand.size) {
        if (operand.stored) {
            stores(effective(), operand.size);
        } else {
            loads(effective(), operand.size);
        }
    }
    if (writes_general_reg(insn_)) builder_.forget(insn_.reg());
    if (writes_general_rm(insn_)) builder_.forget(insn_.rm());
    if (insn_.map == OpcodeMap::THREE_BYTE_3A && (insn_.opcode & 0xfd) == 0x61) builder_.forget(RCX);  // PCMPxSTRI
    bool compares = (insn_.map == OpcodeMap::TWO_BYTE && (insn_.opcode == 0x2e || insn_.opcode == 0x2f)) ||
                    (insn_.map == OpcodeMap::THREE_BYTE_38 && insn_.opcode == 0x17) ||
                    (insn_.map == OpcodeMap::THREE_BYTE_3A && insn_.opcode >> 4 == 6);
    if (compares) builder_.forget_flags();
}

// Sizes of memory operands by opcode and extension; negative: stored. Intel SDM vol. 2, A.5.
void Teller::x87() {
    constexpr int ENVIRONMENT = 28, STATE = 108;
    constexpr int SIZES[8][8] = {
        {4, 4, 4, 4, 4, 4, 4, 4},  // D8
        {4, 0, -4, -4, ENVIRONMENT, 2, -ENVIRONMENT, -2},
        {4, 4, 4, 4, 4, 4, 4, 4},  // DA
        {4, -4, -4, -4, 0, 10, 0, -10},
        {8, 8, 8, 8, 8, 8, 8, 8},  // DC
        {8, -8, -8, -8, STATE, 0, -STATE, -2},
        {2, 2, 2, 2, 2, 2, 2, 2},  // DE
        {2, -2, -2, -2, 10, 8, -10, -8},
    };
    constexpr unsigned DF = 7;
    unsigned row = insn_.opcode & 7;
    if (insn_.in_register()) {
        if (row == DF && insn_.modrm == 0xe0) builder_.forget(RAX);  // FNSTSW AX
        bool compares = (row == 3 || row == DF) && (insn_.extension() == 5 || insn_.extension() == 6);
        if (compares) builder_.forget_flags();  // FCOMI, FUCOMI and with pops
        return;
    }
    int size = SIZES[row][insn_.extension()];
    constexpr int SHORTER = 14, LONGER = 28;  // the 16-bit environment; the engine leaves a gap with REX.W
    bool environment = size == ENVIRONMENT || size == -ENVIRONMENT, state = size == STATE || size == -STATE;
    int more = size_ == 2 ? -SHORTER : size_ == 8 && state ? LONGER : 0;
    if (environment || state) size += size > 0 ? more : -more;
    if (size > 0) loads(effective(), static_cast<unsigned>(size));
    if (size < 0) stores(effective(), static_cast<unsigned>(-size));
}

class X8664Compiler final : public SliceCompiler {
  protected:
    unsigned compile_op(SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) override {
        X86Instruction insn = read_x86_instruction(bytes);
        bool after_sign_extension = sign_extended_size_ != 0 && sign_extended_size_ == insn.operand_size();
        if (insn.length) Teller(builder, insn, pc, after_sign_extension).tell();
        constexpr uint8_t CDQ = 0x99;
        bool extends = insn.map == OpcodeMap::ONE_BYTE && insn.opcode == CDQ;
        sign_extended_size_ = extends ? insn.operand_size() : 0;
        return insn.length;
    }

  private:
    unsigned sign_extended_size_ = 0;  // of the instruction before, if it was CDQ or CQO
};

const SliceCompilerRow ROW{"x86_64", [] { return std::unique_ptr<SliceCompiler>(new X8664Compiler); }};

}  // namespace
}  // namespace perfemu::slice
