// Control and debug registers, descriptor table registers, MSRs, and what the machine finds in the processor.
// Intel SDM vol. 3, 2.5, and vol. 4.
#include <stdexcept>
#include <string>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr uint32_t OF_MACHINE = 0xffff'0000;  // numbers from here on are no MSRs: emulator/x86_64_system.py
enum : uint32_t {
    CONTROL = OF_MACHINE,
    DEBUG = OF_MACHINE + 0x10,
    GDT_BASE = OF_MACHINE + 0x20,
    GDT_LIMIT,
    IDT_BASE,
    IDT_LIMIT,
    PRIVILEGE = OF_MACHINE + 0x30,
    IS_AMD,
    SEGMENT = OF_MACHINE + 0x100,
};
enum SegmentField : uint32_t { SELECTOR, BASE, LIMIT, ATTRIBUTES };

namespace msr {
constexpr uint32_t TSC = 0x10, SYSENTER_CS = 0x174, SYSENTER_ESP = 0x175, SYSENTER_EIP = 0x176, EFER = 0xc000'0080,
                   STAR = 0xc000'0081, LSTAR = 0xc000'0082, CSTAR = 0xc000'0083, SFMASK = 0xc000'0084,
                   FS_BASE = 0xc000'0100, GS_BASE = 0xc000'0101, KERNEL_GS_BASE = 0xc000'0102, TSC_AUX = 0xc000'0103;
}

constexpr uint64_t LOW_32 = 0xffff'ffff;
constexpr uint64_t ROOT_BITS = (uint64_t{1} << 40) - 1;  // of CR3, as CPUID says

struct MsrRow {
    uint32_t number;
    uint64_t State::* value;
    bool is_address = false;
};
constexpr MsrRow MSRS[] = {
    {msr::SYSENTER_CS, &State::sysenter_cs},
    {msr::SYSENTER_ESP, &State::sysenter_esp, true},
    {msr::SYSENTER_EIP, &State::sysenter_eip, true},
    {msr::STAR, &State::star},
    {msr::LSTAR, &State::lstar, true},
    {msr::CSTAR, &State::cstar, true},
    {msr::SFMASK, &State::sfmask},
    {msr::KERNEL_GS_BASE, &State::kernel_gs_base, true},
    {msr::TSC_AUX, &State::tsc_aux},
};

const MsrRow* msr_row(uint32_t number) {
    for (const MsrRow& row : MSRS)
        if (row.number == number) return &row;
    return nullptr;
}

bool is_owned(uint32_t number) {
    const bool base = number == msr::FS_BASE || number == msr::GS_BASE;
    return base || number == msr::TSC || number == msr::EFER || msr_row(number);
}

}  // namespace

uint64_t Processor::read(uint32_t number, uint64_t now) const {
    if (number < OF_MACHINE) {
        if (const MsrRow* row = msr_row(number)) return state_.*row->value;
        switch (number) {
            case msr::TSC: return now + state_.tsc_offset;
            case msr::EFER: return state_.efer;
            case msr::FS_BASE: return registers_.base(FS);
            case msr::GS_BASE: return registers_.base(GS);
            default: break;
        }
    }
    return read_register_of_machine(number);
}

uint64_t Processor::read_register_of_machine(uint32_t number) const {
    switch (number) {
        case CONTROL: return state_.cr0;
        case CONTROL + 2: return state_.cr2;
        case CONTROL + 3: return state_.cr3;
        case CONTROL + 4: return state_.cr4;
        case CONTROL + 8: return state_.cr8;
        case GDT_BASE: return state_.gdtr.base;
        case GDT_LIMIT: return state_.gdtr.limit;
        case IDT_BASE: return state_.idtr.base;
        case IDT_LIMIT: return state_.idtr.limit;
        case PRIVILEGE: return state_.cpl;
        case IS_AMD: return state_.is_amd;
        default: break;
    }
    if (number >= DEBUG && number < DEBUG + state_.debug.size()) return state_.debug[number - DEBUG];
    const uint32_t index = (number - SEGMENT) / 16;
    if (number >= SEGMENT && index < SEGMENTS) {
        const SegmentRegister& segment = state_.segments[index];
        switch (number & 15) {
            case SELECTOR: return segment.selector;
            case BASE: return index == FS || index == GS ? registers_.base(index) : segment.base;
            case LIMIT: return segment.limit;
            case ATTRIBUTES: return segment.attributes;
            default: break;
        }
    }
    throw std::invalid_argument("x86_64: no register of number " + std::to_string(number));
}

