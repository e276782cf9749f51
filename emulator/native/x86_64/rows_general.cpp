// The opcode map of one byte, but for x87. Operands and flags: Intel SDM volume 2, and table A-2.
#include "x86_64/dataflow.hpp"
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;
using Flow = InstructionDataflow;

// Of the eight, forms in the opcodes 8 * number .. 8 * number + 5, and in 80, 81 and 83.
struct Arithmetic {
    std::string_view name;
    OpClass op_class;
    Form form;
    uint64_t effects;
};
constexpr Arithmetic ARITHMETIC[] = {
    {"ADD", ALU, UPDATE, STATUS | SUBTRACTS | AFTER_MOVE | AFTER_LOAD | LOCKABLE},
    {"OR", ALU, UPDATE, STATUS | AFTER_MOVE | AFTER_LOAD | LOCKABLE},
    {"ADC", ALU_CARRY, UPDATE, STATUS | CARRY_IN | LOCKABLE},
    {"SBB", ALU_CARRY, UPDATE, STATUS | CARRY_IN | LOCKABLE},
    {"AND", ALU, UPDATE, STATUS | TESTS | AFTER_MOVE | AFTER_LOAD | LOCKABLE},
    {"SUB", ALU, UPDATE, STATUS | SUBTRACTS | ZERO_IDIOM | AFTER_MOVE | AFTER_LOAD | LOCKABLE},
    {"XOR", ALU, UPDATE, STATUS | ZERO_IDIOM | AFTER_MOVE | AFTER_LOAD | LOCKABLE},
    {"CMP", ALU, READ, STATUS | SUBTRACTS | COMPARE_ONLY},
};

// Of the eight, by the opcode's extension.
struct Shift {
    std::string_view name;
    OpClass op_class, by_count;
    uint64_t effects;
};
constexpr Shift SHIFTS[] = {
    // CF and OF only; the rest is not renamed apart
    {"ROL", ROTATE, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},   {"ROR", ROTATE, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},
    {"RCL", ROTATE_CARRY, ROTATE_CARRY, STATUS | CARRY_IN}, {"RCR", ROTATE_CARRY, ROTATE_CARRY, STATUS | CARRY_IN},
    {"SHL", SHIFT, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},    {"SHR", SHIFT, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},
    {"SAL", SHIFT, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},    {"SAR", SHIFT, SHIFT_BY_COUNT, STATUS | AFTER_MOVE},
};

constexpr uint64_t COPIES = SOURCE_INDEX | DESTINATION_INDEX | LOADS | STORES | MICROCODED;
constexpr uint64_t COMPARES = SOURCE_INDEX | DESTINATION_INDEX | LOADS | MICROCODED | STATUS;
constexpr uint64_t RAX_RDX = RAX_IN | RAX_OUT | RDX_OUT;

