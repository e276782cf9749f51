// What A64 instructions do to general registers, flags and memory. Encodings: Arm ARM DDI 0487, C4.1.
#include <bit>
#include <cstring>
#include <optional>

#include "address/slice_compiler.hpp"

namespace perfemu::slice {
namespace {

constexpr unsigned ZERO_REGISTER = 31;  // or SP, as the instruction says
constexpr unsigned LINK = 30;
constexpr unsigned ZVA_BYTES = 64;  // DCZID_EL0 of the modelled CPUs

constexpr auto LOAD = SliceBuilder::Direction::LOAD;
constexpr auto STORE = SliceBuilder::Direction::STORE;

class Word {
  public:
    explicit Word(uint32_t bits) : bits_(bits) {}
    bool is(uint32_t mask, uint32_t value) const { return (bits_ & mask) == value; }
    uint32_t field(unsigned high, unsigned low) const { return bits_ >> low & ((1u << (high - low + 1)) - 1); }
    bool bit(unsigned number) const { return bits_ >> number & 1; }
    int64_t signed_field(unsigned high, unsigned low) const {
        unsigned above = 63 - (high - low);
        return static_cast<int64_t>(uint64_t{field(high, low)} << above) >> above;
    }
    unsigned rd() const { return field(4, 0); }
    unsigned rn() const { return field(9, 5); }
    unsigned rm() const { return field(20, 16); }
    unsigned ra() const { return field(14, 10); }
    bool vector() const { return bit(26); }

  private:
    uint32_t bits_;
};

// DecodeBitMasks of the Arm ARM's pseudocode, for logical immediates.
std::optional<uint64_t> logical_immediate(bool n, unsigned imms, unsigned immr) {
    unsigned pattern = static_cast<unsigned>(n) << 6 | (~imms & 0x3f);
    if (pattern < 2) return std::nullopt;
    unsigned size = std::bit_floor(pattern);  // of the element that is repeated
    unsigned ones = (imms & (size - 1)) + 1, rotation = immr & (size - 1);
    if (ones == size) return std::nullopt;
    uint64_t element = (uint64_t{1} << ones) - 1;
    uint64_t result = 0;
    for (unsigned i = 0; i < 64; i++) result |= (element >> ((i + rotation) % size) & 1) << i;
    return result;
}

// One instruction.
class Instruction {
  public:
    Instruction(SliceBuilder& builder, uint64_t pc, uint32_t bits) : builder_(builder), pc_(pc), word_(bits) {}

    void compile() {
        unsigned group = word_.field(28, 25);
        if ((group & 0b0101) == 0b0100) {
            load_store();
        } else if ((group & 0b1110) == 0b1000) {
            immediate();
        } else if ((group & 0b1110) == 0b1010) {
            branch_or_system();
        } else if ((group & 0b0111) == 0b0101) {
            register_operands();
        } else if ((group & 0b0111) == 0b0111) {
            floating_point();
        } else {
            forget_all();
        }
    }

  private:
    // --- registers ---
    Value general(unsigned number) const {
        return number == ZERO_REGISTER ? SliceBuilder::constant(0) : builder_.get(number);
    }
    void set_general(unsigned number, Value value) {
        if (number != ZERO_REGISTER) builder_.set(number, value);
    }
    void forget_general(unsigned number) { set_general(number, NOTHING_KNOWN); }
    Value general_or_stack(unsigned number) const { return builder_.get(number); }
    void set_general_or_stack(unsigned number, Value value) { builder_.set(number, value); }
    void forget_all() {
        for (unsigned number = 0; number <= A64_STACK; number++) builder_.forget(number);
        builder_.forget_flags();
    }
    Width width() const { return word_.bit(31) ? Width::BITS_64 : Width::BITS_32; }
    unsigned width_bits() const { return word_.bit(31) ? 64 : 32; }

    // --- loads and stores ---
    void load_store() {
        switch (word_.field(29, 28)) {
            case 0b00: word_.vector() ? vector_structures() : exclusive_or_ordered(); break;
            case 0b01:
                if (word_.bit(24)) {
                    unscaled_ordered();
                } else {
                    literal();
                }
                break;
            case 0b10: pair(); break;
            default: single();
        }
    }

