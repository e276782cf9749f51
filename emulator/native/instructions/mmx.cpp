#include "instructions/mmx.hpp"

#include <cstring>

#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

using Map = Encoding::Map;
constexpr uint8_t NONE = Encoding::NONE, P66 = Encoding::P66, F3 = Encoding::F3, F2 = Encoding::F2;
constexpr int NO_DESTINATION = 8, DESTINATION = 15, WAITS = 16;  // what `finish_mmx` is told
constexpr uint16_t WRITTEN_EXPONENT = 0xffff;

enum class Destination : uint8_t { REG, RM, NOTHING };
struct Row {
    Map map;
    uint8_t first, last;  // opcodes
    uint8_t prefixes;
    Destination destination = Destination::REG;
};
// With an MMX register. The first that fits.
constexpr Row ROWS[] = {
    {Map::MAP_0F, 0x2a, 0x2a, NONE | P66, Destination::NOTHING},  // CVTPI2PS CVTPI2PD
    {Map::MAP_0F, 0x2c, 0x2d, NONE | P66},                        // CVTTPS2PI CVTPS2PI CVTTPD2PI CVTPD2PI
    {Map::MAP_0F, 0x60, 0x6b, NONE},                              // PUNPCKLBW ... PACKSSDW
    {Map::MAP_0F, 0x6e, 0x70, NONE},                              // MOVD MOVQ PSHUFW
    {Map::MAP_0F, 0x71, 0x73, NONE, Destination::RM},             // shifts by an immediate
    {Map::MAP_0F, 0x74, 0x76, NONE},                              // PCMPEQB PCMPEQW PCMPEQD
    {Map::MAP_0F, 0x7e, 0x7e, NONE, Destination::NOTHING},        // MOVD to a general register or memory
    {Map::MAP_0F, 0x7f, 0x7f, NONE, Destination::RM},             // MOVQ
    {Map::MAP_0F, 0xc4, 0xc4, NONE},                              // PINSRW
    {Map::MAP_0F, 0xc5, 0xc5, NONE, Destination::NOTHING},        // PEXTRW
    {Map::MAP_0F, 0xd6, 0xd6, F3, Destination::NOTHING},          // MOVQ2DQ
    {Map::MAP_0F, 0xd6, 0xd6, F2},                                // MOVDQ2Q
    {Map::MAP_0F, 0xd7, 0xd7, NONE, Destination::NOTHING},        // PMOVMSKB
    {Map::MAP_0F, 0xe7, 0xe7, NONE, Destination::NOTHING},        // MOVNTQ
    {Map::MAP_0F, 0xf7, 0xf7, NONE, Destination::NOTHING},        // MASKMOVQ
    {Map::MAP_0F, 0xd1, 0xfe, NONE},                              // all others there
    {Map::MAP_0F38, 0x00, 0x0b, NONE},                            // PSHUFB ... PMULHRSW
    {Map::MAP_0F38, 0x1c, 0x1e, NONE},                            // PABSB PABSW PABSD
    {Map::MAP_0F3A, 0x0f, 0x0f, NONE},                            // PALIGNR
};

const Row* find_row(const Encoding& encoding) {
    if (encoding.vex) return nullptr;
    for (const Row& row : ROWS)
        if (row.map == encoding.map && encoding.opcode >= row.first && encoding.opcode <= row.last &&
            row.prefixes & encoding.prefix)
            return &row;
    return nullptr;
}

int destination(Destination kind, const Encoding& encoding) {
    if (kind == Destination::REG) return encoding.reg & 7;
    return kind == Destination::RM && !encoding.in_memory() ? encoding.rm & 7 : NO_DESTINATION;
}

// At the end of an MMX instruction, so that one whose memory faults has changed nothing: all registers are valid, the
// top is the first, and what was written is no number of the x87's. Of one that cannot fault, this is at its beginning,
// and waits.
void finish_mmx(Environment* environment, int what) {
    const X87 x87 = what & WAITS ? WAITING_X87(environment) : X87(environment);
    const int written = what & DESTINATION;
    x87.top() = 0;
    std::memset(x87.tags(), 0, 8);
    if (written != NO_DESTINATION) x87.physical(static_cast<unsigned>(written)).sign_exponent = WRITTEN_EXPONENT;
}

