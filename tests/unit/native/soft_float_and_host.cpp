// Compares soft_float with the x86-64 processor that this runs on: random and edge operands, results and flags.
// Arguments: rounds. Prints a line for the first differences of each operation; fails if there is one.
#include <emmintrin.h>
#include <smmintrin.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "instructions/soft_float.hpp"

using namespace perfemu;

namespace {

std::mt19937_64 generator(14);
uint64_t random_bits() { return generator(); }
uint64_t below(uint64_t n) { return random_bits() % n; }

constexpr int SHOWN = 4;
std::map<std::string, int> differences;

struct Outcome {
    uint8_t bytes[16] = {};
    int flags = 0;
};
template <typename T>
Outcome outcome(const T& value, size_t size, int flags) {
    Outcome result;
    std::memcpy(result.bytes, &value, size);
    result.flags = flags;
    return result;
}
void print(const Outcome& outcome) {
    for (int i = 15; i >= 0; i--) std::printf("%02x", outcome.bytes[i]);
    std::printf(" flags %04x", outcome.flags);
}
void same(const std::string& operation, const std::string& operands, const Outcome& ours, const Outcome& host) {
    if (!std::memcmp(ours.bytes, host.bytes, sizeof ours.bytes) && ours.flags == host.flags) return;
    if (differences[operation]++ >= SHOWN) return;
    std::printf("%s %s: ours ", operation.c_str(), operands.c_str());
    print(ours);
    std::printf(", the host ");
    print(host);
    std::printf("\n");
}

// --- operands ---

uint64_t random_significand() {
    switch (below(6)) {
        case 0: return 0;
        case 1: return uint64_t{1} << below(64);
        case 2: return -(uint64_t{1} << below(64));
        case 3: return random_bits() >> below(64);
        case 4: return random_bits() << below(64);
        default: return random_bits();
    }
}
int random_exponent(int special) {
    switch (below(8)) {
        case 0: return 0;
        case 1: return special;
        case 2: return 1 + static_cast<int>(below(3));
        case 3: return special - 1 - static_cast<int>(below(3));
        case 4: return static_cast<int>(below(special + 1));
        default: return special / 2 + static_cast<int>(below(140)) - 70;
    }
}
template <typename Float>
Float random_float() {
    constexpr int FRACTION = Float::PRECISION - 1, SPECIAL = (1 << Float::EXPONENT_BITS) - 1;
    int exponent = random_exponent(SPECIAL);
    exponent = exponent < 0 ? 0 : exponent > SPECIAL ? SPECIAL : exponent;
    const uint64_t significand = random_significand(), sign = below(2);
    if constexpr (Float::PRECISION == 64) {
        const bool unsupported = below(16) == 0;
        const uint64_t integer_bit = unsupported ? significand >> 63 : (exponent != 0);
        return {(significand & ~(uint64_t{1} << 63)) | integer_bit << 63,
                static_cast<uint16_t>(exponent | static_cast<int>(sign << 15))};
    } else {
        using Word = typename Float::Word;
        const uint64_t fraction =
            below(2) ? significand >> (64 - FRACTION) : significand & ((uint64_t{1} << FRACTION) - 1);
        return {static_cast<Word>(sign << (FRACTION + Float::EXPONENT_BITS) |
                                  static_cast<uint64_t>(exponent) << FRACTION | fraction)};
    }
}
std::string text(Extended a) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%04x:%016lx", a.sign_exponent, a.significand);
    return buffer;
}
template <typename Float>
std::string text(Float a) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%0*lx", static_cast<int>(sizeof a.bits) * 2, static_cast<uint64_t>(a.bits));
    return buffer;
}

// --- SSE ---

