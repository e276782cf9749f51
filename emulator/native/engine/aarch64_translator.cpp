#include "engine/aarch64_translator.hpp"

#include <array>
#include <cstdint>

#include "aarch64/row.hpp"
#include "engine/linkage.hpp"

namespace perfemu::aarch64 {
namespace {

// Of a memory operation, QEMU's MemOp: log2 of the size in bytes, sign extension, natural alignment.
constexpr uint32_t MO_SIZE = 3, MO_SIGN = 1 << 2, MO_ALIGN = 7 << 4;

// --- alignment ---

// Load/store ordered: size 001000 1 L 0 Rs o0 Rt2 Rn Rt, and LDAPR
constexpr uint32_t ORDERED_MASK = 0x3fa0'0000, ORDERED = 0x0880'0000;
constexpr uint32_t LDAPR_MASK = 0x3fff'fc00, LDAPR = 0x38bf'c000;

thread_local uint32_t added = 0;  // to each memory operation of the translation at hand

// The translator reads each instruction by this, and then translates it.
using Fetch = uint32_t(void* environment, uint64_t address);
Fetch* engine_fetch = nullptr;
uint32_t fetch(void* environment, uint64_t address) {
    constexpr uint32_t UDF = 0;
    const uint32_t word = engine_fetch(environment, address);
    if (!row_of(word)) return UDF;
    const bool ordered = (word & ORDERED_MASK) == ORDERED || (word & LDAPR_MASK) == LDAPR;
    added = ordered ? MO_ALIGN : 0;
    return word;
}

using EmitAccess = void(void* context, void* value, void* address, uintptr_t index, uint32_t operation);
EmitAccess* engine_load = nullptr;
EmitAccess* engine_store = nullptr;
void emit_load(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    engine_load(context, value, address, index, operation | added);
}
void emit_store(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    engine_store(context, value, address, index, operation | added);
}

// --- signed atomics ---

using Extend = void(void* context, void* to, void* from);
std::array<Extend*, 3> extend_zeros;  // by log2 of the size

using Atomic = void(void* context, void* old, void* address, void* value, uintptr_t index, uint32_t operation);
Atomic* engine_smax = nullptr;
Atomic* engine_smin = nullptr;

// The engine loads without signs, and extends `value` and `old` as the operation says.
void emit_signed(Atomic* emit, void* context, void* old, void* address, void* value, uintptr_t index,
                 uint32_t operation) {
    const uint32_t size = operation & MO_SIZE;
    if (size == extend_zeros.size()) return emit(context, old, address, value, index, operation);
    added |= MO_SIGN;
    emit(context, old, address, value, index, operation | MO_SIGN);
    added &= ~MO_SIGN;
    extend_zeros[size](context, old, old);
}
void emit_smax(void* context, void* old, void* address, void* value, uintptr_t index, uint32_t operation) {
    emit_signed(engine_smax, context, old, address, value, index, operation);
}
void emit_smin(void* context, void* old, void* address, void* value, uintptr_t index, uint32_t operation) {
    emit_signed(engine_smin, context, old, address, value, index, operation);
}

// --- half precision ---

using ToFixedPoint = uint32_t(uint32_t value, uint32_t fraction_bits, void* status);
ToFixedPoint* engine_to_signed_half_word = nullptr;
uint32_t to_signed_half_word(uint32_t value, uint32_t fraction_bits, void* status) {
    return engine_to_signed_half_word(value, fraction_bits, status) & 0xffff;
}

}  // namespace

void correct_translator() {
    static const bool corrected = [] {
        find_in_engine(extend_zeros[0], "tcg_gen_ext8u_i64", "aarch64");
        find_in_engine(extend_zeros[1], "tcg_gen_ext16u_i64", "aarch64");
        find_in_engine(extend_zeros[2], "tcg_gen_ext32u_i64", "aarch64");
        const EngineReplacement replacements[] = {
            in_place_of("cpu_ldl_code", fetch, &engine_fetch),
            in_place_of("tcg_gen_qemu_ld_i64", emit_load, &engine_load),
            in_place_of("tcg_gen_qemu_st_i64", emit_store, &engine_store),
            in_place_of("tcg_gen_atomic_fetch_smax_i64", emit_smax, &engine_smax),
            in_place_of("tcg_gen_atomic_fetch_smin_i64", emit_smin, &engine_smin),
            in_place_of("helper_vfp_toshh", to_signed_half_word, &engine_to_signed_half_word),
        };
        replace_in_engine(replacements, "aarch64");
        return true;
    }();
    (void)corrected;
}

}  // namespace perfemu::aarch64
