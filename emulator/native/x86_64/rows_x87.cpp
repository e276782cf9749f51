// x87. Intel SDM volume 2, A.5.
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;

constexpr uint64_t SLOW = X87 | MICROCODED;

constexpr Row ROWS[] = {
    {(one(0xd9) / 0).memory(), "FLD", {Ed}, X87_MOVE, READ, X87},
    {(one(0xd9) / 2).memory(), "FST", {Ed}, X87_MOVE, WRITE, X87},
    {(one(0xd9) / 3).memory(), "FSTP", {Ed}, X87_MOVE, WRITE, X87},
    {(one(0xd9) / 4).memory(), "FLDENV", {Menvironment}, X87_SPECIAL, READ, SLOW | CONTROL_OUT},
    {(one(0xd9) / 5).memory(), "FLDCW", {Ew}, X87_CONTROL, READ, CONTROL_OUT},
    {(one(0xd9) / 6).memory(), "FNSTENV", {Menvironment}, X87_SPECIAL, WRITE, SLOW | CONTROL_IN},
    {(one(0xd9) / 7).memory(), "FNSTCW", {Ew}, X87_CONTROL, WRITE, CONTROL_IN},
    {(one(0xd9) / 0).registers(), "FLD", {ST}, X87_MOVE, READ, X87},
    {(one(0xd9) / 1).registers(), "FXCH", {ST, ST}, X87_MOVE, READ, X87},
    {(one(0xd9) / 2).exactly(0), "FNOP", {}, NOP},
    {(one(0xd9) / 3).registers(), "FSTPNCE", {}},
    {(one(0xd9) / 4).exactly(0), "FCHS", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 4).exactly(1), "FABS", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 4).exactly(4), "FTST", {}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xd9) / 4).exactly(5), "FXAM", {}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xd9) / 5).exactly(0), "FLD1", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(1), "FLDL2T", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(2), "FLDL2E", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(3), "FLDPI", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(4), "FLDLG2", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(5), "FLDLN2", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 5).exactly(6), "FLDZ", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 6).exactly(0), "F2XM1", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 6).exactly(1), "FYL2X", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 6).exactly(2), "FPTAN", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 6).exactly(3), "FPATAN", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 6).exactly(4), "FXTRACT", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 6).exactly(5), "FPREM1", {}, X87_SPECIAL, READ, SLOW | CONTROL_OUT},
    {(one(0xd9) / 6).exactly(6), "FDECSTP", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 6).exactly(7), "FINCSTP", {}, X87_MOVE, READ, X87},
    {(one(0xd9) / 7).exactly(0), "FPREM", {}, X87_SPECIAL, READ, SLOW | CONTROL_OUT},
    {(one(0xd9) / 7).exactly(1), "FYL2XP1", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 7).exactly(2), "FSQRT", {}, X87_DIV, READ, X87},
    {(one(0xd9) / 7).exactly(3), "FSINCOS", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 7).exactly(4), "FRNDINT", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 7).exactly(5), "FSCALE", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 7).exactly(6), "FSIN", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xd9) / 7).exactly(7), "FCOS", {}, X87_SPECIAL, READ, SLOW},
    {(one(0xda) / 0).registers(), "FCMOVB", {ST, ST}, X87_SELECT, READ, X87 | CARRY_IN},
    {(one(0xda) / 1).registers(), "FCMOVE", {ST, ST}, X87_SELECT, READ, X87 | FLAGS_IN},
    {(one(0xda) / 2).registers(), "FCMOVBE", {ST, ST}, X87_SELECT, READ, X87 | BOTH_IN},
    {(one(0xda) / 3).registers(), "FCMOVU", {ST, ST}, X87_SELECT, READ, X87 | FLAGS_IN},
    {(one(0xda) / 5).exactly(1), "FUCOMPP", {}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xdb) / 0).memory(), "FILD", {Ed}, X87_CONVERT, READ, X87},
    {(one(0xdb) / 1).memory(), "FISTTP", {Ed}, X87_CONVERT, WRITE, X87},
    {(one(0xdb) / 2).memory(), "FIST", {Ed}, X87_CONVERT, WRITE, X87},
    {(one(0xdb) / 3).memory(), "FISTP", {Ed}, X87_CONVERT, WRITE, X87},
    {(one(0xdb) / 5).memory(), "FLD", {Mt}, X87_MOVE, READ, X87},
    {(one(0xdb) / 7).memory(), "FSTP", {Mt}, X87_MOVE, WRITE, X87},
    {(one(0xdb) / 0).registers(), "FCMOVNB", {ST, ST}, X87_SELECT, READ, X87 | CARRY_IN},
    {(one(0xdb) / 1).registers(), "FCMOVNE", {ST, ST}, X87_SELECT, READ, X87 | FLAGS_IN},
    {(one(0xdb) / 2).registers(), "FCMOVNBE", {ST, ST}, X87_SELECT, READ, X87 | BOTH_IN},
    {(one(0xdb) / 3).registers(), "FCMOVNU", {ST, ST}, X87_SELECT, READ, X87 | FLAGS_IN},
    {(one(0xdb) / 4).exactly(0), "FENI", {}},   // of the 8087, as are the next ones: they do nothing
    {(one(0xdb) / 4).exactly(1), "FDISI", {}},  //
    {(one(0xdb) / 4).exactly(2), "FNCLEX", {}, X87_SPECIAL, IMPLICIT, CONTROL_OUT | MICROCODED},
    {(one(0xdb) / 4).exactly(3), "FNINIT", {}, X87_SPECIAL, IMPLICIT, SLOW | CONTROL_OUT},
    {(one(0xdb) / 4).exactly(4), "FSETPM", {}},
    {(one(0xdb) / 5).registers(), "FUCOMI", {ST}, X87_COMPARE, READ, X87 | STATUS},
    {(one(0xdb) / 6).registers(), "FCOMI", {ST}, X87_COMPARE, READ, X87 | STATUS},
    {(one(0xdd) / 0).memory(), "FLD", {Eq}, X87_MOVE, READ, X87},
    {(one(0xdd) / 1).memory(), "FISTTP", {Eq}, X87_CONVERT, WRITE, X87},
    {(one(0xdd) / 2).memory(), "FST", {Eq}, X87_MOVE, WRITE, X87},
    {(one(0xdd) / 3).memory(), "FSTP", {Eq}, X87_MOVE, WRITE, X87},
    {(one(0xdd) / 4).memory(), "FRSTOR", {Mstate}, X87_SPECIAL, READ, SLOW | CONTROL_OUT},
    {(one(0xdd) / 6).memory(), "FNSAVE", {Mstate}, X87_SPECIAL, WRITE, SLOW | CONTROL_IN},
    {(one(0xdd) / 7).memory(), "FNSTSW", {Ew}, X87_CONTROL, WRITE, CONTROL_IN},
    {(one(0xdd) / 0).registers(), "FFREE", {ST}, X87_MOVE, READ, X87},
    {(one(0xdd) / 2).registers(), "FST", {ST}, X87_MOVE, WRITE, X87},
    {(one(0xdd) / 3).registers(), "FSTP", {ST}, X87_MOVE, WRITE, X87},
    {(one(0xdd) / 4).registers(), "FUCOM", {ST}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xdd) / 5).registers(), "FUCOMP", {ST}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xde) / 3).exactly(1), "FCOMPP", {}, X87_COMPARE, READ, X87 | CONTROL_OUT},
    {(one(0xdf) / 0).memory(), "FILD", {Ew}, X87_CONVERT, READ, X87},
    {(one(0xdf) / 1).memory(), "FISTTP", {Ew}, X87_CONVERT, WRITE, X87},
    {(one(0xdf) / 2).memory(), "FIST", {Ew}, X87_CONVERT, WRITE, X87},
    {(one(0xdf) / 3).memory(), "FISTP", {Ew}, X87_CONVERT, WRITE, X87},
    {(one(0xdf) / 4).memory(), "FBLD", {Mt}, X87_SPECIAL, READ, SLOW},
    {(one(0xdf) / 5).memory(), "FILD", {Eq}, X87_CONVERT, READ, X87},
    {(one(0xdf) / 6).memory(), "FBSTP", {Mt}, X87_SPECIAL, WRITE, SLOW},
    {(one(0xdf) / 7).memory(), "FISTP", {Eq}, X87_CONVERT, WRITE, X87},
    {(one(0xdf) / 0).registers(), "FFREEP", {ST}, X87_MOVE, READ, X87},
    {(one(0xdf) / 4).exactly(0), "FNSTSW", {Aw}, X87_CONTROL, WRITE, CONTROL_IN},
    {(one(0xdf) / 5).registers(), "FUCOMPI", {ST}, X87_COMPARE, READ, X87 | STATUS},
    {(one(0xdf) / 6).registers(), "FCOMPI", {ST}, X87_COMPARE, READ, X87 | STATUS},
    {one(0x9b), "WAIT", {}, X87_CONTROL, IMPLICIT, CONTROL_IN},
};