template <typename Float>
struct SseRegister;
template <>
struct SseRegister<Binary32> {
    static __m128i in(Binary32 a) { return _mm_cvtsi32_si128(static_cast<int>(a.bits)); }
    static Binary32 out(__m128i a) { return {static_cast<uint32_t>(_mm_cvtsi128_si32(a))}; }
};
template <>
struct SseRegister<Binary64> {
    static __m128i in(Binary64 a) { return _mm_cvtsi64_si128(static_cast<int64_t>(a.bits)); }
    static Binary64 out(__m128i a) { return {static_cast<uint64_t>(_mm_cvtsi128_si64(a))}; }
};

struct SseState {
    FloatContext context;
    uint32_t mxcsr;
    std::string name;
};
SseState random_sse_state() {
    SseState state;
    const auto rounding = static_cast<uint32_t>(below(4));
    state.context.rounding = static_cast<Rounding>(rounding);
    state.context.denormals_are_zeros = below(4) == 0;
    state.context.flush_to_zero = below(4) == 0;
    state.mxcsr = 0x1f80 | rounding << 13 | uint32_t{state.context.denormals_are_zeros} << 6 |
                  uint32_t{state.context.flush_to_zero} << 15;
    state.name = " mxcsr " + std::to_string(state.mxcsr >> 6);
    return state;
}

#define SSE_BINARY(NAME, FLOAT, OPERATION)                                                                         \
    {                                                                                                              \
        const SseState state = random_sse_state();                                                                 \
        FloatContext context = state.context;                                                                      \
        const FLOAT a = random_float<FLOAT>(), b = random_float<FLOAT>();                                          \
        __m128i x = SseRegister<FLOAT>::in(a);                                                                     \
        const __m128i y = SseRegister<FLOAT>::in(b);                                                               \
        uint32_t after;                                                                                            \
        asm volatile("ldmxcsr %2\n" NAME " %3, %0\nstmxcsr %1" : "+x"(x), "=m"(after) : "m"(state.mxcsr), "x"(y)); \
        const FLOAT ours = OPERATION;                                                                              \
        same(NAME, text(a) + " " + text(b) + state.name, outcome(ours, sizeof ours, context.raised),               \
             outcome(SseRegister<FLOAT>::out(x), sizeof ours, static_cast<int>(after & 0x3f)));                    \
    }
#define SSE_CONVERT(NAME, FROM, TO, OPERATION)                                                                     \
    {                                                                                                              \
        const SseState state = random_sse_state();                                                                 \
        FloatContext context = state.context;                                                                      \
        const FROM a = random_float<FROM>();                                                                       \
        __m128i x = _mm_setzero_si128();                                                                           \
        const __m128i y = SseRegister<FROM>::in(a);                                                                \
        uint32_t after;                                                                                            \
        asm volatile("ldmxcsr %2\n" NAME " %3, %0\nstmxcsr %1" : "+x"(x), "=m"(after) : "m"(state.mxcsr), "x"(y)); \
        const TO ours = OPERATION;                                                                                 \
        same(NAME, text(a) + state.name, outcome(ours, sizeof ours, context.raised),                               \
             outcome(SseRegister<TO>::out(x), sizeof ours, static_cast<int>(after & 0x3f)));                       \
    }
#define SSE_TO_INTEGER(NAME, FLOAT, TYPE, ROUNDING)                                              \
    {                                                                                            \
        const SseState state = random_sse_state();                                               \
        FloatContext context = state.context;                                                    \
        const FLOAT a = random_float<FLOAT>();                                                   \
        TYPE result;                                                                             \
        const __m128i y = SseRegister<FLOAT>::in(a);                                             \
        uint32_t after;                                                                          \
        asm volatile("ldmxcsr %2\n" NAME " %3, %0\nstmxcsr %1"                                   \
                     : "=r"(result), "=m"(after)                                                 \
                     : "m"(state.mxcsr), "x"(y));                                                \
        const TYPE ours = static_cast<TYPE>(to_integer(a, sizeof(TYPE) * 8, ROUNDING, context)); \
        same(NAME, text(a) + state.name, outcome(ours, sizeof ours, context.raised),             \
             outcome(result, sizeof ours, static_cast<int>(after & 0x3f)));                      \
    }