    Address at(Value base, int64_t offset) const { return {.base = SliceBuilder::plus(base, offset)}; }

    // A site of registers' size or of 8-byte elements, which is how the engine accesses vectors.
    void access(const Address& address, unsigned size, unsigned count, SliceBuilder::Direction direction) {
        unsigned elements = size == 16 ? 2 * count : count;
        builder_.access(address, size * count, elements, direction);
    }

    void load_general(unsigned number, const Address& address, unsigned size, bool sign = false,
                      Width width = Width::BITS_64) {
        set_general(number, builder_.load(address, size, sign, width));
    }

    void read_modify_write(const Address& address, unsigned size, unsigned elements) {
        builder_.access(address, size, elements, LOAD);
        builder_.access(address, size, elements, STORE);
        builder_.store(address, size);
    }

    // LDXR STXR LDAR STLR CAS and the like. o2 = bit 23, L = bit 22, o1 = bit 21.
    void exclusive_or_ordered() {
        unsigned scale = word_.field(31, 30), size = 1u << scale;
        bool ordered = word_.bit(23), load = word_.bit(22), pair = word_.bit(21);
        unsigned status_or_compare = word_.field(20, 16), rt = word_.rd(), rt2 = word_.ra();
        Address address = at(general_or_stack(word_.rn()), 0);
        if (pair && !ordered && scale < 2) {  // CASP
            read_modify_write(address, 8u << scale, 2);
            forget_general(status_or_compare);
            forget_general(status_or_compare | 1);
        } else if (pair && ordered) {  // CAS
            read_modify_write(address, size, 1);
            forget_general(status_or_compare);
        } else if (load) {
            unsigned count = pair && scale == 3 ? 2 : 1;  // of two words, LDXP reads both as one
            unsigned bytes = pair ? 2 * size : size;
            builder_.access(address, bytes, count, LOAD);
            load_general(rt, address, size);
            if (pair) load_general(rt2, address.plus(size), size);
        } else {
            unsigned bytes = pair ? 2 * size : size;
            builder_.access(address, bytes, pair && scale == 3 ? 2 : 1, STORE);
            builder_.store(address, bytes, pair || !ordered ? NOTHING_KNOWN : general(rt));
            if (!ordered) forget_general(status_or_compare);
        }
    }

    // LDAPUR, STLUR
    void unscaled_ordered() {
        if (word_.bit(21) || word_.field(11, 10)) return forget_all();  // memory tagging
        Address address = at(general_or_stack(word_.rn()), word_.signed_field(20, 12));
        unsigned size = 1u << word_.field(31, 30), opc = word_.field(23, 22);
        builder_.access(address, size, 1, opc ? LOAD : STORE);
        if (opc == 0) {
            builder_.store(address, size, general(word_.rd()));
        } else {
            load_general(word_.rd(), address, size, opc >= 2, opc == 3 ? Width::BITS_32 : Width::BITS_64);
        }
    }

    void literal() {
        unsigned opc = word_.field(31, 30);
        if (opc == 3 && !word_.vector()) return;  // PRFM
        Address address{.base = SliceBuilder::constant(pc_ + static_cast<uint64_t>(word_.signed_field(23, 5) * 4))};
        if (word_.vector()) {
            access(address, 4u << opc, 1, LOAD);
            return;
        }
        unsigned size = opc == 1 ? 8 : 4;
        access(address, size, 1, LOAD);
        load_general(word_.rd(), address, size, opc == 2);
    }