constexpr Row ROWS[] = {
    // moves
    {one(0x88, 0x89), "MOV", {Eo, Go}, MOVE, WRITE, PLAIN, &Flow::move},
    {one(0x8a, 0x8b), "MOV", {Go, Eo}, MOVE, WRITE, PLAIN, &Flow::move},
    {one(0x8c), "MOV", {Em, Sw}, SYSTEM, WRITE, PLAIN, &Flow::move_segment},
    {one(0x8e), "MOV", {Sw, Em}, SYSTEM, WRITE, PLAIN, &Flow::move_segment},
    {one(0xa0, 0xa1), "MOV", {Ao, Oo}, MOVE, WRITE, PLAIN, &Flow::move},
    {one(0xa2, 0xa3), "MOV", {Oo, Ao}, MOVE, WRITE, PLAIN, &Flow::move},
    {one(0xb0, 0xb7), "MOV", {Zb, Ib}, CONSTANT, WRITE, PLAIN, &Flow::move},
    {one(0xb8, 0xbf), "MOV", {Zv, Iv}, CONSTANT, WRITE, PLAIN, &Flow::move},
    {one(0xc6, 0xc7) / 0, "MOV", {Eo, Io}, CONSTANT, WRITE, PLAIN, &Flow::move},
    {one(0x63), "MOVSXD", {Gv, Ed}, ALU, WRITE, PLAIN, &Flow::extend_signed},
    {one(0x86, 0x87), "XCHG", {Eo, Go}, EXCHANGE, UPDATE_2, LOCKABLE, &Flow::exchange},
    {one(0x91, 0x97), "XCHG", {Zv, Av}, EXCHANGE, UPDATE_2, 0, &Flow::exchange},
    {one(0x8d).memory(), "LEA", {Gv, M}, LEA, ADDRESS, 0, &Flow::load_address},
    {one(0x50, 0x57), "PUSH", {Zs}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {one(0x68), "PUSH", {Iz}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {one(0x6a), "PUSH", {Ib}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {one(0xff) / 6, "PUSH", {Es}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {one(0x58, 0x5f), "POP", {Zs}, NONE, WRITE, LOADS | STACK, &Flow::pop_operand},
    {one(0x8f) / 0, "POP", {Es}, NONE, WRITE, LOADS | STACK, &Flow::pop_operand},
    {one(0x9c), "PUSHF", {}, FLAGS, IMPLICIT, BOTH_IN | STORES | STACK | MICROCODED, &Flow::push_operand},
    {one(0x9d), "POPF", {}, FLAGS, IMPLICIT, STATUS | LOADS | STACK | MICROCODED, &Flow::pop_operand},
    {one(0xc9), "LEAVE", {}, NONE, IMPLICIT, LOADS, &Flow::leave},
    {one(0xc8), "ENTER", {Iw, Ib2}, SYSTEM, IMPLICIT, STORES | STACK | MICROCODED, &Flow::enter},
    {one(0xd7), "XLATB", {}, NONE, IMPLICIT, RAX_OUT | LOADS, &Flow::table_lookup},
    // arithmetic and logic, besides the eight
    {one(0x84, 0x85), "TEST", {Eo, Go}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, &Flow::test},
    {one(0xa8, 0xa9), "TEST", {Ao, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, &Flow::test},
    {one(0xf6, 0xf7) / 0, "TEST", {Eo, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, &Flow::test},
    {one(0xf6, 0xf7) / 1, "TEST", {Eo, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, &Flow::test},
    {one(0xf6, 0xf7) / 2, "NOT", {Eo}, ALU, UPDATE, AFTER_MOVE | LOCKABLE, &Flow::complement},
    {one(0xf6, 0xf7) / 3, "NEG", {Eo}, ALU, UPDATE, STATUS | AFTER_MOVE | LOCKABLE, &Flow::negate},
    {one(0xfe, 0xff) / 0, "INC", {Eo}, ALU, UPDATE, FLAGS_OUT | COUNTS | AFTER_MOVE | LOCKABLE, &Flow::count},
    {one(0xfe, 0xff) / 1, "DEC", {Eo}, ALU, UPDATE, FLAGS_OUT | COUNTS | AFTER_MOVE | LOCKABLE, &Flow::count},
    {one(0x69), "IMUL", {Gv, Ev, Iz}, MUL32, WRITE, STATUS | BY_WIDTH, &Flow::multiply},
    {one(0x6b), "IMUL", {Gv, Ev, Ib}, MUL32, WRITE, STATUS | BY_WIDTH, &Flow::multiply},
    {one(0xf6, 0xf7) / 4, "MUL", {Eo}, MUL_HIGH, READ, STATUS | RAX_RDX, &Flow::multiply_high},
    {one(0xf6, 0xf7) / 5, "IMUL", {Eo}, MUL_HIGH, READ, STATUS | RAX_RDX, &Flow::multiply_high},
    {one(0xf6, 0xf7) / 6, "DIV", {Eo}, DIV32, READ, STATUS | RAX_RDX | RDX_IN | BY_WIDTH, &Flow::divide},
    {one(0xf6, 0xf7) / 7, "IDIV", {Eo}, DIV32, READ, STATUS | RAX_RDX | RDX_IN | BY_WIDTH, &Flow::divide},
    {one(0x98), "CDQE", {}, ALU, IMPLICIT, RAX_IN | RAX_OUT, &Flow::widen},                       // CBW, CWDE
    {one(0x99), "CQO", {}, SHIFT, IMPLICIT, RAX_IN | RDX_OUT | RDX_MERGES, &Flow::convert_sign},  // CWD, CDQ
    // flags
    {one(0xf5), "CMC", {}, FLAGS, IMPLICIT, CARRY_IN | CARRY_OUT},
    {one(0xf8), "CLC", {}, FLAGS, IMPLICIT, CARRY_OUT},
    {one(0xf9), "STC", {}, FLAGS, IMPLICIT, CARRY_OUT},
    {one(0xfc), "CLD", {}, FLAGS, IMPLICIT, MICROCODED},
    {one(0xfd), "STD", {}, FLAGS, IMPLICIT, MICROCODED},
    {one(0x9e), "SAHF", {}, FLAGS, IMPLICIT, STATUS | RAX_IN},
    {one(0x9f), "LAHF", {}, FLAGS, IMPLICIT, BOTH_IN | RAX_IN | RAX_OUT, &Flow::flags_to_ah},
    // branches
    {one(0x70, 0x7f), "Jcc", {Jb}, BRANCH, IMPLICIT, BY_CONDITION},
    {one(0xe0), "LOOPNE", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT | FLAGS_IN, &Flow::loop},
    {one(0xe1), "LOOPE", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT | FLAGS_IN, &Flow::loop},
    {one(0xe2), "LOOP", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT, &Flow::loop},
    {one(0xe3), "JRCXZ", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN},
    {one(0xe8), "CALL", {Jz}, CALL, READ, STORES | STACK, &Flow::call},
    {one(0xe9), "JMP", {Jz}, BRANCH, READ},
    {one(0xeb), "JMP", {Jb}, BRANCH, READ},
    {one(0xff) / 2, "CALL", {Eq}, CALL, READ, STORES | STACK, &Flow::call},
    {one(0xff) / 4, "JMP", {Eq}, BRANCH, READ},
    {(one(0xff) / 3).memory(), "LCALL", {Mt}, CALL, READ, STORES | STACK, &Flow::nothing_left},
    {(one(0xff) / 5).memory(), "LJMP", {Mt}, BRANCH, READ, 0, &Flow::nothing_left},
    {one(0xc2), "RET", {Iw}, RETURN, IMPLICIT, LOADS | STACK, &Flow::return_near},
    {one(0xc3), "RET", {}, RETURN, IMPLICIT, LOADS | STACK, &Flow::return_near},
    {one(0xca), "RETF", {Iw}, RETURN, IMPLICIT, LOADS | STACK, &Flow::nothing_left},
    {one(0xcb), "RETF", {}, RETURN, IMPLICIT, LOADS | STACK, &Flow::nothing_left},
    {one(0xcc), "INT3", {}, SYSTEM, IMPLICIT, TRANSFERS, &Flow::nothing_left},
    {one(0xcd), "INT", {Ib}, SYSTEM, IMPLICIT, TRANSFERS, &Flow::nothing_left},
    {one(0xcf), "IRET", {}, SYSTEM, IMPLICIT, TRANSFERS, &Flow::nothing_left},
    // the engine's own single-stepping ends with the same exception
    {one(0xf1), "INT1", {}, SYSTEM, IMPLICIT, TRANSFERS, &Flow::nothing_left, Trap::DEBUG},
    // strings
    {one(0xa4, 0xa5), "MOVS", {Yo, Xo}, STRING, IMPLICIT, COPIES, &Flow::string},
    {one(0xa6, 0xa7), "CMPS", {Xo, Yo}, STRING, IMPLICIT, COMPARES, &Flow::string},
    {one(0xaa, 0xab), "STOS", {Yo}, STRING, IMPLICIT, RAX_IN | DESTINATION_INDEX | STORES | MICROCODED, &Flow::string},
    {one(0xac, 0xad),
     "LODS",
     {Xo},
     STRING,
     IMPLICIT,
     RAX_OUT | RAX_MERGES | SOURCE_INDEX | LOADS | MICROCODED,
     &Flow::string},
    {one(0xae, 0xaf),
     "SCAS",
     {Yo},
     STRING,
     IMPLICIT,
     RAX_IN | DESTINATION_INDEX | LOADS | MICROCODED | STATUS,
     &Flow::string},
    // nothing
    {one(0x90).with(NO_REPEAT | REPEAT_F2), "NOP", {}, NOP, IMPLICIT},
    {one(0x90).with(REPEAT_F3), "PAUSE", {}, PAUSE, IMPLICIT, MICROCODED | ON_VECTORS},
    // what the engine would execute although user mode may not
    {one(0x6c, 0x6d), "INS", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0x6e, 0x6f), "OUTS", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xe4, 0xe5), "IN", {Ib}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xe6, 0xe7), "OUT", {Ib}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xec, 0xed), "IN", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xee, 0xef), "OUT", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xf4), "HLT", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xfa), "CLI", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {one(0xfb), "STI", {}, SYSTEM, IMPLICIT, 0, &Flow::nothing_left, Trap::PRIVILEGED},
};

}  // namespace

