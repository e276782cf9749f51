// AArch64 as Unicorn has it: registers, user mode, single-step, and where an instruction has faulted.
#include <array>
#include <cstring>
#include <utility>

#include "aarch64/call_rules.hpp"
#include "aarch64/memory_operand.hpp"
#include "aarch64/op.hpp"
#include "aarch64/system_register.hpp"
#include "isa/aarch64_page_tables.hpp"
#include "isa/aarch64_system_register.hpp"
#include "isa/isa.hpp"

namespace perfemu {
namespace {

using namespace aarch64;

constexpr uint64_t SCTLR_DZE = 1 << 14, SCTLR_UCT = 1 << 15, SCTLR_nTWI = 1 << 16, SCTLR_nTWE = 1 << 18,
                   SCTLR_UCI = 1 << 26;
constexpr uint64_t SCR_RW = 1 << 10;
constexpr uint64_t TCR_TBI0 = uint64_t{1} << 37;  // Linux: Documentation/arch/arm64/tagged-pointers.rst
constexpr uint64_t MDSCR_SS = 1 << 0, MDSCR_KDE = 1 << 13, MDSCR_MDE = 1 << 15;
constexpr uint64_t PSTATE_SS = 1 << 21, PSTATE_D = 1 << 9, PSTATE_EL = 3 << 2, PSTATE_SP = 1 << 0;
constexpr uint64_t PSTATE_DAIF = 0xf << 6, PSTATE_I = 1 << 7, PSTATE_EL1 = 1 << 2, PSTATE_PAN = 1 << 22;
constexpr uint64_t PSTATE_IL = 1 << 20, SPSR_AARCH32 = 1 << 4;
constexpr uint64_t SCTLR_SPAN = 1 << 23, SCTLR_RESET = 0x30d0'0800;  // what is 1 without later features

constexpr std::array REGISTERS = {
    UC_ARM64_REG_X0,   UC_ARM64_REG_X1,  UC_ARM64_REG_X2,  UC_ARM64_REG_X3,   UC_ARM64_REG_X4,        UC_ARM64_REG_X5,
    UC_ARM64_REG_X6,   UC_ARM64_REG_X7,  UC_ARM64_REG_X8,  UC_ARM64_REG_X9,   UC_ARM64_REG_X10,       UC_ARM64_REG_X11,
    UC_ARM64_REG_X12,  UC_ARM64_REG_X13, UC_ARM64_REG_X14, UC_ARM64_REG_X15,  UC_ARM64_REG_X16,       UC_ARM64_REG_X17,
    UC_ARM64_REG_X18,  UC_ARM64_REG_X19, UC_ARM64_REG_X20, UC_ARM64_REG_X21,  UC_ARM64_REG_X22,       UC_ARM64_REG_X23,
    UC_ARM64_REG_X24,  UC_ARM64_REG_X25, UC_ARM64_REG_X26, UC_ARM64_REG_X27,  UC_ARM64_REG_X28,       UC_ARM64_REG_X29,
    UC_ARM64_REG_X30,  UC_ARM64_REG_SP,  UC_ARM64_REG_PC,  UC_ARM64_REG_NZCV, UC_ARM64_REG_TPIDR_EL0, UC_ARM64_REG_FPCR,
    UC_ARM64_REG_FPSR,
};
constexpr std::array SYSCALL_REGISTERS = {UC_ARM64_REG_X8, UC_ARM64_REG_X0, UC_ARM64_REG_X1, UC_ARM64_REG_X2,
                                          UC_ARM64_REG_X3, UC_ARM64_REG_X4, UC_ARM64_REG_X5};
static_assert(sizeof(REGISTERS[0]) == sizeof(int));

constexpr size_t INSTRUCTION_BYTES = 4;
constexpr uint32_t UDF = 0;

class Aarch64 final : public Isa {
  public:
    explicit Aarch64(std::span<const std::string> features) : features_(features_of(features)) {}

