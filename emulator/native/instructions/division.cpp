#include "instructions/division.hpp"

#include <cstdint>
#include <limits>

#include "instructions/exceptions.hpp"

namespace perfemu {
namespace {

constexpr unsigned RAX = 0, RDX = 2;

// IDIV r/m32: EDX:EAX by `operand`. The engine divides 64 bits on the host first and looks at the quotient then: -2^63
// by -1 is a SIGFPE of ours there, and #DE here.
void divide_signed(Environment* environment, uint64_t operand) {
    uint64_t& low = general_register(environment, RAX);
    uint64_t& high = general_register(environment, RDX);
    const auto dividend = static_cast<int64_t>(high << 32 | static_cast<uint32_t>(low));
    const auto divisor = static_cast<int32_t>(operand);
    const bool defined = divisor != 0 && !(divisor == -1 && dividend == std::numeric_limits<int64_t>::min());
    const int64_t quotient = defined ? dividend / divisor : 0;
    if (!defined || quotient != static_cast<int32_t>(quotient))
        raise_exception(environment, Vector8664::DIVIDE, HELPER_RETURN_ADDRESS());
    high = static_cast<uint32_t>(dividend % divisor);
    low = static_cast<uint32_t>(quotient);
}

}  // namespace

InstructionFamily division_family() {
    static const EngineReplacement HELPERS[] = {in_place_of("helper_idivl_EAX", divide_signed)};
    return {HELPERS};
}

}  // namespace perfemu
