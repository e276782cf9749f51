#include "instructions/x87_control.hpp"

#include "instructions/guest_memory.hpp"
#include "instructions/sse_control.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// What FLDCW can write, and a bit that reads as set.
constexpr uint16_t CONTROL_BITS = 0x1f3f, CONTROL_SET = 0x40;

uint32_t store_status(Environment* environment) { return X87(environment).status_word(); }

uint32_t store_control(Environment* environment) { return X87(environment).control(); }

void set_control(const X87& x87, uint32_t value) {
    x87.control() = static_cast<uint16_t>((value & CONTROL_BITS) | CONTROL_SET);
    x87.summarize();
}

void load_control(Environment* environment, uint32_t value) { set_control(WAITING_X87(environment), value); }

void clear_exceptions(Environment* environment) { X87(environment).status() &= ORDER_CONDITIONS | CONDITION_1; }

void wait(Environment* environment) { WAITING_X87(environment); }

// --- environments; `size`: 0 where they are of 16-bit words, else of 32-bit ones ---

using AreaHelper = void(Environment*, uint64_t address, int size);
AreaHelper* engine_load_environment = nullptr;
AreaHelper* engine_restore = nullptr;
void (*engine_save_extended)(Environment*, uint64_t address) = nullptr;
void (*engine_restore_extended)(Environment*, uint64_t address) = nullptr;
void (*engine_initialize)(Environment*) = nullptr;

// Intel SDM vol. 1, "Protected Mode x87 FPU State Image in Memory": words of 16 or 32 bits, of which the latter have
// ones where there is no value.
constexpr uint64_t ENVIRONMENT_WORDS = 7;
constexpr uint32_t RESERVED = 0xffff'0000;
constexpr uint64_t WORD_BYTES[] = {2, 4};  // by `size`
constexpr uint64_t REGISTER_BYTES = 10, EXTENDED_AREA_BYTES = 512, MXCSR_IN_AREA = 24;

// Two bits of each register; the engine has only whether it is empty.
uint32_t tag_word(const X87& x87) {
    constexpr unsigned VALID = 0, ZERO_TAG = 1, SPECIAL = 2, EMPTY = 3;
    unsigned tags = 0;
    for (unsigned number = 0; number < 8; number++) {
        const X87Slot& slot = x87.physical(number);
        const unsigned exponent = slot.sign_exponent & 0x7fff;
        const bool normal = exponent && exponent != 0x7fff && slot.significand >> 63;
        const unsigned kind = normal ? VALID : exponent || slot.significand ? SPECIAL : ZERO_TAG;
        tags |= (x87.tags()[number] ? EMPTY : kind) << 2 * number;
    }
    return tags;
}

void store_image(Environment* environment, uint64_t address, int size, uintptr_t return_address) {
    const X87 x87(environment);
    const uint32_t words[] = {RESERVED | x87.control(),
                              RESERVED | x87.status_word(),
                              RESERVED | tag_word(x87),
                              static_cast<uint32_t>(x87.last_instruction()),
                              x87.last_code_segment(),
                              0,
                              RESERVED};
    for (uint32_t word : words) {
        if (size)
            guest_memory.store_32(environment, address, word, return_address);
        else
            guest_memory.store_16(environment, address, word & ~RESERVED, return_address);
        address += WORD_BYTES[size != 0];
    }
}

// The engine's own functions know no return address but that of who calls them: what they read is read before, the
// first word and last byte, as AMD does, so that they never fault.
void touch(Environment* environment, uint64_t address, int size, uint64_t bytes, uintptr_t return_address) {
    if (size)
        guest_memory.load_32(environment, address, return_address);
    else
        guest_memory.load_16(environment, address, return_address);
    guest_memory.load_8(environment, address + bytes - 1, return_address);
}

// FNSTENV leaves every exception masked.
void store_environment(Environment* environment, uint64_t address, int size) {
    check_area(environment, address, WORD_BYTES[size != 0], ENVIRONMENT_WORDS * WORD_BYTES[size != 0],
               HELPER_RETURN_ADDRESS());
    store_image(environment, address, size, HELPER_RETURN_ADDRESS());
    const X87 x87(environment);
    set_control(x87, x87.control() | ALL_FLOAT_EXCEPTIONS);
}