    // LDP STP LDNP STNP LDPSW
    void pair() {
        unsigned opc = word_.field(31, 30);
        bool load = word_.bit(22), sign = opc == 1 && !word_.vector();
        unsigned size = word_.vector() ? 4u << opc : opc == 2 ? 8 : 4;
        enum { NO_ALLOCATE, POST_INDEX, OFFSET, PRE_INDEX };
        unsigned mode = word_.field(24, 23);
        int64_t offset = word_.signed_field(21, 15) * size;
        Value base = general_or_stack(word_.rn());
        Address address = at(base, mode == POST_INDEX ? 0 : offset);
        access(address, size, 2, load ? LOAD : STORE);
        unsigned rt = word_.rd(), rt2 = word_.ra();
        if (word_.vector()) {
            if (!load) builder_.store(address, 2 * size);
        } else if (load) {
            Value first = builder_.load(address, size, sign), second = builder_.load(address.plus(size), size, sign);
            set_general(rt, first);
            set_general(rt2, second);
        } else {
            builder_.store(address, size, general(rt));
            builder_.store(address.plus(size), size, general(rt2));
        }
        if (mode == POST_INDEX || mode == PRE_INDEX) set_general_or_stack(word_.rn(), SliceBuilder::plus(base, offset));
    }

    void single() {
        unsigned scale = word_.field(31, 30), opc = word_.field(23, 22);
        bool unsigned_offset = word_.bit(24), register_form = !unsigned_offset && word_.bit(21);
        unsigned form = word_.field(11, 10);
        if (register_form && form == 0b00) return atomic(1u << scale);
        Value base = general_or_stack(word_.rn());
        if (register_form && form != 0b10) {  // LDRAA, LDRAB: authenticated pointers
            int64_t offset = (word_.bit(22) ? -512 : 0) + static_cast<int64_t>(word_.field(20, 12));
            access(at(base, offset * 8), 8, 1, LOAD);
            forget_general(word_.rd());
            if (word_.bit(11)) set_general_or_stack(word_.rn(), SliceBuilder::plus(base, offset * 8));
            return;
        }
        if (scale == 3 && opc == 2 && !word_.vector()) return;  // PRFM, PRFUM
        bool quad = word_.vector() && opc >= 2;
        unsigned size = quad ? 16 : 1u << scale;
        bool load = word_.vector() ? opc & 1 : opc != 0;
        Address address;
        std::optional<Value> write_back;
        if (unsigned_offset) {
            address = at(base, int64_t{word_.field(21, 10)} * size);
        } else if (register_form) {
            unsigned option = word_.field(15, 13), shift = word_.bit(12) ? std::countr_zero(size) : 0;
            Extension extension{.size_bytes = static_cast<uint8_t>(1u << (option & 3)), .sign = (option & 4) != 0};
            address = builder_.indexed(base, general(word_.rm()), shift, extension);
        } else {
            int64_t offset = word_.signed_field(20, 12);
            bool post_index = form == 0b01, pre_index = form == 0b11;
            address = at(base, post_index ? 0 : offset);
            if (post_index || pre_index) write_back = SliceBuilder::plus(base, offset);
        }
        access(address, size, 1, load ? LOAD : STORE);
        if (!load) {
            builder_.store(address, size, word_.vector() ? NOTHING_KNOWN : general(word_.rd()));
        } else if (!word_.vector()) {
            load_general(word_.rd(), address, size, opc >= 2, opc == 3 ? Width::BITS_32 : Width::BITS_64);
        }
        if (write_back) set_general_or_stack(word_.rn(), *write_back);
    }

    // LDADD and the like, SWP; LDAPR.
    void atomic(unsigned size) {
        Address address = at(general_or_stack(word_.rn()), 0);
        bool only_loads = word_.is(0x3fe0fc00, 0x38a0c000);
        if (only_loads) {
            builder_.access(address, size, 1, LOAD);
        } else {
            read_modify_write(address, size, 1);
        }
        if (only_loads) {
            load_general(word_.rd(), address, size);
        } else {
            forget_general(word_.rd());
        }
    }