#define SSE_FROM_INTEGER(NAME, FLOAT, TYPE)                                                                        \
    {                                                                                                              \
        const SseState state = random_sse_state();                                                                 \
        FloatContext context = state.context;                                                                      \
        const TYPE a = static_cast<TYPE>(random_significand());                                                    \
        __m128i x = _mm_setzero_si128();                                                                           \
        uint32_t after;                                                                                            \
        asm volatile("ldmxcsr %2\n" NAME " %3, %0\nstmxcsr %1" : "+x"(x), "=m"(after) : "m"(state.mxcsr), "r"(a)); \
        const FLOAT ours = from_integer<FLOAT>(a, context);                                                        \
        same(NAME, std::to_string(a) + state.name, outcome(ours, sizeof ours, context.raised),                     \
             outcome(SseRegister<FLOAT>::out(x), sizeof ours, static_cast<int>(after & 0x3f)));                    \
    }
#define SSE_COMPARE(NAME, FLOAT, COMPARISON)                                                  \
    {                                                                                         \
        const SseState state = random_sse_state();                                            \
        FloatContext context = state.context;                                                 \
        const FLOAT a = random_float<FLOAT>(), b = below(4) ? random_float<FLOAT>() : a;      \
        const __m128i x = SseRegister<FLOAT>::in(a), y = SseRegister<FLOAT>::in(b);           \
        uint32_t after;                                                                       \
        uint64_t flags;                                                                       \
        asm volatile("ldmxcsr %2\n" NAME " %4, %3\npushfq\npopq %0\nstmxcsr %1"               \
                     : "=r"(flags), "=m"(after)                                               \
                     : "m"(state.mxcsr), "x"(x), "x"(y)                                       \
                     : "cc");                                                                 \
        static constexpr uint8_t FLAGS[] = {0x01, 0x40, 0x00, 0x45};                          \
        const uint8_t ours = FLAGS[static_cast<int>(compare(a, b, COMPARISON, context))];     \
        same(NAME, text(a) + " " + text(b) + state.name, outcome(ours, 1, context.raised),    \
             outcome(static_cast<uint8_t>(flags & 0x45), 1, static_cast<int>(after & 0x3f))); \
    }

void compare_sse() {
#define BOTH(MACRO, NAME, ...) MACRO(NAME "ss", Binary32, __VA_ARGS__) MACRO(NAME "sd", Binary64, __VA_ARGS__)
    BOTH(SSE_BINARY, "add", add(a, b, context))
    BOTH(SSE_BINARY, "sub", subtract(a, b, context))
    BOTH(SSE_BINARY, "mul", multiply(a, b, context))
    BOTH(SSE_BINARY, "div", divide(a, b, context))
    BOTH(SSE_BINARY, "sqrt", square_root(b, context))
    SSE_BINARY("roundss $4,", Binary32, round_to_integral(b, context))
    SSE_BINARY("roundsd $4,", Binary64, round_to_integral(b, context))
    SSE_CONVERT("cvtss2sd", Binary32, Binary64, convert<Binary64>(a, context))
    SSE_CONVERT("cvtsd2ss", Binary64, Binary32, convert<Binary32>(a, context))
    SSE_TO_INTEGER("cvtss2si", Binary32, int32_t, context.rounding)
    SSE_TO_INTEGER("cvtss2si", Binary32, int64_t, context.rounding)
    SSE_TO_INTEGER("cvtsd2si", Binary64, int32_t, context.rounding)
    SSE_TO_INTEGER("cvtsd2si", Binary64, int64_t, context.rounding)
    SSE_TO_INTEGER("cvttsd2si", Binary64, int64_t, Rounding::TOWARD_ZERO)
    SSE_FROM_INTEGER("cvtsi2ss", Binary32, int32_t)
    SSE_FROM_INTEGER("cvtsi2ss", Binary32, int64_t)
    SSE_FROM_INTEGER("cvtsi2sd", Binary64, int64_t)
    SSE_COMPARE("comiss", Binary32, Comparison::SIGNALLING)
    SSE_COMPARE("comisd", Binary64, Comparison::SIGNALLING)
    SSE_COMPARE("ucomiss", Binary32, Comparison::QUIET)
    SSE_COMPARE("ucomisd", Binary64, Comparison::QUIET)
}