void load_environment(Environment* environment, uint64_t address, int size) {
    WAITING_X87(environment);
    touch(environment, address, size, ENVIRONMENT_WORDS * WORD_BYTES[size != 0], HELPER_RETURN_ADDRESS());
    engine_load_environment(environment, address, size != 0);
    const X87 x87(environment);
    set_control(x87, x87.control());
}

void save(Environment* environment, uint64_t address, int size) {
    check_area(environment, address, WORD_BYTES[size != 0],
               ENVIRONMENT_WORDS * WORD_BYTES[size != 0] + 8 * REGISTER_BYTES, HELPER_RETURN_ADDRESS());
    store_image(environment, address, size, HELPER_RETURN_ADDRESS());
    address += ENVIRONMENT_WORDS * WORD_BYTES[size != 0];
    const X87 x87(environment);
    for (unsigned i = 0; i < 8; i++, address += REGISTER_BYTES) {
        const Extended value = x87.get(i);
        guest_memory.store_64(environment, address, value.significand, HELPER_RETURN_ADDRESS());
        guest_memory.store_16(environment, address + 8, value.sign_exponent, HELPER_RETURN_ADDRESS());
    }
    engine_initialize(environment);
}

void restore(Environment* environment, uint64_t address, int size) {
    WAITING_X87(environment);
    touch(environment, address, size, ENVIRONMENT_WORDS * WORD_BYTES[size != 0] + 8 * REGISTER_BYTES,
          HELPER_RETURN_ADDRESS());
    engine_restore(environment, address, size != 0);
    const X87 x87(environment);
    set_control(x87, x87.control());
}

void save_extended(Environment* environment, uint64_t address) {
    if (address & 15) raise_exception(environment, Vector8664::PROTECTION, HELPER_RETURN_ADDRESS());
    check_writable(environment, address + EXTENDED_AREA_BYTES - 1, HELPER_RETURN_ADDRESS());  // first, as AMD does
    check_writable(environment, address, HELPER_RETURN_ADDRESS());
    engine_save_extended(environment, address);
}

constexpr uint64_t LAST_INSTRUCTION = 8;  // in FXSAVE's area

void restore_extended(Environment* environment, uint64_t address) {
    if (address & 15) raise_exception(environment, Vector8664::PROTECTION, HELPER_RETURN_ADDRESS());
    guest_memory.load_8(environment, address + EXTENDED_AREA_BYTES - 1, HELPER_RETURN_ADDRESS());
    guest_memory.load_8(environment, address, HELPER_RETURN_ADDRESS());
    if (guest_memory.load_32(environment, address + MXCSR_IN_AREA, HELPER_RETURN_ADDRESS()) & MXCSR_RESERVED)
        raise_exception(environment, Vector8664::PROTECTION, HELPER_RETURN_ADDRESS());
    engine_restore_extended(environment, address);
    const X87 x87(environment);
    x87.last_instruction() = guest_memory.load_64(environment, address + LAST_INSTRUCTION, HELPER_RETURN_ADDRESS());
    set_control(x87, x87.control());
}

}  // namespace

InstructionFamily x87_control_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_fnstsw", store_status),
        in_place_of("helper_fnstcw", store_control),
        in_place_of("helper_fldcw", load_control),
        in_place_of("helper_fclex", clear_exceptions),
        in_place_of("helper_fwait", wait),
        in_place_of("helper_fstenv", store_environment),
        in_place_of("helper_fldenv", load_environment, &engine_load_environment),
        in_place_of("helper_fsave", save),
        in_place_of("helper_frstor", restore, &engine_restore),
        in_place_of("helper_fxsave", save_extended, &engine_save_extended),
        in_place_of("helper_fxrstor", restore_extended, &engine_restore_extended),
    };
    return {REPLACEMENTS, [](const Calibration&) { find_in_engine(engine_initialize, "helper_fninit"); }};
}

}  // namespace perfemu
