// Privilege.
#pragma once

#include <cstdint>

namespace perfemu {

// emulator.cpu.Level: how much what executes may do. AArch64's EL0 and EL1, x86's CPL 3 and 0.
enum class Level : uint8_t { USER, KERNEL };
inline constexpr unsigned LEVELS = 2;
using LevelMask = uint8_t;  // bit (1 << Level)
inline constexpr LevelMask EVERY_LEVEL = (1 << LEVELS) - 1;
constexpr bool contains(LevelMask levels, Level level) { return levels >> static_cast<unsigned>(level) & 1; }

}  // namespace perfemu
