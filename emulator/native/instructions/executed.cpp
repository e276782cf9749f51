#include "executed.hpp"

#include "bit_manipulation.hpp"
#include "exceptions.hpp"
#include "guest_memory.hpp"
#include "mmx.hpp"

namespace perfemu {
namespace {

constexpr unsigned STACK_POINTER = 4;  // no index
constexpr unsigned FS = 1, GS = 2;

// While such an instruction is translated, the translator reads another in its place, which only calls a helper, and
// then takes flags from where helpers leave them, or leaves them alone. The call is made one of ours.
constexpr uint8_t LEAVES_FLAGS[] = {0x0f, 0x77};                  // EMMS
constexpr uint8_t SETS_FLAGS[] = {0x66, 0x0f, 0x38, 0x17, 0xc0};  // PTEST XMM0, XMM0

struct StandIn {
    std::span<const uint8_t> code;  // empty: none
    uint64_t address, last;         // of its first byte, and of the last of what it stands for
    uint64_t displacement;
    uint32_t packed;
};
thread_local StandIn stand_in;

// QEMU's TCGv: a TCGTemp by its offset from the context.
using Temporary = uintptr_t;
void* temporary(void* context, Temporary offset) { return static_cast<uint8_t*>(context) + offset; }

void (*engine_call)(void* context, void* function, void* result, int count, void** arguments) = nullptr;
uint32_t (*engine_code_byte)(Environment*, uint64_t) = nullptr;
Temporary (*constant_32)(void* context, int32_t) = nullptr;
Temporary (*constant_64)(void* context, int64_t) = nullptr;

void execute(Environment* environment, uint64_t displacement, uint32_t packed) {
    const Operands operands(environment, displacement, packed, HELPER_RETURN_ADDRESS());
    bit_manipulation_rows()[operands.row()].execute(operands);
}

void emit_call(void* context, void* function, void* result, int count, void** arguments) {
    if (stand_in.code.empty()) {
        note_mmx_call(engine_call, context, function, count, arguments);
        engine_call(context, function, result, count, arguments);
        return;
    }
    void* ours[] = {arguments[0], temporary(context, constant_64(context, static_cast<int64_t>(stand_in.displacement))),
                    temporary(context, constant_32(context, static_cast<int32_t>(stand_in.packed)))};
    engine_call(context, reinterpret_cast<void*>(execute), nullptr, 3, ours);
}

uint32_t code_byte(Environment* environment, uint64_t address) {
    const uint64_t at = address - stand_in.address;
    if (at >= stand_in.code.size()) return engine_code_byte(environment, address);
    if (at == 0) engine_code_byte(environment, stand_in.last);  // perhaps on a page that cannot be executed
    return stand_in.code[at];
}

}  // namespace

uint32_t Operands::pack(const Encoding& encoding, unsigned row) {
    const bool memory = encoding.in_memory(), no_base = memory && encoding.base >= Encoding::INSTRUCTION_POINTER;
    const unsigned base = memory ? (no_base ? 0 : encoding.base) : encoding.rm;
    const unsigned index = encoding.index == Encoding::NO_REGISTER ? STACK_POINTER : encoding.index;
    const unsigned segment = encoding.segment == 0x64 ? FS : encoding.segment == 0x65 ? GS : 0;
    return row | unsigned{encoding.reg} << REG | unsigned{encoding.third_register} << THIRD | base << BASE |
           index << INDEX | unsigned{encoding.scale} << SCALE | segment << SEGMENT | unsigned{memory} << IN_MEMORY |
           unsigned{no_base} << NO_BASE | unsigned{encoding.wide} << WIDE | unsigned{encoding.address_32} << ADDRESS_32;
}

uint64_t Operands::pack_displacement(const Encoding& encoding, uint64_t next) {
    auto displacement = static_cast<uint64_t>(int64_t{encoding.displacement});
    if (encoding.base == Encoding::INSTRUCTION_POINTER) displacement += next;
    return displacement << 8 | encoding.immediate;
}

uint64_t Operands::read(unsigned general) const {
    const uint64_t value = general_register(environment_, general);
    return bytes() == 8 ? value : static_cast<uint32_t>(value);
}

void Operands::write(unsigned general, uint64_t value) const {
    general_register(environment_, general) = bytes() == 8 ? value : static_cast<uint32_t>(value);
}

uint64_t Operands::address() const {
    auto address = static_cast<uint64_t>(static_cast<int64_t>(displacement_) >> 8);
    if (!bits(NO_BASE, 1)) address += general_register(environment_, bits(BASE, 4));
    if (bits(INDEX, 4) != STACK_POINTER) address += general_register(environment_, bits(INDEX, 4)) << bits(SCALE, 2);
    if (bits(ADDRESS_32, 1)) address = static_cast<uint32_t>(address);
    if (bits(SEGMENT, 2) == FS) address += field<uint64_t>(environment_, environment_layout.segment_base_fs);
    if (bits(SEGMENT, 2) == GS) address += field<uint64_t>(environment_, environment_layout.segment_base_gs);
    return address;
}

uint64_t Operands::read_source() const {
    if (!bits(IN_MEMORY, 1)) return read(bits(BASE, 4));
    return bytes() == 8 ? guest_memory.load_64(environment_, address(), return_address_)
                        : guest_memory.load_32(environment_, address(), return_address_);
}

const ExecutedRow* executed_row(const Encoding& encoding) {
    for (const ExecutedRow& row : bit_manipulation_rows())
        if (row.map == encoding.map && row.opcode == encoding.opcode && row.prefixes & encoding.prefix &&
            row.vex == encoding.vex && (row.group == ExecutedRow::ANY_GROUP || row.group == (encoding.reg & 7)))
            return encoding.vex_256 ? nullptr : &row;
    return nullptr;
}

void begin_executed(const ExecutedRow& row, const Encoding& encoding, uint64_t address) {
    const uint64_t next = address + encoding.length;
    const auto number = static_cast<unsigned>(&row - bit_manipulation_rows().data());
    stand_in = {row.sets_flags ? std::span<const uint8_t>(SETS_FLAGS) : LEAVES_FLAGS, address, next - 1,
                Operands::pack_displacement(encoding, next), Operands::pack(encoding, number)};
}

void end_executed() { stand_in = {}; }

InstructionFamily executed_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("tcg_gen_callN", emit_call, &engine_call),
        in_place_of("cpu_ldub_code", code_byte, &engine_code_byte),
        // BOUND, which 64-bit mode does not have, has the arguments that we want.
        in_place_of("helper_boundl", execute),
    };
    const auto find = [](const Calibration&) {
        find_guest_memory();
        find_in_engine(constant_32, "tcg_const_i32");
        find_in_engine(constant_64, "tcg_const_i64");
    };
    return {REPLACEMENTS, find};
}

}  // namespace perfemu
