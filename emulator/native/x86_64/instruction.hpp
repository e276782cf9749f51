// One x86-64 instruction: prefixes, opcode, operands' encodings, length, and its row in the table.
//
// As the engine's translator reads them, which differs from Intel's processors in places: a 66 prefix shortens the
// displacement of a near jump, 66 counts before F2 and F3 where they choose among vector instructions, and a REX prefix
// counts wherever it stands among the others.
#pragma once

#include <cstdint>
#include <span>

namespace perfemu::x86_64 {

struct Row;

// How wide operands and addresses are by default, and whether there are REX prefixes.
enum class CodeMode : uint8_t { BITS_64, BITS_32, BITS_16 };

enum class OpcodeMap : uint8_t { ONE_BYTE, TWO_BYTE, THREE_BYTE_38, THREE_BYTE_3A, VEX_TWO_BYTE, VEX_38, VEX_3A };
static constexpr unsigned OPCODE_MAPS = 7;

enum class Segment : uint8_t { NONE, FS, GS };

// General registers, as instructions number them.
enum GeneralRegister : uint8_t { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

struct Instruction {
    static constexpr uint8_t NO_OVERRIDE = 8;

    const Row* row = nullptr;  // none: the bytes are no instruction that user programs could execute
    OpcodeMap map = OpcodeMap::ONE_BYTE;
    uint8_t opcode = 0;
    uint8_t length = 0;  // 0: no row, or the bytes end before the instruction does
    CodeMode mode = CodeMode::BITS_64;
    bool operand_16 = false, address_32 = false, locked = false;
    bool address_16 = false;                 // not in 64-bit mode
    uint8_t segment_override = NO_OVERRIDE;  // as encodings number them; in 64-bit mode only FS and GS count
    bool has_rex = false, rex_w = false, rex_r = false, rex_x = false, rex_b = false;
    uint8_t vex_register = 0;
    uint8_t repeat = 0;  // 0xf2 or 0xf3; that if there are both
    Segment segment = Segment::NONE;

    bool has_modrm = false;
    uint8_t modrm = 0;
    bool has_sib = false;
    uint8_t sib = 0;
    int64_t displacement = 0;
    uint64_t immediate = 0;         // sign-extended
    uint64_t second_immediate = 0;  // ENTER's

    bool in_register() const { return modrm >= 0xc0; }
    bool in_memory() const { return has_modrm && modrm < 0xc0; }
    unsigned extension() const { return modrm >> 3 & 7; }  // of the opcode
    unsigned reg() const { return extension() | (rex_r ? 8U : 0); }
    unsigned rm() const { return (modrm & 7U) | (rex_b ? 8U : 0); }
    unsigned opcode_register() const { return (opcode & 7U) | (rex_b ? 8U : 0); }
    // Which of four instructions a vector opcode is: 0 without prefix, 1 with 66, 2 with F3, 3 with F2.
    unsigned variant() const { return operand_16 ? 1 : repeat == 0xf3 ? 2 : repeat ? 3 : 0; }
    // Of general operands.
    unsigned operand_size() const { return rex_w ? 8 : operand_16 ? 2 : 4; }
    unsigned stack_size() const { return operand_16 && !rex_w ? 2 : mode == CodeMode::BITS_64 ? 8 : 4; }

    // What ModRM and SIB say of an address in memory; NO_REGISTER where there is none.
    static constexpr unsigned NO_REGISTER = 16;
    bool relative_to_ip() const { return mode == CodeMode::BITS_64 && no_register(); }
    // A displacement and no base.
    bool no_register() const { return modrm >> 6 == 0 && (modrm & 7) == (address_16 ? RSI : RBP); }
    unsigned base() const;
    unsigned index() const;
    unsigned shift() const { return has_sib ? sib >> 6 : 0; }
};

// The instruction at the front of `bytes`.
Instruction read_instruction(std::span<const uint8_t> bytes, CodeMode mode = CodeMode::BITS_64);

}  // namespace perfemu::x86_64
