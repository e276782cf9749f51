#include "instructions/sse_comparison.hpp"

#include <array>

#include "instructions/host_arithmetic.hpp"

namespace perfemu {
namespace {

using enum Ordering;
using enum Comparison;

template <typename Float>
Ordering host_order(Float a, Float b) {
    const auto x = to_host(a), y = to_host(b);
    return x < y ? LESS : x > y ? GREATER : EQUAL;
}

// Intel SDM vol. 2, CMPPD, table of predicates: what NaNs raise, and in which orders it holds.
constexpr unsigned bit_of(Ordering order) { return 1u << static_cast<unsigned>(order); }
template <Comparison COMPARISON, unsigned HOLDS>
struct Predicate {
    static constexpr Comparison comparison = COMPARISON;
    static bool holds(Ordering order) { return HOLDS & bit_of(order); }
};
constexpr unsigned ALL = bit_of(LESS) | bit_of(EQUAL) | bit_of(GREATER) | bit_of(UNORDERED);
constexpr unsigned LESS_OR_EQUAL = bit_of(LESS) | bit_of(EQUAL);
using Equal = Predicate<QUIET, bit_of(EQUAL)>;
using LessThan = Predicate<SIGNALLING, bit_of(LESS)>;
using LessOrEqual = Predicate<SIGNALLING, LESS_OR_EQUAL>;
using Unordered = Predicate<QUIET, bit_of(UNORDERED)>;
using NotEqual = Predicate<QUIET, ALL & ~bit_of(EQUAL)>;
using NotLessThan = Predicate<SIGNALLING, ALL & ~bit_of(LESS)>;
using NotLessOrEqual = Predicate<SIGNALLING, ALL & ~LESS_OR_EQUAL>;
using Ordered = Predicate<QUIET, ALL & ~bit_of(UNORDERED)>;

// The orders of the first COUNT elements. Raises what comparing them raises.
template <typename Float, int COUNT>
[[gnu::always_inline]] inline std::array<Ordering, COUNT> orders(Environment* environment, const Vector& first,
                                                                 const Vector& second, Comparison comparison,
                                                                 uintptr_t return_address) {
    std::array<Ordering, COUNT> results;
    bool right = true;
    for (int i = 0; i < COUNT; i++) {
        const auto a = element<Float>(first, i), b = element<Float>(second, i);
        right &= is_ordinary(a) && is_ordinary(b);
        results[i] = host_order(a, b);
    }
    if (right) [[likely]]
        return results;
    FloatContext context = float_context(mxcsr(environment));
    for (int i = 0; i < COUNT; i++)
        results[i] = compare(element<Float>(first, i), element<Float>(second, i), comparison, context);
    report(environment, context, return_address);
    return results;
}

template <typename Which, typename Float, int COUNT>
void compare_elements(Environment* environment, Vector* destination, const Vector* source) {
    const auto results =
        orders<Float, COUNT>(environment, *destination, *source, Which::comparison, HELPER_RETURN_ADDRESS());
    for (int i = 0; i < COUNT; i++)
        set_element(*destination, i, Float{static_cast<typename Float::Word>(-Which::holds(results[i]))});
}

// COMISS, UCOMISS.
template <Comparison COMPARISON, typename Float>
void compare_to_flags(Environment* environment, const Vector* first, const Vector* second) {
    static constexpr uint64_t FLAGS[] = {CARRY, ZERO, 0, ZERO | PARITY | CARRY};  // in the order of Ordering
    const auto result = orders<Float, 1>(environment, *first, *second, COMPARISON, HELPER_RETURN_ADDRESS());
    flags_source(environment) = FLAGS[static_cast<unsigned>(result[0])];
}

// MINPS, MAXPS: the second operand but where the first is less, or greater; a NaN is neither, nor is a zero.
template <Ordering WANTED, typename Float, int COUNT>
void choose(Environment* environment, Vector* destination, const Vector* source) {
    const auto results = orders<Float, COUNT>(environment, *destination, *source, SIGNALLING, HELPER_RETURN_ADDRESS());
    const bool zeros = mxcsr(environment) & MXCSR_DENORMALS_ARE_ZEROS;
    for (int i = 0; i < COUNT; i++) {
        auto chosen = results[i] == WANTED ? element<Float>(*destination, i) : element<Float>(*source, i);
        if (zeros && !is_ordinary(chosen) && !(magnitude(chosen) >> Float::PRECISION))
            chosen.bits = chosen.bits >> (8 * sizeof chosen - 1) << (8 * sizeof chosen - 1);
        set_element(*destination, i, chosen);
    }
}

#define OF_EACH_KIND(name, function, ...)                                     \
    in_place_of("helper_" name "ps", function<__VA_ARGS__, Binary32, 4>),     \
        in_place_of("helper_" name "ss", function<__VA_ARGS__, Binary32, 1>), \
        in_place_of("helper_" name "pd", function<__VA_ARGS__, Binary64, 2>), \
        in_place_of("helper_" name "sd", function<__VA_ARGS__, Binary64, 1>)

}  // namespace

InstructionFamily sse_comparison_family() {
    static const EngineReplacement HELPERS[] = {
        OF_EACH_KIND("cmpeq", compare_elements, Equal),
        OF_EACH_KIND("cmplt", compare_elements, LessThan),
        OF_EACH_KIND("cmple", compare_elements, LessOrEqual),
        OF_EACH_KIND("cmpunord", compare_elements, Unordered),
        OF_EACH_KIND("cmpneq", compare_elements, NotEqual),
        OF_EACH_KIND("cmpnlt", compare_elements, NotLessThan),
        OF_EACH_KIND("cmpnle", compare_elements, NotLessOrEqual),
        OF_EACH_KIND("cmpord", compare_elements, Ordered),
        OF_EACH_KIND("min", choose, LESS),
        OF_EACH_KIND("max", choose, GREATER),
        in_place_of("helper_comiss", compare_to_flags<SIGNALLING, Binary32>),
        in_place_of("helper_comisd", compare_to_flags<SIGNALLING, Binary64>),
        in_place_of("helper_ucomiss", compare_to_flags<QUIET, Binary32>),
        in_place_of("helper_ucomisd", compare_to_flags<QUIET, Binary64>),
    };
    return {HELPERS};
}

}  // namespace perfemu
