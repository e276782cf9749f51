#include "exit_checks.hpp"

#include <capstone/capstone.h>

#include <cstdint>

#include "engine_function.hpp"
#include "isa.hpp"

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
    Disassembler disassembler(CS_ARCH_X86, CS_MODE_64);
    for (size_t at = 0; at < FIRST_INSTRUCTIONS;) {
        const cs_insn* insn = disassembler.decode(0, {code + at, FIRST_INSTRUCTIONS});
        if (!insn || insn->id == X86_INS_CALL || insn->id == X86_INS_RET) return 0;
        const cs_x86& detail = insn->detail->x86;
        bool compares = insn->id == X86_INS_CMP && detail.operands[0].type == X86_OP_MEM &&
                        detail.operands[0].size == 1 && detail.operands[1].type == X86_OP_IMM &&
                        detail.operands[1].imm == 0;
        if (compares) return detail.operands[0].mem.disp;
        at += insn->size;
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
