// Accesses of devices: the machine answers them, the processor does the rest of the instruction.
#include <bit>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr uint64_t ones(unsigned bytes) { return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1; }
constexpr uint64_t sign(unsigned bytes) { return uint64_t{1} << (8 * bytes - 1); }

enum class Arithmetic : uint8_t { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

struct Result {
    uint64_t value, flags;
};

// With the flags that it leaves.
Result compute(Arithmetic what, uint64_t a, uint64_t b, bool carry, unsigned bytes) {
    using namespace rflags;
    const uint64_t all = ones(bytes), top = sign(bytes);
    a &= all, b &= all;
    const bool adds = what == Arithmetic::ADD || what == Arithmetic::ADC;
    const bool subtracts = what == Arithmetic::SUB || what == Arithmetic::SBB || what == Arithmetic::CMP;
    const uint64_t in = (what == Arithmetic::ADC || what == Arithmetic::SBB) && carry;
    uint64_t value = 0, flags = 0;
    if (adds) {
        value = (a + b + in) & all;
        if (value < a || (in && value == a)) flags |= CF;
        if (~(a ^ b) & (a ^ value) & top) flags |= OF;
    } else if (subtracts) {
        value = (a - b - in) & all;
        if (a < b || (in && a == b)) flags |= CF;
        if ((a ^ b) & (a ^ value) & top) flags |= OF;
    } else {
        value = what == Arithmetic::AND ? a & b : what == Arithmetic::OR ? a | b : a ^ b;
    }
    if ((adds || subtracts) && (a ^ b ^ value) & 0x10) flags |= AF;
    if (!value) flags |= ZF;
    if (value & top) flags |= SF;
    if (!(std::popcount(value & 0xff) & 1)) flags |= PF;
    return {value, flags};
}

constexpr uint64_t STATUS = rflags::CF | rflags::PF | rflags::AF | rflags::ZF | rflags::SF | rflags::OF;

bool is_byte(const Instruction& insn) { return !(insn.opcode & 1); }

}  // namespace

// AH, CH, DH and BH are the second bytes of the first four.
uint64_t Processor::part(unsigned number, unsigned bytes) const {
    const bool high = bytes == 1 && !insn_->has_rex && number >= RSP && number <= RDI;
    return high ? registers_.general(number - RSP) >> 8 & 0xff : general(number, bytes);
}

void Processor::set_part(unsigned number, unsigned bytes, uint64_t value) {
    if (bytes == 1 && !insn_->has_rex && number >= RSP && number <= RDI) {
        uint64_t& whole = registers_.general(number - RSP);
        whole = (whole & ~uint64_t{0xff00}) | (value & 0xff) << 8;
    } else {
        set_general(number, bytes, value);
    }
}

// --- strings ---

// One iteration is through. Whether it was the last.
bool Processor::end_iteration(unsigned bytes, bool source, bool destination) {
    const unsigned width = insn_->address_16 ? 2 : insn_->address_32 ? 4 : 8;
    const uint64_t step = registers_.flags() & rflags::DF ? -uint64_t{bytes} : uint64_t{bytes};
    if (source) set_general(RSI, width, general(RSI, width) + step);
    if (destination) set_general(RDI, width, general(RDI, width) + step);
    if (!insn_->repeat) return true;
    set_general(RCX, width, general(RCX, width) - 1);
    return general(RCX, width) == 0;
}

bool Processor::has_no_iteration() const {
    const unsigned width = insn_->address_16 ? 2 : insn_->address_32 ? 4 : 8;
    return insn_->repeat && general(RCX, width) == 0;
}

// --- ports ---

// SDM vol. 1, 19.5.
bool Processor::permits_port(uint16_t port, unsigned bytes) const {
    constexpr unsigned MAP_AT = 102;
    if (!state_.is_protected() || state_.cpl <= (registers_.flags() >> rflags::IOPL_AT & 3)) return true;
    const SegmentRegister& task = state_.segments[TR];
    if (MAP_AT + 1 > task.limit) return false;
    const uint64_t map = memory_.load(task.base + MAP_AT, 2, Level::KERNEL) + port / 8;
    if (map + 1 > task.limit) return false;
    const uint64_t bits = memory_.load(task.base + map, 2, Level::KERNEL) >> port % 8;
    return !(bits & ((1u << bytes) - 1));
}