    // LD1..LD4, ST1..ST4. The engine accesses elements; those of single registers by 8 bytes.
    void vector_structures() {
        bool load = word_.bit(22), post_index = word_.bit(23), one_lane = word_.bit(24);
        unsigned size = 0, count = 0;
        if (one_lane) {
            unsigned scale = word_.field(15, 14);
            unsigned structure = (word_.field(13, 13) << 1 | word_.field(21, 21)) + 1;
            bool replicate = scale == 3;
            size = replicate ? 1u << word_.field(11, 10) : scale == 2 ? (word_.bit(10) ? 8 : 4) : 1u << scale;
            count = structure;
        } else {
            unsigned registers = 1, structure = 1;
            switch (word_.field(15, 12)) {
                case 0b0000: registers = structure = 4; break;
                case 0b0010: registers = 4; break;
                case 0b0100: registers = structure = 3; break;
                case 0b0110: registers = 3; break;
                case 0b0111: break;
                case 0b1000: registers = structure = 2; break;
                case 0b1010: registers = 2; break;
                default: return forget_all();
            }
            unsigned register_bytes = word_.bit(30) ? 16 : 8;
            size = structure == 1 ? 8 : 1u << word_.field(11, 10);
            count = registers * register_bytes / size;
        }
        Value base = general_or_stack(word_.rn());
        Address address = at(base, 0);
        builder_.access(address, size * count, count, load ? LOAD : STORE);
        if (!load) builder_.store(address, size * count);
        if (!post_index) return;
        Value next = word_.rm() == ZERO_REGISTER ? SliceBuilder::plus(base, int64_t{size} * count)
                                                 : builder_.add(base, general(word_.rm()));
        set_general_or_stack(word_.rn(), next);
    }

    // --- data processing ---
    Value extended(Value value, unsigned option, unsigned shift) {
        Value whole = builder_.extend(value, 1u << (option & 3), option & 4);
        return shift ? builder_.extract(whole, shift, 0, false) : whole;
    }

    Value shifted(Value value, unsigned kind, unsigned amount) {
        if (amount == 0) return value;
        unsigned above = 64 - width_bits();
        switch (kind) {
            case 0: return builder_.extract(value, amount, 0, false, width());
            case 1: return builder_.extract(value, above, above + amount, false, width());
            case 2: return builder_.extract(value, above, above + amount, true, width());
            default: return builder_.compute(Operation::ROTATE_RIGHT, value, SliceBuilder::constant(amount), width());
        }
    }

    // ADD, SUB, ADDS, SUBS. With flags, register 31 is zero as a destination, else SP.
    void add_or_subtract(Value a, Value b, bool stack_destination) {
        bool subtract = word_.bit(30), sets_flags = word_.bit(29);
        Value result = subtract ? builder_.subtract(a, b, width()) : builder_.add(a, b, width());
        if (sets_flags && subtract) builder_.set_flags_of_subtraction(a, b, width());
        if (sets_flags && !subtract) builder_.set_flags_of_addition(a, b, width());
        if (stack_destination && !sets_flags) {
            set_general_or_stack(word_.rd(), result);
        } else {
            set_general(word_.rd(), result);
        }
    }

    void immediate() {
        unsigned kind = word_.field(25, 23);
        switch (kind) {
            case 0b000:
            case 0b001: {
                auto offset =
                    static_cast<uint64_t>(word_.signed_field(23, 5) * 4 + static_cast<int64_t>(word_.field(30, 29)));
                uint64_t page = (pc_ & ~uint64_t{0xfff}) + (offset << 12);
                set_general(word_.rd(), SliceBuilder::constant(word_.bit(31) ? page : pc_ + offset));
                break;
            }
            case 0b010: {
                uint64_t value = uint64_t{word_.field(21, 10)} << (word_.bit(22) ? 12 : 0);
                add_or_subtract(general_or_stack(word_.rn()), SliceBuilder::constant(value), true);
                break;
            }
            case 0b100: logical_with_immediate(); break;
            case 0b101: move_wide(); break;
            case 0b110: bit_field(); break;
            case 0b111: extract_pair(); break;
            default: set_general_or_stack(word_.rd(), NOTHING_KNOWN);  // memory tagging
        }
    }

    void logical_with_immediate() {
        std::optional<uint64_t> mask = logical_immediate(word_.bit(22), word_.field(15, 10), word_.field(21, 16));
        if (!mask) return forget_all();
        Value a = general(word_.rn()), b = SliceBuilder::constant(*mask);
        constexpr Operation OPERATIONS[] = {Operation::AND, Operation::OR, Operation::XOR, Operation::AND};
        unsigned opc = word_.field(30, 29);
        Value result = builder_.compute(OPERATIONS[opc], a, b, width());
        if (opc == 3) {
            builder_.set_flags_of_and(a, b, width());
            set_general(word_.rd(), result);
        } else {
            set_general_or_stack(word_.rd(), result);
        }
    }

