// The opcode map of one byte, but for x87. Operands and flags: Intel SDM volume 2, and table A-2.
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;

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
    {one(0x88, 0x89), "MOV", {Eo, Go}, MOVE, WRITE, PLAIN, Dataflow::MOVE},
    {one(0x8a, 0x8b), "MOV", {Go, Eo}, MOVE, WRITE, PLAIN, Dataflow::MOVE},
    {one(0x8c), "MOV", {Em, Sw}, SYSTEM, WRITE, PLAIN, Dataflow::SEGMENT},
    {one(0x8e), "MOV", {Sw, Em}, SYSTEM, WRITE, PLAIN, Dataflow::SEGMENT},
    {one(0xa0, 0xa1), "MOV", {Ao, Oo}, MOVE, WRITE, PLAIN, Dataflow::MOVE},
    {one(0xa2, 0xa3), "MOV", {Oo, Ao}, MOVE, WRITE, PLAIN, Dataflow::MOVE},
    {one(0xb0, 0xb7), "MOV", {Zb, Ib}, CONSTANT, WRITE, PLAIN, Dataflow::MOVE},
    {one(0xb8, 0xbf), "MOV", {Zv, Iv}, CONSTANT, WRITE, PLAIN, Dataflow::MOVE},
    {one(0xc6, 0xc7) / 0, "MOV", {Eo, Io}, CONSTANT, WRITE, PLAIN, Dataflow::MOVE},
    {one(0x63), "MOVSXD", {Gv, Ed}, ALU, WRITE, PLAIN, Dataflow::EXTEND_SIGNED},
    {one(0x86, 0x87), "XCHG", {Eo, Go}, OpClass::EXCHANGE, UPDATE_2, LOCKABLE, Dataflow::EXCHANGE},
    {one(0x91, 0x97), "XCHG", {Zv, Av}, OpClass::EXCHANGE, UPDATE_2, 0, Dataflow::EXCHANGE},
    {one(0x8d).memory(), "LEA", {Gv, M}, LEA, ADDRESS, 0, Dataflow::ADDRESS},
    {one(0x50, 0x57), "PUSH", {Zs}, NONE, READ, STORES | STACK, Dataflow::PUSH},
    {one(0x68), "PUSH", {Iz}, NONE, READ, STORES | STACK, Dataflow::PUSH},
    {one(0x6a), "PUSH", {Ib}, NONE, READ, STORES | STACK, Dataflow::PUSH},
    {one(0xff) / 6, "PUSH", {Es}, NONE, READ, STORES | STACK, Dataflow::PUSH},
    {one(0x58, 0x5f), "POP", {Zs}, NONE, WRITE, LOADS | STACK, Dataflow::POP},
    {one(0x8f) / 0, "POP", {Es}, NONE, WRITE, LOADS | STACK, Dataflow::POP},
    {one(0x9c), "PUSHF", {}, FLAGS, IMPLICIT, BOTH_IN | STORES | STACK | MICROCODED, Dataflow::PUSH},
    {one(0x9d), "POPF", {}, FLAGS, IMPLICIT, STATUS | LOADS | STACK | MICROCODED, Dataflow::POP},
    {one(0xc9), "LEAVE", {}, NONE, IMPLICIT, LOADS, Dataflow::LEAVE},
    {one(0xc8), "ENTER", {Iw, Ib2}, SYSTEM, IMPLICIT, STORES | STACK | MICROCODED, Dataflow::ENTER},
    {one(0xd7), "XLATB", {}, NONE, IMPLICIT, RAX_OUT | LOADS, Dataflow::TABLE_LOOKUP},
    // arithmetic and logic, besides the eight
    {one(0x84, 0x85), "TEST", {Eo, Go}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, Dataflow::TEST},
    {one(0xa8, 0xa9), "TEST", {Ao, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, Dataflow::TEST},
    {one(0xf6, 0xf7) / 0, "TEST", {Eo, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, Dataflow::TEST},
    {one(0xf6, 0xf7) / 1, "TEST", {Eo, Io}, ALU, READ, STATUS | TESTS | COMPARE_ONLY, Dataflow::TEST},
    {one(0xf6, 0xf7) / 2, "NOT", {Eo}, ALU, UPDATE, AFTER_MOVE | LOCKABLE, Dataflow::NOT},
    {one(0xf6, 0xf7) / 3, "NEG", {Eo}, ALU, UPDATE, STATUS | AFTER_MOVE | LOCKABLE, Dataflow::NEGATE},
    {one(0xfe, 0xff) / 0, "INC", {Eo}, ALU, UPDATE, FLAGS_OUT | COUNTS | AFTER_MOVE | LOCKABLE, Dataflow::COUNT},
    {one(0xfe, 0xff) / 1, "DEC", {Eo}, ALU, UPDATE, FLAGS_OUT | COUNTS | AFTER_MOVE | LOCKABLE, Dataflow::COUNT},
    {one(0x69), "IMUL", {Gv, Ev, Iz}, MUL32, WRITE, STATUS | BY_WIDTH, Dataflow::MULTIPLY},
    {one(0x6b), "IMUL", {Gv, Ev, Ib}, MUL32, WRITE, STATUS | BY_WIDTH, Dataflow::MULTIPLY},
    {one(0xf6, 0xf7) / 4, "MUL", {Eo}, MUL_HIGH, READ, STATUS | RAX_RDX, Dataflow::MULTIPLY_HIGH},
    {one(0xf6, 0xf7) / 5, "IMUL", {Eo}, MUL_HIGH, READ, STATUS | RAX_RDX, Dataflow::MULTIPLY_HIGH},
    {one(0xf6, 0xf7) / 6, "DIV", {Eo}, DIV32, READ, STATUS | RAX_RDX | RDX_IN | BY_WIDTH, Dataflow::DIVIDE},
    {one(0xf6, 0xf7) / 7, "IDIV", {Eo}, DIV32, READ, STATUS | RAX_RDX | RDX_IN | BY_WIDTH, Dataflow::DIVIDE},
    {one(0x98), "CDQE", {}, ALU, IMPLICIT, RAX_IN | RAX_OUT, Dataflow::WIDEN_RAX},  // CBW, CWDE
    {one(0x99), "CQO", {}, OpClass::SHIFT, IMPLICIT, RAX_IN | RDX_OUT | RDX_MERGES, Dataflow::SIGN_OF_RAX},  // CWD, CDQ
    // flags
    {one(0xf5), "CMC", {}, FLAGS, IMPLICIT, CARRY_IN | CARRY_OUT},
    {one(0xf8), "CLC", {}, FLAGS, IMPLICIT, CARRY_OUT},
    {one(0xf9), "STC", {}, FLAGS, IMPLICIT, CARRY_OUT},
    {one(0xfc), "CLD", {}, FLAGS, IMPLICIT, MICROCODED},
    {one(0xfd), "STD", {}, FLAGS, IMPLICIT, MICROCODED},
    {one(0x9e), "SAHF", {}, FLAGS, IMPLICIT, STATUS | RAX_IN},
    {one(0x9f), "LAHF", {}, FLAGS, IMPLICIT, BOTH_IN | RAX_IN | RAX_OUT, Dataflow::FLAGS_TO_AH},
    // branches
    {one(0x70, 0x7f), "Jcc", {Jb}, BRANCH, IMPLICIT, BY_CONDITION},
    {one(0xe0), "LOOPNE", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT | FLAGS_IN, Dataflow::LOOP},
    {one(0xe1), "LOOPE", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT | FLAGS_IN, Dataflow::LOOP},
    {one(0xe2), "LOOP", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN | RCX_OUT, Dataflow::LOOP},
    {one(0xe3), "JRCXZ", {Jb}, BRANCH_COUNT, IMPLICIT, RCX_IN},
    {one(0xe8), "CALL", {Jz}, OpClass::CALL, READ, STORES | STACK, Dataflow::CALL},
    {one(0xe9), "JMP", {Jz}, BRANCH, READ},
    {one(0xeb), "JMP", {Jb}, BRANCH, READ},
    {one(0xff) / 2, "CALL", {Eq}, OpClass::CALL, READ, STORES | STACK, Dataflow::CALL},
    {one(0xff) / 4, "JMP", {Eq}, BRANCH, READ},
    {(one(0xff) / 3).memory(), "LCALL", {Mt}, OpClass::CALL, READ, STORES | STACK, Dataflow::NOTHING_LEFT},
    {(one(0xff) / 5).memory(), "LJMP", {Mt}, BRANCH, READ, 0, Dataflow::NOTHING_LEFT},
    {one(0xc2), "RET", {Iw}, OpClass::RETURN, IMPLICIT, LOADS | STACK, Dataflow::RETURN},
    {one(0xc3), "RET", {}, OpClass::RETURN, IMPLICIT, LOADS | STACK, Dataflow::RETURN},
    {one(0xca), "RETF", {Iw}, OpClass::RETURN, IMPLICIT, LOADS | STACK, Dataflow::NOTHING_LEFT},
    {one(0xcb), "RETF", {}, OpClass::RETURN, IMPLICIT, LOADS | STACK, Dataflow::NOTHING_LEFT},
    {one(0xcc), "INT3", {}, SYSTEM, IMPLICIT, TRANSFERS, Dataflow::NOTHING_LEFT},
    {one(0xcd), "INT", {Ib}, SYSTEM, IMPLICIT, TRANSFERS, Dataflow::NOTHING_LEFT},
    {one(0xcf), "IRET", {}, SYSTEM, IMPLICIT, TRANSFERS, Dataflow::NOTHING_LEFT},
    // the engine's own single-stepping ends with the same exception
    {one(0xf1), "INT1", {}, SYSTEM, IMPLICIT, TRANSFERS, Dataflow::NOTHING_LEFT, Trap::DEBUG},
    // strings
    {one(0xa4, 0xa5), "MOVS", {Yo, Xo}, OpClass::STRING, IMPLICIT, COPIES, Dataflow::STRING},
    {one(0xa6, 0xa7), "CMPS", {Xo, Yo}, OpClass::STRING, IMPLICIT, COMPARES, Dataflow::STRING},
    {one(0xaa, 0xab),
     "STOS",
     {Yo},
     OpClass::STRING,
     IMPLICIT,
     RAX_IN | DESTINATION_INDEX | STORES | MICROCODED,
     Dataflow::STRING},
    {one(0xac, 0xad),
     "LODS",
     {Xo},
     OpClass::STRING,
     IMPLICIT,
     RAX_OUT | RAX_MERGES | SOURCE_INDEX | LOADS | MICROCODED,
     Dataflow::STRING},
    {one(0xae, 0xaf),
     "SCAS",
     {Yo},
     OpClass::STRING,
     IMPLICIT,
     RAX_IN | DESTINATION_INDEX | LOADS | MICROCODED | STATUS,
     Dataflow::STRING},
    // nothing
    {one(0x90).with(NO_REPEAT | REPEAT_F2), "NOP", {}, NOP, IMPLICIT},
    {one(0x90).with(REPEAT_F3), "PAUSE", {}, PAUSE, IMPLICIT, MICROCODED | ON_VECTORS},
    // what the engine would execute although user mode may not
    {one(0x6c, 0x6d), "INS", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0x6e, 0x6f), "OUTS", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xe4, 0xe5), "IN", {Ib}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xe6, 0xe7), "OUT", {Ib}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xec, 0xed), "IN", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xee, 0xef), "OUT", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xf4), "HLT", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xfa), "CLI", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
    {one(0xfb), "STI", {}, SYSTEM, IMPLICIT, 0, Dataflow::NOTHING_LEFT, Trap::PRIVILEGED},
};

}  // namespace

std::vector<Row> general_rows() {
    std::vector<Row> rows(std::begin(ROWS), std::end(ROWS));
    int number = 0;
    for (const auto& [name, op_class, form, effects] : ARITHMETIC) {
        const auto add = [&](Encoding encoding, OperandCode first, OperandCode second) {
            rows.push_back({encoding, name, {first, second}, op_class, form, effects, Dataflow::ARITHMETIC});
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
        const auto add = [&](Encoding encoding, OpClass chosen, uint64_t more, OperandCode count) {
            rows.push_back({encoding / number, name, {Eo, count}, chosen, UPDATE, more, Dataflow::SHIFT});
        };
        add(one(0xc0, 0xc1), op_class, effects, Ib);
        add(one(0xd0, 0xd1), op_class, effects, {});
        add(one(0xd2, 0xd3), by_count, effects & ~AFTER_MOVE, Cb);
        number++;
    }
    return rows;
}

}  // namespace perfemu::x86_64
