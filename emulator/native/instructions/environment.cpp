#include "instructions/environment.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "engine/linkage.hpp"

namespace perfemu {
namespace {

constexpr uint64_t CODE = 0x1000, PAGE_BYTES = 0x1000;
constexpr uint8_t CPUID[] = {0x0f, 0xa2};

Environment* noted = nullptr;

constexpr uint32_t CODE_CACHE_BYTES = 1 << 20;  // the engine's own choice is a thousand times that
constexpr std::array<uint64_t, 3> WORDS = {0x1357'9bdf'0246'8ace, 0x0fed'cba9'8765'4321, 0x5a5a'1234'4321'a5a5};

}  // namespace

void (*engine_cpuid)(Environment*) = nullptr;

void note_environment(Environment* environment) {
    noted = environment;
    engine_cpuid(environment);
}

Calibration::Calibration() {
    if (uc_open(UC_ARCH_X86, UC_MODE_64, &engine_) != UC_ERR_OK) throw std::runtime_error("uc_open");
    noted = nullptr;
    uc_ctl_set_tcg_buffer_size(engine_, CODE_CACHE_BYTES);
    uc_mem_map(engine_, CODE, PAGE_BYTES, UC_PROT_ALL);
    uc_mem_write(engine_, CODE, CPUID, sizeof CPUID);
    uc_emu_start(engine_, CODE, CODE + sizeof CPUID, 0, 0);
    bytes_ = reinterpret_cast<uint8_t*>(noted);
    size_ = uc_context_size(engine_);
    if (noted) return;
    uc_close(engine_);
    throw std::runtime_error("this Unicorn does not call its helpers as 2.1.4 does");
}

Calibration::~Calibration() { uc_close(engine_); }

size_t Calibration::only(const char* what, std::span<const size_t> places) {
    if (places.size() != 1)
        throw std::runtime_error(std::string("this Unicorn keeps ") + what + " where 2.1.4 does not");
    return places[0];
}

void calibrate_environment(const Calibration& calibration) {
    EnvironmentLayout& layout = environment_layout;
    const std::span<const uint64_t> words(WORDS);
    layout.general = calibration.find_register("RAX", UC_X86_REG_RAX, words);
    const size_t last = calibration.find_register("R15", UC_X86_REG_R15, words);
    if (last - layout.general != 15 * sizeof(uint64_t))
        throw std::runtime_error("this Unicorn keeps R15 where 2.1.4 does not");
    auto vector = [&](const char* what, int number) {
        return calibration.find<uint64_t>(what, words, [&](uint64_t value) {
            const uint64_t both[] = {value, ~value};
            uc_reg_write(calibration.engine(), number, both);
        });
    };
    layout.vectors = vector("XMM0", UC_X86_REG_XMM0);
    layout.vector_stride = vector("XMM1", UC_X86_REG_XMM1) - layout.vectors;
    constexpr std::array<uint32_t, 3> CONTROLS = {0x1f80, 0x9f95, 0x7faa};
    layout.mxcsr = calibration.find_register<uint32_t>("MXCSR", UC_X86_REG_MXCSR, CONTROLS);
    layout.segment_base_fs = calibration.find_register("FS", UC_X86_REG_FS_BASE, words);
    layout.segment_base_gs = calibration.find_register("GS", UC_X86_REG_GS_BASE, words);

    // QEMU's hflags have CR0.MP, EM and TS eight bits above their places there, and here what 64-bit code at CPL 0 has.
    constexpr uint32_t MODE = 0x40'c0b0, PROTECTED = 1;
    constexpr std::array<uint32_t, 3> CONTROLS_0 = {0, 8, 2};
    std::array<uint32_t, 3> modes;
    for (size_t i = 0; i < modes.size(); i++) modes[i] = MODE | CONTROLS_0[i] << 8;
    layout.mode = calibration.find<uint32_t>("its mode", modes, [&](uint32_t value) {
        const uint64_t control = PROTECTED | (value & ~MODE) >> 8;
        uc_reg_write(calibration.engine(), UC_X86_REG_CR0, &control);
    });

    // PTEST leaves ZF, CF, both or none.
    void (*test)(Environment*, const Vector*, const Vector*) = nullptr;
    find_in_engine(test, "helper_ptest_xmm");
    constexpr std::array<uint64_t, 5> LEFT = {ZERO | CARRY, CARRY, ZERO, 0, CARRY};
    layout.flags_source = calibration.find<uint64_t>("its flags", LEFT, [&](uint64_t flags) {
        // ZF: no bit in both; CF: none in the second alone.
        const Vector first = {.quadwords = {1, 0}};
        const Vector second = {.quadwords = {(flags & ZERO ? 0u : 1u) | (flags & CARRY ? 0u : 2u), 0}};
        test(calibration.environment(), &first, &second);
    });
}

}  // namespace perfemu
