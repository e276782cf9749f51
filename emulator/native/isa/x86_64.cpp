// x86-64 as Unicorn has it: registers, user mode, single-step, and what is to be known of an instruction that has
// faulted.
#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "engine/register_file.hpp"
#include "instructions/environment.hpp"
#include "instructions/faulting_address.hpp"
#include "isa/isa.hpp"
#include "memory/memory.hpp"
#include "x86_64/call_rules.hpp"
#include "x86_64/dataflow.hpp"
#include "x86_64/op.hpp"
#include "x86_64/row.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu {
namespace {

using namespace x86_64;

constexpr std::array REGISTERS = {
    UC_X86_REG_RAX,     UC_X86_REG_RBX,     UC_X86_REG_RCX,   UC_X86_REG_RDX,  UC_X86_REG_RSI,  UC_X86_REG_RDI,
    UC_X86_REG_RBP,     UC_X86_REG_RSP,     UC_X86_REG_R8,    UC_X86_REG_R9,   UC_X86_REG_R10,  UC_X86_REG_R11,
    UC_X86_REG_R12,     UC_X86_REG_R13,     UC_X86_REG_R14,   UC_X86_REG_R15,  UC_X86_REG_RIP,  UC_X86_REG_RFLAGS,
    UC_X86_REG_FS_BASE, UC_X86_REG_GS_BASE, UC_X86_REG_MXCSR, UC_X86_REG_FPCW, UC_X86_REG_FPSW, UC_X86_REG_FPTAG,
    UC_X86_REG_DS,      UC_X86_REG_ES,      UC_X86_REG_FS,    UC_X86_REG_GS,
};
constexpr std::array SYSCALL_REGISTERS = {UC_X86_REG_RAX, UC_X86_REG_RDI, UC_X86_REG_RSI, UC_X86_REG_RDX,
                                          UC_X86_REG_R10, UC_X86_REG_R8,  UC_X86_REG_R9};
static_assert(sizeof(REGISTERS[0]) == sizeof(int));

constexpr uint64_t RFLAGS_TF = 1 << 8;

class X8664 final : public Isa {
  public:
    std::string_view name() const override { return "x86_64"; }
    uc_arch engine_arch() const override { return UC_ARCH_X86; }
    uc_mode engine_mode() const override { return UC_MODE_64; }
    void configure(uc_engine*) const override {}  // the default model: Haswell without AVX
    // As FNINIT leaves x87: with no exception unmasked, and no register in use; MXCSR as a reset does.
    void enter_user_mode(uc_engine* engine) const override {
        write_register(engine, UC_X86_REG_MXCSR, 0x1f80);
        write_register(engine, UC_X86_REG_FPCW, 0x37f);
        write_register(engine, UC_X86_REG_FPTAG, 0xffff);
    }

    // SSE's operands of 16 bytes and more.
    bool aligned(const AccessSite& site, uint64_t address) const override {
        constexpr uint64_t VECTOR_BYTES = 16;
        return site.size < VECTOR_BYTES || address % VECTOR_BYTES == 0;
    }
    bool raises_on_vectors(uc_engine* engine, const RegisterFile* file) const override {
        constexpr uint64_t MASKS = 0x3f << 7;  // MXCSR's, of all exceptions
        const uint64_t controls =
            file ? mxcsr(environment_of(file->registers[x86_64::RAX])) : read_register(engine, UC_X86_REG_MXCSR);
        return (controls & MASKS) != MASKS;
    }

    std::span<const int> registers() const override {
        return {reinterpret_cast<const int*>(REGISTERS.data()), REGISTERS.size()};
    }
    int pc() const override { return UC_X86_REG_RIP; }
    int frame_pointer() const override { return UC_X86_REG_RBP; }
    const perfemu::CallRules& call_rules() const override { return call_rules_; }
    std::span<const int, 7> syscall_registers() const override {
        return std::span<const int, 7>(reinterpret_cast<const int*>(SYSCALL_REGISTERS.data()), 7);
    }
    int first_vector() const override { return UC_X86_REG_XMM0; }
    unsigned vectors() const override { return 16; }

