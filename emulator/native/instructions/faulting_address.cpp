#include "instructions/faulting_address.hpp"

namespace perfemu {
namespace {

thread_local uint64_t last_address = 0;

using FillTlb = bool(void* cpu, uint64_t address, int size, int access, int index, bool probe, uintptr_t);
FillTlb* engine_fill_tlb = nullptr;

bool fill_tlb(void* cpu, uint64_t address, int size, int access, int index, bool probe, uintptr_t return_address) {
    last_address = address;
    return engine_fill_tlb(cpu, address, size, access, index, probe, return_address);
}

}  // namespace

uint64_t faulting_address() { return last_address; }

InstructionFamily faulting_address_family() {
    static const EngineReplacement REPLACEMENTS[] = {in_place_of("unicorn_fill_tlb", fill_tlb, &engine_fill_tlb)};
    return {REPLACEMENTS};
}

}  // namespace perfemu