// As a machine or a loader sets it: nothing is checked.
void Processor::write(uint32_t number, uint64_t value, uint64_t now) {
    const uint32_t index = (number - SEGMENT) / 16;
    if (const MsrRow* row = number < OF_MACHINE ? msr_row(number) : nullptr) {
        state_.*row->value = value;
    } else if (number >= DEBUG && number < DEBUG + state_.debug.size()) {
        state_.debug[number - DEBUG] = value;
    } else if (number >= SEGMENT && index < SEGMENTS && (number & 15) <= ATTRIBUTES) {
        SegmentRegister& segment = state_.segments[index];
        const uint32_t field = number & 15;
        if (field == SELECTOR) segment.selector = static_cast<uint16_t>(value);
        if (field == BASE) segment.base = value;
        if (field == BASE && (index == FS || index == GS)) registers_.base(index) = value;
        if (field == LIMIT) segment.limit = static_cast<uint32_t>(value);
        if (field == ATTRIBUTES) segment.attributes = static_cast<uint32_t>(value);
    } else {
        switch (number) {
            case msr::TSC: state_.tsc_offset = value - now; break;
            case msr::EFER: state_.efer = value; break;
            case msr::FS_BASE: registers_.base(FS) = value; break;
            case msr::GS_BASE: registers_.base(GS) = value; break;
            case CONTROL: state_.cr0 = value | cr0::ET; break;
            case CONTROL + 2: state_.cr2 = value; break;
            case CONTROL + 3: state_.cr3 = value; break;
            case CONTROL + 4: state_.cr4 = value; break;
            case CONTROL + 8: state_.cr8 = value; break;
            case GDT_BASE: state_.gdtr.base = value; break;
            case GDT_LIMIT: state_.gdtr.limit = static_cast<uint16_t>(value); break;
            case IDT_BASE: state_.idtr.base = value; break;
            case IDT_LIMIT: state_.idtr.limit = static_cast<uint16_t>(value); break;
            case PRIVILEGE: state_.cpl = value & 3; break;
            case IS_AMD: state_.is_amd = value; break;
            default: throw std::invalid_argument("x86_64: no register of number " + std::to_string(number));
        }
    }
    registers_.follow(state_);
}

// --- control registers ---

void Processor::move_from_control() {
    require_kernel();
    const uint64_t value = read_register_of_machine(CONTROL + insn_->reg());
    set_general(insn_->rm(), in_64() ? 8 : 4, value);
}

void Processor::move_to_control() {
    require_kernel();
    write_control(insn_->reg(), general(insn_->rm(), in_64() ? 8 : 4));
}

void Processor::write_control(unsigned number, uint64_t value) {
    switch (number) {
        case 0: write_control_0(value); return;
        case 2: state_.cr2 = value; return;
        case 3:
            if (state_.is_long() && value & ~ROOT_BITS) raise_protection();
            state_.cr3 = value;
            changes_ |= CHANGES_TRANSLATION;
            return;
        case 4:
            if (value & ~cr4::MODELLED || (state_.is_long() && !(value & cr4::PAE))) raise_protection();
            state_.cr4 = value;
            changes_ |= CHANGES_TRANSLATION;
            return;
        default:
            if (value > 15) raise_protection();
            state_.cr8 = value;
            ask(Trap::MSR);  // which interrupts come now is the local APIC's to say
    }
}

