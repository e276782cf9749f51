#include "instructions/bit_tests.hpp"

#include <algorithm>
#include <string_view>

namespace perfemu {
namespace {

constexpr uint8_t TWO_BYTE = 0x0f, OF_IMMEDIATE = 0xba;
constexpr uint8_t GROUP_SHIFT = 3, FIRST_OF_GROUP = 4;  // ModRM.reg: BT, BTS, BTR, BTC; below is nothing
constexpr std::string_view PREFIXES = "\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", OF_REGISTER = "\xa3\xab\xb3\xbb";

bool is_among(std::string_view bytes, uint8_t byte) { return bytes.find(static_cast<char>(byte)) != bytes.npos; }

bool is_prefix(uint8_t byte, bool is_64) { return is_among(PREFIXES, byte) || (is_64 && byte >> 4 == 4); }

}  // namespace

bool tests_bit(std::span<const uint8_t> bytes, bool is_64) {
    const auto opcode = std::ranges::find_if_not(bytes, [is_64](uint8_t byte) { return is_prefix(byte, is_64); });
    if (bytes.end() - opcode < 3 || opcode[0] != TWO_BYTE) return false;
    if (opcode[1] == OF_IMMEDIATE) return (opcode[2] >> GROUP_SHIFT & 7) >= FIRST_OF_GROUP;
    return is_among(OF_REGISTER, opcode[1]);
}

}  // namespace perfemu
