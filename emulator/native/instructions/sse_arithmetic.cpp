#include "instructions/sse_arithmetic.hpp"

#include <array>
#include <cmath>

#include "instructions/host_arithmetic.hpp"

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

// Two ways to compute; the first notes whether that was right.
struct ByHost {
    bool inexact_known, right;

    explicit ByHost(uint32_t control)
        : inexact_known(inexact_is_known(control)), right(inexact_known || rounds_to_nearest(control)) {}
    template <typename Operation, typename Float>
    Float apply(Float a, Float b) {
        const auto result = from_host<Float>(Operation::host(to_host(a), to_host(b)));
        right = right && Operation::known(a, b, result) && (inexact_known || Operation::exact(a, b, result));
        return result;
    }
    bool goes_on() const { return true; }
};
struct BySoftware {
    FloatContext context;

    template <typename Operation, typename Float>
    Float apply(Float a, Float b) {
        return Operation::soft(a, b, context);
    }
    bool goes_on() { return context.goes_on(); }
};

// What is computed from which elements: each of these takes one of the two ways and gives what the destination becomes.
template <typename Operation, typename Float, int COUNT>
struct EachElement {
    template <typename Way>
    static Vector compute(Way& way, const Vector& destination, const Vector& source) {
        Vector result = destination;
        for (int i = 0; i < COUNT; i++) {
            const auto a = element<Float>(destination, i), b = element<Float>(source, i);
            set_element(result, i, way.template apply<Operation>(a, b));
        }
        return result;
    }
};

// HADDPS, HSUBPS: neighbours, of the destination and then of the source.
template <typename Operation, typename Float>
struct Neighbours {
    template <typename Way>
    static Vector compute(Way& way, const Vector& destination, const Vector& source) {
        constexpr int COUNT = ELEMENTS<Float>;
        Vector result;
        for (int i = 0; i < COUNT; i++) {
            const Vector& from = i < COUNT / 2 ? destination : source;
            const auto a = element<Float>(from, 2 * i % COUNT), b = element<Float>(from, 2 * i % COUNT + 1);
            set_element(result, i, way.template apply<Operation>(a, b));
        }
        return result;
    }
};

// ADDSUBPS
template <typename Float>
struct InTurns {
    template <typename Way>
    static Vector compute(Way& way, const Vector& destination, const Vector& source) {
        Vector result;
        for (int i = 0; i < ELEMENTS<Float>; i++) {
            const auto a = element<Float>(destination, i), b = element<Float>(source, i);
            set_element(result, i, i % 2 ? way.template apply<Addition>(a, b) : way.template apply<Subtraction>(a, b));
        }
        return result;
    }
};

// Intel SDM vol. 2, DPPS and DPPD: which products are added, and where the sum goes. The products are added in pairs.
// What raises an exception is not followed by more.
template <typename Float>
struct DotProduct {
    template <typename Way>
    static Vector compute(Way& way, const Vector& destination, const Vector& source, uint32_t selection) {
        constexpr int COUNT = ELEMENTS<Float>;
        std::array<Float, COUNT> terms{};
        for (int i = 0; i < COUNT; i++)
            if (selection >> (4 + i) & 1)
                terms[i] =
                    way.template apply<Multiplication>(element<Float>(destination, i), element<Float>(source, i));
        for (int left = COUNT / 2; left > 0 && way.goes_on(); left /= 2)
            for (int i = 0; i < left; i++) terms[i] = way.template apply<Addition>(terms[2 * i], terms[2 * i + 1]);
        Vector result;
        for (int i = 0; i < COUNT; i++) set_element(result, i, selection >> i & 1 ? terms[0] : Float{0});
        return result;
    }
};

template <typename Shape, typename... Immediate>
[[gnu::noinline]] void compute_softly(Environment* environment, Vector* destination, const Vector* source,
                                      uintptr_t return_address, Immediate... immediate) {
    BySoftware way{float_context(mxcsr(environment))};
    const Vector result = Shape::compute(way, *destination, *source, immediate...);
    report(environment, way.context, return_address);
    *destination = result;
}

// The helper of an instruction.
template <typename Shape, typename... Immediate>
void compute(Environment* environment, Vector* destination, const Vector* source, Immediate... immediate) {
    ByHost way(mxcsr(environment));
    const Vector result = Shape::compute(way, *destination, *source, immediate...);
    if (way.right) [[likely]]
        *destination = result;
    else
        compute_softly<Shape>(environment, destination, source, HELPER_RETURN_ADDRESS(), immediate...);
}

#define OF_EACH_KIND(name, Operation)                                                   \
    in_place_of("helper_" name "ps", compute<EachElement<Operation, Binary32, 4>>),     \
        in_place_of("helper_" name "ss", compute<EachElement<Operation, Binary32, 1>>), \
        in_place_of("helper_" name "pd", compute<EachElement<Operation, Binary64, 2>>), \
        in_place_of("helper_" name "sd", compute<EachElement<Operation, Binary64, 1>>)

}  // namespace

InstructionFamily sse_arithmetic_family() {
    static const EngineReplacement HELPERS[] = {
        OF_EACH_KIND("add", Addition),
        OF_EACH_KIND("sub", Subtraction),
        OF_EACH_KIND("mul", Multiplication),
        OF_EACH_KIND("div", Division),
        OF_EACH_KIND("sqrt", SquareRoot),
        in_place_of("helper_haddps", compute<Neighbours<Addition, Binary32>>),
        in_place_of("helper_haddpd", compute<Neighbours<Addition, Binary64>>),
        in_place_of("helper_hsubps", compute<Neighbours<Subtraction, Binary32>>),
        in_place_of("helper_hsubpd", compute<Neighbours<Subtraction, Binary64>>),
        in_place_of("helper_addsubps", compute<InTurns<Binary32>>),
        in_place_of("helper_addsubpd", compute<InTurns<Binary64>>),
        in_place_of("helper_dpps_xmm", compute<DotProduct<Binary32>, uint32_t>),
        in_place_of("helper_dppd_xmm", compute<DotProduct<Binary64>, uint32_t>),
    };
    return {HELPERS, check_host_arithmetic};
}

}  // namespace perfemu