    std::string_view name() const override { return "aarch64"; }
    uc_arch engine_arch() const override { return UC_ARCH_ARM64; }
    uc_mode engine_mode() const override { return UC_MODE_ARM; }

    void configure(uc_engine* engine) const override {
        // The least model that has all features; what it has besides is not in the table.
        uc_ctl_set_cpu_model(engine, has_later_model() ? UC_CPU_ARM64_MAX : UC_CPU_ARM64_A72);
        uc_ctl_set_page_size(engine, 4096);
    }

    void enter_user_mode(uc_engine* engine) const override {
        uint64_t sctlr = read_system_register(engine, SCTLR_EL1);
        write_system_register(engine, SCTLR_EL1, sctlr | SCTLR_DZE | SCTLR_UCT | SCTLR_nTWI | SCTLR_nTWE | SCTLR_UCI);
        write_system_register(engine, TCR_EL1, TCR_TBI0);
        uint64_t floating_point = 3 << 20;  // CPACR_EL1.FPEN
        write_register(engine, UC_ARM64_REG_CPACR_EL1, floating_point);
        write_register(engine, UC_ARM64_REG_PSTATE, 0);  // EL0
        write_system_register(engine, SCR_EL3, SCR_RW);  // and this write makes the engine notice
    }

    std::span<const int> registers() const override {
        return {reinterpret_cast<const int*>(REGISTERS.data()), REGISTERS.size()};
    }
    int pc() const override { return UC_ARM64_REG_PC; }
    int frame_pointer() const override { return UC_ARM64_REG_X29; }
    const perfemu::CallRules& call_rules() const override { return call_rules_; }
    std::span<const int, 7> syscall_registers() const override {
        return std::span<const int, 7>(reinterpret_cast<const int*>(SYSCALL_REGISTERS.data()), 7);
    }
    int first_vector() const override { return UC_ARM64_REG_Q0; }
    unsigned vectors() const override { return 32; }

    // A kernel that masks debug exceptions is not stepped otherwise: that mask is taken away meanwhile.
    void set_stepping(uc_engine* engine, bool on) override {
        uint64_t pstate = read_register(engine, UC_ARM64_REG_PSTATE) & ~PSTATE_SS;
        if (on) {
            masked_ = pstate & PSTATE_EL ? pstate & PSTATE_D : 0;
            pstate = (pstate & ~masked_) | PSTATE_SS;
        } else {
            pstate |= std::exchange(masked_, 0);
        }
        write_register(engine, UC_ARM64_REG_PSTATE, pstate);
        write_system_register(engine, MDSCR_EL1, on ? MDSCR_SS | MDSCR_KDE | MDSCR_MDE : 0);
    }

    void rearm_stepping(uc_engine* engine) override {
        write_register(engine, UC_ARM64_REG_PSTATE, read_register(engine, UC_ARM64_REG_PSTATE) | PSTATE_SS);
    }

    void correct_masks(uc_engine* engine, int8_t into) const override {
        if (static_cast<uint32_t>(into) == ZERO_REGISTER) return;
        const int number = REGISTERS[static_cast<size_t>(into)];
        write_register(engine, number, read_register(engine, number) | masked_);
    }

    void complete_syscall(uc_engine*) const override {}

    std::vector<Op> decode(uint64_t address, std::span<const uint8_t> bytes, Level level) override {
        if (address % INSTRUCTION_BYTES) {  // the engine would execute it
            return {read_op(UDF, features_, level)};
        }
        std::vector<Op> ops(bytes.size() / INSTRUCTION_BYTES);
        for (size_t i = 0; i < ops.size(); i++) {
            const size_t offset = INSTRUCTION_BYTES * i;
            uint32_t word;
            std::memcpy(&word, bytes.data() + offset, sizeof word);
            ops[i] = read_op(word, features_, level);
            ops[i].offset = static_cast<uint16_t>(offset);
        }
        return ops;
    }

