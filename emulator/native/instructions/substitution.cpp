#include "instructions/substitution.hpp"

#include <algorithm>

#include "instructions/x87_conditional.hpp"

namespace perfemu {
namespace {

using Map = Encoding::Map;
constexpr uint8_t LOCK = 0xf0, OPERAND_SIZE = 0x66, DS_OVERRIDE = 0x3e;  // the latter does nothing
constexpr uint8_t UNDEFINED_OPCODE = 0x06;                               // PUSH ES: no instruction in 64-bit mode
constexpr uint8_t PREDICATES = 7, GROUP = 7 << 3;                        // CMPPS's immediate; ModRM.reg
constexpr uint8_t ANY_GROUP = 0xff;

// What the engine executes although it is undefined.
struct UndefinedRow {
    Map map;
    uint8_t opcode, prefixes, group;
    bool in_memory;
};
constexpr uint8_t ANY_PREFIX = Encoding::NONE | Encoding::P66 | Encoding::F3 | Encoding::F2, CS = 1;
constexpr UndefinedRow UNDEFINED[] = {
    {Map::ONE_BYTE, 0x8e, ANY_PREFIX, CS, false},  // MOV to CS
    {Map::ONE_BYTE, 0x8e, ANY_PREFIX, CS, true},
    {Map::MAP_0F, 0x12, Encoding::P66, ANY_GROUP, false},                               // MOVHLPS with 66
    {Map::MAP_0F, 0x16, Encoding::P66, ANY_GROUP, false},                               // MOVLHPS
    {Map::MAP_0F, 0xc3, Encoding::P66 | Encoding::F3 | Encoding::F2, ANY_GROUP, true},  // MOVNTI
    {Map::MAP_0F, 0xae, Encoding::P66 | Encoding::F3 | Encoding::F2, 0, true},          // FXSAVE
    {Map::MAP_0F, 0xae, Encoding::P66 | Encoding::F3 | Encoding::F2, 1, true},          // FXRSTOR
    {Map::MAP_0F, 0xae, Encoding::P66 | Encoding::F3 | Encoding::F2, 2, true},          // LDMXCSR
    {Map::MAP_0F, 0xae, Encoding::P66 | Encoding::F3 | Encoding::F2, 3, true},          // STMXCSR
};

bool undefined(const Encoding& encoding) {
    for (const UndefinedRow& row : UNDEFINED)
        if (row.map == encoding.map && row.opcode == encoding.opcode && row.prefixes & encoding.prefix &&
            row.in_memory == encoding.in_memory() && (row.group == ANY_GROUP || row.group == (encoding.reg & 7)))
            return true;
    return false;
}

bool flags_through_ah(const Encoding& encoding) {
    return encoding.map == Map::ONE_BYTE && (encoding.opcode == 0x9e || encoding.opcode == 0x9f);
}
// POPCNT, TZCNT, LZCNT
bool counts_bits(const Encoding& encoding) {
    return encoding.map == Map::MAP_0F && encoding.prefix == Encoding::F3 &&
           (encoding.opcode == 0xb8 || encoding.opcode == 0xbc || encoding.opcode == 0xbd);
}
// SSSE3 on MMX registers, of which there are eight; the engine would look for others behind them.
bool extends_mmx(const Encoding& encoding) {
    if (!encoding.rex || encoding.prefix != Encoding::NONE) return false;
    const uint8_t opcode = encoding.opcode;
    if (encoding.map == Map::MAP_0F3A) return opcode == 0x0f;
    return encoding.map == Map::MAP_0F38 && (opcode <= 0x0b || (opcode >= 0x1c && opcode <= 0x1e));
}
bool in_group(const Encoding& encoding, uint8_t group) {
    return encoding.map == Map::ONE_BYTE && encoding.opcode >> 1 == 0xf6 >> 1 && (encoding.reg & 7) == group;
}

}  // namespace

bool substitute(const Encoding& encoding, std::span<uint8_t> bytes) {
    constexpr uint8_t TEST_ALIAS = 1, NEG = 3;
    if (encoding.vex) return false;
    const bool compares = encoding.map == Map::MAP_0F && encoding.opcode == 0xc2;
    if (compares && encoding.immediate > PREDICATES) {  // the rest of the byte counts for nothing
        bytes[encoding.length - 1] &= PREDICATES;
    } else if (flags_through_ah(encoding) && encoding.rex) {  // it does not make AH another register
        bytes[encoding.opcode_at - 1] = DS_OVERRIDE;
    } else if (in_group(encoding, TEST_ALIAS)) {
        bytes[encoding.modrm_at] &= static_cast<uint8_t>(~GROUP);
    } else if (in_group(encoding, NEG) && encoding.lock && encoding.in_memory()) {  // nothing comes between, anyway
        const uint8_t nothing = encoding.segment ? encoding.segment : DS_OVERRIDE;
        std::replace(bytes.begin(), bytes.begin() + encoding.opcode_at, LOCK, nothing);
    } else if (counts_bits(encoding) && encoding.wide && encoding.operand_16) {  // REX.W wins
        const uint8_t nothing = encoding.segment ? encoding.segment : DS_OVERRIDE;
        std::replace(bytes.begin(), bytes.begin() + encoding.opcode_at, OPERAND_SIZE, nothing);
    } else if (extends_mmx(encoding)) {  // REX.B is the base's where there is memory
        constexpr uint8_t REX_R = 4, REX_B = 1, ESCAPES = 2;
        bytes[encoding.opcode_at - ESCAPES - 1] &=
            static_cast<uint8_t>(~(encoding.in_memory() ? REX_R : REX_R | REX_B));
    } else if (conditional_move(encoding)) {
        constexpr uint8_t FUCOMI = 0xdb, COMPARES = 0xe8;
        bytes[encoding.opcode_at] = FUCOMI;
        bytes[encoding.modrm_at] = static_cast<uint8_t>(COMPARES | (encoding.rm & 7));
    } else if (undefined(encoding)) {
        bytes[0] = UNDEFINED_OPCODE;
    } else {
        return false;
    }
    return true;
}

}  // namespace perfemu