    void set_stepping(uc_engine* engine, bool on) override {
        const uint64_t flags = read_register(engine, UC_X86_REG_RFLAGS);
        if (on) guest_steps_ = processor_ ? flags & RFLAGS_TF : 0;
        const uint64_t flag = on ? RFLAGS_TF : std::exchange(guest_steps_, 0);
        write_register(engine, UC_X86_REG_RFLAGS, (flags & ~RFLAGS_TF) | flag);
    }
    // TF stays set, but for POPF.
    void rearm_stepping(uc_engine* engine) override {
        write_register(engine, UC_X86_REG_RFLAGS, read_register(engine, UC_X86_REG_RFLAGS) | RFLAGS_TF);
    }
    bool steps_for_guest() const override { return guest_steps_; }

    // Intel SDM vol. 2, SYSCALL: RCX gets the return address and R11 the flags.
    void complete_syscall(uc_engine* engine) const override {
        write_register(engine, UC_X86_REG_RCX, read_register(engine, UC_X86_REG_RIP));
        write_register(engine, UC_X86_REG_R11, read_register(engine, UC_X86_REG_RFLAGS) & ~RFLAGS_TF);
    }

    std::vector<Op> decode(uint64_t, std::span<const uint8_t> bytes, Level level) override {
        std::vector<Op> ops;
        for (size_t at = 0; at < bytes.size(); at += ops.back().length) {
            ops.push_back(op_at(bytes.subspan(at), level));
            ops.back().offset = static_cast<uint16_t>(at);
        }
        return ops;
    }

    uint64_t faulting_operand(uc_engine* engine, const AddressTranslation& space, uint64_t pc,
                              std::span<const uint8_t> bytes, uint64_t page) override;
    bool raises_stack_fault(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes, uint64_t address) override;
    bool undo_branch(uc_engine* engine, const AddressTranslation& space, uint64_t pc, uint64_t target) override;

    std::shared_ptr<GuestPageTables> enter_kernel_mode(uc_engine* engine, std::shared_ptr<PhysicalMemory> memory,
                                                       GuestRam ram) override {
        if (ram.address) throw std::invalid_argument("x86_64: RAM begins at physical address 0");
        processors_.push_back(std::make_unique<Processor>(engine, std::move(memory), ram));
        processor_ = processors_.back().get();
        return processor_->tables();
    }
    void change_guest(const GuestPageTables& tables) override {
        const auto found = std::ranges::find_if(
            processors_, [&](const auto& processor) { return processor->tables().get() == &tables; });
        if (found == processors_.end()) throw std::invalid_argument("the tables are those of no guest of this core");
        processor_ = found->get();
        processor_->resume();
    }
    Processor* processor() const override { return processor_; }
    bool begins_block(std::span<const uint8_t> bytes) const override {
        const Op op = op_at(bytes, processor_ ? processor_->state().level() : Level::USER);
        return op.repeated || op.writes_trace || op.trap != Trap::NONE;
    }
    void add_ptwrite() override { has_ptwrite_ = true; }
    // Intel SDM vol. 3, "Data Breakpoint Exception Conditions"
    bool traps_behind_access() const override { return true; }
    bool is_64() const override { return mode() == CodeMode::BITS_64; }
    void take_exception(uc_engine*, unsigned, std::optional<uint64_t>, std::optional<uint64_t>) const override {
        throw std::logic_error("x86_64: the core's processor takes exceptions");
    }
    bool takes_interrupts(uc_engine*) const override { return processor_ && processor_->accepts_interrupts(); }
    uint64_t read_kernel_register(uc_engine*, uint32_t) const override { refuse(); }
    void write_kernel_register(uc_engine*, uint32_t, uint64_t) const override { refuse(); }

  private:
    [[noreturn]] static void refuse() { throw std::invalid_argument("x86_64: no guest's own kernel executes here"); }
    CodeMode mode() const { return processor_ ? processor_->state().mode() : CodeMode::BITS_64; }
    Op op_at(std::span<const uint8_t> bytes, Level level) const;
    Op guests_op_at(std::span<const uint8_t> bytes, Level level) const;

