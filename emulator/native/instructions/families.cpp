#include "instructions/families.hpp"

#include <vector>

#include "instructions/code_bytes.hpp"
#include "instructions/division.hpp"
#include "instructions/executed.hpp"
#include "instructions/faulting_address.hpp"
#include "instructions/flags.hpp"
#include "instructions/horizontal_integers.hpp"
#include "instructions/masked_stores.hpp"
#include "instructions/memory_operand.hpp"
#include "instructions/mmx.hpp"
#include "instructions/near_return.hpp"
#include "instructions/reciprocals.hpp"
#include "instructions/segments.hpp"
#include "instructions/sse_arithmetic.hpp"
#include "instructions/sse_comparison.hpp"
#include "instructions/sse_control.hpp"
#include "instructions/sse_conversion.hpp"
#include "instructions/string_comparison.hpp"
#include "instructions/translation.hpp"
#include "instructions/x87_arithmetic.hpp"
#include "instructions/x87_conditional.hpp"
#include "instructions/x87_control.hpp"
#include "instructions/x87_moves.hpp"
#include "instructions/x87_transcendental.hpp"

namespace perfemu {
namespace {

// One a line.
// clang-format off
constexpr InstructionFamily (*FAMILIES[])() = {
    translation_family,
    memory_operand_family,
    code_bytes_family,
    division_family,
    executed_family,
    faulting_address_family,
    near_return_family,
    segment_family,
    masked_store_family,
    mmx_family,
    flags_family,
    horizontal_integer_family,
    sse_arithmetic_family,
    sse_comparison_family,
    sse_conversion_family,
    sse_control_family,
    reciprocal_family,
    string_comparison_family,
    x87_arithmetic_family,
    x87_comparison_family,
    x87_load_family,
    x87_store_family,
    x87_register_family,
    x87_conditional_family,
    x87_control_family,
    x87_transcendental_family,
};
// clang-format on

}  // namespace

void install_instructions() {
    static const bool installed = [] {
        std::vector<InstructionFamily> families;
        std::vector<EngineReplacement> replacements = {in_place_of("helper_cpuid", note_environment, &engine_cpuid)};
        for (auto* family : FAMILIES) {
            families.push_back(family());
            const auto& helpers = families.back().helpers;
            replacements.insert(replacements.end(), helpers.begin(), helpers.end());
        }
        replace_in_engine(replacements);
        const Calibration calibration;
        calibrate_environment(calibration);
        for (const InstructionFamily& family : families)
            if (family.calibrate) family.calibrate(calibration);
        return true;
    }();
    (void)installed;
}

}  // namespace perfemu
