// Loads and stores. Arm ARM DDI 0487, "Loads and Stores".
#include "aarch64/row.hpp"

namespace perfemu::aarch64 {
namespace {

using namespace effect;
using enum Addressing;

constexpr OpClass PLAIN = OpClass::NONE;  // a load or a store, and no computation
constexpr OpClass ATOMIC = OpClass::ATOMIC, EXCLUSIVE = OpClass::EXCLUSIVE, PERMUTE = OpClass::VECTOR_PERMUTE;
constexpr uint32_t VECTOR = 1 << 26;

// Exclusive and ordered: size 001000 o2 L o1 Rs o0 Rt2 Rn Rt. Atomic: size 111000 A R 1 Rs o3 opc 00 Rn Rt.
constexpr Row AT_BASE[] = {
    Row{0xbfa17c01, 0x08207c00, "CASP", ATOMIC, UPDATES}.needs(Feature::ATOMICS),
    Row{0x3fa07c00, 0x08a07c00, "CAS", ATOMIC, UPDATES}.needs(Feature::ATOMICS),
    Row{0x3fe00000, 0x08000000, "STXR", EXCLUSIVE, STORES | MONITORED}.fires(Probe::STORE_EXCLUSIVE),  // STLXR
    Row{0xbfe00000, 0x88200000, "STXP", EXCLUSIVE, STORES | MONITORED}.fires(Probe::STORE_EXCLUSIVE),  // STLXP
    Row{0x3fe00000, 0x08400000, "LDXR", EXCLUSIVE, LOADS | MONITORED}.fires(Probe::LOAD_EXCLUSIVE),    // LDAXR
    Row{0xbfe00000, 0x88600000, "LDXP", EXCLUSIVE, LOADS | MONITORED}.fires(Probe::LOAD_EXCLUSIVE),    // LDAXP
    Row{0x3fe08000, 0x08808000, "STLR", PLAIN, STORES},
    Row{0x3fe08000, 0x08c08000, "LDAR", PLAIN, LOADS},
    // FEAT_LOR is of Armv8.1, as FEAT_LSE is.
    Row{0x3fe08000, 0x08800000, "STLLR", PLAIN, STORES}.needs(Feature::ATOMICS),
    Row{0x3fe08000, 0x08c00000, "LDLAR", PLAIN, LOADS}.needs(Feature::ATOMICS),
    Row{0x3f208c00, 0x38200000, "LDADD", ATOMIC, UPDATES}.needs(Feature::ATOMICS),  // LDCLR, LDEOR, LDSET, LDSMAX ...
    Row{0x3f20fc00, 0x38208000, "SWP", ATOMIC, UPDATES}.needs(Feature::ATOMICS),
    Row{0x3ffffc00, 0x38bfc000, "LDAPR", PLAIN, LOADS}.needs(Feature::LRCPC),
};

constexpr Row LITERALS[] = {
    {0xbf000000, 0x18000000, "LDR", PLAIN, LOADS},
    {0xff000000, 0x98000000, "LDRSW", PLAIN, LOADS | SIGNED | TO_64},
    {0xff000000, 0xd8000000, "PRFM", PLAIN, PREFETCHES},
    {0xbf000000, 0x1c000000, "LDR", PLAIN, LOADS},  // S, D
    {0xff000000, 0x9c000000, "LDR", PLAIN, LOADS},  // Q
};

// opc 101 V 0 mode L imm7 Rt2 Rn Rt
constexpr Row PAIRS[] = {
    {0x7e400000, 0x28000000, "STP", PLAIN, STORES},                    // STNP
    {0x7e400000, 0x28400000, "LDP", PLAIN, LOADS},                     // LDNP
    {0xfec00000, 0x68c00000, "LDPSW", PLAIN, LOADS | SIGNED | TO_64},  // pre- and post-indexed
    {0xffc00000, 0x69400000, "LDPSW", PLAIN, LOADS | SIGNED | TO_64},
    {0x7e400000, 0x2c000000, "STP", PLAIN, STORES},  // S, Q
    {0x7e400000, 0x2c400000, "LDP", PLAIN, LOADS},
    {0xfe400000, 0x6c000000, "STP", PLAIN, STORES},  // D
    {0xfe400000, 0x6c400000, "LDP", PLAIN, LOADS},
};

// Of one register: size 111 V 0x opc ... Rn Rt. These are the sizes and opcs of all addressing modes.
constexpr Row GENERAL[] = {
    {0x00c00000, 0x00000000, "STR", PLAIN, STORES},                    // STRB, STRH, STUR, STTR ...
    {0x00c00000, 0x00400000, "LDR", PLAIN, LOADS},                     // LDRB, LDRH, LDUR, LDTR ...
    {0x80c00000, 0x00800000, "LDRSB", PLAIN, LOADS | SIGNED | TO_64},  // LDRSH
    {0xc0c00000, 0x80800000, "LDRSW", PLAIN, LOADS | SIGNED | TO_64},
    {0x80c00000, 0x00c00000, "LDRSB", PLAIN, LOADS | SIGNED},  // LDRSH, into W registers
};
constexpr Row PREFETCH{0xc0c00000, 0xc0800000, "PRFM", PLAIN, PREFETCHES};
constexpr Row VECTORS[] = {
    {0x00c00000, 0x00000000, "STR", PLAIN, STORES},  // B, H, S, D
    {0x00c00000, 0x00400000, "LDR", PLAIN, LOADS},
    {0xc0c00000, 0x00800000, "STR", PLAIN, STORES},  // Q
    {0xc0c00000, 0x00c00000, "LDR", PLAIN, LOADS},
};

struct Mode {
    uint32_t mask, value;
    Addressing addressing;
    bool general, vector, prefetches;
};
constexpr Mode MODES[] = {
    {0x3f200c00, 0x38000000, IMMEDIATE, true, true, true},    // unscaled
    {0x3f200400, 0x38000400, IMMEDIATE, true, true, false},   // post- and pre-indexed
    {0x3f200c00, 0x38000800, IMMEDIATE, true, false, false},  // unprivileged
    {0x3f000000, 0x39000000, UNSIGNED, true, true, true},    {0x3f204c00, 0x38204800, REGISTER, true, true, true},
};

constexpr Row of(const Mode& mode, Row row, uint32_t kind) {
    row.mask |= mode.mask;
    row.value |= mode.value | kind;
    return row.accesses(mode.addressing);
}

// 0 Q 001100 P L 0 Rm opcode size Rn Rt, by opcode; P: post-indexed.
struct Structure {
    uint32_t opcode;
    std::string_view load, store;
    OpClass op_class;
};
constexpr Structure STRUCTURES[] = {
    {0, "LD4", "ST4", PERMUTE}, {2, "LD1", "ST1", PLAIN},   {4, "LD3", "ST3", PERMUTE}, {6, "LD1", "ST1", PLAIN},
    {7, "LD1", "ST1", PLAIN},   {8, "LD2", "ST2", PERMUTE}, {10, "LD1", "ST1", PLAIN},
};
constexpr uint32_t LOAD = 1 << 22, POST_INDEXED = 1 << 23;

void add_structures(std::vector<Row>& rows) {
    struct Form {
        uint32_t mask, value;
    };
    constexpr Form MULTIPLE[] = {{0xbfff0000, 0x0c000000}, {0xbfe00000, 0x0c000000 | POST_INDEXED}};
    constexpr Form SINGLE[] = {{0xbfdf0000, 0x0d000000}, {0xbfc00000, 0x0d000000 | POST_INDEXED}};
    for (const Form& form : MULTIPLE)
        for (const Structure& each : STRUCTURES) {
            const uint32_t mask = form.mask | 0xf000, value = form.value | each.opcode << 12;
            rows.push_back(Row{mask, value, each.store, each.op_class, STORES}.accesses(MULTIPLE_STRUCTURES));
            rows.push_back(Row{mask, value | LOAD, each.load, each.op_class, LOADS}.accesses(MULTIPLE_STRUCTURES));
        }
    for (const Form& form : SINGLE) {
        // opcode 11x loads one element into all lanes
        const Row replicating{form.mask | 0xc000, form.value | LOAD | 0xc000, "LD1R", PERMUTE, LOADS};
        rows.push_back(replicating.accesses(SINGLE_STRUCTURE));
        rows.push_back(Row{form.mask, form.value, "ST1", PERMUTE, STORES}.accesses(SINGLE_STRUCTURE));
        const Row merging{form.mask, form.value | LOAD, "LD1", PERMUTE, LOADS | MERGES};
        rows.push_back(merging.accesses(SINGLE_STRUCTURE));
    }
}

}  // namespace

std::vector<Row> memory_rows() {
    std::vector<Row> rows;
    for (const Row& row : AT_BASE) rows.push_back(row.accesses(BASE));
    for (const Row& row : LITERALS) rows.push_back(row.accesses(LITERAL));
    for (const Row& row : PAIRS) rows.push_back(row.accesses(PAIR));
    for (const Mode& mode : MODES) {
        if (mode.prefetches) rows.push_back(of(mode, PREFETCH, 0));
        if (mode.general)
            for (const Row& row : GENERAL) rows.push_back(of(mode, row, 0));
        if (mode.vector)
            for (const Row& row : VECTORS) rows.push_back(of(mode, row, VECTOR));
    }
    add_structures(rows);
    rows.push_back(Row{0xffffffe0, 0xd50b7420, "DC ZVA", PLAIN, STORES}.accesses(CACHE_LINE));
    return rows;
}

}  // namespace perfemu::aarch64
