#include "instructions/near_return.hpp"

namespace perfemu {
namespace {

constexpr uint8_t RETURN = 0xc2;
constexpr int64_t WRAPPED = 1 << 16;  // what a negative one lacks

thread_local uint16_t released = 0;  // bytes, by the instruction that is translated at present

// QEMU's TCGv_i64
using Value = uintptr_t;
void (*engine_add)(void* context, Value result, Value left, int64_t right) = nullptr;

// The stack pointer's is of the immediate and the return address's size, both of which it pops.
void emit_addition(void* context, Value result, Value left, int64_t right) {
    const int64_t taken = static_cast<int16_t>(released);
    if (taken < 0 && (right == taken + 8 || right == taken + 2)) right += WRAPPED;
    engine_add(context, result, left, right);
}

}  // namespace

void begin_near_return(const Encoding& encoding) {
    const bool returns = encoding.map == Encoding::ONE_BYTE && encoding.opcode == RETURN;
    released = returns ? encoding.immediate_16 : 0;
}

void end_near_return() { released = 0; }

InstructionFamily near_return_family() {
    static const EngineReplacement REPLACEMENTS[] = {in_place_of("tcg_gen_addi_i64", emit_addition, &engine_add)};
    return {REPLACEMENTS};
}

}  // namespace perfemu
