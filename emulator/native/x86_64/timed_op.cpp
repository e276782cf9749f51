// What a row and the operands are to the timing models.
//
// What is not told apart: the x87 stack is one register, so its instructions form one chain; MM0..MM7 are not ST(0..7);
// a part of a general register is the register, and writing 8 or 16 bits of it reads the rest.
#include "ops/timed_op.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "x86_64/dataflow.hpp"
#include "x86_64/row.hpp"

namespace perfemu::x86_64 {
namespace {

// Which conditional branches may follow an instruction in one micro-op. Intel's rules (Optimization Reference Manual,
// "Macro-fusion"): TEST and AND with all, CMP, ADD and SUB not with those of sign, parity and overflow alone, INC and
// DEC not with those that read the carry either. AMD fuses a few more.
constexpr uint8_t BY_ZERO_OR_ORDER = 1, BY_CARRY = 2, BY_ANY_FLAG = 4;

template <size_t N>
void add(std::array<uint8_t, N>& places, uint8_t reg) {
    for (uint8_t& place : places) {
        if (place == reg || reg == timed_register::NONE) return;
        if (place == timed_register::NONE) {
            place = reg;
            return;
        }
    }
    throw std::logic_error("an instruction has more registers than a TimedOp");
}

// One instruction's, made step by step.
class Timed {
  public:
    explicit Timed(const Instruction& insn)
        : insn_(insn), row_(*insn.row), operands_(insn), memory_(directions(row_, operands_)) {}
    TimedOp op();

  private:
    bool has(uint64_t effects) const { return row_.has(effects); }
    uint64_t flags_read() const {
        return has(effect::BY_CONDITION) ? flags_of_condition(insn_.opcode) : row_.effects & effect::BOTH_IN;
    }
    bool writes_narrow() const { return operands_.count() && operands_[0].is_general() && operands_[0].size < 4; }
    void set_width();
    void add_address(const Operand& operand);
    void set_operands();
    void set_implied();
    void set_idiom();
    void set_fusion();
    void set_class();
    void set_stack();
    void set_branch();
    void set_string();
    void set_renaming();
    bool adds_little() const;