std::vector<Row> general_rows() {
    std::vector<Row> rows(std::begin(ROWS), std::end(ROWS));
    int number = 0;
    for (const auto& [name, op_class, form, effects] : ARITHMETIC) {
        const auto add = [&](OpcodePattern pattern, OperandCode first, OperandCode second) {
            rows.push_back({pattern, name, {first, second}, op_class, form, effects, &Flow::arithmetic});
        };
        const int opcode = 8 * number;
        add(one(opcode, opcode + 1), Eo, Go);
        add(one(opcode + 2, opcode + 3), Go, Eo);
        add(one(opcode + 4, opcode + 5), Ao, Io);
        add(one(0x80, 0x81) / number, Eo, Io);
        add(one(0x83) / number, Ev, Ib);
        number++;
    }
    number = 0;
    for (const auto& [name, op_class, by_count, effects] : SHIFTS) {
        const auto add = [&](OpcodePattern pattern, OpClass chosen, uint64_t more, OperandCode count) {
            rows.push_back({pattern / number, name, {Eo, count}, chosen, UPDATE, more, &Flow::shift_operand});
        };
        add(one(0xc0, 0xc1), op_class, effects, Ib);
        add(one(0xd0, 0xd1), op_class, effects, {});
        add(one(0xd2, 0xd3), by_count, effects & ~AFTER_MOVE, Cb);
        number++;
    }
    return rows;
}

}  // namespace perfemu::x86_64
