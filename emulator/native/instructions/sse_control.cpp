#include "instructions/sse_control.hpp"

namespace perfemu {
namespace {

void (*engine_load_control)(Environment*, uint32_t) = nullptr;

// LDMXCSR
void load_control(Environment* environment, uint32_t value) {
    if (value & MXCSR_RESERVED) raise_exception(environment, Vector8664::PROTECTION, HELPER_RETURN_ADDRESS());
    engine_load_control(environment, value);
}

}  // namespace

InstructionFamily sse_control_family() {
    static const EngineReplacement HELPERS[] = {
        in_place_of("helper_ldmxcsr", load_control, &engine_load_control),
    };
    return {HELPERS};
}

}  // namespace perfemu