    const Instruction& insn_;
    const Row& row_;
    Operands operands_;
    Directions memory_;
    TimedOp op_;
};

TimedOp Timed::op() {
    op_.op_class = row_.op_class;
    op_.length = insn_.length;
    op_.loads = memory_.loads;
    op_.stores = memory_.stores;
    op_.microcoded = has(effect::MICROCODED);
    op_.serializes = has(effect::SERIALIZES);
    op_.prefetches = has(effect::PREFETCHES);
    set_width();
    set_operands();
    set_implied();
    set_idiom();
    set_fusion();
    set_class();
    set_stack();
    set_branch();
    set_string();
    set_renaming();
    return op_;
}

// The first operand's, but for moves and conversions to vector registers, where it is the source's. Immediates are of
// addresses and stack slots.
void Timed::set_width() {
    if (!operands_.count() || operands_[0].is_immediate()) return;
    const bool from_source = row_.op_class == OpClass::GPR_TO_FP || row_.op_class == OpClass::INT_TO_FP ||
                             row_.op_class == OpClass::MOVE_TO_VECTOR;
    unsigned size = operands_[from_source ? 1 : 0].size;
    const auto scalar = [](OperandCode code) { return code.size == Size::SCALAR; };
    const bool by_prefix = std::any_of(row_.operands.begin(), row_.operands.end(), scalar);
    if (by_prefix && !operands_[0].is_general()) size = size_of(Size::SCALAR, insn_);
    if (has(effect::SINGLE)) size = 4;
    if (has(effect::DOUBLE)) size = 8;
    op_.width_bytes = size <= 4 ? 4 : size <= 8 ? 8 : 16;
}

void Timed::add_address(const Operand& operand) {
    switch (operand.method) {
        case AddressingMethod::OFFSET: return;
        case AddressingMethod::SOURCE: add(op_.address_sources, RSI); return;
        case AddressingMethod::DESTINATION: add(op_.address_sources, RDI); return;
        default: break;
    }
    for (const unsigned number : {insn_.base(), insn_.index()})
        if (number != Instruction::NO_REGISTER) add(op_.address_sources, static_cast<uint8_t>(number));
    op_.complex_address |= insn_.index() != Instruction::NO_REGISTER;
}

void Timed::set_operands() {
    for (unsigned i = 0; i < operands_.count(); i++) {
        const Operand& operand = operands_[i];
        if (operand.is_memory() && row_.op_class != OpClass::NOP) add_address(operand);
        if (!operand.is_register() || row_.form == Form::IMPLICIT) continue;
        const bool writes = i < row_.written();
        const bool narrow = operand.is_general() && operand.size < 4;
        const bool keeps_rest = writes && (narrow || (i == 0 && has(effect::MERGES)));
        if (!writes || row_.updates() || keeps_rest) add(op_.sources, operand.reg);
        if (writes) add(op_.destinations, operand.reg);
    }
    if (row_.form != Form::ADDRESS) return;
    for (const uint8_t reg : op_.address_sources) add(op_.sources, reg);  // the address is what is computed
    op_.address_sources = TimedOp::none<3>();
    op_.complex_address = false;
}

void Timed::set_implied() {
    struct Implied {
        uint64_t in, out;
        uint8_t reg;
    };
    static constexpr Implied IMPLIED[] = {
        {effect::XMM0_IN, 0, timed_register::VECTOR},
        {effect::RBX_IN, 0, RBX},
        {effect::FLAGS_IN, effect::FLAGS_OUT, timed_register::FLAGS},
        {effect::CARRY_IN, effect::CARRY_OUT, timed_register::CARRY},
        {effect::RAX_IN, effect::RAX_OUT, RAX},
        {effect::RDX_IN, effect::RDX_OUT, RDX},
        {effect::RCX_IN, effect::RCX_OUT, RCX},
        {effect::X87, effect::X87, timed_register::X87},
        {effect::CONTROL_IN, effect::CONTROL_OUT, timed_register::FP_CONTROL},
    };
    // MUL, DIV: AX is the whole of the product or dividend
    const bool byte = has(effect::RDX_OUT) && has(effect::STATUS) && operands_.count() == 1 && operands_[0].size == 1;
    const unsigned width = row_.operands[0].method == AddressingMethod::NONE ? insn_.operand_size() : operands_[0].size;
    uint64_t effects = row_.effects | flags_read();
    if (has(effect::RAX_MERGES) && width < 4) effects |= effect::RAX_IN;
    if (has(effect::RDX_MERGES) && width < 4) effects |= effect::RDX_IN;
    if (byte) effects = (effects | effect::RAX_IN) & ~(effect::RDX_IN | effect::RDX_OUT);
    for (const Implied& row : IMPLIED) {
        if (effects & row.in) add(op_.sources, row.reg);
        if (effects & row.out) add(op_.destinations, row.reg);
    }
}

void Timed::set_idiom() {
    const bool same = operands_.are_registers(2) && operands_[0].reg == operands_[1].reg &&
                      (operands_[0].size >= 4 || !operands_[0].is_general());
    if (!same || !has(effect::ZERO_IDIOM | effect::ONES_IDIOM)) return;
    if (has(effect::ZERO_IDIOM)) op_.op_class = OpClass::ZERO;
    op_.sources = TimedOp::none<6>();
}

void Timed::set_fusion() {
    if (!has(effect::TESTS | effect::SUBTRACTS | effect::COUNTS) || op_.stores) return;
    op_.compares = true;
    op_.compare_only = has(effect::COMPARE_ONLY);
    op_.conditions = has(effect::TESTS)       ? BY_ZERO_OR_ORDER | BY_CARRY | BY_ANY_FLAG
                     : has(effect::SUBTRACTS) ? BY_ZERO_OR_ORDER | BY_CARRY
                                              : BY_ZERO_OR_ORDER;
    if (!operands_.in_memory()) return;
    for (const Operand& operand : operands_) op_.memory_or_immediate |= operand.is_immediate();
}

void Timed::set_class() {
    if (has(effect::PLAIN) && operands_.in_memory() && !writes_narrow()) op_.op_class = OpClass::NONE;
    switch (row_.op_class) {
        case OpClass::MOVE: op_.eliminable_move = operands_.are_registers(2) && !writes_narrow(); [[fallthrough]];
        case OpClass::CONSTANT:
            if (writes_narrow()) op_.op_class = OpClass::ALU;  // merges
            break;
        case OpClass::FP_MOVE: op_.eliminable_move = operands_.are_registers(2); break;
        case OpClass::SELECT:
            if (flags_read() == effect::BOTH_IN) op_.op_class = OpClass::SELECT_TWO_FLAGS;
            break;
        case OpClass::LEA:
            if (insn_.base() != Instruction::NO_REGISTER && insn_.index() != Instruction::NO_REGISTER &&
                insn_.displacement != 0)
                op_.op_class = OpClass::LEA_COMPLEX;
            else if (insn_.index() != Instruction::NO_REGISTER && insn_.shift())
                op_.op_class = OpClass::LEA_SCALED;
            break;
        case OpClass::VECTOR_INSERT:
            if (op_.loads) op_.op_class = OpClass::VECTOR_PERMUTE;
            break;
        case OpClass::BIT_TEST:  // of a string of bits in memory
            op_.microcoded = op_.loads && operands_[1].is_register();
            break;
        default: break;
    }
    if (has(effect::BY_WIDTH) && operands_[0].size == 8) {
        const bool sign = insn_.extension() == 7 && row_.op_class == OpClass::DIV32;
        op_.op_class = sign ? OpClass::DIV_SIGNED64 : static_cast<OpClass>(static_cast<unsigned>(op_.op_class) + 1);
    }
    if (insn_.locked || (row_.op_class == OpClass::EXCHANGE && operands_.in_memory())) op_.op_class = OpClass::ATOMIC;
}

void Timed::set_stack() {
    if (has(effect::STACK)) {
        add(op_.address_sources, RSP);
        op_.write_back = RSP;
    }
    if (row_.dataflow == &InstructionDataflow::leave) {  // RSP = RBP, then a pop of RBP
        add(op_.address_sources, RBP);
        add(op_.destinations, RBP);
        op_.write_back = RSP;
    } else if (row_.dataflow == &InstructionDataflow::enter) {
        add(op_.sources, RBP);
        add(op_.destinations, RBP);
    } else if (row_.dataflow == &InstructionDataflow::table_lookup) {
        for (const uint8_t reg : {RAX, RBX}) add(op_.address_sources, reg);
    }
}

void Timed::set_branch() {
    const bool direct = operands_.count() && operands_[0].is_immediate();
    switch (op_.op_class) {
        case OpClass::BRANCH:
            if (has(effect::BY_CONDITION)) {
                const unsigned condition = insn_.opcode >> 1 & 7;
                const bool one_flag = condition == 0 || condition == 4 || condition == 5;  // O, S, P
                op_.branch = BranchKind::CONDITIONAL;
                op_.fuses_with_compare = true;
                op_.conditions = flags_read() & effect::CARRY_IN ? BY_CARRY : one_flag ? BY_ANY_FLAG : BY_ZERO_OR_ORDER;
                return;
            }
            op_.branch = direct ? BranchKind::DIRECT : BranchKind::INDIRECT;
            if (!direct) op_.op_class = OpClass::BRANCH_INDIRECT;
            return;
        case OpClass::CALL: op_.branch = direct ? BranchKind::CALL : BranchKind::INDIRECT_CALL; return;
        case OpClass::RETURN: op_.branch = BranchKind::RETURN; return;
        case OpClass::BRANCH_COUNT: op_.branch = BranchKind::CONDITIONAL; return;
        default: return;
    }
}

void Timed::set_string() {
    for (const auto& [effects, reg] :
         {std::pair{effect::SOURCE_INDEX, RSI}, std::pair{effect::DESTINATION_INDEX, RDI}}) {
        if (!has(effects)) continue;
        add(op_.address_sources, reg);
        if (op_.op_class == OpClass::STRING) add(op_.destinations, reg);
    }
    if (op_.op_class != OpClass::STRING || !insn_.repeat) return;
    op_.repeated = true;
    add(op_.sources, RCX);
    if (op_.destinations.back() == timed_register::NONE) add(op_.destinations, RCX);  // CMPS has four: RCX is as early
}

// What some renamers do besides moves: small constants are added, and a move and what computes on it are one. Which
// instructions these are was measured on Intel's Redwood Cove (docs/accuracy.md).
void Timed::set_renaming() {
    if (!operands_.count() || !operands_[0].is_register()) return;
    const Operand& first = operands_[0];
    if (row_.op_class == OpClass::MOVE)
        op_.loads_whole = op_.op_class == OpClass::NONE && op_.loads && operands_[1].method == AddressingMethod::RM &&
                          !op_.complex_address;
    if (first.is_general() && first.size == 8) op_.adds_little = adds_little();
    if (operands_.in_memory() || row_.form != Form::UPDATE) return;
    if (is_vector(first.reg)) op_.fuses_with_move = op_.op_class != OpClass::VECTOR_TABLE;
    if (!first.is_general() || first.size < 4) return;
    op_.fuses_with_move = has(effect::AFTER_MOVE);
    op_.fuses_with_load = has(effect::AFTER_LOAD) && operands_[1].is_register();
}

// To a register of 64 bits.
bool Timed::adds_little() const {
    static constexpr int64_t MOST = 1023;
    if (has(effect::COUNTS)) return true;
    if (has(effect::SUBTRACTS) && row_.form == Form::UPDATE)
        return operands_[1].is_immediate() && std::abs(operands_[1].immediate) <= MOST;
    if (row_.op_class != OpClass::LEA) return false;
    return insn_.index() == Instruction::NO_REGISTER && insn_.base() != Instruction::NO_REGISTER &&
           std::abs(insn_.displacement) <= MOST;
}

class TimedX8664 final : public TimedDecoder {
  public:
    std::vector<TimedOp> decode(uint64_t, std::span<const uint8_t> bytes) override {
        std::vector<TimedOp> ops;
        for (size_t at = 0; at < bytes.size(); at += ops.back().length) {
            const Instruction insn = read_instruction(bytes.subspan(at));
            ops.push_back(insn.row ? Timed(insn).op() : undefined(bytes.size() - at));
            ops.back().offset = static_cast<uint16_t>(at);
        }
        return ops;
    }

  private:
    static TimedOp undefined(size_t size) {
        TimedOp op;
        op.op_class = OpClass::SYSTEM;
        op.length = static_cast<uint8_t>(std::min<size_t>(size, 255));
        return op;
    }
};

}  // namespace
}  // namespace perfemu::x86_64

namespace perfemu {

std::unique_ptr<TimedDecoder> make_timed_x86_64() { return std::make_unique<x86_64::TimedX8664>(); }

}  // namespace perfemu
