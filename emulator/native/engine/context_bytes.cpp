#include "engine/context_bytes.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

#include "engine/aarch64_context.hpp"

namespace perfemu {
namespace {

struct ContextFree {
    void operator()(uc_context* context) const { uc_context_free(context); }
};

// A saved context has a head of the library's own, which begins with how many bytes of registers follow it.
constexpr uint64_t LONGEST_HEAD = 64;

size_t architecture_of(uc_engine* engine) {
    size_t architecture;
    if (uc_query(engine, UC_QUERY_ARCH, &architecture) != UC_ERR_OK) throw std::runtime_error("UC_QUERY_ARCH");
    return architecture;
}

// Of FPCR: FZ16, RMode, FZ and DN.
constexpr uint64_t DERIVED_FROM = 0b1111 << 22 | 1 << 19;

// What the engine derives from FPCR, it derives only as that changes, and with another rounding mode than FPCR's four
// it aborts. x86: from MXCSR and x87's control word, whenever they are written.
void derive_rounding(uc_engine* engine) {
    if (architecture_of(engine) == UC_ARCH_X86) {
        for (const uc_x86_reg control : {UC_X86_REG_MXCSR, UC_X86_REG_FPCW}) {
            uint64_t value = 0;
            if (uc_reg_read(engine, control, &value) != UC_ERR_OK || uc_reg_write(engine, control, &value) != UC_ERR_OK)
                throw std::runtime_error("MXCSR, FPCW");
        }
        return;
    }
    uint64_t fpcr;
    bool fails = uc_reg_read(engine, UC_ARM64_REG_FPCR, &fpcr) != UC_ERR_OK;
    const uint64_t others = fpcr ^ DERIVED_FROM;
    fails = fails || uc_reg_write(engine, UC_ARM64_REG_FPCR, &others) != UC_ERR_OK;
    if (fails || uc_reg_write(engine, UC_ARM64_REG_FPCR, &fpcr) != UC_ERR_OK) throw std::runtime_error("FPCR");
}

}  // namespace

void archive_context(uc_engine* engine, Archive& state) {
    if (!state.is_loading()) derive_rounding(engine);  // as whoever loads it
    uc_context* allocated = nullptr;
    if (uc_context_alloc(engine, &allocated) != UC_ERR_OK) throw std::runtime_error("uc_context_alloc");
    std::unique_ptr<uc_context, ContextFree> context(allocated);
    if (uc_context_save(engine, allocated) != UC_ERR_OK) throw std::runtime_error("uc_context_save");
    auto* const bytes = reinterpret_cast<uint8_t*>(allocated);
    const uint64_t all = uc_context_size(engine);
    uint64_t registers;
    std::memcpy(&registers, bytes, sizeof registers);
    if (registers >= all || all - registers > LONGEST_HEAD)
        throw std::runtime_error("this Unicorn keeps its registers where 2.1.4 does not");
    const std::span its_registers(bytes + (all - registers), registers);
    std::optional<Aarch64Context> made;
    if (state.is_loading() && architecture_of(engine) == UC_ARCH_ARM64) made.emplace(engine, allocated, its_registers);
    state.raw(its_registers.data(), registers);
    if (!state.is_loading()) return;
    if (made) made->renew_derived(its_registers);
    if (uc_context_restore(engine, allocated) != UC_ERR_OK) throw std::runtime_error("uc_context_restore");
    if (made) state.expect(made->settle_restored());
    derive_rounding(engine);
}

}  // namespace perfemu
