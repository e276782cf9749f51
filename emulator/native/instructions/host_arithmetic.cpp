#include "instructions/host_arithmetic.hpp"

#include <cmath>
#include <stdexcept>

namespace perfemu {
namespace {

// With operands that the compiler cannot know. Each result depends on rounding in its last bit.
template <typename Float>
bool computes_right(std::initializer_list<std::pair<Float, Float>> operands) {
    using Host = HostFloat<Float>;
    for (const auto& [first, second] : operands) {
        volatile Host a = to_host(first), b = to_host(second);
        volatile Host sum = a + b, difference = a - b, product = a * b, quotient = a / b, root = std::sqrt(b);
        FloatContext context;
        const bool right = from_host<Float>(sum).bits == add(first, second, context).bits &&
                           from_host<Float>(difference).bits == subtract(first, second, context).bits &&
                           from_host<Float>(product).bits == multiply(first, second, context).bits &&
                           from_host<Float>(quotient).bits == divide(first, second, context).bits &&
                           from_host<Float>(root).bits == square_root(second, context).bits;
        if (!right) return false;
    }
    return true;
}

}  // namespace

void check_host_arithmetic(const Calibration&) {
    const bool right = computes_right<Binary64>({{{0x3ff0'0000'0000'0001}, {0x3fd5'5555'5555'5555}},
                                                 {{0x4008'0000'0000'0003}, {0x3cb8'0000'0000'0001}},
                                                 {{0xc340'0000'0000'0001}, {0x3ff8'0000'0000'0000}}}) &&
                       computes_right<Binary32>({{{0x3f80'0001}, {0x3eaa'aaab}}, {{0xcb80'0001}, {0x3fc0'0000}}});
    if (!right) throw std::runtime_error("this host does not round floating-point results to nearest");
}

}  // namespace perfemu
