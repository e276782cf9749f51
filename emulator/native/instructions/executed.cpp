#include "instructions/executed.hpp"

#include <vector>

#include "instructions/bit_manipulation.hpp"
#include "instructions/code_bytes.hpp"
#include "instructions/exceptions.hpp"
#include "instructions/general.hpp"
#include "instructions/guest_memory.hpp"
#include "instructions/mmx.hpp"
#include "instructions/segments.hpp"
#include "instructions/stack_frame.hpp"
#include "instructions/trace_writes.hpp"
#include "instructions/x87_conditional.hpp"

namespace perfemu {
namespace {

std::vector<ExecutedRow> rows;

constexpr unsigned STACK_POINTER = 4;  // no index
constexpr unsigned FS = 1, GS = 2;

// While such an instruction is translated, the translator reads another in its place, which only calls a helper, and
// then takes flags from where helpers leave them, or leaves them alone. The call is made one of ours; others that come
// before it, of a hook and for the flags so far, have more arguments.
constexpr uint8_t LEAVES_FLAGS[] = {0x0f, 0x77};                  // EMMS
constexpr uint8_t SETS_FLAGS[] = {0x66, 0x0f, 0x38, 0x17, 0xc0};  // PTEST XMM0, XMM0

struct PendingCall {
    int arguments;  // of the helper's call; 0: none is pending
    uint64_t displacement;
    uint32_t packed;
};
thread_local PendingCall call{};

// QEMU's TCGv: a TCGTemp by its offset from the context.
using Temporary = uintptr_t;
void* temporary(void* context, Temporary offset) { return static_cast<uint8_t*>(context) + offset; }

void (*engine_call)(void* context, void* function, void* result, int count, void** arguments) = nullptr;
Temporary (*constant_32)(void* context, int32_t) = nullptr;
Temporary (*constant_64)(void* context, int64_t) = nullptr;

void execute(Environment* environment, uint64_t displacement, uint32_t packed) {
    const Operands operands(environment, displacement, packed, HELPER_RETURN_ADDRESS());
    rows[operands.row()].execute(operands);
}

void emit_call(void* context, void* function, void* result, int count, void** arguments) {
    if (!call.arguments || count != call.arguments) {
        if (!emit_conditional_move(engine_call, context, function, count, arguments) &&
            !emit_mmx_call(engine_call, context, function, count, arguments))
            engine_call(context, function, result, count, arguments);
        return;
    }
    void* ours[] = {arguments[0], temporary(context, constant_64(context, static_cast<int64_t>(call.displacement))),
                    temporary(context, constant_32(context, static_cast<int32_t>(call.packed)))};
    engine_call(context, reinterpret_cast<void*>(execute), nullptr, 3, ours);
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
    displacement += encoding.immediate_16;
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
    uint64_t address = displacement();
    if (!bits(NO_BASE, 1)) address += general_register(environment_, bits(BASE, 4));
    if (bits(INDEX, 4) != STACK_POINTER) address += general_register(environment_, bits(INDEX, 4)) << bits(SCALE, 2);
    if (bits(ADDRESS_32, 1)) address = static_cast<uint32_t>(address);
    if (bits(SEGMENT, 2) == FS) address += field<uint64_t>(environment_, environment_layout.segment_base_fs);
    if (bits(SEGMENT, 2) == GS) address += field<uint64_t>(environment_, environment_layout.segment_base_gs);
    return address;
}

uint64_t Operands::load(int bytes) const {
    switch (bytes) {
        case 1: return guest_memory.load_8(environment_, address(), return_address_);
        case 2: return guest_memory.load_16(environment_, address(), return_address_);
        case 4: return guest_memory.load_32(environment_, address(), return_address_);
        default: return guest_memory.load_64(environment_, address(), return_address_);
    }
}

void Operands::store(int bytes, uint64_t value) const {
    const auto low = static_cast<uint32_t>(value);
    switch (bytes) {
        case 1: guest_memory.store_8(environment_, address(), low, return_address_); break;
        case 2: guest_memory.store_16(environment_, address(), low, return_address_); break;
        case 4: guest_memory.store_32(environment_, address(), low, return_address_); break;
        default: guest_memory.store_64(environment_, address(), value, return_address_);
    }
}

uint64_t Operands::read_source() const {
    return in_memory() ? load(static_cast<int>(bytes())) : read(source_register());
}

const ExecutedRow* executed_row(const Encoding& encoding) {
    const uint8_t form = encoding.in_memory() ? ExecutedRow::MEMORY : ExecutedRow::REGISTER;
    const uint8_t width = encoding.wide         ? ExecutedRow::BITS_64
                          : encoding.operand_16 ? ExecutedRow::BITS_16
                                                : ExecutedRow::BITS_32;
    if (encoding.vex_256 || (encoding.lock && !encoding.in_memory())) return nullptr;
    for (const ExecutedRow& row : rows)
        if (row.map == encoding.map && row.opcode == encoding.opcode && row.prefixes & encoding.prefix &&
            row.vex == encoding.vex && row.form & form && row.widths & width &&
            (row.group == ExecutedRow::ANY_GROUP || row.group == (encoding.reg & 7)))
            return &row;
    return nullptr;
}

void begin_executed(const ExecutedRow& row, const Encoding& encoding, uint64_t address) {
    const uint64_t next = address + encoding.length;
    const auto number = static_cast<unsigned>(&row - rows.data());
    constexpr int OF_EMMS = 1, OF_PTEST = 3;
    call = {row.sets_flags ? OF_PTEST : OF_EMMS, Operands::pack_displacement(encoding, next),
            Operands::pack(encoding, number)};
    present_code(row.sets_flags ? std::span<const uint8_t>(SETS_FLAGS) : LEAVES_FLAGS, address, next - 1);
}

void end_executed() { call = {}; }

InstructionFamily executed_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("tcg_gen_callN", emit_call, &engine_call),
        // BOUND, which 64-bit mode does not have, has the arguments that we want.
        in_place_of("helper_boundl", execute),
    };
    rows.clear();
    for (const auto& of_file :
         {bit_manipulation_rows(), general_rows(), segment_rows(), stack_frame_rows(), trace_write_rows()})
        rows.insert(rows.end(), of_file.begin(), of_file.end());
    const auto find = [](const Calibration&) {
        find_guest_memory();
        find_in_engine(constant_32, "tcg_const_i32");
        find_in_engine(constant_64, "tcg_const_i64");
    };
    return {REPLACEMENTS, find};
}

}  // namespace perfemu