void Processor::access_port() {
    constexpr uint8_t FIRST_WITH_DX = 0xec, FIRST_OF_STRINGS = 0x6c, LAST_OF_STRINGS = 0x6f;
    const uint8_t opcode = insn_->opcode;
    const bool is_string = opcode >= FIRST_OF_STRINGS && opcode <= LAST_OF_STRINGS, goes_out = opcode & 2;
    port_.bytes = static_cast<uint8_t>(is_byte(*insn_) ? 1 : insn_->operand_16 ? 2 : 4);
    port_.port =
        static_cast<uint16_t>(is_string || opcode >= FIRST_WITH_DX ? registers_.general(RDX) : insn_->immediate & 0xff);
    if (!permits_port(port_.port, port_.bytes)) raise_protection();
    port_.value = general(RAX, port_.bytes);
    if (is_string) {
        if (has_no_iteration()) return;
        const Operand operand{.kind = Operand::Kind::MEMORY,
                              .method = goes_out ? AddressingMethod::SOURCE : AddressingMethod::DESTINATION};
        const uint64_t at = linear(segment_of(operand), offset_of(operand), port_.bytes);
        if (!memory_.is_ram(at, port_.bytes, level(), goes_out ? READ : WRITE))
            throw std::runtime_error("x86_64: INS and OUTS between a port and what is no RAM are not modelled");
        if (goes_out) port_.value = memory_.load(at, port_.bytes, level());
        ask(goes_out ? Trap::OUTS : Trap::INS);
        return;
    }
    ask(goes_out ? Trap::OUT : Trap::IN);
}

bool Processor::complete_port(const Instruction& insn, uint64_t value) {
    insn_ = &insn;
    bool last = true;
    switch (asks_) {
        case Trap::IN: set_general(RAX, port_.bytes, value); break;
        case Trap::INS: {
            const Operand operand{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::DESTINATION};
            memory_.store(linear(ES, offset_of(operand), port_.bytes), port_.bytes, value, level());
            last = end_iteration(port_.bytes, false, true);
            break;
        }
        case Trap::OUTS: last = end_iteration(port_.bytes, true, false); break;
        default: break;
    }
    return last;
}

// --- memory ---

// What the engine was refused: an access at `linear`, which the tables lead to `physical`. None: not modelled there.
std::optional<DeviceAccess> Processor::begin_device(const Instruction& insn, uint64_t linear, uint64_t physical) {
    insn_ = &insn;
    const unsigned bytes = is_byte(insn) ? 1 : insn.operand_size();
    DeviceAccess access{.physical = physical, .bytes = static_cast<uint8_t>(bytes)};
    const auto as = [&](AccessKind kind, uint64_t value = 0) {
        access.kind = kind;
        access.value = value & ones(access.bytes);
        return std::optional(access);
    };
    const auto sized = [&](unsigned size) {
        access.bytes = static_cast<uint8_t>(size);
        return as(AccessKind::LOAD);
    };
    const unsigned extension = insn.extension();
    if (insn.map == OpcodeMap::TWO_BYTE) {
        switch (insn.opcode) {
            case 0xb6:
            case 0xbe: return sized(1);
            case 0xb7:
            case 0xbf: return sized(2);
            case 0xc3:
                access.bytes = insn.rex_w ? 8 : 4;
                return as(AccessKind::STORE, general(insn.reg(), access.bytes));
            default: return std::nullopt;
        }
    }
    if (insn.map != OpcodeMap::ONE_BYTE) return std::nullopt;
    const bool arithmetic = insn.opcode < 0x40 && (insn.opcode & 7) < 4;
    if (arithmetic) {
        const bool to_memory = (insn.opcode & 7) < 2 && insn.opcode >> 3 != static_cast<unsigned>(Arithmetic::CMP);
        return as(to_memory ? AccessKind::UPDATE : AccessKind::LOAD, part(insn.reg(), bytes));
    }
    switch (insn.opcode) {
        case 0x63: return sized(4);
        case 0x80:
        case 0x81:
        case 0x83: return as(extension == 7 ? AccessKind::LOAD : AccessKind::UPDATE, insn.immediate);
        case 0x84:
        case 0x85:
        case 0x8a:
        case 0x8b:
        case 0xa0:
        case 0xa1: return as(AccessKind::LOAD, insn.has_modrm ? part(insn.reg(), bytes) : 0);
        case 0x86:
        case 0x87: return as(AccessKind::UPDATE, part(insn.reg(), bytes));
        case 0x88:
        case 0x89: return as(AccessKind::STORE, part(insn.reg(), bytes));
        case 0xa2:
        case 0xa3: return as(AccessKind::STORE, general(RAX, bytes));
        case 0xa4:
        case 0xa5: return begin_copy(access, linear);
        case 0xaa:
        case 0xab: return as(AccessKind::STORE, general(RAX, bytes));
        case 0xac:
        case 0xad: return as(AccessKind::LOAD);
        case 0xc6:
        case 0xc7: return as(AccessKind::STORE, insn.immediate);
        case 0xf6:
        case 0xf7:
            if (extension > 3) return std::nullopt;
            return as(extension < 2 ? AccessKind::LOAD : AccessKind::UPDATE, insn.immediate);
        case 0xfe:
        case 0xff:
            if (extension > 1) return std::nullopt;
            return as(AccessKind::UPDATE, 1);
        default: return std::nullopt;
    }
}