    std::vector<std::unique_ptr<Processor>> processors_;  // of each guest's own kernel
    x86_64::CallRules call_rules_;
    Processor* processor_ = nullptr;  // ... of the one that executes
    uint64_t guest_steps_ = 0;        // RFLAGS.TF, which it has set, while stepping is on
    bool has_ptwrite_ = false;
};

Op X8664::op_at(std::span<const uint8_t> bytes, Level level) const {
    Op op = processor_ ? guests_op_at(bytes, level) : read_op(bytes);
    if (op.writes_trace && !(has_ptwrite_ && is_64())) {
        op.trap = Trap::UNDEFINED;
        op.writes_trace = false;
    }
    return op;
}

// Where a guest's own kernel executes, system instructions trap for the processor's sake, and no other ones but those
// that the machine answers.
Op X8664::guests_op_at(std::span<const uint8_t> bytes, Level level) const {
    constexpr uint8_t STATE_GROUP = 0xae;
    const Instruction insn = read_instruction(bytes, mode());
    Op op = op_of(insn, bytes.size());
    const bool of_kernels = insn.row && insn.row->trap == Trap::UNDEFINED && !insn.locked;
    if (op.trap == Trap::CPUID || (op.trap == Trap::UNDEFINED && !of_kernels)) return op;
    const bool of_bases = insn.map == OpcodeMap::TWO_BYTE && insn.opcode == STATE_GROUP && insn.in_register() &&
                          insn.repeat == 0xf3 && insn.extension() < 4;
    const bool bases = processor_->state().cr4 & cr4::FSGSBASE && mode() == CodeMode::BITS_64;
    if (op.trap == Trap::XGETBV || (of_bases && !bases)) {
        op.trap = Trap::UNDEFINED;
    } else if (processor_->executes(insn, level)) {
        op.trap = Trap::SYSTEM;
    } else if (op.trap == Trap::PRIVILEGED) {
        constexpr uint8_t CLI = 0xfa;
        const bool clears = insn.map == OpcodeMap::ONE_BYTE && insn.opcode == CLI;
        op.trap = clears ? Trap::NONE : Trap::UNDEFINED;
    }
    return op;
}

constexpr int BY_NUMBER[] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX,
                             UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
                             UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
                             UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};

uint64_t general_register(uc_engine* engine, unsigned number) { return read_register(engine, BY_NUMBER[number]); }

// A bit test of memory goes as far as its register says, by whole operands: BT, BTS, BTR, BTC. Zero for all others.
uint64_t bit_test_offset(uc_engine* engine, const Instruction& insn, const Operands& operands) {
    const bool tests =
        insn.row->dataflow == &InstructionDataflow::bit_test && operands.in_memory() && operands[1].is_register();
    if (!tests) return 0;
    const unsigned bits = 8 * insn.operand_size();
    const uint64_t index = general_register(engine, insn.reg()) << (64 - bits);
    const int64_t whole = static_cast<int64_t>(index) >> (64 - bits) >> std::countr_zero(bits);
    return static_cast<uint64_t>(whole) * (bits / 8);
}

// Without the segment's base.
uint64_t offset_of(uc_engine* engine, const Instruction& insn, const Operand& operand, uint64_t next) {
    switch (operand.method) {
        case AddressingMethod::OFFSET: return insn.immediate;
        case AddressingMethod::SOURCE: return general_register(engine, RSI);
        case AddressingMethod::DESTINATION: return general_register(engine, RDI);
        default: break;
    }
    uint64_t offset = static_cast<uint64_t>(insn.displacement);
    if (insn.relative_to_ip()) offset += next;
    if (insn.base() != Instruction::NO_REGISTER) offset += general_register(engine, insn.base());
    if (insn.index() != Instruction::NO_REGISTER) offset += general_register(engine, insn.index()) << insn.shift();
    return offset;
}

// Of an operand in memory, as the registers are.
uint64_t address_of(uc_engine* engine, const Instruction& insn, const Operand& operand, uint64_t pc) {
    const uint64_t offset = offset_of(engine, insn, operand, pc + insn.length);
    const uint64_t address = insn.address_32 ? static_cast<uint32_t>(offset) : offset;
    if (operand.method == AddressingMethod::DESTINATION || insn.segment == Segment::NONE) return address;
    return address + read_register(engine, insn.segment == Segment::FS ? UC_X86_REG_FS_BASE : UC_X86_REG_GS_BASE);
}