// Of the eight, by the opcode's extension.
struct Arithmetic {
    std::string_view name, on_integers, popping;
    OpClass op_class;
    uint64_t effects;
};
constexpr Arithmetic ARITHMETIC[] = {
    {"FADD", "FIADD", "FADDP", X87_ADD, X87},
    {"FMUL", "FIMUL", "FMULP", X87_MUL, X87},
    {"FCOM", "FICOM", "", X87_COMPARE, X87 | CONTROL_OUT},
    {"FCOMP", "FICOMP", "", X87_COMPARE, X87 | CONTROL_OUT},
    {"FSUB", "FISUB", "FSUBRP", X87_ADD, X87},
    {"FSUBR", "FISUBR", "FSUBP", X87_ADD, X87},
    {"FDIV", "FIDIV", "FDIVRP", X87_DIV, X87},
    {"FDIVR", "FIDIVR", "FDIVP", X87_DIV, X87},
};

}  // namespace

std::vector<Row> x87_rows() {
    std::vector<Row> rows(std::begin(ROWS), std::end(ROWS));
    int number = 0;
    for (const auto& [name, on_integers, popping, op_class, effects] : ARITHMETIC) {
        rows.push_back({(one(0xd8) / number).memory(), name, {Ed}, op_class, READ, effects});
        rows.push_back({(one(0xdc) / number).memory(), name, {Eq}, op_class, READ, effects});
        rows.push_back({(one(0xda) / number).memory(), on_integers, {Ed}, op_class, READ, effects});
        rows.push_back({(one(0xde) / number).memory(), on_integers, {Ew}, op_class, READ, effects});
        rows.push_back({(one(0xd8) / number).registers(), name, {ST}, op_class, READ, effects});
        if (!popping.empty()) {
            rows.push_back({(one(0xdc) / number).registers(), name, {ST, ST}, op_class, READ, effects});
            rows.push_back({(one(0xde) / number).registers(), popping, {ST}, op_class, READ, effects});
        }
        number++;
    }
    for (Row& row : rows) row.effects |= ON_X87;
    return rows;
}

}  // namespace perfemu::x86_64
