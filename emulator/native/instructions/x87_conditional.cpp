#include "instructions/x87_conditional.hpp"

#include "instructions/x87_moves.hpp"

namespace perfemu {
namespace {

constexpr uint8_t IF_SET = 0xda, IF_CLEAR = 0xdb;  // opcodes
constexpr int REGISTER = 7, CONDITION_SHIFT = 3, INVERTED = 1 << 5;
constexpr uint64_t CONDITION_FLAGS[] = {CARRY, ZERO, CARRY | ZERO, PARITY};
constexpr uint64_t ARITHMETIC_FLAGS = CARRY | PARITY | AUXILIARY | ZERO | SIGN | OVERFLOW_FLAG;

uint64_t (*engine_flags)(Environment*) = nullptr;
uintptr_t (*constant_32)(void* context, int32_t) = nullptr;

struct Translated {
    std::optional<int> number;  // what the helper is told
    bool moves;                 // FCMOVcc
};
thread_local Translated translated{};

bool stores_unchecked(const Encoding& encoding) {
    constexpr uint8_t OPCODE = 0xd9, GROUP = 3;
    return !encoding.vex && encoding.map == Encoding::Map::ONE_BYTE && encoding.opcode == OPCODE &&
           (encoding.reg & 7) == GROUP && !encoding.in_memory();
}

}  // namespace

std::optional<int> conditional_move(const Encoding& encoding) {
    const bool opcode = encoding.opcode == IF_SET || encoding.opcode == IF_CLEAR;
    constexpr unsigned CONDITIONS = 4;
    const unsigned condition = encoding.reg & 7;
    if (encoding.vex || encoding.map != Encoding::Map::ONE_BYTE || !opcode || encoding.in_memory() ||
        condition >= CONDITIONS)
        return std::nullopt;
    return static_cast<int>(encoding.rm & 7) | static_cast<int>(condition) << CONDITION_SHIFT |
           (encoding.opcode == IF_CLEAR ? INVERTED : 0);
}

void begin_conditional_move(const Encoding& encoding) {
    const std::optional<int> move = conditional_move(encoding);
    translated = {move, move.has_value()};
    if (stores_unchecked(encoding)) translated.number = static_cast<int>(encoding.rm & 7) | UNCHECKED_STORE;
}

void end_conditional_move() { translated = {}; }

bool emit_conditional_move(EmitCall* emit, void* context, void* function, int count, void** arguments) {
    constexpr int WITH_REGISTER = 2, WITHOUT = 1;  // arguments
    if (!translated.number || (count != WITH_REGISTER && count != WITHOUT)) return false;
    if (translated.moves && count == WITH_REGISTER) return true;  // the second operand, which nothing compares
    if (!translated.moves && count == WITHOUT) return false;      // pops
    void* number = static_cast<uint8_t*>(context) + constant_32(context, *translated.number);
    void* ours[] = {arguments[0], number};
    emit(context, translated.moves ? reinterpret_cast<void*>(move_to_top) : function, nullptr, 2, ours);
    return true;
}

void move_conditionally(X87 x87, Environment* environment, int move) {
    const uint64_t flags = engine_flags(environment) & ARITHMETIC_FLAGS;
    flags_source(environment) = flags;  // where the translation takes them from
    const auto i = static_cast<unsigned>(move & REGISTER);
    if (x87.empty(0) || x87.empty(i)) {
        if (x87.stack_fault(false)) x87.set(0, EXTENDED_INDEFINITE);
        return;
    }
    const bool holds = (flags & CONDITION_FLAGS[move >> CONDITION_SHIFT & 3]) != 0;
    if (holds != ((move & INVERTED) != 0)) x87.set(0, x87.get(i));
}

InstructionFamily x87_conditional_family() {
    const auto find = [](const Calibration&) {
        find_in_engine(engine_flags, "helper_read_eflags");
        find_in_engine(constant_32, "tcg_const_i32");
    };
    return {{}, find};
}

}  // namespace perfemu
