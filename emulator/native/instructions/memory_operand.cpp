#include "instructions/memory_operand.hpp"

#include "instructions/exceptions.hpp"

namespace perfemu {
namespace {

using Map = Encoding::Map;
constexpr uint8_t NONE = Encoding::NONE, P66 = Encoding::P66, F3 = Encoding::F3, F2 = Encoding::F2;

struct AlignedRow {
    Map map;
    uint8_t first, last;  // opcodes
    uint8_t prefixes;
};
// Sorted by map and opcode. Left out: operands of fewer bytes, and MOVUPS, MOVUPD, MOVDQU, LDDQU, MASKMOVDQU,
// PCMPxSTRx.
constexpr AlignedRow ALIGNED[] = {
    {Map::MAP_0F, 0x12, 0x12, F3},               // MOVSLDUP
    {Map::MAP_0F, 0x14, 0x15, NONE | P66},       // UNPCKLPS UNPCKHPS
    {Map::MAP_0F, 0x16, 0x16, F3},               // MOVSHDUP
    {Map::MAP_0F, 0x28, 0x29, NONE | P66},       // MOVAPS
    {Map::MAP_0F, 0x2b, 0x2b, NONE | P66},       // MOVNTPS
    {Map::MAP_0F, 0x2c, 0x2d, P66},              // CVTTPD2PI CVTPD2PI
    {Map::MAP_0F, 0x51, 0x51, NONE | P66},       // SQRTPS
    {Map::MAP_0F, 0x52, 0x53, NONE},             // RSQRTPS RCPPS
    {Map::MAP_0F, 0x54, 0x59, NONE | P66},       // ANDPS ANDNPS ORPS XORPS ADDPS MULPS
    {Map::MAP_0F, 0x5a, 0x5a, P66},              // CVTPD2PS
    {Map::MAP_0F, 0x5b, 0x5b, NONE | P66 | F3},  // CVTDQ2PS CVTPS2DQ CVTTPS2DQ
    {Map::MAP_0F, 0x5c, 0x5f, NONE | P66},       // SUBPS MINPS DIVPS MAXPS
    {Map::MAP_0F, 0x60, 0x6d, P66},              // PUNPCKLBW ... PUNPCKHQDQ
    {Map::MAP_0F, 0x6f, 0x6f, P66},              // MOVDQA
    {Map::MAP_0F, 0x70, 0x70, P66 | F3 | F2},    // PSHUFD PSHUFHW PSHUFLW
    {Map::MAP_0F, 0x74, 0x76, P66},              // PCMPEQB PCMPEQW PCMPEQD
    {Map::MAP_0F, 0x7c, 0x7d, P66 | F2},         // HADDPD HADDPS HSUBPD HSUBPS
    {Map::MAP_0F, 0x7f, 0x7f, P66},              // MOVDQA
    {Map::MAP_0F, 0xc2, 0xc2, NONE | P66},       // CMPPS
    {Map::MAP_0F, 0xc6, 0xc6, NONE | P66},       // SHUFPS
    {Map::MAP_0F, 0xd0, 0xd0, P66 | F2},         // ADDSUBPD ADDSUBPS
    {Map::MAP_0F, 0xd1, 0xd5, P66},
    {Map::MAP_0F, 0xd8, 0xe5, P66},
    {Map::MAP_0F, 0xe6, 0xe6, P66 | F2},  // CVTTPD2DQ CVTPD2DQ
    {Map::MAP_0F, 0xe7, 0xef, P66},       // MOVNTDQ, PSUBSB ... PXOR
    {Map::MAP_0F, 0xf1, 0xf6, P66},
    {Map::MAP_0F, 0xf8, 0xfe, P66},
    {Map::MAP_0F38, 0x00, 0x0b, P66},
    {Map::MAP_0F38, 0x10, 0x17, P66},  // PBLENDVB BLENDVPS BLENDVPD PTEST
    {Map::MAP_0F38, 0x1c, 0x1e, P66},  // PABSB PABSW PABSD
    {Map::MAP_0F38, 0x28, 0x2b, P66},  // PMULDQ PCMPEQQ MOVNTDQA PACKUSDW
    {Map::MAP_0F38, 0x37, 0x41, P66},
    {Map::MAP_0F38, 0xdb, 0xdf, P66},  // AESIMC ... AESDECLAST
    {Map::MAP_0F3A, 0x08, 0x09, P66},  // ROUNDPS ROUNDPD
    {Map::MAP_0F3A, 0x0c, 0x0f, P66},  // BLENDPS BLENDPD PBLENDW PALIGNR
    {Map::MAP_0F3A, 0x40, 0x44, P66},  // DPPS DPPD MPSADBW PCLMULQDQ
    {Map::MAP_0F3A, 0xdf, 0xdf, P66},  // AESKEYGENASSIST
};

struct NarrowRow {
    Map map;
    uint8_t opcode, prefixes, bytes;
};
constexpr NarrowRow NARROW[] = {
    {Map::MAP_0F, 0x2c, NONE, 8},   // CVTTPS2PI
    {Map::MAP_0F, 0x2d, NONE, 8},   // CVTPS2PI
    {Map::MAP_0F, 0x5a, NONE, 8},   // CVTPS2PD
    {Map::MAP_0F, 0x60, NONE, 4},   // PUNPCKLBW
    {Map::MAP_0F, 0x61, NONE, 4},   // PUNPCKLWD
    {Map::MAP_0F, 0x62, NONE, 4},   // PUNPCKLDQ
    {Map::MAP_0F, 0xe6, F3, 8},     // CVTDQ2PD
    {Map::MAP_0F3A, 0x0a, P66, 4},  // ROUNDSS
    {Map::MAP_0F3A, 0x0b, P66, 8},  // ROUNDSD
};

struct UnalignedRow {
    Map map;
    uint8_t opcode, prefixes;
};
constexpr UnalignedRow UNALIGNED_ROWS[] = {
    {Map::MAP_0F, 0x10, NONE | P66},                           // MOVUPS MOVUPD
    {Map::MAP_0F, 0x11, NONE | P66}, {Map::MAP_0F, 0x6f, F3},  // MOVDQU
    {Map::MAP_0F, 0x7f, F3},         {Map::MAP_0F, 0xf0, F2},  // LDDQU
};

// QEMU's MemOp, and MemOp and MMU index in one word, as translations give them to the slow path.
constexpr uint32_t ALIGN_16 = 4 << 4, ALIGNMENT = 7 << 4, OF_INDEX = 4;
constexpr uint64_t UNALIGNED = 15;

constexpr uint32_t SIZE = 3, OF_4_BYTES = 2;  // of a MemOp

thread_local MemoryOperand next_operand;
thread_local void* narrow_address = nullptr;  // of the first load
// Of 16 bytes in two halves: a temporary, with what was loaded or is to be stored.
thread_local void* other_half = nullptr;
thread_local void* first_address = nullptr;

using EmitAccess = void(void* context, void* value, void* address, uintptr_t index, uint32_t operation);
EmitAccess* engine_load = nullptr;
EmitAccess* engine_store = nullptr;

// QEMU's TCGv, which is its TCGTemp by the offset from the context.
void* (*new_temporary)(void* context, int type, bool local) = nullptr;
void (*free_temporary)(void* context, void* temporary) = nullptr;
void (*emit_addition)(void* context, void* result, void* left, int64_t right) = nullptr;
constexpr int OF_64_BITS = 1, HALF_BYTES = 8;  // the first: TCG_TYPE_I64

void* temporary(void* context) {
    void* const made = new_temporary(context, OF_64_BITS, false);
    return reinterpret_cast<void*>(static_cast<uint8_t*>(made) - static_cast<uint8_t*>(context));
}
void discard(void* context, void* value) {
    free_temporary(context, static_cast<uint8_t*>(context) + reinterpret_cast<uintptr_t>(value));
}

// The engine loads the first half, writes it into the register, and loads the second. Here both are loaded at first.
void emit_half_load(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    if (other_half) {
        emit_addition(context, value, other_half, 0);
        discard(context, other_half);
        other_half = nullptr;
        return;
    }
    engine_load(context, value, address, index, operation);
    void* const second = temporary(context);
    emit_addition(context, second, address, HALF_BYTES);
    other_half = temporary(context);
    engine_load(context, other_half, second, index, operation);
    discard(context, second);
}
// The second half is stored first: of those whose second page cannot be written nothing is, and a look at both pages
// would cost every store.
void emit_half_store(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    if (!other_half) {
        other_half = temporary(context);
        emit_addition(context, other_half, value, 0);
        first_address = address;
        return;
    }
    engine_store(context, value, address, index, operation);
    engine_store(context, other_half, first_address, index, operation);
    discard(context, other_half);
    other_half = nullptr;
}

uint32_t with_alignment(uint32_t operation) {
    if (next_operand.aligned) operation |= ALIGN_16;
    next_operand.aligned = false;
    return operation;
}
// The second load of a narrow operand, which nobody looks at, is the first one again.
void emit_load(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    if (next_operand.halves) {
        emit_half_load(context, value, address, index, operation);
        return;
    }
    if (next_operand.bytes) {
        if (!narrow_address) narrow_address = address;
        address = narrow_address;
        if (next_operand.bytes == 4) operation = (operation & ~SIZE) | OF_4_BYTES;
    }
    engine_load(context, value, address, index, with_alignment(operation));
}
void emit_store(void* context, void* value, void* address, uintptr_t index, uint32_t operation) {
    if (next_operand.halves) {
        emit_half_store(context, value, address, index, operation);
        return;
    }
    engine_store(context, value, address, index, with_alignment(operation));
}

// Where the translation's own look at the TLB does not suffice, as for every misaligned address.
using SlowLoad = uint64_t(Environment*, uint64_t address, uint32_t operation, uintptr_t return_address);
using SlowStore = void(Environment*, uint64_t address, uint64_t value, uint32_t operation, uintptr_t return_address);
SlowLoad* engine_slow_load = nullptr;
SlowStore* engine_slow_store = nullptr;

bool misaligned(uint64_t address, uint32_t operation) {
    return (operation >> OF_INDEX & ALIGNMENT) == ALIGN_16 && address & UNALIGNED;
}
uint64_t slow_load(Environment* environment, uint64_t address, uint32_t operation, uintptr_t return_address) {
    if (misaligned(address, operation)) raise_exception(environment, Vector8664::PROTECTION, return_address);
    return engine_slow_load(environment, address, operation, return_address);
}
void slow_store(Environment* environment, uint64_t address, uint64_t value, uint32_t operation,
                uintptr_t return_address) {
    if (misaligned(address, operation)) raise_exception(environment, Vector8664::PROTECTION, return_address);
    engine_slow_store(environment, address, value, operation, return_address);
}

}  // namespace

MemoryOperand memory_operand(const Encoding& encoding) {
    MemoryOperand operand;
    if (encoding.vex || !encoding.in_memory()) return operand;
    for (const AlignedRow& row : ALIGNED)
        if (row.map == encoding.map && encoding.opcode >= row.first && encoding.opcode <= row.last)
            operand.aligned = row.prefixes & encoding.prefix;
    for (const NarrowRow& row : NARROW)
        if (row.map == encoding.map && encoding.opcode == row.opcode && row.prefixes & encoding.prefix)
            operand.bytes = row.bytes;
    for (const UnalignedRow& row : UNALIGNED_ROWS)
        if (row.map == encoding.map && encoding.opcode == row.opcode) operand.halves = row.prefixes & encoding.prefix;
    return operand;
}

void access_as(MemoryOperand operand) {
    next_operand = operand;
    narrow_address = nullptr;
    other_half = nullptr;
}

InstructionFamily memory_operand_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("tcg_gen_qemu_ld_i64", emit_load, &engine_load),
        in_place_of("tcg_gen_qemu_st_i64", emit_store, &engine_store),
        in_place_of("helper_le_ldq_mmu", slow_load, &engine_slow_load),
        in_place_of("helper_le_stq_mmu", slow_store, &engine_slow_store),
    };
    const auto find = [](const Calibration&) {
        find_in_engine(new_temporary, "tcg_temp_new_internal");
        find_in_engine(free_temporary, "tcg_temp_free_internal");
        find_in_engine(emit_addition, "tcg_gen_addi_i64");
    };
    return {REPLACEMENTS, find};
}

}  // namespace perfemu
