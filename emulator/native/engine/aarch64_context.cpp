#include "engine/aarch64_context.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace perfemu {
namespace {

// What only EL2 and EL3 change, which there are not, and whether the engine can step depends on. One that cannot steps
// for ever.
constexpr uc_arm64_cp_reg HCR_EL2{.crn = 1, .crm = 1, .op0 = 3, .op1 = 4, .op2 = 0, .val = 0};
constexpr uc_arm64_cp_reg MDCR_EL2{.crn = 1, .crm = 1, .op0 = 3, .op1 = 4, .op2 = 1, .val = 0};
constexpr uc_arm64_cp_reg CPTR_EL2{.crn = 1, .crm = 1, .op0 = 3, .op1 = 4, .op2 = 2, .val = 0};
constexpr uc_arm64_cp_reg SCR_EL3{.crn = 1, .crm = 1, .op0 = 3, .op1 = 6, .op2 = 0, .val = 0};
constexpr uc_arm64_cp_reg CPTR_EL3{.crn = 1, .crm = 1, .op0 = 3, .op1 = 6, .op2 = 2, .val = 0};
constexpr uc_arm64_cp_reg MDCR_EL3{.crn = 1, .crm = 3, .op0 = 3, .op1 = 6, .op2 = 1, .val = 0};
constexpr std::array FIXED{HCR_EL2, MDCR_EL2, CPTR_EL2, SCR_EL3, CPTR_EL3, MDCR_EL3};
constexpr uc_arm64_cp_reg MDSCR_EL1{.crn = 0, .crm = 2, .op0 = 2, .op1 = 0, .op2 = 2, .val = 0};

// Arm ARM DDI 0487, "SPSR_EL1": NZCV; TCO to IL; SSBS; BTYPE; DAIF; EL1 or EL0, in AArch64; the stack pointer.
constexpr uint64_t POSSIBLE_PSTATE = 0xf000'0000 | 0x03f0'0000 | 1 << 12 | 3 << 10 | 15 << 6 | 1 << 2 | 1;

uint64_t read(uc_engine* engine, int number) {
    uint64_t value = 0;
    if (uc_reg_read(engine, number, &value) != UC_ERR_OK) throw std::runtime_error("uc_reg_read");
    return value;
}

void write(uc_engine* engine, int number, uint64_t value) {
    if (uc_reg_write(engine, number, &value) != UC_ERR_OK) throw std::runtime_error("uc_reg_write");
}

uc_arm64_cp_reg read(uc_engine* engine, uc_arm64_cp_reg which) {
    if (uc_reg_read(engine, UC_ARM64_REG_CP_REG, &which) != UC_ERR_OK) throw std::runtime_error("uc_reg_read");
    return which;
}

void save(uc_engine* engine, uc_context* context) {
    if (uc_context_save(engine, context) != UC_ERR_OK) throw std::runtime_error("uc_context_save");
}

}  // namespace

// In the engine's struct come PC, PSTATE as 32 bits, and these: it is found by writing to PC.
Aarch64Context::Aarch64Context(uc_engine* engine, uc_context* context, std::span<const uint8_t> registers)
    : engine_(engine), fixed_(fixed_registers()) {
    save(engine, context);
    const std::vector<uint8_t> before(registers.begin(), registers.end());
    const uint64_t pc = read(engine, UC_ARM64_REG_PC);
    write(engine, UC_ARM64_REG_PC, ~pc);
    save(engine, context);
    const auto changed = static_cast<size_t>(std::ranges::mismatch(before, registers).in1 - before.begin());
    write(engine, UC_ARM64_REG_PC, pc);
    save(engine, context);
    beside_pc_at_ = changed + sizeof pc + sizeof(uint32_t);
    if (beside_pc_at_ + sizeof beside_pc_ <= registers.size())
        std::memcpy(&beside_pc_, registers.data() + beside_pc_at_, sizeof beside_pc_);
    if (beside_pc_.is_aarch64 != 1) throw std::runtime_error("this Unicorn keeps its registers where 2.1.4 does not");
}

void Aarch64Context::renew_derived(std::span<uint8_t> registers) const {
    std::memcpy(registers.data() + beside_pc_at_, &beside_pc_, sizeof beside_pc_);
}

// Writing a system register makes the engine derive everything from what is there.
bool Aarch64Context::settle_restored() const {
    const uint64_t pstate = read(engine_, UC_ARM64_REG_PSTATE) & 0xffff'ffff;
    if (pstate & ~POSSIBLE_PSTATE || fixed_registers() != fixed_) return false;
    write(engine_, UC_ARM64_REG_PSTATE, pstate);
    const uc_arm64_cp_reg same = read(engine_, MDSCR_EL1);
    if (uc_reg_write(engine_, UC_ARM64_REG_CP_REG, &same) != UC_ERR_OK) throw std::runtime_error("MDSCR_EL1");
    return true;
}

std::array<uint64_t, Aarch64Context::FIXED_REGISTERS> Aarch64Context::fixed_registers() const {
    static_assert(FIXED.size() == FIXED_REGISTERS);
    std::array<uint64_t, FIXED_REGISTERS> found{};
    std::ranges::transform(FIXED, found.begin(),
                           [this](const uc_arm64_cp_reg& which) { return read(engine_, which).val; });
    return found;
}

}  // namespace perfemu