    uint64_t faulting_operand(uc_engine* engine, const AddressTranslation&, uint64_t pc, std::span<const uint8_t> bytes,
                              uint64_t page) override;

    // Of exclusives and ordered accesses: all have a base register and nothing else.
    uint64_t misaligned_operand(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes) override {
        if (pc % INSTRUCTION_BYTES || bytes.size() < INSTRUCTION_BYTES) return pc;
        uint32_t word;
        std::memcpy(&word, bytes.data(), sizeof word);
        return untagged(read_register(engine, REGISTERS[rn(word)]));
    }

    uint64_t untagged(uint64_t address) const override {
        constexpr uint64_t UPPER_HALF = uint64_t{1} << 55, TAG = uint64_t{0xff} << 56;
        return address & UPPER_HALF ? address : address & ~TAG;
    }

    // Arm ARM DDI 0487, "PE state on reset to AArch64 state". EL2 and EL3 are not there.
    std::shared_ptr<GuestPageTables> enter_kernel_mode(uc_engine* engine, std::shared_ptr<PhysicalMemory> memory,
                                                       GuestRam ram) override {
        write_system_register(engine, SCTLR_EL1, SCTLR_RESET);
        write_system_register(engine, TCR_EL1, 0);
        write_register(engine, UC_ARM64_REG_PSTATE, PSTATE_DAIF | PSTATE_EL1 | PSTATE_SP);
        write_system_register(engine, SCR_EL3, SCR_RW);  // and this write makes the engine notice
        return std::make_shared<PageTables>(std::move(memory), ram);
    }
    void take_exception(uc_engine* engine, unsigned kind, std::optional<uint64_t> syndrome,
                        std::optional<uint64_t> address) const override;
    bool takes_interrupts(uc_engine* engine) const override {
        return !(read_register(engine, UC_ARM64_REG_PSTATE) & PSTATE_I);
    }
    DataAccess data_access(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes) const override;
    bool masks_debug_exceptions(uc_engine* engine) const override {
        return read_register(engine, UC_ARM64_REG_PSTATE) & PSTATE_D || masked_;
    }
    uint64_t processor_state(uc_engine* engine) const override { return read_register(engine, UC_ARM64_REG_PSTATE); }
    void set_processor_state(uc_engine* engine, uint64_t state) const override {
        constexpr uint64_t CONDITION_FLAGS = uint64_t{0xf} << 28, WRITABLE = CONDITION_FLAGS | PSTATE_DAIF;
        write_register(engine, UC_ARM64_REG_PSTATE, (processor_state(engine) & ~WRITABLE) | (state & WRITABLE));
        write_system_register(engine, SCR_EL3, SCR_RW);  // makes the engine notice
    }
    uint64_t saved_state(uc_engine* engine) const override { return read_system_register(engine, SPSR_EL1); }
    void set_saved_state(uc_engine* engine, uint64_t state) const override {
        write_system_register(engine, SPSR_EL1, state);
    }
    // To EL2 and EL3, and to AArch32, which is at no level here: but the engine has it at EL0.
    Returned returned(uc_engine* engine) const override {
        if (read_register(engine, UC_ARM64_REG_PSTATE) & PSTATE_IL) return Returned::ILLEGALLY;
        return read_system_register(engine, SPSR_EL1) & SPSR_AARCH32 ? Returned::UNMODELLED : Returned::AS_IT_SHOULD;
    }
    uint64_t read_kernel_register(uc_engine* engine, uint32_t number) const override {
        return read_system_register(engine, SystemRegister::from_encoding(number));
    }
    void write_kernel_register(uc_engine* engine, uint32_t number, uint64_t value) const override {
        write_system_register(engine, SystemRegister::from_encoding(number), value);
    }

  private:
    bool has_later_model() const { return features_ != aarch64::bit(Feature::NONE); }

