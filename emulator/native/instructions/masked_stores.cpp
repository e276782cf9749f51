#include "instructions/masked_stores.hpp"

#include "instructions/exceptions.hpp"
#include "instructions/guest_memory.hpp"

namespace perfemu {
namespace {

constexpr uint8_t SELECTED = 0x80;

// Of memory that no selected byte is in, nobody learns anything: whether it could be stored to is
// implementation-specific.
template <int BYTES>
void store_masked(Environment* environment, const Vector* source, const Vector* mask, uint64_t address) {
    const uintptr_t return_address = HELPER_RETURN_ADDRESS();
    for (int i = 0; i < BYTES; i++)  // where one faults, none is written
        if (mask->bytes[i] & SELECTED) check_writable(environment, address + static_cast<unsigned>(i), return_address);
    for (int i = 0; i < BYTES; i++)
        if (mask->bytes[i] & SELECTED)
            guest_memory.store_8(environment, address + static_cast<unsigned>(i), source->bytes[i], return_address);
}

}  // namespace

InstructionFamily masked_store_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_maskmov_mmx", store_masked<8>),
        in_place_of("helper_maskmov_xmm", store_masked<16>),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