void Processor::write_control_0(uint64_t value) {
    using namespace cr0;
    if (value >> 32 || (value & PG && !(value & PE)) || (value & NW && !(value & CD))) raise_protection();
    const bool enables = value & PG && !state_.paging(), disables = !(value & PG) && state_.paging();
    if (enables && state_.efer & efer::LME) {
        if (!(state_.cr4 & cr4::PAE) || state_.segments[CS].has(attribute::L)) raise_protection();
        state_.efer |= efer::LMA;
    } else if (disables && state_.is_long()) {
        if (in_64()) raise_protection();
        state_.efer &= ~efer::LMA;
    }
    constexpr uint64_t KEPT = PE | MP | EM | TS | NE | WP | AM | NW | CD | PG;
    if ((value ^ state_.cr0) & (PE | PG | WP)) changes_ |= CHANGES_TRANSLATION;
    state_.cr0 = (value & KEPT) | ET;
}

void Processor::clear_task_switched() {
    require_kernel();
    state_.cr0 &= ~cr0::TS;
}

// LMSW: sets PE, and does not clear it.
void Processor::load_status_word() {
    constexpr uint64_t CHANGED = cr0::PE | cr0::MP | cr0::EM | cr0::TS;
    require_kernel();
    write_control_0((state_.cr0 & ~(CHANGED & ~cr0::PE)) | (source(2) & CHANGED));
}

void Processor::store_status_word() {
    require_kernel_by_umip();
    insn_->in_memory() ? store_operand(2, state_.cr0) : set_general(insn_->rm(), insn_->operand_size(), state_.cr0);
}

// Four and five are six and seven, or none: CR4.DE.
unsigned Processor::debug_register() const {
    const unsigned number = insn_->reg();
    const bool is_another = number == 4 || number == 5;
    if (number > 7 || (is_another && state_.cr4 & cr4::DE)) raise_undefined();
    require_kernel();
    return is_another ? number + 2 : number;
}

// DR7.GD: whoever reaches for these registers is a fault, so that its handler can.
void Processor::detect_debug_access() {
    constexpr uint64_t DETECTED = 1 << 13;  // DR6.BD
    if (!(state_.debug[7] & dr7::GD)) return;
    state_.debug[6] |= DETECTED;
    throw Fault{Vector::DEBUG};
}

void Processor::move_from_debug() {
    const unsigned number = debug_register();
    detect_debug_access();
    set_general(insn_->rm(), in_64() ? 8 : 4, state_.debug[number]);
}

