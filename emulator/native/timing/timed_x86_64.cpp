// Bytes of x86-64 to TimedOps: capstone finds the instruction and its operands, the rows say what is done with them.
//
// What is not told apart: the x87 stack is one register, so its instructions form one chain; MM0..MM7 are not ST(0..7);
// a part of a general register is the register, and writing 8 or 16 bits of it reads the rest.
#include "timing/timed_x86_64.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "isa.hpp"

namespace perfemu {
namespace {

namespace effect = x86_64::effect;
using x86_64::Form;
using x86_64::Row;

constexpr uint8_t RAX = 0, RCX = 1, RDX = 2, RBX = 3, RSP = 4, RBP = 5, RSI = 6, RDI = 7;  // + GENERAL
constexpr unsigned MMX = timed_register::VECTOR + 16;

// Which conditional branches may follow an instruction in one micro-op. Intel's rules (Optimization Reference Manual,
// "Macro-fusion"): TEST and AND with all, CMP, ADD and SUB not with those of sign, parity and overflow alone, INC and
// DEC not with those that read the carry either. AMD fuses a few more.
constexpr uint8_t BY_ZERO_OR_ORDER = 1, BY_CARRY = 2, BY_ANY_FLAG = 4;

template <size_t N>
void add(std::array<uint8_t, N>& places, uint8_t reg) {
    for (uint8_t& place : places) {
        if (place == reg) return;
        if (place == timed_register::NONE) {
            place = reg;
            return;
        }
    }
    throw std::logic_error("an instruction has more registers than a TimedOp");
}

// Capstone numbers registers by name: a table of ours.
std::array<uint8_t, X86_REG_ENDING> register_numbers() {
    constexpr x86_reg GENERAL[16][5] = {
        {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
        {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
        {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
        {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
        {X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
        {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
        {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
        {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
        {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
        {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
        {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
        {X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
        {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
        {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
        {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
        {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
    };
    std::array<uint8_t, X86_REG_ENDING> numbers;
    numbers.fill(timed_register::NONE);
    for (uint8_t number = 0; number < 16; number++) {
        for (x86_reg name : GENERAL[number])
            if (name != X86_REG_INVALID) numbers[name] = static_cast<uint8_t>(timed_register::GENERAL + number);
        numbers[X86_REG_XMM0 + number] = static_cast<uint8_t>(timed_register::VECTOR + number);
    }
    for (uint8_t number = 0; number < 8; number++) numbers[X86_REG_MM0 + number] = static_cast<uint8_t>(MMX + number);
    return numbers;
}

// Row by instruction; nullptr where there is none.
std::array<const Row*, X86_INS_ENDING> rows_by_instruction() {
    std::array<const Row*, X86_INS_ENDING> rows{};
    for (std::span<const Row> some : {x86_64::general_rows(), x86_64::vector_rows()})
        for (const Row& row : some) {
            if (rows[row.id]) throw std::logic_error("two rows of instruction " + std::to_string(row.id));
            rows[row.id] = &row;
        }
    return rows;
}

class TimedX8664 final : public TimedDecoder {
  public:
    std::vector<TimedOp> decode(uint64_t address, std::span<const uint8_t> bytes) override {
        std::vector<TimedOp> ops;
        size_t at = 0;
        while (at < bytes.size()) {
            TimedOp op = decode_one(address + at, bytes.subspan(at));
            op.offset = static_cast<uint16_t>(at);
            ops.push_back(op);
            at += op.length;
        }
        return ops;
    }

  private:
    // One instruction while it is being decoded.
    struct Instruction {
        const cs_insn* insn;
        const cs_x86* detail;
        const Row* row;
        bool in_memory = false;  // an operand is

        bool is(unsigned id) const { return insn->id == id; }
        bool has(uint32_t effects) const { return row->effects & effects; }
        const cs_x86_op& operand(unsigned i) const { return detail->operands[i]; }
        // Among the legacy prefixes. Capstone leaves some out, such as F2 before A5.
        bool prefixed(uint8_t prefix) const {
            static constexpr std::array<uint8_t, 11> LEGACY = {0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e,
                                                               0x36, 0x3e, 0x26, 0x64, 0x65};
            for (unsigned at = 0; at < insn->size; at++) {
                if (std::find(LEGACY.begin(), LEGACY.end(), insn->bytes[at]) == LEGACY.end()) return false;
                if (insn->bytes[at] == prefix) return true;
            }
            return false;
        }
        bool has_registers(unsigned count) const {
            for (unsigned i = 0; i < count; i++)
                if (i >= detail->op_count || operand(i).type != X86_OP_REG) return false;
            return true;
        }
    };

    TimedOp decode_one(uint64_t address, std::span<const uint8_t> bytes);
    uint8_t number(x86_reg reg) const { return reg < X86_REG_ENDING ? numbers_[reg] : timed_register::NONE; }
    bool general(x86_reg reg) const { return number(reg) < timed_register::STACK; }
    void set_operands(const Instruction& one, TimedOp& op) const;
    void set_address(const x86_op_mem& memory, TimedOp& op) const;
    void set_effects(const Instruction& one, TimedOp& op) const;
    void set_width(const Instruction& one, TimedOp& op) const;
    void set_class(const Instruction& one, TimedOp& op) const;
    void set_stack(const Instruction& one, TimedOp& op) const;
    void set_branch(const Instruction& one, TimedOp& op) const;
    void set_string(const Instruction& one, TimedOp& op) const;
    void set_renaming(const Instruction& one, TimedOp& op) const;
    bool adds_little(const Instruction& one, OpClass op_class) const;

    Disassembler disassembler_{CS_ARCH_X86, CS_MODE_64};
    std::array<uint8_t, X86_REG_ENDING> numbers_ = register_numbers();
    std::array<const Row*, X86_INS_ENDING> rows_ = rows_by_instruction();
};

// MOVSD is two instructions: the string one has two operands in memory.
bool string_move(const cs_insn& insn) {
    const cs_x86& detail = insn.detail->x86;
    return insn.id == X86_INS_MOVSD && detail.op_count == 2 && detail.operands[0].type == X86_OP_MEM &&
           detail.operands[1].type == X86_OP_MEM;
}

TimedOp TimedX8664::decode_one(uint64_t address, std::span<const uint8_t> bytes) {
    TimedOp op;
    op.op_class = OpClass::SYSTEM;
    const cs_insn* insn = disassembler_.decode(address, bytes);
    op.length = static_cast<uint8_t>(insn ? insn->size : std::min<size_t>(bytes.size(), 255));
    if (!insn || insn->id >= X86_INS_ENDING) return op;

    unsigned id = insn->id;
    Instruction one{insn, &insn->detail->x86, rows_[string_move(*insn) ? X86_INS_MOVSQ : id]};
    if (!one.row) return op;
    for (unsigned i = 0; i < one.detail->op_count; i++) one.in_memory |= one.operand(i).type == X86_OP_MEM;

    op.op_class = one.row->op_class;
    set_width(one, op);
    set_operands(one, op);
    set_effects(one, op);
    set_class(one, op);
    set_stack(one, op);
    set_branch(one, op);
    set_string(one, op);
    set_renaming(one, op);
    return op;
}

void TimedX8664::set_address(const x86_op_mem& memory, TimedOp& op) const {
    for (x86_reg reg : {memory.base, memory.index})
        if (uint8_t found = number(reg); found != timed_register::NONE) add(op.address_sources, found);
    op.complex_address |= memory.index != X86_REG_INVALID;
}

void TimedX8664::set_operands(const Instruction& one, TimedOp& op) const {
    Form form = one.row->form;
    unsigned written = form == Form::READ || form == Form::IMPLICIT      ? 0
                       : form == Form::UPDATE_2 || form == Form::WRITE_2 ? 2
                                                                         : 1;
    bool update = form == Form::UPDATE || form == Form::UPDATE_2;
    for (unsigned i = 0; i < one.detail->op_count; i++) {
        const cs_x86_op& operand = one.operand(i);
        bool writes = i < written;
        bool reads = !writes || update;
        if (operand.type == X86_OP_MEM) {
            if (one.row->op_class == OpClass::NOP) continue;
            set_address(operand.mem, op);
            if (form == Form::IMPLICIT || form == Form::ADDRESS) continue;
            op.loads |= reads;
            op.stores |= writes;
        } else if (operand.type == X86_OP_REG) {
            uint8_t reg = number(operand.reg);
            if (reg == timed_register::NONE || form == Form::IMPLICIT) continue;
            bool narrow = writes && general(operand.reg) && operand.size < 4;
            bool merges =
                writes && i == 0 && (one.has(effect::MERGES) || (one.has(effect::MERGES_REGISTER) && !one.in_memory));
            if (reads || narrow || merges) add(op.sources, reg);
            if (writes) add(op.destinations, reg);
        }
    }
    if (form == Form::ADDRESS) {  // the address is what is computed
        for (uint8_t reg : op.address_sources)
            if (reg != timed_register::NONE) add(op.sources, reg);
        op.address_sources = TimedOp::none<3>();
        op.complex_address = false;
    }
    // The comparison with RAX; whose implied operands capstone does not list.
    if (one.is(X86_INS_CMPXCHG16B) || one.is(X86_INS_CMPXCHG8B)) add(op.sources, RBX);
    if (one.is(X86_INS_PBLENDVB) || one.is(X86_INS_BLENDVPS) || one.is(X86_INS_BLENDVPD))
        add(op.sources, timed_register::VECTOR);  // XMM0
    if (one.is(X86_INS_FNSTSW) && one.has_registers(1)) add(op.destinations, RAX);
}

void TimedX8664::set_effects(const Instruction& one, TimedOp& op) const {
    struct Implied {
        uint32_t in, out;
        uint8_t reg;
    };
    static constexpr Implied IMPLIED[] = {
        {effect::FLAGS_IN, effect::FLAGS_OUT, timed_register::FLAGS},
        {effect::CARRY_IN, effect::CARRY_OUT, timed_register::CARRY},
        {effect::RAX_IN, effect::RAX_OUT, RAX},
        {effect::RDX_IN, effect::RDX_OUT, RDX},
        {effect::RCX_IN, effect::RCX_OUT, RCX},
        {effect::X87, effect::X87, timed_register::X87},
        {effect::CONTROL_IN, effect::CONTROL_OUT, timed_register::FP_CONTROL},
    };
    bool byte = one.has(effect::RDX_OUT) && one.has(effect::STATUS) && one.detail->op_count == 1 &&
                one.operand(0).size == 1;  // mul, div: AX is the whole of the product or dividend
    for (const Implied& row : IMPLIED) {
        if (byte && row.reg == RDX) continue;
        if (one.has(row.in)) add(op.sources, row.reg);
        if (one.has(row.out)) add(op.destinations, row.reg);
    }
    if (byte) add(op.sources, RAX);
    op.loads |= one.has(effect::LOADS);
    op.stores |= one.has(effect::STORES);
    op.microcoded = one.has(effect::MICROCODED);
    op.serializes = one.has(effect::SERIALIZES);
    op.prefetches = one.has(effect::PREFETCHES);

    bool same = one.has_registers(2) && one.operand(0).reg == one.operand(1).reg &&
                (one.operand(0).size >= 4 || !general(one.operand(0).reg));
    if (same && one.has(effect::ZERO_IDIOM)) op.op_class = OpClass::ZERO;
    if (same && one.has(effect::ZERO_IDIOM | effect::ONES_IDIOM)) op.sources = decltype(op.sources)(TimedOp::none<6>());

    if (!one.has(effect::TESTS | effect::SUBTRACTS | effect::COUNTS) || op.stores) return;
    op.compares = true;
    op.compare_only = one.has(effect::COMPARE_ONLY);
    op.conditions = one.has(effect::TESTS)       ? BY_ZERO_OR_ORDER | BY_CARRY | BY_ANY_FLAG
                    : one.has(effect::SUBTRACTS) ? BY_ZERO_OR_ORDER | BY_CARRY
                                                 : BY_ZERO_OR_ORDER;
    if (!one.in_memory) return;
    for (unsigned i = 0; i < one.detail->op_count; i++) op.memory_or_immediate |= one.operand(i).type == X86_OP_IMM;
}

void TimedX8664::set_width(const Instruction& one, TimedOp& op) const {
    op.width_bytes = 8;
    if (one.is(X86_INS_CMPPS)) {  // any of the four, see Disassembler::decode
        std::string_view name = one.insn->mnemonic;
        op.width_bytes = name.ends_with("ss") ? 4 : name.ends_with("sd") ? 8 : 16;
    } else if (one.has(effect::SINGLE)) {
        op.width_bytes = 4;
    } else if (one.has(effect::DOUBLE)) {
        op.width_bytes = 8;
    } else if (one.detail->op_count) {
        // The first operand's, but for conversions to vector registers and extensions, where it is the source's.
        bool from_general = one.detail->op_count > 1 && one.row->op_class == OpClass::GPR_TO_FP;
        const cs_x86_op& operand = one.operand(from_general ? 1 : 0);
        op.width_bytes = operand.size <= 4 ? 4 : operand.size <= 8 ? 8 : 16;
    }
}

void TimedX8664::set_class(const Instruction& one, TimedOp& op) const {
    bool plain_registers = one.has_registers(2);
    const cs_x86* detail = one.detail;
    bool last_is_register = detail->op_count && one.operand(detail->op_count - 1u).type == X86_OP_REG;
    bool last_is_cl = last_is_register && one.operand(detail->op_count - 1u).reg == X86_REG_CL;
    bool writes_narrow =
        detail->op_count && one.operand(0).type == X86_OP_REG && general(one.operand(0).reg) && one.operand(0).size < 4;
    switch (one.row->op_class) {
        case OpClass::MOVE:
            if (op.stores || (op.loads && !writes_narrow)) {
                op.op_class = OpClass::NONE;
            } else if (detail->op_count == 2 && one.operand(1).type == X86_OP_IMM) {
                op.op_class = writes_narrow ? OpClass::ALU : OpClass::CONSTANT;
            } else if (plain_registers && general(one.operand(0).reg) && general(one.operand(1).reg)) {
                op.eliminable_move = !writes_narrow;
                if (writes_narrow) op.op_class = OpClass::ALU;
            } else if (!writes_narrow) {
                op.op_class = OpClass::SYSTEM;  // segment and control registers
            } else if (op.loads) {
                op.op_class = OpClass::ALU;  // merges
            }
            break;
        case OpClass::FP_MOVE:
            op.eliminable_move = plain_registers;
            if (one.in_memory) op.op_class = OpClass::NONE;
            break;
        case OpClass::VECTOR_PERMUTE: {  // some only load, or only store
            bool duplicates = one.is(X86_INS_MOVDDUP) || one.is(X86_INS_MOVSHDUP) || one.is(X86_INS_MOVSLDUP);
            if (op.stores || (op.loads && (duplicates || one.has(effect::MERGES_REGISTER))))
                op.op_class = OpClass::NONE;
            if (op.stores) op.sources = TimedOp::none<6>(), add(op.sources, number(one.operand(1).reg));
            break;
        }
        case OpClass::VECTOR_LOGIC:  // MOVD, MOVQ
            if (one.is(X86_INS_MOVD) || one.is(X86_INS_MOVQ)) {
                if (one.in_memory) {
                    op.op_class = OpClass::NONE;
                } else if (general(one.operand(0).reg)) {
                    op.op_class = OpClass::MOVE_FROM_VECTOR;
                } else if (general(one.operand(1).reg)) {
                    op.op_class = OpClass::MOVE_TO_VECTOR;
                }
            }
            break;
        case OpClass::ALU:
            if (one.in_memory && !writes_narrow &&
                (one.is(X86_INS_MOVZX) || one.is(X86_INS_MOVSX) || one.is(X86_INS_MOVSXD)))
                op.op_class = OpClass::NONE;
            break;
        case OpClass::LEA: {
            const x86_op_mem& memory = one.operand(1).mem;
            bool scaled = memory.index != X86_REG_INVALID && memory.scale > 1;
            if (memory.base != X86_REG_INVALID && memory.index != X86_REG_INVALID && memory.disp != 0)
                op.op_class = OpClass::LEA_COMPLEX;
            else if (scaled)
                op.op_class = OpClass::LEA_SCALED;
            break;
        }
        case OpClass::SHIFT:
        case OpClass::ROTATE:
            if (!last_is_cl || !one.has(effect::STATUS)) break;
            op.op_class = OpClass::SHIFT_BY_COUNT;  // that zero would leave the flags delays no flags
            break;
        case OpClass::VECTOR_SHIFT:
            if (detail->op_count == 2 && one.operand(1).type != X86_OP_IMM)
                op.op_class = OpClass::VECTOR_SHIFT_VARIABLE;
            break;
        case OpClass::GPR_TO_FP:
            if (op.loads) op.op_class = OpClass::INT_TO_FP;
            break;
        case OpClass::VECTOR_INSERT:
            if (op.loads) op.op_class = OpClass::VECTOR_PERMUTE;
            break;
        case OpClass::MUL32:
            if (detail->op_count == 1) {  // IMUL as MUL
                op.op_class = OpClass::MUL_HIGH;
                op.destinations = TimedOp::none<4>();
                add(op.sources, one.operand(0).type == X86_OP_REG ? number(one.operand(0).reg) : RAX);
                for (uint8_t reg : {RAX, RDX, timed_register::FLAGS, timed_register::CARRY})
                    if (reg != RDX || one.operand(0).size > 1) add(op.destinations, reg);
                add(op.sources, RAX);
                op.stores = false;
            } else if (detail->op_count == 3) {  // only the others are factors
                op.sources = TimedOp::none<6>();
                if (one.operand(1).type == X86_OP_REG) add(op.sources, number(one.operand(1).reg));
                if (one.operand(0).size < 4) add(op.sources, number(one.operand(0).reg));
            }
            break;
        case OpClass::BIT_TEST:  // of a string of bits in memory
            op.microcoded = op.loads && last_is_register;
            break;
        default: break;
    }
    bool wide = detail->op_count && one.operand(0).size == 8;
    if (one.has(effect::BY_WIDTH) && wide && op.op_class == one.row->op_class)
        op.op_class =
            one.is(X86_INS_IDIV) ? OpClass::DIV_SIGNED64 : static_cast<OpClass>(static_cast<unsigned>(op.op_class) + 1);
    if (one.prefixed(X86_PREFIX_LOCK) || (one.is(X86_INS_XCHG) && one.in_memory)) op.op_class = OpClass::ATOMIC;
}

void TimedX8664::set_stack(const Instruction& one, TimedOp& op) const {
    const cs_x86_op& operand = one.operand(0);
    bool on_register = one.has_registers(1);
    switch (one.insn->id) {
        case X86_INS_PUSH:
            op.stores = true;
            op.loads = one.in_memory;
            if (on_register && number(operand.reg) != timed_register::NONE) add(op.sources, number(operand.reg));
            break;
        case X86_INS_POP:
            op.loads = true;
            op.stores = one.in_memory;
            if (on_register && number(operand.reg) != timed_register::NONE) add(op.destinations, number(operand.reg));
            break;
        case X86_INS_CALL: op.stores = true; break;
        case X86_INS_LEAVE:  // RSP = RBP, then a pop of RBP
            add(op.address_sources, RBP);
            op.op_class = OpClass::NONE;
            add(op.destinations, RBP);
            op.write_back = RSP;
            return;
        case X86_INS_ENTER: add(op.sources, RBP), add(op.destinations, RBP); break;
        case X86_INS_XLATB:
            for (uint8_t reg : {RAX, RBX}) add(op.address_sources, reg);
            return;
        case X86_INS_RET:
        case X86_INS_PUSHFQ:
        case X86_INS_PUSHF:
        case X86_INS_POPFQ:
        case X86_INS_POPF: break;
        default: return;
    }
    add(op.address_sources, RSP);
    op.write_back = RSP;
}

void TimedX8664::set_branch(const Instruction& one, TimedOp& op) const {
    bool direct = one.detail->op_count && one.operand(0).type == X86_OP_IMM;
    switch (op.op_class) {
        case OpClass::BRANCH:
            if (one.row->effects & effect::BOTH_IN) {
                op.branch = BranchKind::CONDITIONAL;
                op.fuses_with_compare = true;
                bool one_flag = one.is(X86_INS_JS) || one.is(X86_INS_JNS) || one.is(X86_INS_JP) ||
                                one.is(X86_INS_JNP) || one.is(X86_INS_JO) || one.is(X86_INS_JNO);
                op.conditions = one.has(effect::CARRY_IN) ? BY_CARRY : one_flag ? BY_ANY_FLAG : BY_ZERO_OR_ORDER;
                return;
            }
            op.branch = direct ? BranchKind::DIRECT : BranchKind::INDIRECT;
            break;
        case OpClass::CALL: op.branch = direct ? BranchKind::CALL : BranchKind::INDIRECT_CALL; break;
        case OpClass::RETURN: op.branch = BranchKind::RETURN; return;
        case OpClass::BRANCH_COUNT: op.branch = BranchKind::CONDITIONAL; return;
        default: return;
    }
    if (direct) return;
    if (op.op_class == OpClass::BRANCH) op.op_class = OpClass::BRANCH_INDIRECT;
    op.loads = one.in_memory;
    if (one.has_registers(1)) add(op.sources, number(one.operand(0).reg));
}

void TimedX8664::set_string(const Instruction& one, TimedOp& op) const {
    for (auto [bit, reg] : {std::pair{effect::SOURCE_INDEX, RSI}, std::pair{effect::DESTINATION_INDEX, RDI}}) {
        if (!one.has(bit)) continue;
        add(op.address_sources, reg);
        if (op.op_class == OpClass::STRING) add(op.destinations, reg);
    }
    if (op.op_class != OpClass::STRING) return;
    op.complex_address = false;
    if (!one.prefixed(X86_PREFIX_REP) && !one.prefixed(X86_PREFIX_REPNE)) return;
    op.repeated = true;
    add(op.sources, RCX);
    if (op.destinations.back() == timed_register::NONE) add(op.destinations, RCX);  // CMPS has four: RCX is as early
}

// What some renamers do besides moves: small constants are added, and a move and what computes on it are one. Which
// instructions these are was measured on Intel's Redwood Cove (docs/accuracy.md).
void TimedX8664::set_renaming(const Instruction& one, TimedOp& op) const {
    if (one.detail->op_count == 0 || one.operand(0).type != X86_OP_REG) return;
    const cs_x86_op& first = one.operand(0);
    if (one.is(X86_INS_MOV)) op.loads_whole = op.op_class == OpClass::NONE && op.loads && !op.complex_address;
    if (general(first.reg) && first.size == 8) op.adds_little = adds_little(one, op.op_class);
    if (one.in_memory || one.row->form != Form::UPDATE) return;
    if (is_vector(number(first.reg))) op.fuses_with_move = op.op_class != OpClass::VECTOR_TABLE;
    if (!general(first.reg) || first.size < 4) return;
    switch (one.insn->id) {
        case X86_INS_ADD:
        case X86_INS_SUB:
        case X86_INS_AND:
        case X86_INS_OR:
        case X86_INS_XOR: op.fuses_with_load = one.operand(1).type == X86_OP_REG; [[fallthrough]];
        case X86_INS_NOT:
        case X86_INS_NEG:
        case X86_INS_INC:
        case X86_INS_DEC: op.fuses_with_move = true; break;
        default: op.fuses_with_move = op.op_class == OpClass::SHIFT || op.op_class == OpClass::ROTATE;
    }
}

// To a register of 64 bits.
bool TimedX8664::adds_little(const Instruction& one, OpClass op_class) const {
    static constexpr int64_t MOST = 1023;
    if (one.is(X86_INS_INC) || one.is(X86_INS_DEC)) return true;
    if (one.is(X86_INS_ADD) || one.is(X86_INS_SUB))
        return one.operand(1).type == X86_OP_IMM && std::abs(one.operand(1).imm) <= MOST;
    if (op_class != OpClass::LEA) return false;
    const x86_op_mem& memory = one.operand(1).mem;
    return memory.index == X86_REG_INVALID && general(memory.base) && std::abs(memory.disp) <= MOST;
}

}  // namespace

std::unique_ptr<TimedDecoder> make_timed_x86_64() { return std::make_unique<TimedX8664>(); }

}  // namespace perfemu