    aarch64::CallRules call_rules_;
    Features features_;
    uint64_t masked_ = 0;  // PSTATE.D, while stepping has taken it away
};

// Arm ARM DDI 0487, "Exception entry" and "Exception vectors". The engine does none of it.
void Aarch64::take_exception(uc_engine* engine, unsigned kind, std::optional<uint64_t> syndrome,
                             std::optional<uint64_t> address) const {
    constexpr uint64_t VECTORS_ALIGNED = 0x7ff, KIND_BYTES = 0x80, FROM_SP_EL1 = 0x200, FROM_EL0 = 0x400;
    const uint64_t before = read_register(engine, UC_ARM64_REG_PSTATE);
    const bool from_user = !(before & PSTATE_EL), own_stack = !from_user && before & PSTATE_SP;
    write_system_register(engine, ELR_EL1, read_register(engine, pc()));
    write_system_register(engine, SPSR_EL1, before);
    if (syndrome) write_system_register(engine, ESR_EL1, *syndrome);
    if (address) write_system_register(engine, FAR_EL1, *address);
    // Without FEAT_PAN the bit of SCTLR_EL1 is set.
    const bool sets_pan = has_later_model() && !(read_system_register(engine, SCTLR_EL1) & SCTLR_SPAN);
    const uint64_t pan = sets_pan ? PSTATE_PAN : before & PSTATE_PAN;
    const uint64_t stack = read_register(engine, UC_ARM64_REG_SP),
                   kernel_stack = read_register(engine, UC_ARM64_REG_SP_EL1);
    write_register(engine, UC_ARM64_REG_PSTATE, PSTATE_DAIF | PSTATE_EL1 | PSTATE_SP | pan);
    if (!own_stack) {
        write_register(engine, UC_ARM64_REG_SP, kernel_stack);
        write_register(engine, UC_ARM64_REG_SP_EL0, stack);
    }
    write_system_register(engine, SCR_EL3, SCR_RW);  // makes the engine notice
    const uint64_t offset = from_user ? FROM_EL0 : own_stack ? FROM_SP_EL1 : 0;
    const uint64_t vectors = read_system_register(engine, VBAR_EL1) & ~VECTORS_ALIGNED;
    write_register(engine, pc(), vectors + offset + kind * KIND_BYTES);
}

uint64_t Aarch64::faulting_operand(uc_engine* engine, const AddressTranslation&, uint64_t pc,
                                   std::span<const uint8_t> bytes, uint64_t page) {
    if (bytes.size() < INSTRUCTION_BYTES) return page;
    uint32_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    auto value = [&](unsigned number) { return read_register(engine, REGISTERS[number]); };
    const Row* row = row_of(word);
    if (!row || row->addressing == Addressing::NONE) return page;
    const uint64_t address = untagged(address_of(*row, memory_operand(*row, word), pc, value));
    return address >> 12 == page >> 12 ? address : page;  // or it crosses into that
}

DataAccess Aarch64::data_access(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes) const {
    if (bytes.size() < INSTRUCTION_BYTES) return {};
    uint32_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    const Row* row = row_of(word);
    if (!row || row->addressing == Addressing::NONE) return {};
    const MemoryOperand operand = memory_operand(*row, word);
    auto value = [&](unsigned number) { return read_register(engine, REGISTERS[number]); };
    uint64_t address = untagged(address_of(*row, operand, pc, value));
    if (row->addressing == Addressing::CACHE_LINE) address &= ~uint64_t{ZVA_BYTES - 1};
    const uint8_t kinds = (row->has(effect::LOADS) ? READ : 0) | (row->has(effect::STORES) ? WRITE : 0);
    return {address, operand.bytes, kinds, read_op(word, features_, Level::KERNEL).acts_for_user};
}

}  // namespace

std::unique_ptr<Isa> make_aarch64(std::span<const std::string> features) { return std::make_unique<Aarch64>(features); }

}  // namespace perfemu