// At its beginning.
void check_mmx(Environment* environment) { WAITING_X87(environment); }

void empty_mmx(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    x87.top() = 0;
    for (unsigned i = 0; i < 8; i++) x87.tags()[i] = 1;
}

// Of the instruction that is translated at present.
struct Translated {
    const Row* row;
    int destination;
    bool can_fault;
    bool apart;  // from the x87
    EmitCall* emit;
    void* context;
    void* environment;  // the helpers' first argument; null until a call of one is seen
};
thread_local Translated translated{};
uintptr_t (*constant_32)(void* context, int32_t) = nullptr;
void (*palignr)() = nullptr;  // its helper

// Of SSSE3, in the maps behind 0F, the engine calls nothing at the beginning: their own helpers are what has the
// environment and both operands. PALIGNR's has an immediate, too, and as many arguments as calls that come before an
// instruction.
bool computes(Map map, void* function, int count) {
    if (map == Map::MAP_0F) return function == reinterpret_cast<void*>(check_mmx);
    return map == Map::MAP_0F3A ? function == reinterpret_cast<void*>(palignr) : count == 3;
}

// Behind its beginning: for memory, or for an exception of SSE.
bool can_fault(const Encoding& encoding) {
    constexpr uint8_t MASKMOVQ = 0xf7, FIRST_CONVERSION = 0x2a, LAST_CONVERSION = 0x2d;
    const bool converts = encoding.opcode >= FIRST_CONVERSION && encoding.opcode <= LAST_CONVERSION;
    return encoding.in_memory() || (encoding.map == Map::MAP_0F && (converts || encoding.opcode == MASKMOVQ));
}

void emit_finish(const Translated& mmx, int how) {
    void* what = static_cast<uint8_t*>(mmx.context) + constant_32(mmx.context, mmx.destination | how);
    void* arguments[] = {mmx.environment, what};
    mmx.emit(mmx.context, reinterpret_cast<void*>(finish_mmx), nullptr, 2, arguments);
}

}  // namespace

void begin_mmx(const Encoding& encoding) {
    const Row* row = find_row(encoding);
    // From memory, CVTPI2PS and CVTPI2PD leave the x87's registers alone, and the latter does not wait for its
    // exceptions either. Intel SDM vol. 2, CVTPI2PD.
    const bool from_memory = row && encoding.map == Map::MAP_0F && encoding.opcode == 0x2a && encoding.in_memory();
    if (from_memory) row = nullptr;
    translated = {row,
                  row ? destination(row->destination, encoding) : NO_DESTINATION,
                  row && can_fault(encoding),
                  from_memory && encoding.prefix == P66,
                  nullptr,
                  nullptr,
                  nullptr};
}

bool emit_mmx_call(EmitCall* emit, void* context, void* function, int count, void** arguments) {
    if (translated.apart && function == reinterpret_cast<void*>(check_mmx)) return true;
    if (!translated.row || !computes(translated.row->map, function, count)) return false;
    const bool checks = function == reinterpret_cast<void*>(check_mmx);
    translated.emit = emit;
    translated.context = context;
    translated.environment = arguments[0];
    if (translated.can_fault) {
        if (!checks) emit(context, reinterpret_cast<void*>(check_mmx), nullptr, 1, arguments);
        return false;
    }
    emit_finish(translated, WAITS);
    translated = {};
    return checks;
}

void end_mmx() {
    if (translated.environment) emit_finish(translated, 0);
    translated = {};
}

InstructionFamily mmx_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_enter_mmx", check_mmx),
        in_place_of("helper_emms", empty_mmx),
        // INTO, which 64-bit mode does not have, has the arguments that we want.
        in_place_of("helper_into", finish_mmx),
    };
    const auto find = [](const Calibration&) {
        find_in_engine(constant_32, "tcg_const_i32");
        find_in_engine(palignr, "helper_palignr_mmx");
    };
    return {REPLACEMENTS, find};
}

}  // namespace perfemu
