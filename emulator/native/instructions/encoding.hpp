// The parts of an encoded x86-64 instruction: as far as instructions of our own have to tell it from others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace perfemu {

// Intel SDM vol. 2, chapter 2.
struct Encoding {
    enum Map : uint8_t { ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A };
    enum Prefix : uint8_t { NONE = 1, P66 = 2, F3 = 4, F2 = 8 };  // the one that selects among instructions
    static constexpr uint8_t NO_REGISTER = 0xff, INSTRUCTION_POINTER = 0xfe;

    Map map = ONE_BYTE;
    Prefix prefix = NONE;
    uint8_t opcode = 0;
    bool vex = false;
    bool operand_16 = false;  // 66 among the prefixes, also where another selects
    bool rex = false;
    uint8_t opcode_at = 0, modrm_at = 0;  // offsets; the opcode's last byte, and ModRM where there is one
    bool vex_256 = false;
    bool wide = false;  // REX.W or VEX.W
    bool address_32 = false;
    bool lock = false;
    uint8_t segment = 0;         // the override's prefix byte; 0 if none counts
    uint8_t third_register = 0;  // VEX.vvvv
    uint8_t reg = 0;             // ModRM.reg, extended
    uint8_t rm = NO_REGISTER;    // ModRM.rm, extended, where it is a register
    uint8_t base = NO_REGISTER, index = NO_REGISTER, scale = 0;
    int32_t displacement = 0;
    uint8_t immediate = 0;      // where one of 8 bits follows
    uint16_t immediate_16 = 0;  // of RET and ENTER
    uint8_t length = 0;

    bool in_memory() const { return rm == NO_REGISTER; }
};

// The instruction at the front of `bytes`, if it has an opcode of one of the maps behind 0F, or is MOV from or to a
// segment register, RET with an immediate, ENTER, SAHF, LAHF, or one of TEST's group (F6, F7), which are given no
// immediate; nothing for others, and where `bytes` end before it does.
std::optional<Encoding> decode_encoding(std::span<const uint8_t> bytes);

}  // namespace perfemu
