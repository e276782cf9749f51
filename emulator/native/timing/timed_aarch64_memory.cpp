// AArch64 loads and stores as the timing models see them. Arm ARM (DDI 0487), "A64 instruction set encoding", Loads
// and stores.
#include "timing/timed_aarch64.hpp"

namespace perfemu::aarch64 {
namespace {

enum Group : uint8_t {
    EXCLUSIVE,
    LITERAL,
    PAIR,
    IMMEDIATE,  // unscaled, post-indexed, pre-indexed, unprivileged
    UNSIGNED,
    REGISTER,
    ATOMIC,
    MULTIPLE_STRUCTURES,
    SINGLE_STRUCTURE,
};

struct GroupRow {
    uint32_t mask, value;
    Group group;
};
constexpr GroupRow GROUPS[] = {
    {0x3f000000, 0x08000000, EXCLUSIVE},
    {0x3b000000, 0x18000000, LITERAL},
    {0x3a000000, 0x28000000, PAIR},
    {0x3b000000, 0x39000000, UNSIGNED},
    {0x3b200000, 0x38000000, IMMEDIATE},
    {0x3b200c00, 0x38200800, REGISTER},
    {0x3f200c00, 0x38200000, ATOMIC},
    {0xbfbf0000, 0x0c000000, MULTIPLE_STRUCTURES},
    {0xbfa00000, 0x0c800000, MULTIPLE_STRUCTURES},
    {0xbf000000, 0x0d000000, SINGLE_STRUCTURE},
};

constexpr unsigned VECTOR_BIT = 26, LOAD_BIT = 22, QUAD_BIT = 30;

uint8_t data_register(uint32_t word, uint32_t number) {
    return field(word, VECTOR_BIT, 1) ? vector(number) : general(number);
}

void set_data(TimedOp& op, uint8_t reg) {
    if (op.loads) add(op.destinations, reg);
    if (op.stores) add(op.sources, reg);
}

void set_base(TimedOp& op, uint32_t word, bool write_back = false) {
    uint8_t base = general_or_stack(field(word, 5, 5));
    add(op.address_sources, base);
    if (write_back) op.write_back = base;
}

void exclusive(uint32_t word, TimedOp& op) {
    bool ordered = field(word, 23, 1), load = field(word, LOAD_BIT, 1), pair_or_swap = field(word, 21, 1);
    uint32_t size = field(word, 30, 2), t = field(word, 0, 5), second = field(word, 10, 5), s = field(word, 16, 5);
    op.width_bytes = size == 3 ? 8 : 4;
    set_base(op, word);
    bool casp = !ordered && pair_or_swap && size < 2;
    if (casp || (ordered && pair_or_swap)) {  // CASP, CAS
        op.op_class = OpClass::ATOMIC;
        op.loads = op.stores = true;
        if (casp) op.width_bytes = size == 1 ? 8 : 4;
        for (uint32_t i = 0; i < (casp ? 2U : 1U); i++) {
            add(op.sources, general(s + i));
            add(op.sources, general(t + i));
            add(op.destinations, general(s + i));
        }
        return;
    }
    op.loads = load;
    op.stores = !load;
    bool pair = !ordered && pair_or_swap;
    set_data(op, general(t));
    if (pair) set_data(op, general(second));
    if (pair && load && op.width_bytes == 8) op.lanes_loaded = 2;
    if (ordered) return;  // LDAR, STLR
    op.op_class = OpClass::EXCLUSIVE;
    if (!load) add(op.destinations, general(s));  // the status
}

void literal(uint32_t word, TimedOp& op) {
    uint32_t kind = field(word, 30, 2);
    bool is_vector = field(word, VECTOR_BIT, 1);
    if (kind == 3) {
        op.prefetches = !is_vector;
        if (is_vector) op.op_class = OpClass::SYSTEM;
        return;
    }
    op.loads = true;
    op.width_bytes = static_cast<uint8_t>(is_vector ? 4 << kind : kind == 0 ? 4 : 8);
    set_data(op, data_register(word, field(word, 0, 5)));
}

void pair(uint32_t word, TimedOp& op) {
    uint32_t kind = field(word, 30, 2), mode = field(word, 23, 2);
    bool is_vector = field(word, VECTOR_BIT, 1);
    op.loads = field(word, LOAD_BIT, 1);
    op.stores = !op.loads;
    op.width_bytes = static_cast<uint8_t>(is_vector ? 4 << kind : kind == 0 ? 4 : 8);
    bool half_words = kind == 0 || (kind == 1 && !is_vector);  // LDP of W or S registers, LDPSW: 8 bytes in all
    if (op.loads && !half_words) op.lanes_loaded = 2;
    set_data(op, data_register(word, field(word, 0, 5)));
    set_data(op, data_register(word, field(word, 10, 5)));
    set_base(op, word, mode == 1 || mode == 3);
}

// Of one register. Size and kind are encoded in the same way in all addressing modes.
void single(uint32_t word, TimedOp& op, Group group) {
    uint32_t size = field(word, 30, 2), kind = field(word, 22, 2), mode = field(word, 10, 2);
    bool is_vector = field(word, VECTOR_BIT, 1);
    uint32_t scale = is_vector && kind >= 2 ? 4 : size;  // bytes: 1 << scale
    if (!is_vector && size == 3 && kind == 2) {
        op.prefetches = true;
    } else {
        op.loads = is_vector ? kind & 1 : kind != 0;
        op.stores = !op.loads;
        bool extended_to_64 = !is_vector && kind == 2;
        op.width_bytes = static_cast<uint8_t>(extended_to_64 ? 8 : scale < 2 ? 4 : 1 << scale);
        set_data(op, data_register(word, field(word, 0, 5)));
    }
    set_base(op, word, group == IMMEDIATE && (mode == 1 || mode == 3));
    if (group == REGISTER) {
        add(op.address_sources, general(field(word, 16, 5)));
        bool scaled = field(word, 12, 1);
        op.complex_address = scaled && (scale == 1 || scale == 4);
    }
}

void atomic(uint32_t word, TimedOp& op) {
    constexpr uint32_t LDAPR_MASK = 0x3ffffc00, LDAPR = 0x38bfc000;
    op.width_bytes = field(word, 30, 2) == 3 ? 8 : 4;
    op.loads = true;
    add(op.destinations, general(field(word, 0, 5)));
    set_base(op, word);
    if ((word & LDAPR_MASK) == LDAPR) return;
    op.op_class = OpClass::ATOMIC;
    op.stores = true;
    add(op.sources, general(field(word, 16, 5)));
}

void structure_base(uint32_t word, TimedOp& op) {
    bool post_indexed = field(word, 23, 1);
    set_base(op, word, post_indexed);
    if (post_indexed) add(op.address_sources, general(field(word, 16, 5)));  // X31: the size, an immediate
}

void multiple_structures(uint32_t word, TimedOp& op) {
    struct Layout {
        uint8_t opcode, registers, interleaved;
    };
    constexpr Layout LAYOUTS[] = {{0, 4, 4}, {2, 4, 1}, {4, 3, 3}, {6, 3, 1}, {7, 1, 1}, {8, 2, 2}, {10, 2, 1}};
    for (const Layout& layout : LAYOUTS) {
        if (layout.opcode != field(word, 12, 4)) continue;
        op.loads = field(word, LOAD_BIT, 1);
        op.stores = !op.loads;
        op.width_bytes = field(word, QUAD_BIT, 1) ? 16 : 8;
        if (layout.interleaved > 1) op.op_class = OpClass::VECTOR_PERMUTE;
        if (op.loads) op.lanes_loaded = layout.registers;
        for (uint32_t i = 0; i < layout.registers; i++) set_data(op, vector(field(word, 0, 5) + i));
        structure_base(word, op);
        return;
    }
    op.op_class = OpClass::SYSTEM;
}

void single_structure(uint32_t word, TimedOp& op) {
    uint32_t opcode = field(word, 13, 3), registers = ((opcode & 1) << 1 | field(word, 21, 1)) + 1;
    bool replicates = opcode >= 6;
    op.loads = field(word, LOAD_BIT, 1);
    op.stores = !op.loads;
    op.width_bytes = field(word, QUAD_BIT, 1) ? 16 : 8;
    op.op_class = OpClass::VECTOR_PERMUTE;
    if (op.loads) op.lanes_loaded = static_cast<uint8_t>(registers);
    for (uint32_t i = 0; i < registers; i++) {
        uint8_t reg = vector(field(word, 0, 5) + i);
        if (op.stores || !replicates) add(op.sources, reg);  // the other lanes stay
        if (op.loads) add(op.destinations, reg);
    }
    structure_base(word, op);
}

}  // namespace

bool decode_memory(uint32_t word, TimedOp& op) {
    for (const GroupRow& row : GROUPS) {
        if ((word & row.mask) != row.value) continue;
        op.op_class = OpClass::NONE;
        switch (row.group) {
            case EXCLUSIVE: exclusive(word, op); break;
            case LITERAL: literal(word, op); break;
            case PAIR: pair(word, op); break;
            case ATOMIC: atomic(word, op); break;
            case MULTIPLE_STRUCTURES: multiple_structures(word, op); break;
            case SINGLE_STRUCTURE: single_structure(word, op); break;
            default: single(word, op, row.group);
        }
        return true;
    }
    return false;
}

}  // namespace perfemu::aarch64
