// What an instruction asks of a device: at a port, or in memory where no RAM is.
#pragma once

#include <cstdint>

namespace perfemu::x86_64 {

struct PortAccess {
    uint16_t port = 0;
    uint8_t bytes = 0;
    uint64_t value = 0;  // that goes out
};

// emulator/_native.pyi, Core.access
enum class AccessKind : uint8_t { LOAD, STORE, UPDATE };

struct DeviceAccess {
    uint64_t physical = 0;
    uint8_t bytes = 0;
    AccessKind kind = AccessKind::LOAD;
    uint64_t value = 0;  // that is stored; UPDATE: the other operand
};

}  // namespace perfemu::x86_64