bool X8664::undo_branch(uc_engine* engine, const AddressTranslation& space, uint64_t pc, uint64_t target) {
    if (mode() != CodeMode::BITS_64) return false;
    constexpr uint64_t SLOT = 8;  // of the stack
    if (is_canonical(target)) return false;
    auto load = [&](uint64_t address) {
        std::array<uint8_t, SLOT> bytes{};
        space.read(address, bytes);
        return std::bit_cast<uint64_t>(bytes);
    };
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    const size_t size = space.read(pc, bytes);
    const Instruction insn = read_instruction(std::span(bytes).first(size));
    if (!insn.row || insn.row->dataflow == &InstructionDataflow::nothing_left) return false;  // a far one
    const bool calls = insn.row->op_class == OpClass::CALL, returns = insn.row->op_class == OpClass::RETURN;
    const bool jumps = insn.row->op_class == OpClass::BRANCH && !insn.row->has(effect::BY_CONDITION);
    if (!calls && !returns && !jumps) return false;
    const Operands operands(insn);
    const uint64_t after = read_register(engine, UC_X86_REG_RSP);
    uint64_t before = after;
    if (calls) before += SLOT;
    if (returns) before -= SLOT + (operands.count() ? static_cast<uint16_t>(insn.immediate) : 0u);
    write_register(engine, UC_X86_REG_RSP, before);
    uint64_t found = 0;
    if (calls)  // what it pushed may lie where the target was
        found = load(after) == pc + insn.length ? target : 0;
    else if (returns)
        found = load(before);
    else if (operands[0].is_register())
        found = general_register(engine, insn.rm());
    else if (operands[0].is_memory())
        found = load(address_of(engine, insn, operands[0], pc));
    if (found != target) write_register(engine, UC_X86_REG_RSP, after);
    return found == target;
}

// The engine's own is right, but where its last byte's is none at all, and for 16 bytes: the second half of them is
// stored first.
uint64_t X8664::faulting_operand(uc_engine* engine, const AddressTranslation& space, uint64_t pc,
                                 std::span<const uint8_t> bytes, uint64_t page) {
    constexpr uint64_t HALVES = 16;
    const uint64_t address = faulting_address();
    if ((address & ~PAGE_MASK) != page) return page;
    if (mode() != CodeMode::BITS_64) return address;
    const Instruction insn = read_instruction(bytes);
    if (!insn.row) return address;
    const Operands operands(insn);
    for (const Operand& operand : operands) {
        if (!operand.is_memory()) continue;
        const uint64_t start = address_of(engine, insn, operand, pc);
        const uint64_t last = start + operand.size - 1;
        if (start == address && !is_canonical(last)) return last;
        if (operand.size != HALVES || !insn.row->has(effect::ON_VECTORS)) continue;
        if (address - start >= HALVES) continue;
        if ((start & ~PAGE_MASK) == page) return start;
        const Page first = space.lookup(start);
        const bool stores = directions(*insn.row, operands).stores;
        return first.present && first.protection & (stores ? WRITE : READ) ? page : start;
    }
    return address;
}

// Intel SDM vol. 1, "Canonical Addressing".
bool X8664::raises_stack_fault(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes, uint64_t address) {
    constexpr uint64_t LARGEST_ACCESS = 512;  // FXSAVE
    if (mode() != CodeMode::BITS_64 || is_canonical(address)) return false;
    const Instruction insn = read_instruction(bytes);
    if (!insn.row) return false;
    const Operands operands(insn);
    for (const Operand& operand : operands) {
        if (!operand.is_memory()) continue;
        const uint64_t start = address_of(engine, insn, operand, pc) + bit_test_offset(engine, insn, operands);
        if (address - start >= LARGEST_ACCESS) continue;
        const bool by_modrm = operand.method != AddressingMethod::OFFSET && !operand.is_string();
        return by_modrm && insn.segment == Segment::NONE && (insn.base() == RSP || insn.base() == RBP);
    }
    return insn.row->has(effect::STACK) || insn.row->dataflow == &InstructionDataflow::leave;
}

}  // namespace

std::unique_ptr<Isa> make_x86_64() { return std::make_unique<X8664>(); }

}  // namespace perfemu
