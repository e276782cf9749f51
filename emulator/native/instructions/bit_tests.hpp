// BT, BTS, BTR and BTC, whose other flags the engine makes depend on where a block begins.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace perfemu {

// Intel SDM vol. 2: they set CF, leave ZF alone, and OF, SF, AF and PF are undefined. The engine keeps these where it
// does not know which instruction has set them, and has others where that stands before in the same block: so a step,
// or a limit, would show. Behind an instruction that has asked for all flags it always keeps them, as processors do.
bool tests_bit(std::span<const uint8_t> bytes, bool is_64);

// CMOVP AX, AX: it asks for all flags, and does nothing.
inline constexpr std::array<uint8_t, 4> ASKS_FOR_FLAGS = {0x66, 0x0f, 0x4a, 0xc0};

}  // namespace perfemu
