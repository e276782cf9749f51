#include "sse_arithmetic.hpp"

#include <array>
#include <cmath>

#include "host_arithmetic.hpp"

namespace perfemu {
namespace {

// Each operation: `soft` for all operands; `host`, and whether its result is the right one (`known`, if it does not
// matter whether it is exact) and is exact besides.
struct Addition {
    template <typename Float>
    static Float soft(Float a, Float b, FloatContext& context) {
        return add(a, b, context);
    }
    template <typename Host>
    static Host host(Host a, Host b) {
        return a + b;
    }
    template <typename Float>
    static bool known(Float a, Float b, Float result) {
        return is_ordinary(a) && is_ordinary(b) && is_ordinary(result);
    }
    template <typename Float>
    static bool exact(Float a, Float b, Float result) {
        return sum_is_exact(a, b, result);
    }
};
struct Subtraction : Addition {
    template <typename Float>
    static Float soft(Float a, Float b, FloatContext& context) {
        return subtract(a, b, context);
    }
    template <typename Host>
    static Host host(Host a, Host b) {
        return a - b;
    }
    template <typename Float>
    static bool exact(Float a, Float b, Float result) {
        return sum_is_exact(a, from_host<Float>(-to_host(b)), result);
    }
};
// The least normal number may be the rounded one of a tiny result.
struct Multiplication {
    template <typename Float>
    static Float soft(Float a, Float b, FloatContext& context) {
        return multiply(a, b, context);
    }
    template <typename Host>
    static Host host(Host a, Host b) {
        return a * b;
    }
    template <typename Float>
    static bool known(Float a, Float b, Float result) {
        return is_ordinary(a) && is_ordinary(b) && (is_normal(result, 1) || is_zero(a) || is_zero(b));
    }
    template <typename Float>
    static bool exact(Float a, Float b, Float) {
        return product_is_exact(a, b) || is_zero(a) || is_zero(b);
    }
};
struct Division {
    template <typename Float>
    static Float soft(Float a, Float b, FloatContext& context) {
        return divide(a, b, context);
    }
    template <typename Host>
    static Host host(Host a, Host b) {
        return a / b;
    }
    template <typename Float>
    static bool known(Float a, Float b, Float result) {
        return is_ordinary(a) && is_normal(b) && (is_normal(result, 1) || is_zero(a));
    }
    template <typename Float>
    static bool exact(Float a, Float, Float) {
        return is_zero(a);
    }
};
// Of the second operand.
struct SquareRoot {
    template <typename Float>
    static Float soft(Float, Float b, FloatContext& context) {
        return square_root(b, context);
    }
    template <typename Host>
    static Host host(Host, Host b) {
        return std::sqrt(b);
    }
    template <typename Float>
    static bool known(Float, Float b, Float) {
        return is_zero(b) || (is_normal(b) && to_host(b) > 0);
    }
    template <typename Float>
    static bool exact(Float, Float b, Float) {
        return is_zero(b);
    }
};

template <typename Float>
struct Pair {
    Float first, second;
};

// The elements of an instruction: which operands there are, before any result is written.
template <typename Float, int COUNT>
using Pairs = std::array<Pair<Float>, COUNT>;

template <typename Operation, typename Float, int COUNT>
[[gnu::noinline]] void compute_softly(Environment* environment, Vector* destination, const Vector* source,
                                      uintptr_t return_address) {
    FloatContext context = float_context(mxcsr(environment));
    std::array<Float, COUNT> results;
    for (int i = 0; i < COUNT; i++)
        results[i] = Operation::soft(element<Float>(*destination, i), element<Float>(*source, i), context);
    report(environment, context, return_address);
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, results[i]);
}

// The helper of an instruction on the first COUNT elements.
template <typename Operation, typename Float, int COUNT>
void compute(Environment* environment, Vector* destination, const Vector* source) {
    const uint32_t control = mxcsr(environment);
    const bool inexact_known = inexact_is_known(control);
    bool right = inexact_known || rounds_to_nearest(control);
    std::array<Float, COUNT> results;
    for (int i = 0; i < COUNT; i++) {
        const auto a = element<Float>(*destination, i), b = element<Float>(*source, i);
        results[i] = from_host<Float>(Operation::host(to_host(a), to_host(b)));
        right = right && Operation::known(a, b, results[i]) && (inexact_known || Operation::exact(a, b, results[i]));
    }
    if (!right) [[unlikely]] {
        compute_softly<Operation, Float, COUNT>(environment, destination, source, HELPER_RETURN_ADDRESS());
        return;
    }
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, results[i]);
}

