#include "ordered_accesses.hpp"

#include <cstdint>

#include "../engine_linkage.hpp"

namespace perfemu {
namespace {

// Load/store ordered: size 001000 1 L 0 Rs 1 Rt2 Rn Rt
constexpr uint32_t ORDERED_MASK = 0x3fa0'8000, ORDERED = 0x0880'8000;
constexpr uint32_t NATURAL_ALIGNMENT = 7 << 4;  // QEMU's MO_ALIGN

thread_local bool aligned = false;  // what the translation at hand accesses

// The translator reads each instruction by this, and then translates it.
using Fetch = uint32_t(void* environment, uint64_t address);
Fetch* engine_fetch = nullptr;
uint32_t fetch(void* environment, uint64_t address) {
    const uint32_t word = engine_fetch(environment, address);
    aligned = (word & ORDERED_MASK) == ORDERED;
    return word;
}

using Access = void(void* context, void* value, void* address, uintptr_t index, uint32_t operation);
Access* engine_load = nullptr;
Access* engine_store = nullptr;
uint32_t with_alignment(uint32_t operation) { return aligned ? operation | NATURAL_ALIGNMENT : operation; }
void emit_load(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    engine_load(context, value, address, index, with_alignment(operation));
}
void emit_store(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    engine_store(context, value, address, index, with_alignment(operation));
}

}  // namespace

void align_ordered_accesses() {
    static const bool replaced = [] {
        const EngineReplacement replacements[] = {
            in_place_of("cpu_ldl_code", fetch, &engine_fetch),
            in_place_of("tcg_gen_qemu_ld_i64", emit_load, &engine_load),
            in_place_of("tcg_gen_qemu_st_i64", emit_store, &engine_store),
        };
        replace_in_engine(replacements, "aarch64");
        return true;
    }();
    (void)replaced;
}

}  // namespace perfemu
