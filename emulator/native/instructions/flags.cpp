#include "instructions/flags.hpp"

namespace perfemu {
namespace {

constexpr uint32_t INTERRUPT_ENABLE = 0x200, PRIVILEGE_LEVEL = 0x3000;  // IF, IOPL

void (*engine_write)(Environment*, uint64_t flags, uint32_t changed) = nullptr;

// POPF. The engine runs user mode as the kernel's.
void write(Environment* environment, uint64_t flags, uint32_t changed) {
    engine_write(environment, flags, changed & ~(INTERRUPT_ENABLE | PRIVILEGE_LEVEL));
}

}  // namespace

InstructionFamily flags_family() {
    static const EngineReplacement HELPERS[] = {in_place_of("helper_write_eflags", write, &engine_write)};
    return {HELPERS};
}

}  // namespace perfemu
