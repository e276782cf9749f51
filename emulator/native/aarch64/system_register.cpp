#include "aarch64/system_register.hpp"

#include <algorithm>
#include <array>

#include "ops/op.hpp"

namespace perfemu::aarch64 {
namespace {

constexpr std::array KERNEL_REGISTERS = {
    KernelRegister{"SCTLR_EL1", SCTLR_EL1, CHANGES_TRANSLATION},
    KernelRegister{"CPACR_EL1", CPACR_EL1, CHANGES_TRANSLATION},
    KernelRegister{"TTBR0_EL1", TTBR0_EL1, CHANGES_TRANSLATION},
    KernelRegister{"TTBR1_EL1", TTBR1_EL1, CHANGES_TRANSLATION},
    KernelRegister{"TCR_EL1", TCR_EL1, CHANGES_TRANSLATION},
    KernelRegister{"SPSR_EL1", SPSR_EL1},
    KernelRegister{"ELR_EL1", ELR_EL1},
    KernelRegister{"SP_EL0", {3, 0, 4, 1, 0}},
    KernelRegister{"SPSel", {3, 0, 4, 2, 0}},
    KernelRegister{"CurrentEL", {3, 0, 4, 2, 2}},
    KernelRegister{"PAN", {3, 0, 4, 2, 3}, CHANGES_TRANSLATION},
    KernelRegister{"UAO", {3, 0, 4, 2, 4}, CHANGES_TRANSLATION},
    KernelRegister{"AFSR0_EL1", {3, 0, 5, 1, 0}},
    KernelRegister{"AFSR1_EL1", {3, 0, 5, 1, 1}},
    KernelRegister{"ESR_EL1", ESR_EL1},
    KernelRegister{"FAR_EL1", FAR_EL1},
    KernelRegister{"PAR_EL1", {3, 0, 7, 4, 0}},
    KernelRegister{"MAIR_EL1", {3, 0, 10, 2, 0}},
    KernelRegister{"AMAIR_EL1", {3, 0, 10, 3, 0}},
    KernelRegister{"VBAR_EL1", VBAR_EL1},
    KernelRegister{"CONTEXTIDR_EL1", {3, 0, 13, 0, 1}},
    KernelRegister{"TPIDR_EL1", {3, 0, 13, 0, 4}},
    KernelRegister{"DAIF", DAIF, CHANGES_MASKS},
};

}  // namespace

const KernelRegister* kernel_register(uint16_t encoding) {
    const auto* found =
        std::ranges::find_if(KERNEL_REGISTERS, [&](const auto& row) { return row.which.encoding() == encoding; });
    return found == KERNEL_REGISTERS.end() ? nullptr : found;
}

}  // namespace perfemu::aarch64
