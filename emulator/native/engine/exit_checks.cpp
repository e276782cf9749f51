#include "engine/exit_checks.hpp"

#include <cstdint>

#include "engine/function.hpp"
#include "x86_64/instruction.hpp"
#include "x86_64/row.hpp"

namespace perfemu {
namespace {

constexpr size_t FIRST_INSTRUCTIONS = 64;     // bytes of the function to look at
constexpr int64_t LARGEST_ENGINE = 16 << 10;  // bytes; the flag lies within the engine's struct

// check_exit_request begins with `if (uc->no_exit_request) return`: the displacement of its first `cmp byte [reg + d],
// 0`. 0 where it does not look like that.
int64_t flag_offset(const char* function) {
#ifdef __x86_64__
    const auto* code = static_cast<const uint8_t*>(engine_function(function));
    if (!code) return 0;
    for (size_t at = 0; at < FIRST_INSTRUCTIONS;) {
        const x86_64::Instruction insn = x86_64::read_instruction({code + at, FIRST_INSTRUCTIONS});
        if (!insn.row || insn.row->op_class == OpClass::CALL || insn.row->op_class == OpClass::RETURN) return 0;
        const bool compares_byte =
            insn.map == x86_64::OpcodeMap::ONE_BYTE && insn.opcode == 0x80 && insn.extension() == 7;
        if (compares_byte && insn.in_memory() && insn.immediate == 0) return insn.displacement;
        at += insn.length;
    }
#else
    (void)function;
#endif
    return 0;
}

}  // namespace

bool elide_exit_checks(uc_engine* engine) {
    static const int64_t offsets[] = {flag_offset("check_exit_request_aarch64"),
                                      flag_offset("check_exit_request_x86_64")};
    bool plausible = offsets[0] == offsets[1] && offsets[0] > 0 && offsets[0] < LARGEST_ENGINE;
    if (!plausible) return false;
    uint8_t& flag = reinterpret_cast<uint8_t*>(engine)[offsets[0]];
    if (flag != 0) return false;
    flag = 1;
    return true;
}

}  // namespace perfemu
