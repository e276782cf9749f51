// MXCSR, and how an SSE instruction with floating-point operands ends.
#pragma once

#include "instructions/environment.hpp"
#include "instructions/exceptions.hpp"
#include "instructions/families.hpp"
#include "instructions/soft_float.hpp"

namespace perfemu {

// Intel SDM vol. 1, "MXCSR Control and Status Register".
enum Mxcsr : uint32_t {
    MXCSR_DENORMALS_ARE_ZEROS = 1 << 6,
    MXCSR_MASKS_AT = 7,  // bit of the first
    MXCSR_INEXACT_MASK = 1 << 12,
    MXCSR_ROUNDING_AT = 13,
    MXCSR_ROUNDING = 3 << 13,
    MXCSR_FLUSH_TO_ZERO = 1 << 15,
    MXCSR_RESERVED = 0xffff'0000,
};

inline FloatContext float_context(uint32_t mxcsr) {
    return {.rounding = static_cast<Rounding>(mxcsr >> MXCSR_ROUNDING_AT & 3),
            .denormals_are_zeros = (mxcsr & MXCSR_DENORMALS_ARE_ZEROS) != 0,
            .flush_to_zero = (mxcsr & MXCSR_FLUSH_TO_ZERO) != 0,
            .unmasked = static_cast<uint8_t>(~mxcsr >> MXCSR_MASKS_AT & ALL_FLOAT_EXCEPTIONS)};
}

// Before the destination is written: what was raised becomes sticky, and an exception if it is not masked. Then it does
// not return.
inline void report(Environment* environment, const FloatContext& context, uintptr_t return_address) {
    const uint8_t reported = context.reported();
    mxcsr(environment) |= reported;
    if (reported & context.unmasked) [[unlikely]]
        raise_exception(environment, Vector8664::SIMD, return_address);
}

template <typename Float>
Float element(const Vector& vector, int number) {
    if constexpr (sizeof(Float) == 4)
        return {vector.doublewords[number]};
    else
        return {vector.quadwords[number]};
}
template <typename Float>
void set_element(Vector& vector, int number, Float value) {
    if constexpr (sizeof(Float) == 4)
        vector.doublewords[number] = value.bits;
    else
        vector.quadwords[number] = value.bits;
}
template <typename Float>
constexpr int ELEMENTS = 16 / sizeof(Float);

// LDMXCSR
InstructionFamily sse_control_family();

}  // namespace perfemu
