// System registers that the engine keeps, and which of them a guest's kernel reaches there. All others are for the
// machine to answer.
//
// Names and encodings: Arm ARM DDI 0487, "AArch64 System Register Encoding".
#pragma once

#include <cstdint>
#include <string_view>

namespace perfemu::aarch64 {

struct SystemRegister {
    uint32_t op0, op1, crn, crm, op2;

    // As in MRS and MSR, and in emulator.sysregs.SysReg.encoding.
    constexpr uint16_t encoding() const {
        return static_cast<uint16_t>(op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2);
    }
    static constexpr SystemRegister from_encoding(uint32_t encoding) {
        return {encoding >> 14 & 3, encoding >> 11 & 7, encoding >> 7 & 15, encoding >> 3 & 15, encoding & 7};
    }
};

inline constexpr SystemRegister SCTLR_EL1{3, 0, 1, 0, 0};
inline constexpr SystemRegister CPACR_EL1{3, 0, 1, 0, 2};
inline constexpr SystemRegister TTBR0_EL1{3, 0, 2, 0, 0};
inline constexpr SystemRegister TTBR1_EL1{3, 0, 2, 0, 1};
inline constexpr SystemRegister TCR_EL1{3, 0, 2, 0, 2};
inline constexpr SystemRegister SPSR_EL1{3, 0, 4, 0, 0};
inline constexpr SystemRegister ELR_EL1{3, 0, 4, 0, 1};
inline constexpr SystemRegister ESR_EL1{3, 0, 5, 2, 0};
inline constexpr SystemRegister FAR_EL1{3, 0, 6, 0, 0};
inline constexpr SystemRegister VBAR_EL1{3, 0, 12, 0, 0};
inline constexpr SystemRegister DAIF{3, 3, 4, 2, 1};
inline constexpr SystemRegister MDSCR_EL1{2, 0, 0, 2, 2};
inline constexpr SystemRegister SCR_EL3{3, 6, 1, 1, 0};

// One that MRS and MSR find in the engine at EL1.
struct KernelRegister {
    std::string_view name;
    SystemRegister which;
    uint8_t changes = 0;  // that a write makes: bits of Change
};
// Null: the machine answers it.
const KernelRegister* kernel_register(uint16_t encoding);

}  // namespace perfemu::aarch64