// --- x87 ---

struct X87State {
    FloatContext context;
    uint16_t control;
    std::string name;
};
X87State random_x87_state() {
    static constexpr uint8_t PRECISIONS[] = {24, 0, 53, 64};
    X87State state;
    const auto rounding = static_cast<uint16_t>(below(4));
    auto precision = static_cast<uint16_t>(below(4));
    if (precision == 1) precision = 3;
    state.context.rounding = static_cast<Rounding>(rounding);
    state.context.precision = PRECISIONS[precision];
    state.context.nan_rule = NanRule::LARGER_SIGNIFICAND;
    state.context.scales_unmasked = true;
    state.context.unmasked = below(2) ? 0 : static_cast<uint8_t>(below(64) & (NUMERIC_OVERFLOW | NUMERIC_UNDERFLOW));
    state.control = static_cast<uint16_t>((0x3f & ~state.context.unmasked) | precision << 8 | rounding << 10);
    state.name = " control " + std::to_string(state.control);
    return state;
}

struct alignas(16) Fxsave {
    uint16_t control, status;
    uint8_t rest[28];
    uint8_t registers[8][16];
    uint8_t more[352];
};

constexpr int C0 = 0x100, C1 = 0x200, C2 = 0x400, C3 = 0x4000, CONDITIONS = C0 | C1 | C2 | C3;

int ours_status(const FloatContext& context) {
    return context.reported() | (context.reported() & INEXACT_RESULT && context.rounded_up ? C1 : 0);
}

// Runs OPERATION with a in ST(0) and b in ST(1); the host's state is in `saved` then.
#define X87(OPERATION)                                                                        \
    const X87State state = random_x87_state();                                                \
    FloatContext context = state.context;                                                     \
    const Extended a = random_float<Extended>(), b = below(8) ? random_float<Extended>() : a; \
    Fxsave saved;                                                                             \
    uint8_t memory[16] = {};                                                                  \
    asm volatile("fninit\nfldcw %2\nfldt %4\nfldt %3\n" OPERATION "\nfxsave %0\nfninit"       \
                 : "=m"(saved), "+m"(memory)                                                  \
                 : "m"(state.control), "m"(a), "m"(b)                                         \
                 : "memory");                                                                 \
    const std::string operands = text(a) + " " + text(b) + state.name;                        \
    (void)memory;

#define X87_RESULT(NAME, OPERATION)                                        \
    {                                                                      \
        X87(NAME)                                                          \
        const Extended ours = OPERATION;                                   \
        same(NAME, operands, outcome(ours, 10, ours_status(context)),      \
             outcome(saved.registers[0], 10, saved.status & (0x3f | C1))); \
    }
// Nothing is stored where an exception is unmasked.
#define X87_STORE(NAME, TYPE, OPERATION)                                                               \
    {                                                                                                  \
        X87(NAME " %1")                                                                                \
        TYPE ours = OPERATION;                                                                         \
        if (context.raised & context.unmasked) {                                                       \
            ours = {};                                                                                 \
            saved.status &= static_cast<uint16_t>(~(C1 | INEXACT_RESULT));                             \
            context.raised &= static_cast<uint8_t>(~INEXACT_RESULT);                                   \
        }                                                                                              \
        same(NAME, operands, outcome(ours, sizeof ours > 10 ? 10 : sizeof ours, ours_status(context)), \
             outcome(memory, 10, saved.status & (0x3f | C1)));                                         \
    }