// MOVS: from a device to RAM, or the other way.
std::optional<DeviceAccess> Processor::begin_copy(DeviceAccess access, uint64_t linear) {
    const Operand from{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::SOURCE},
        to{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::DESTINATION};
    const uint64_t source = linear_address(from), destination = linear_address(to);
    const bool is_ram = memory_.tables()->walk(linear == source ? destination : source, level()).page.present;
    if (!is_ram) return std::nullopt;  // a device to a device
    access.kind = linear == source ? AccessKind::LOAD : AccessKind::STORE;
    if (linear == source)
        memory_.check(destination, access.bytes, level(), WRITE);
    else
        access.value = memory_.load(source, access.bytes, level());
    return access;
}

// The device has answered a load with that. What is to be stored then, if it updates; whether it has come to its end.
Processor::Completion Processor::complete_device(const Instruction& insn, const DeviceAccess& access, uint64_t loaded) {
    insn_ = &insn;
    const unsigned bytes = access.bytes;
    const unsigned full = insn.operand_size();
    loaded &= ones(bytes);
    if (insn.map == OpcodeMap::TWO_BYTE) {
        const bool is_signed = insn.opcode >= 0xbe, is_extension = insn.opcode != 0xc3;
        if (is_extension)
            set_general(insn.reg(), full, is_signed && loaded & sign(bytes) ? loaded | ~ones(bytes) : loaded);
        return {};
    }
    const auto with_flags = [&](Arithmetic what, uint64_t kept = 0) {
        const uint64_t flags = registers_.flags();
        const Result result = compute(what, loaded, access.value, flags & rflags::CF, bytes);
        registers_.set_flags((flags & (~STATUS | kept)) | (result.flags & ~kept));
        return result.value;
    };
    const auto first_of_register = [&](Arithmetic what) {
        const uint64_t flags = registers_.flags();
        const Result result = compute(what, access.value, loaded, flags & rflags::CF, bytes);
        registers_.set_flags((flags & ~STATUS) | result.flags);
        if (what != Arithmetic::CMP) set_part(insn.reg(), bytes, result.value);
    };
    const unsigned opcode = insn.opcode, extension = insn.extension();
    if (opcode < 0x40) {
        const auto what = static_cast<Arithmetic>(opcode >> 3);
        if ((opcode & 7) >= 2) {
            first_of_register(what);
            return {};
        }
        const uint64_t value = with_flags(what);
        return what == Arithmetic::CMP ? Completion{} : Completion{.stores = value};
    }
    switch (opcode) {
        case 0x63: set_general(insn.reg(), full, full == 8 && loaded & sign(4) ? loaded | ~ones(4) : loaded); return {};
        case 0x80:
        case 0x81:
        case 0x83: {
            const uint64_t value = with_flags(static_cast<Arithmetic>(extension));
            return extension == 7 ? Completion{} : Completion{.stores = value};
        }
        case 0x84:
        case 0x85: with_flags(Arithmetic::AND); return {};
        case 0x86:
        case 0x87: set_part(insn.reg(), bytes, loaded); return {.stores = access.value};
        case 0x8a:
        case 0x8b: set_part(insn.reg(), bytes, loaded); return {};
        case 0xa0:
        case 0xa1: set_general(RAX, bytes, loaded); return {};
        case 0xa4:
        case 0xa5:
            if (access.kind == AccessKind::LOAD) {
                const Operand to{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::DESTINATION};
                memory_.store(linear_address(to), bytes, loaded, level());
            }
            return {.goes_on = !end_iteration(bytes, true, true)};
        case 0xaa:
        case 0xab: return {.goes_on = !end_iteration(bytes, false, true)};
        case 0xac:
        case 0xad: set_general(RAX, bytes, loaded); return {.goes_on = !end_iteration(bytes, true, false)};
        case 0xf6:
        case 0xf7:
            if (extension < 2) with_flags(Arithmetic::AND);
            if (extension == 2) return {.stores = ~loaded & ones(bytes)};
            if (extension == 3) {
                const Result negated = compute(Arithmetic::SUB, 0, loaded, false, bytes);
                registers_.set_flags((registers_.flags() & ~STATUS) | negated.flags);
                return {.stores = negated.value};
            }
            return {};
        case 0xfe:
        case 0xff: return {.stores = with_flags(extension ? Arithmetic::SUB : Arithmetic::ADD, rflags::CF)};
        default: return {};
    }
}

}  // namespace perfemu::x86_64