// HADDPS, HSUBPS: neighbours, of the destination and then of the source.
template <typename Operation, typename Float>
void compute_horizontally(Environment* environment, Vector* destination, const Vector* source) {
    constexpr int COUNT = ELEMENTS<Float>, HALF = COUNT / 2;
    Vector first, second;
    for (int i = 0; i < COUNT; i++) {
        const Vector& from = i < HALF ? *destination : *source;
        set_element(first, i, element<Float>(from, 2 * i % COUNT));
        set_element(second, i, element<Float>(from, 2 * i % COUNT + 1));
    }
    compute_softly<Operation, Float, COUNT>(environment, &first, &second, HELPER_RETURN_ADDRESS());
    *destination = first;
}

template <typename Float>
void subtract_and_add(Environment* environment, Vector* destination, const Vector* source) {
    FloatContext context = float_context(mxcsr(environment));
    Vector results;
    for (int i = 0; i < ELEMENTS<Float>; i++) {
        const auto a = element<Float>(*destination, i), b = element<Float>(*source, i);
        set_element(results, i, i % 2 ? add(a, b, context) : subtract(a, b, context));
    }
    report(environment, context, HELPER_RETURN_ADDRESS());
    *destination = results;
}

// Intel SDM vol. 2, DPPS and DPPD: which products are added, and where the sum goes. The products are added in pairs.
template <typename Float>
void multiply_and_add(Environment* environment, Vector* destination, const Vector* source, uint32_t selection) {
    constexpr int COUNT = ELEMENTS<Float>;
    FloatContext context = float_context(mxcsr(environment));
    std::array<Float, COUNT> terms{};
    for (int i = 0; i < COUNT; i++)
        if (selection >> (4 + i) & 1)
            terms[i] = multiply(element<Float>(*destination, i), element<Float>(*source, i), context);
    for (int left = COUNT / 2; left > 0; left /= 2)
        for (int i = 0; i < left; i++) terms[i] = add(terms[2 * i], terms[2 * i + 1], context);
    report(environment, context, HELPER_RETURN_ADDRESS());
    for (int i = 0; i < COUNT; i++) set_element(*destination, i, selection >> i & 1 ? terms[0] : Float{0});
}

#define OF_EACH_KIND(name, Operation)                                      \
    in_place_of("helper_" name "ps", compute<Operation, Binary32, 4>),     \
        in_place_of("helper_" name "ss", compute<Operation, Binary32, 1>), \
        in_place_of("helper_" name "pd", compute<Operation, Binary64, 2>), \
        in_place_of("helper_" name "sd", compute<Operation, Binary64, 1>)

}  // namespace

InstructionFamily sse_arithmetic_family() {
    static const EngineReplacement HELPERS[] = {
        OF_EACH_KIND("add", Addition),
        OF_EACH_KIND("sub", Subtraction),
        OF_EACH_KIND("mul", Multiplication),
        OF_EACH_KIND("div", Division),
        OF_EACH_KIND("sqrt", SquareRoot),
        in_place_of("helper_haddps", compute_horizontally<Addition, Binary32>),
        in_place_of("helper_haddpd", compute_horizontally<Addition, Binary64>),
        in_place_of("helper_hsubps", compute_horizontally<Subtraction, Binary32>),
        in_place_of("helper_hsubpd", compute_horizontally<Subtraction, Binary64>),
        in_place_of("helper_addsubps", subtract_and_add<Binary32>),
        in_place_of("helper_addsubpd", subtract_and_add<Binary64>),
        in_place_of("helper_dpps_xmm", multiply_and_add<Binary32>),
        in_place_of("helper_dppd_xmm", multiply_and_add<Binary64>),
    };
    return {HELPERS, check_host_arithmetic};
}

}  // namespace perfemu