    void move_wide() {
        unsigned opc = word_.field(30, 29), shift = word_.field(22, 21) * 16;
        uint64_t part = uint64_t{word_.field(20, 5)} << shift, mask = uint64_t{0xffff} << shift;
        if (opc == 0b11) {  // MOVK
            Value kept =
                builder_.compute(Operation::AND_NOT, general(word_.rd()), SliceBuilder::constant(mask), width());
            set_general(word_.rd(), builder_.compute(Operation::OR, kept, SliceBuilder::constant(part), width()));
            return;
        }
        uint64_t value = opc == 0 ? ~part : part;
        set_general(word_.rd(), SliceBuilder::constant(word_.bit(31) ? value : static_cast<uint32_t>(value)));
    }

    // SBFM, BFM, UBFM: either bits s..r move to the bottom, or bits s..0 move up by size - r.
    void bit_field() {
        unsigned opc = word_.field(30, 29), r = word_.field(21, 16), s = word_.field(15, 10), bits = width_bits();
        if (r >= bits || s >= bits) return forget_all();
        bool down = s >= r;
        unsigned left = 63 - s, right = down ? 63 - s + r : 63 - s - (bits - r);
        Value field = builder_.extract(general(word_.rn()), left, right, opc == 0b00, width());
        if (opc == 0b01) {  // the other bits stay
            unsigned length = down ? s - r + 1 : s + 1, lowest = down ? 0 : bits - r;
            uint64_t mask = (length == 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << lowest;
            Value kept =
                builder_.compute(Operation::AND_NOT, general(word_.rd()), SliceBuilder::constant(mask), width());
            field = builder_.compute(Operation::OR, kept, field, width());
        }
        set_general(word_.rd(), field);
    }

    // EXTR: the low bits of Rn above the high bits of Rm. ROR if they are the same.
    void extract_pair() {
        unsigned amount = word_.field(15, 10), bits = width_bits();
        Value high = general(word_.rn()), low = general(word_.rm());
        if (word_.rn() == word_.rm()) {
            set_general(word_.rd(), shifted(low, 3, amount));
        } else if (amount == 0) {
            set_general(word_.rd(), builder_.extend(low, bits / 8, false));
        } else {
            set_general(word_.rd(), builder_.compute(Operation::OR, shifted(high, 0, bits - amount),
                                                     shifted(low, 1, amount), width()));
        }
    }

    void register_operands() {
        if (word_.is(0x1f000000, 0x0a000000)) {
            logical();
        } else if (word_.is(0x1f200000, 0x0b000000)) {
            Value b = shifted(general(word_.rm()), word_.field(23, 22), word_.field(15, 10));
            add_or_subtract(general(word_.rn()), b, false);
        } else if (word_.is(0x1f200000, 0x0b200000)) {
            Value b = extended(general(word_.rm()), word_.field(15, 13), word_.field(12, 10));
            add_or_subtract(general_or_stack(word_.rn()), b, true);
        } else if (word_.is(0x1fe00000, 0x1a000000)) {  // ADC, SBC; RMIF, SETF
            bool writes_register = word_.field(15, 10) == 0;
            if (writes_register) forget_general(word_.rd());
            if (word_.bit(29)) builder_.forget_flags();
        } else if (word_.is(0x1fe00000, 0x1a400000)) {  // CCMP, CCMN
            builder_.forget_flags();
        } else if (word_.is(0x1fe00000, 0x1a800000)) {
            conditional_select();
        } else if (word_.is(0x5fe00000, 0x1ac00000)) {
            two_sources();
        } else if (word_.is(0x5fe00000, 0x5ac00000)) {
            one_source();
        } else if (word_.is(0x1f000000, 0x1b000000)) {
            three_sources();
        } else {
            forget_all();
        }
    }

    void logical() {
        unsigned opc = word_.field(30, 29);
        bool invert = word_.bit(21);
        Value a = general(word_.rn()), b = shifted(general(word_.rm()), word_.field(23, 22), word_.field(15, 10));
        if (opc == 0b01 && !invert && word_.rn() == ZERO_REGISTER) {  // MOV
            set_general(word_.rd(), builder_.extend(b, width_bits() / 8, false));
            return;
        }
        constexpr Operation PLAIN[] = {Operation::AND, Operation::OR, Operation::XOR, Operation::AND};
        constexpr Operation INVERTED[] = {Operation::AND_NOT, Operation::OR_NOT, Operation::XOR_NOT,
                                          Operation::AND_NOT};
        set_general(word_.rd(), builder_.compute(invert ? INVERTED[opc] : PLAIN[opc], a, b, width()));
        if (opc != 0b11) return;
        if (invert) b = builder_.compute(Operation::OR_NOT, SliceBuilder::constant(0), b, width());
        builder_.set_flags_of_and(a, b, width());
    }

    // CSEL, CSINC, CSINV, CSNEG
    void conditional_select() {
        Value if_true = general(word_.rn()), if_false = general(word_.rm());
        bool invert = word_.bit(30), increment = word_.bit(10);
        if (invert) if_false = builder_.compute(Operation::OR_NOT, SliceBuilder::constant(0), if_false);
        if (increment) if_false = SliceBuilder::plus(if_false, 1);
        unsigned condition = word_.field(15, 12);
        Value holds = builder_.condition(condition < 14 ? static_cast<Condition>(condition) : Condition::ALWAYS);
        set_general(word_.rd(), builder_.select(holds, if_true, if_false, width()));
    }

    void two_sources() {
        Operation operation = Operation::ADD;
        switch (word_.field(15, 10)) {
            case 0b000010: operation = Operation::DIVIDE; break;
            case 0b000011: operation = Operation::DIVIDE_SIGNED; break;
            case 0b001000: operation = Operation::SHIFT_LEFT; break;
            case 0b001001: operation = Operation::SHIFT_RIGHT; break;
            case 0b001010: operation = Operation::SHIFT_RIGHT_SIGNED; break;
            case 0b001011: operation = Operation::ROTATE_RIGHT; break;
            default:  // CRC32, PACGA
                return forget_general(word_.rd());
        }
        set_general(word_.rd(), builder_.compute(operation, general(word_.rn()), general(word_.rm()), width()));
    }

    void one_source() {
        Operation operation = Operation::ADD;
        unsigned opcode = word_.field(20, 10);
        if (opcode == 0) {
            operation = Operation::REVERSE_BITS;
        } else if (opcode == (word_.bit(31) ? 3u : 2u)) {
            operation = Operation::REVERSE_BYTES;
        } else if (opcode == 4) {
            operation = Operation::COUNT_LEADING_ZEROS;
        } else {  // REV16, REV32, CLS, pointer authentication
            return forget_general(word_.rd());
        }
        set_general(word_.rd(), builder_.compute(operation, general(word_.rn()), SliceBuilder::constant(0), width()));
    }

    void three_sources() {
        bool subtract = word_.bit(15);
        Value a = general(word_.rn()), b = general(word_.rm()), c = general(word_.ra());
        Value product = NOTHING_KNOWN;
        switch (word_.field(23, 21)) {
            case 0b000: {
                Operation operation = subtract ? Operation::MULTIPLY_SUBTRACT : Operation::MULTIPLY_ADD;
                set_general(word_.rd(), builder_.compute(operation, a, b, c, width()));
                return;
            }
            case 0b001: product = builder_.compute(Operation::MULTIPLY_LONG_SIGNED, a, b); break;
            case 0b101: product = builder_.compute(Operation::MULTIPLY_LONG, a, b); break;
            case 0b010: return set_general(word_.rd(), builder_.compute(Operation::MULTIPLY_HIGH_SIGNED, a, b));
            case 0b110: return set_general(word_.rd(), builder_.compute(Operation::MULTIPLY_HIGH, a, b));
            default: return forget_general(word_.rd());
        }
        set_general(word_.rd(), subtract ? builder_.subtract(c, product) : builder_.add(c, product));
    }

    // --- the rest ---
    void branch_or_system() {
        bool call = word_.is(0xfc000000, 0x94000000) || word_.is(0xfefff800, 0xd63f0800) ||
                    word_.is(0xfffffc1f, 0xd63f0000);  // BL, BLRAA and the like, BLR
        if (call) set_general(LINK, SliceBuilder::constant(pc_ + 4));
        if (word_.is(0xffc00000, 0xd5000000)) system();
    }

    void system() {
        constexpr uint32_t REGISTER_MASK = 0xffffffe0;
        unsigned rt = word_.rd();
        bool reads = word_.bit(21);
        if (word_.is(REGISTER_MASK, 0xd50b7420)) {  // DC ZVA
            Value line =
                builder_.compute(Operation::AND, general(rt), SliceBuilder::constant(~uint64_t{ZVA_BYTES - 1}));
            Address address = at(line, 0);
            builder_.access(address, ZVA_BYTES, 1, STORE);
            builder_.store(address, ZVA_BYTES);
        } else if (word_.is(REGISTER_MASK, 0xd53bd040)) {  // MRS Xt, TPIDR_EL0
            set_general(rt, builder_.get(THREAD_POINTER));
        } else if (word_.is(REGISTER_MASK, 0xd51bd040)) {
            builder_.set(THREAD_POINTER, general(rt));
        } else if (word_.is(0xfffff01f, 0xd503201f)) {  // hints: pointer authentication is among them
            unsigned hint = word_.field(11, 5);
            if (hint == 7 || (hint >= 24 && hint <= 31)) builder_.forget(LINK);
            if (hint >= 8 && hint <= 15) builder_.forget(17);
        } else if (word_.is(REGISTER_MASK, 0xd51b4200) || word_.is(0xfff8f01f, 0xd500401f)) {  // NZCV; CFINV
            builder_.forget_flags();
        } else if (reads) {
            forget_general(rt);
        }
    }

    // Only what reaches the general registers or the flags.
    void floating_point() {
        constexpr unsigned TO_VECTOR_SIGNED = 0b010, TO_VECTOR_UNSIGNED = 0b011, MOVE_TO_VECTOR = 0b111;
        unsigned opcode = word_.field(18, 16);
        bool to_vector = opcode == TO_VECTOR_SIGNED || opcode == TO_VECTOR_UNSIGNED || opcode == MOVE_TO_VECTOR;
        if (word_.is(0x7f20fc00, 0x1e200000)) {  // conversions and moves between FP and general registers
            if (!to_vector) forget_general(word_.rd());
            if (word_.field(20, 16) == 0b11110) builder_.forget_flags();  // FJCVTZS
        } else if (word_.is(0x7f200000, 0x1e000000)) {                    // ... of fixed-point numbers
            if (!to_vector) forget_general(word_.rd());
        } else if (word_.is(0xff203c00, 0x1e202000) || word_.is(0xff200c00, 0x1e200400)) {  // FCMP, FCCMP
            builder_.forget_flags();
        } else if (word_.is(0xbfe08400, 0x0e000400)) {
            unsigned operation = word_.field(14, 11);
            if (operation == 0b0101 || operation == 0b0111) forget_general(word_.rd());  // SMOV, UMOV
        }
    }

    SliceBuilder& builder_;
    uint64_t pc_;
    Word word_;
};

class Aarch64Compiler final : public SliceCompiler {
  protected:
    unsigned compile_op(SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) override {
        uint32_t bits = 0;
        if (bytes.size() < sizeof bits) return 0;
        std::memcpy(&bits, bytes.data(), sizeof bits);
        Instruction(builder, pc, bits).compile();
        return sizeof bits;
    }
};

const SliceCompilerRow row{"aarch64",
                           []() -> std::unique_ptr<SliceCompiler> { return std::make_unique<Aarch64Compiler>(); }};

}  // namespace
}  // namespace perfemu::slice
