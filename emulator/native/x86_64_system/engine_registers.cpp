#include "x86_64_system/engine_registers.hpp"

#include <cstddef>
#include <optional>
#include <stdexcept>

#include "engine/register_file.hpp"
#include "instructions/environment.hpp"

namespace perfemu::x86_64 {
namespace {

// QEMU's HF_*_MASK: what its translator is told of the processor's mode. Vectors and x87 are always there: we use them
// for other instructions (instructions/executed.cpp); where they are not, the processor says so.
namespace hidden {
constexpr uint32_t CS_32 = 1 << 4, SS_32 = 1 << 5, ADDS_BASES = 1 << 6, PROTECTED = 1 << 7, LONG = 1 << 14,
                   CS_64 = 1 << 15, OSFXSR = 1 << 22;
}  // namespace hidden

}  // namespace

// QEMU's SegmentCache.
struct EngineRegisters::Cache {
    uint32_t selector;
    uint64_t base;
    uint32_t limit;
    uint32_t flags;  // the second word of a descriptor
};

EngineRegisters::EngineRegisters(uc_engine* engine) : engine_(engine) {
    const std::optional<RegisterFile> file = RegisterFile::locate(engine, UC_ARCH_X86);
    if (!file) throw std::runtime_error("the registers of this Unicorn's engine are not found");
    general_ = const_cast<uint64_t*>(file->registers[RAX]);
    auto* environment = reinterpret_cast<uint8_t*>(environment_of(general_));
    const size_t first = environment_layout.segment_base_fs - offsetof(Cache, base) - FS * sizeof(Cache);
    segments_ = reinterpret_cast<Cache*>(environment + first);
    mode_ = reinterpret_cast<uint32_t*>(environment + environment_layout.mode);
}

uint64_t& EngineRegisters::base(unsigned segment) const { return segments_[segment].base; }

void EngineRegisters::follow(const State& state) const {
    const CodeMode code = state.mode();
    bool bases = code == CodeMode::BITS_16 || !state.is_protected();
    for (unsigned i = ES; i <= GS; i++) {
        const SegmentRegister& segment = state.segments[i];
        Cache& cache = segments_[i];
        cache.selector = segment.selector;
        cache.limit = segment.limit;
        cache.flags = (segment.attributes & 0xf0ff) << 8;
        if (i < FS) {
            cache.base = code == CodeMode::BITS_64 ? 0 : segment.base;
            bases |= code != CodeMode::BITS_64 && i != CS && segment.base;
        }
    }
    uint32_t mode = state.cpl | hidden::OSFXSR;
    if (code != CodeMode::BITS_16) mode |= hidden::CS_32;
    if (code == CodeMode::BITS_64) mode |= hidden::CS_64 | hidden::SS_32;
    if (state.segments[SS].has(attribute::DB)) mode |= hidden::SS_32;
    if (bases) mode |= hidden::ADDS_BASES;
    if (state.is_protected()) mode |= hidden::PROTECTED;
    if (state.is_long()) mode |= hidden::LONG;
    *mode_ = mode;
}

}  // namespace perfemu::x86_64
