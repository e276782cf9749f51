// What opcodes of one byte are outside of 64-bit mode alone. Only a guest's own kernel and its programs come there:
// nothing of it is followed for addresses. Intel SDM volume 2.
#include "x86_64/dataflow.hpp"
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;

constexpr OperandCode Iw2{AddressingMethod::SECOND_IMMEDIATE, Size::WORD};
constexpr OperandCode Gw{AddressingMethod::REG, Size::WORD};
constexpr uint64_t PUSHES = STORES | STACK, POPS = LOADS | STACK;

constexpr Row ROWS[] = {
    {one(0x06), "PUSH", {Sw}, NONE, READ, PUSHES},
    {one(0x0e), "PUSH", {Sw}, NONE, READ, PUSHES},
    {one(0x16), "PUSH", {Sw}, NONE, READ, PUSHES},
    {one(0x1e), "PUSH", {Sw}, NONE, READ, PUSHES},
    {one(0x07), "POP", {Sw}, NONE, WRITE, POPS},
    {one(0x17), "POP", {Sw}, NONE, WRITE, POPS},
    {one(0x1f), "POP", {Sw}, NONE, WRITE, POPS},
    {one(0x27), "DAA", {}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0x2f), "DAS", {}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0x37), "AAA", {}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0x3f), "AAS", {}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0x40, 0x47), "INC", {Zv}, ALU, UPDATE, FLAGS_OUT},
    {one(0x48, 0x4f), "DEC", {Zv}, ALU, UPDATE, FLAGS_OUT},
    {one(0x60), "PUSHA", {}, NONE, IMPLICIT, PUSHES | MICROCODED},
    {one(0x61), "POPA", {}, NONE, IMPLICIT, POPS | MICROCODED},
    {one(0x62).memory(), "BOUND", {Gv, Mpair}, SYSTEM, READ},
    {one(0x63), "ARPL", {Ew, Gw}, SYSTEM, UPDATE, STATUS},
    {one(0x9a), "LCALL", {Iz, Iw2}, CALL, IMPLICIT, PUSHES},
    {one(0xc4).memory(), "LES", {Gv, Mpointer}, SYSTEM, WRITE},
    {one(0xc5).memory(), "LDS", {Gv, Mpointer}, SYSTEM, WRITE},
    {one(0xce), "INTO", {}, SYSTEM, IMPLICIT, TRANSFERS},
    {one(0xd4), "AAM", {Ib}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0xd5), "AAD", {Ib}, ALU, IMPLICIT, STATUS | RAX_IN | RAX_OUT},
    {one(0xea), "LJMP", {Iz, Iw2}, BRANCH, IMPLICIT},
};

}  // namespace

std::vector<Row> legacy_rows() { return {std::begin(ROWS), std::end(ROWS)}; }

}  // namespace perfemu::x86_64