void Processor::move_to_debug() {
    constexpr unsigned STATUS = 6, CONTROLS = 7;
    constexpr uint64_t ENABLES = 0xff;
    const unsigned number = debug_register();
    detect_debug_access();
    uint64_t value = general(insn_->rm(), in_64() ? 8 : 4);
    if (number >= STATUS && value >> 32) raise_protection();
    if (number == STATUS) value = (value & 0xe00f) | 0xffff'0ff0;
    if (number == CONTROLS) value = (value & 0xffff'23ff) | 0x400;
    const bool breaks = (state_.debug[CONTROLS] | (number == CONTROLS ? value : 0)) & ENABLES;
    if (number == CONTROLS) refuse_port_breakpoints(value);
    state_.debug[number] = value;
    if (breaks && number != STATUS) ask(Trap::DEBUG_REGISTERS);
}

// CR4.DE gives a meaning to a kind of access that has none without.
void Processor::refuse_port_breakpoints(uint64_t controls) const {
    constexpr unsigned PORTS = 2;
    for (unsigned number = 0; number < 4; number++)
        if (controls >> 2 * number & 3 && (controls >> (16 + 4 * number) & 3) == PORTS && state_.cr4 & cr4::DE)
            throw std::runtime_error("x86_64: breakpoints at ports (DR7.R/W, CR4.DE) are not modelled");
}

// --- descriptor tables ---

// LGDT, LIDT
void Processor::load_table() {
    constexpr unsigned LGDT = 2;
    require_kernel();
    const auto limit = static_cast<uint16_t>(load_operand(2));
    uint64_t base = load_operand(in_64() ? 8 : 4, 2);
    if (insn_->operand_16 && !in_64()) base &= 0xff'ffff;
    if (in_64() && !is_canonical(base)) raise_protection();
    (insn_->extension() == LGDT ? state_.gdtr : state_.idtr) = {.base = base, .limit = limit};
}

// SGDT, SIDT
void Processor::store_table() {
    require_kernel_by_umip();
    const TableRegister& table = insn_->extension() == 0 ? state_.gdtr : state_.idtr;
    const unsigned bytes = in_64() ? 8 : 4;
    const Operand operand{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::RM};
    memory_.check(linear(segment_of(operand), offset_of(operand), 2 + bytes), 2 + bytes, level(), WRITE);
    store_operand(2, table.limit);
    store_operand(bytes, table.base, 2);
}

void Processor::invalidate_page() {
    require_kernel();
    changes_ |= CHANGES_TRANSLATION;
}

void Processor::invalidate_caches() { require_kernel(); }

// --- flags, time ---

void Processor::clear_interrupts() {
    const uint64_t flags = registers_.flags();
    if (state_.is_protected() && state_.cpl > (flags >> rflags::IOPL_AT & 3)) raise_protection();
    registers_.set_flags(flags & ~rflags::IF);
}

void Processor::set_interrupts() {
    const uint64_t flags = registers_.flags();
    if (state_.is_protected() && state_.cpl > (flags >> rflags::IOPL_AT & 3)) raise_protection();
    shadows_ = !(flags & rflags::IF);
    registers_.set_flags(flags | rflags::IF);
    changes_ |= CHANGES_MASKS;
}

void Processor::halt() {
    require_kernel();
    after_ = After::HALTS;
}

// RDTSC, RDTSCP
void Processor::read_time() {
    constexpr uint8_t RDTSC = 0x31;
    if (state_.cr4 & cr4::TSD && state_.cpl) raise_protection();
    const uint64_t time = shown_time() + state_.tsc_offset;
    registers_.general(RAX) = time & LOW_32;
    registers_.general(RDX) = time >> 32;
    if (insn_->opcode != RDTSC) registers_.general(RCX) = state_.tsc_aux & LOW_32;
}

void Processor::read_counter() {
    if (state_.cpl && !(state_.cr4 & cr4::PCE)) raise_protection();
    ask(Trap::RDPMC);
}

// --- MSRs ---

void Processor::swap_gs() {
    if (!in_64()) raise_undefined();
    require_kernel();
    std::swap(registers_.base(GS), state_.kernel_gs_base);
}

void Processor::read_msr() {
    require_kernel();
    const auto number = static_cast<uint32_t>(registers_.general(RCX));
    if (!is_owned(number)) {
        ask(Trap::RDMSR);
        return;
    }
    const uint64_t value = read(number, number == msr::TSC ? shown_time() : now_);
    registers_.general(RAX) = value & LOW_32;
    registers_.general(RDX) = value >> 32;
}

void Processor::write_msr() {
    require_kernel();
    const auto number = static_cast<uint32_t>(registers_.general(RCX));
    const uint64_t value = (registers_.general(RAX) & LOW_32) | registers_.general(RDX) << 32;
    if (!is_owned(number)) {
        ask(Trap::WRMSR);
        return;
    }
    if (number == msr::EFER) {
        constexpr uint64_t WRITTEN = efer::SCE | efer::LME | efer::NXE;
        if (value & ~(WRITTEN | efer::LMA)) raise_protection();
        if (state_.paging() && (value ^ state_.efer) & efer::LME) raise_protection();
        state_.efer = (value & WRITTEN) | (state_.efer & efer::LMA);
        changes_ |= CHANGES_TRANSLATION;
        return;
    }
    const MsrRow* row = msr_row(number);
    const bool is_address = number == msr::FS_BASE || number == msr::GS_BASE || (row && row->is_address);
    if (is_address && !is_canonical(value)) raise_protection();
    if (number == msr::TSC_AUX && value > LOW_32) raise_protection();
    write(number, value, number == msr::TSC ? shown_time() : now_);
}

}  // namespace perfemu::x86_64
