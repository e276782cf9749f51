#include "aarch64/dataflow.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "aarch64/memory_operand.hpp"

namespace perfemu::aarch64 {
namespace {

using slice::A64_STACK;
using slice::Condition;
using slice::NOTHING_KNOWN;
using slice::SliceBuilder;

constexpr auto LOAD = SliceBuilder::Direction::LOAD;
constexpr auto STORE = SliceBuilder::Direction::STORE;

// DecodeBitMasks of the Arm ARM's pseudocode, for logical immediates.
std::optional<uint64_t> bit_mask(bool n, unsigned imms, unsigned immr) {
    const unsigned pattern = static_cast<unsigned>(n) << 6 | (~imms & 0x3f);
    if (pattern < 2) return std::nullopt;
    const unsigned size = std::bit_floor(pattern);  // of the element that is repeated
    const unsigned ones = (imms & (size - 1)) + 1, rotation = immr & (size - 1);
    if (ones == size) return std::nullopt;
    const uint64_t element = (uint64_t{1} << ones) - 1;
    uint64_t result = 0;
    for (unsigned i = 0; i < 64; i++) result |= (element >> ((i + rotation) % size) & 1) << i;
    return result;
}

slice::Extension extension(unsigned option) {
    return {.size_bytes = static_cast<uint8_t>(1u << (option & 3)), .sign = (option & 4) != 0};
}

}  // namespace

void InstructionDataflow::build() {
    if (!row_) return forget_all();
    if (row_->addressing != Addressing::NONE && !row_->has(effect::PREFETCHES)) access_memory();
    if (row_->dataflow)
        (this->*row_->dataflow)();
    else
        forget_written();
}

void InstructionDataflow::forget_all() {
    for (unsigned number = 0; number <= A64_STACK; number++) builder_.forget(number);
    builder_.forget_flags();
}

void InstructionDataflow::forget_written() {
    if (row_->has(effect::D_X)) forget_general(rd(word_));
    if (row_->has(effect::D_SP)) builder_.forget(rd(word_));
    if (row_->has(effect::FLAGS_OUT)) builder_.forget_flags();
}

// --- loads and stores ---

slice::Address InstructionDataflow::address_of(const MemoryOperand& operand) {
    switch (row_->addressing) {
        case Addressing::LITERAL: return {.base = constant(pc_ + static_cast<uint64_t>(operand.offset))};
        case Addressing::CACHE_LINE:
            return {.base =
                        builder_.compute(Operation::AND, general(operand.base), constant(~uint64_t{ZVA_BYTES - 1}))};
        case Addressing::REGISTER:
            return builder_.indexed(general_or_stack(operand.base), general(operand.index), operand.shift,
                                    extension(operand.extend));
        default: return {.base = SliceBuilder::plus(general_or_stack(operand.base), operand.offset)};
    }
}

void InstructionDataflow::access_memory() {
    const MemoryOperand operand = memory_operand(*row_, word_);
    const bool loads = row_->has(effect::LOADS), stores = row_->has(effect::STORES);
    const Address at = address_of(operand);
    const Value base = row_->addressing == Addressing::LITERAL ? NOTHING_KNOWN : general_or_stack(operand.base);
    if (loads) builder_.access(at, operand.bytes, operand.elements, LOAD);
    if (stores) {
        builder_.access(at, operand.bytes, operand.elements, STORE);
        store_registers(operand, at);
    }
    if (loads) load_registers(operand, at);
    if (operand.writes_back) write_back(operand, base);
}

// An exclusive store may not be done; what an atomic access stores depends on what was there.
void InstructionDataflow::store_registers(const MemoryOperand& operand, const Address& at) {
    const bool known = !operand.vector && !row_->has(effect::LOADS | effect::MONITORED) && operand.stored.count != 0;
    if (!known) {
        builder_.store(at, operand.bytes);
        set_general(operand.status, NOTHING_KNOWN);
        return;
    }
    int64_t offset = 0;
    for (uint8_t number : operand.stored) {
        builder_.store(at.plus(offset), operand.register_bytes, general(number));
        offset += operand.register_bytes;
    }
}

void InstructionDataflow::load_registers(const MemoryOperand& operand, const Address& at) {
    if (operand.vector) return;
    if (row_->has(effect::STORES)) {
        for (uint8_t number : operand.loaded) forget_general(number);
        return;
    }
    const bool sign = row_->has(effect::SIGNED);
    const Width width = sign && !row_->has(effect::TO_64) ? Width::BITS_32 : Width::BITS_64;
    std::array<Value, 4> values;
    for (unsigned i = 0; i < operand.loaded.count; i++)
        values[i] = builder_.load(at.plus(int64_t{operand.register_bytes} * i), operand.register_bytes, sign, width);
    for (unsigned i = 0; i < operand.loaded.count; i++) set_general(operand.loaded.numbers[i], values[i]);
}

void InstructionDataflow::write_back(const MemoryOperand& operand, Value base) {
    builder_.set(operand.base, operand.steps_by_register ? builder_.add(base, general(operand.index))
                                                         : SliceBuilder::plus(base, operand.step));
}

// --- branches and system instructions ---

void InstructionDataflow::link() { set_general(LINK_REGISTER, constant(pc_ + sizeof word_)); }
void InstructionDataflow::read_thread_pointer() { set_destination(builder_.get(slice::THREAD_POINTER)); }
void InstructionDataflow::write_thread_pointer() { builder_.set(slice::THREAD_POINTER, general(rd(word_))); }

// --- data processing ---

slice::Value InstructionDataflow::shifted(Value value, unsigned kind, unsigned amount) {
    if (amount == 0) return value;
    const unsigned above = 64 - width_bits();
    switch (kind) {
        case 0: return builder_.extract(value, amount, 0, false, width());
        case 1: return builder_.extract(value, above, above + amount, false, width());
        case 2: return builder_.extract(value, above, above + amount, true, width());
        default: return builder_.compute(Operation::ROTATE_RIGHT, value, constant(amount), width());
    }
}

// ADD, SUB, ADDS, SUBS.
void InstructionDataflow::add_or_subtract(Value a, Value b) {
    const bool subtract = bit_of(word_, 30), sets_flags = bit_of(word_, 29);
    const Value result = subtract ? builder_.subtract(a, b, width()) : builder_.add(a, b, width());
    if (sets_flags && subtract) builder_.set_flags_of_subtraction(a, b, width());
    if (sets_flags && !subtract) builder_.set_flags_of_addition(a, b, width());
    if (row_->has(effect::D_SP))
        builder_.set(rd(word_), result);
    else
        set_destination(result);
}

void InstructionDataflow::add_immediate() {
    const uint64_t value = uint64_t{field(word_, 10, 12)} << (bit_of(word_, 22) ? 12 : 0);
    add_or_subtract(general_or_stack(rn(word_)), constant(value));
}

void InstructionDataflow::add_shifted() {
    add_or_subtract(general(rn(word_)), shifted(general(rm(word_)), field(word_, 22, 2), field(word_, 10, 6)));
}

void InstructionDataflow::add_extended() {
    const slice::Extension of = extension(field(word_, 13, 3));
    const unsigned shift = field(word_, 10, 3);
    const Value whole = builder_.extend(general(rm(word_)), of.size_bytes, of.sign);
    const Value b = shift ? builder_.extract(whole, shift, 0, false) : whole;
    add_or_subtract(general_or_stack(rn(word_)), b);
}

// ADR, ADRP
void InstructionDataflow::label() {
    const auto offset =
        static_cast<uint64_t>(signed_field(word_, 5, 19) * 4 + static_cast<int64_t>(field(word_, 29, 2)));
    const bool of_page = bit_of(word_, 31);
    set_destination(constant(of_page ? (pc_ & ~uint64_t{0xfff}) + (offset << 12) : pc_ + offset));
}

void InstructionDataflow::logic_immediate() {
    const std::optional<uint64_t> mask = bit_mask(bit_of(word_, 22), field(word_, 10, 6), field(word_, 16, 6));
    if (!mask) return forget_all();
    constexpr Operation OPERATIONS[] = {Operation::AND, Operation::OR, Operation::XOR, Operation::AND};
    const Value a = general(rn(word_)), b = constant(*mask);
    const Value result = builder_.compute(OPERATIONS[field(word_, 29, 2)], a, b, width());
    if (row_->has(effect::FLAGS_OUT)) builder_.set_flags_of_and(a, b, width());
    if (row_->has(effect::D_SP))
        builder_.set(rd(word_), result);
    else
        set_destination(result);
}

void InstructionDataflow::keep_and_move() {
    const unsigned shift = field(word_, 21, 2) * 16;
    const uint64_t part = uint64_t{field(word_, 5, 16)} << shift, mask = uint64_t{0xffff} << shift;
    const Value kept = builder_.compute(Operation::AND_NOT, general(rd(word_)), constant(mask), width());
    set_destination(builder_.compute(Operation::OR, kept, constant(part), width()));
}

// MOVN, MOVZ
void InstructionDataflow::move_wide() {
    const bool invert = !bit_of(word_, 30);
    const uint64_t part = uint64_t{field(word_, 5, 16)} << field(word_, 21, 2) * 16;
    const uint64_t value = invert ? ~part : part;
    set_destination(constant(is_64() ? value : static_cast<uint32_t>(value)));
}

// SBFM, BFM, UBFM: either bits s..r move to the bottom, or bits s..0 move up by size - r.
void InstructionDataflow::bit_field() {
    const unsigned opc = field(word_, 29, 2), r = field(word_, 16, 6), s = field(word_, 10, 6), bits = width_bits();
    if (r >= bits || s >= bits) return forget_all();
    const bool down = s >= r, sign = opc == 0, keeps_others = opc == 1;
    const unsigned left = 63 - s, right = down ? 63 - s + r : 63 - s - (bits - r);
    Value moved = builder_.extract(general(rn(word_)), left, right, sign, width());
    if (keeps_others) {
        const unsigned length = down ? s - r + 1 : s + 1, lowest = down ? 0 : bits - r;
        const uint64_t mask = (length == 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << lowest;
        const Value kept = builder_.compute(Operation::AND_NOT, general(rd(word_)), constant(mask), width());
        moved = builder_.compute(Operation::OR, kept, moved, width());
    }
    set_destination(moved);
}

// EXTR: the low bits of Rn above the high bits of Rm. ROR if they are the same.
void InstructionDataflow::extract() {
    const unsigned amount = field(word_, 10, 6), bits = width_bits();
    const Value high = general(rn(word_)), low = general(rm(word_));
    if (rn(word_) == rm(word_))
        set_destination(shifted(low, 3, amount));
    else if (amount == 0)
        set_destination(builder_.extend(low, bits / 8, false));
    else
        set_destination(
            builder_.compute(Operation::OR, shifted(high, 0, bits - amount), shifted(low, 1, amount), width()));
}

void InstructionDataflow::logic() {
    const unsigned opc = field(word_, 29, 2);
    const bool invert = bit_of(word_, 21), moves = opc == 1 && !invert && rn(word_) == ZERO_REGISTER;
    const Value a = general(rn(word_));
    Value b = shifted(general(rm(word_)), field(word_, 22, 2), field(word_, 10, 6));
    if (moves) return set_destination(builder_.extend(b, width_bits() / 8, false));
    constexpr Operation PLAIN[] = {Operation::AND, Operation::OR, Operation::XOR, Operation::AND};
    constexpr Operation INVERTED[] = {Operation::AND_NOT, Operation::OR_NOT, Operation::XOR_NOT, Operation::AND_NOT};
    set_destination(builder_.compute(invert ? INVERTED[opc] : PLAIN[opc], a, b, width()));
    if (!row_->has(effect::FLAGS_OUT)) return;
    if (invert) b = builder_.compute(Operation::OR_NOT, constant(0), b, width());
    builder_.set_flags_of_and(a, b, width());
}

// CSEL, CSINC, CSINV, CSNEG
void InstructionDataflow::conditional_select() {
    const bool invert = bit_of(word_, 30), increment = bit_of(word_, 10);
    Value if_false = general(rm(word_));
    if (invert) if_false = builder_.compute(Operation::OR_NOT, constant(0), if_false);
    if (increment) if_false = SliceBuilder::plus(if_false, 1);
    const unsigned condition = field(word_, 12, 4);
    const Value holds = builder_.condition(condition < 14 ? static_cast<Condition>(condition) : Condition::ALWAYS);
    set_destination(builder_.select(holds, general(rn(word_)), if_false, width()));
}

void InstructionDataflow::two_sources() {
    Operation operation = Operation::ROTATE_RIGHT;
    switch (field(word_, 10, 6)) {
        case 0b000010: operation = Operation::DIVIDE; break;
        case 0b000011: operation = Operation::DIVIDE_SIGNED; break;
        case 0b001000: operation = Operation::SHIFT_LEFT; break;
        case 0b001001: operation = Operation::SHIFT_RIGHT; break;
        case 0b001010: operation = Operation::SHIFT_RIGHT_SIGNED; break;
        default: break;
    }
    set_destination(builder_.compute(operation, general(rn(word_)), general(rm(word_)), width()));
}

// REV16, REV32 and CLS are not followed.
void InstructionDataflow::one_source() {
    const unsigned opcode = field(word_, 10, 6), whole = is_64() ? 3 : 2;
    std::optional<Operation> operation;
    if (opcode == 0) operation = Operation::REVERSE_BITS;
    if (opcode == whole) operation = Operation::REVERSE_BYTES;
    if (opcode == 4) operation = Operation::COUNT_LEADING_ZEROS;
    if (!operation) return forget_written();
    set_destination(builder_.compute(*operation, general(rn(word_)), constant(0), width()));
}

void InstructionDataflow::multiply() {
    const bool subtract = bit_of(word_, 15);
    const Value a = general(rn(word_)), b = general(rm(word_)), c = general(ra(word_));
    Value product = NOTHING_KNOWN;
    switch (field(word_, 21, 3)) {
        case 0b000: {
            const Operation operation = subtract ? Operation::MULTIPLY_SUBTRACT : Operation::MULTIPLY_ADD;
            return set_destination(builder_.compute(operation, a, b, c, width()));
        }
        case 0b010: return set_destination(builder_.compute(Operation::MULTIPLY_HIGH_SIGNED, a, b));
        case 0b110: return set_destination(builder_.compute(Operation::MULTIPLY_HIGH, a, b));
        case 0b001: product = builder_.compute(Operation::MULTIPLY_LONG_SIGNED, a, b); break;
        default: product = builder_.compute(Operation::MULTIPLY_LONG, a, b);
    }
    set_destination(subtract ? builder_.subtract(c, product) : builder_.add(c, product));
}

}  // namespace perfemu::aarch64