#define X87_COMPARE(NAME, COMPARISON)                                                                                  \
    {                                                                                                                  \
        X87(NAME " %%st(1)")                                                                                           \
        static constexpr int CODES[] = {C0, C3, 0, C0 | C2 | C3};                                                      \
        const int code = CODES[static_cast<int>(compare(a, b, COMPARISON, context))];                                  \
        same(NAME, operands, outcome(0, 1, context.raised | code), outcome(0, 1, saved.status & (0x3f | CONDITIONS))); \
    }
#define X87_REMAINDER(NAME, ROUNDING)                                                                                  \
    {                                                                                                                  \
        X87(NAME)                                                                                                      \
        const RemainderStep ours = remainder_step(a, b, ROUNDING, context);                                            \
        const int code =                                                                                               \
            ours.complete ? (ours.quotient & 1 ? C1 : 0) | (ours.quotient & 2 ? C3 : 0) | (ours.quotient & 4 ? C0 : 0) \
                          : C2;                                                                                        \
        same(NAME, operands, outcome(ours.value, 10, context.raised | code),                                           \
             outcome(saved.registers[0], 10, saved.status & (0x3f | CONDITIONS)));                                     \
    }
#define X87_LOAD(NAME, FLOAT)                                                                                        \
    {                                                                                                                \
        const X87State state = random_x87_state();                                                                   \
        FloatContext context = state.context;                                                                        \
        const FLOAT a = random_float<FLOAT>();                                                                       \
        Fxsave saved;                                                                                                \
        asm volatile("fninit\nfldcw %1\n" NAME " %2\nfxsave %0\nfninit" : "=m"(saved) : "m"(state.control), "m"(a)); \
        const Extended ours = convert<Extended>(a, context);                                                         \
        same(NAME, text(a) + state.name, outcome(ours, 10, ours_status(context)),                                    \
             outcome(saved.registers[0], 10, saved.status & 0x3f));                                                  \
    }

void compare_x87() {
    X87_RESULT("fadd %%st(1)", add(a, b, context))
    X87_RESULT("fsub %%st(1)", subtract(a, b, context))
    X87_RESULT("fmul %%st(1)", multiply(a, b, context))
    X87_RESULT("fdiv %%st(1)", divide(a, b, context))
    X87_RESULT("fsqrt", square_root(a, context))
    X87_RESULT("frndint", round_to_integral(a, context))
    X87_STORE("fsts", Binary32, convert<Binary32>(a, context))
    X87_STORE("fstl", Binary64, convert<Binary64>(a, context))
    X87_STORE("fists", int16_t, static_cast<int16_t>(to_integer(a, 16, context.rounding, context)))
    X87_STORE("fistl", int32_t, static_cast<int32_t>(to_integer(a, 32, context.rounding, context)))
    X87_STORE("fistpll", int64_t, to_integer(a, 64, context.rounding, context))
    X87_STORE("fisttpll", int64_t, to_integer(a, 64, Rounding::TOWARD_ZERO, context))
    X87_STORE("fbstp", PackedDecimal, to_decimal(a, context))
    X87_COMPARE("fcom", Comparison::SIGNALLING)
    X87_COMPARE("fucom", Comparison::QUIET)
    X87_REMAINDER("fprem", Rounding::TOWARD_ZERO)
    X87_REMAINDER("fprem1", Rounding::NEAREST)
    X87_LOAD("flds", Binary32)
    X87_LOAD("fldl", Binary64)
}

}  // namespace

int main(int, char** arguments) {
    const int rounds = std::atoi(arguments[1]);
    for (int i = 0; i < rounds; i++) {
        compare_sse();
        compare_x87();
    }
    for (const auto& [operation, count] : differences) std::printf("%s differs %d times\n", operation.c_str(), count);
    return !differences.empty();
}
