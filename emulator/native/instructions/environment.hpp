// The registers of an x86-64 engine as its helpers see them.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace perfemu {

// QEMU's CPUX86State, the first argument of every helper. Its layout is no part of Unicorn's API: what we use of it is
// found at start-up, by writing registers and looking where their values appear (`Calibration`).
class Environment;

// A vector register or a 16-byte operand, aligned to 8 bytes; registers lie further apart than that.
union Vector {
    uint8_t bytes[16];
    uint16_t words[8];
    uint32_t doublewords[4];
    uint64_t quadwords[2];
};

struct EnvironmentLayout {
    size_t general = 0;        // RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 ...: 8 bytes each
    size_t vectors = 0;        // XMM0
    size_t vector_stride = 0;  // XMM1 - XMM0
    size_t mxcsr = 0;
    size_t flags_source = 0;  // the flags of RFLAGS that a helper leaves, where its translation says so (CC_SRC)
    size_t segment_base_fs = 0, segment_base_gs = 0;
    size_t mode = 0;  // what the translator is told of the processor's mode, the privilege level in its lowest bits
};
inline EnvironmentLayout environment_layout;

template <typename T>
T& field(Environment* environment, size_t offset) {
    return *reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(environment) + offset);
}
// Of the engine whose RAX lies there (RegisterFile).
inline Environment* environment_of(const uint64_t* rax) {
    return reinterpret_cast<Environment*>(reinterpret_cast<uintptr_t>(rax) - environment_layout.general);
}
inline uint32_t mode(Environment* environment) { return field<uint32_t>(environment, environment_layout.mode); }
inline uint32_t& mxcsr(Environment* environment) { return field<uint32_t>(environment, environment_layout.mxcsr); }
inline uint64_t& flags_source(Environment* environment) {
    return field<uint64_t>(environment, environment_layout.flags_source);
}
inline uint64_t& general_register(Environment* environment, unsigned number) {
    return field<uint64_t>(environment, environment_layout.general + number * sizeof(uint64_t));
}
inline Vector& vector_register(Environment* environment, unsigned number) {
    return field<Vector>(environment, environment_layout.vectors + number * environment_layout.vector_stride);
}

// RFLAGS, as `flags_source` has them.
inline constexpr uint64_t CARRY = 1, PARITY = 4, AUXILIARY = 0x10, ZERO = 0x40, SIGN = 0x80, OVERFLOW_FLAG = 0x800;

// An engine that was made to look at.
class Calibration {
  public:
    Calibration();
    ~Calibration();
    Calibration(const Calibration&) = delete;
    Calibration& operator=(const Calibration&) = delete;

    uc_engine* engine() const { return engine_; }
    Environment* environment() const { return reinterpret_cast<Environment*>(bytes_); }

    // Where the environment has each of `values` after `put(value)`. Throws std::runtime_error, which names `what`, if
    // there is no such place, or more than one.
    template <typename T>
    size_t find(const char* what, std::span<const T> values, const std::function<void(T)>& put) const {
        std::vector<size_t> places;
        bool first = true;
        for (T value : values) {
            put(value);
            if (std::exchange(first, false)) {
                for (size_t at = 0; at + sizeof(T) <= size_; at += alignof(T)) places.push_back(at);
            }
            std::erase_if(places, [&](size_t at) { return std::memcmp(bytes_ + at, &value, sizeof value) != 0; });
        }
        return only(what, places);
    }
    // Of a register of the API.
    template <typename T>
    size_t find_register(const char* what, int number, std::span<const T> values) const {
        return find<T>(what, values, [&](T value) { uc_reg_write(engine_, number, &value); });
    }

  private:
    static size_t only(const char* what, std::span<const size_t> places);

    uc_engine* engine_ = nullptr;
    uint8_t* bytes_ = nullptr;
    size_t size_ = 0;
};

// Fills `environment_layout`.
void calibrate_environment(const Calibration& calibration);

// In the place of the engine's CPUID, which only bare cores reach: tells Calibration where the environment is.
extern void (*engine_cpuid)(Environment*);
void note_environment(Environment* environment);

}  // namespace perfemu
