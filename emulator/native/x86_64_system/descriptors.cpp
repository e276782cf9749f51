// Segment registers, and the descriptors that they are loaded from. Intel SDM vol. 3, chapters 3 and 5.
#include <stdexcept>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr unsigned DESCRIPTOR_BYTES = 8;
constexpr uint16_t REQUESTED = 3, LOCAL = 4;
constexpr bool is_null(uint16_t selector) { return !(selector & ~REQUESTED); }

SegmentRegister read_descriptor(uint64_t words) {
    SegmentRegister segment;
    segment.attributes = static_cast<uint32_t>(words >> 40) & 0xf0ff;
    segment.base = (words >> 16 & 0xff'ffff) | (words >> 56 & 0xff) << 24;
    const auto limit = static_cast<uint32_t>((words & 0xffff) | (words >> 32 & 0xf'0000));
    segment.limit = segment.has(attribute::G) ? limit << 12 | 0xfff : limit;
    return segment;
}

}  // namespace

std::optional<Processor::Descriptor> Processor::find_descriptor(uint16_t selector) const {
    if (is_null(selector)) return std::nullopt;
    const bool local = selector & LOCAL;
    const SegmentRegister& table = state_.segments[LDTR];
    if (local && (is_null(table.selector) || table.has(attribute::UNUSABLE))) return std::nullopt;
    const uint64_t base = local ? table.base : state_.gdtr.base;
    const uint32_t limit = local ? table.limit : state_.gdtr.limit;
    const unsigned offset = selector & ~(REQUESTED | LOCAL);
    if (offset + DESCRIPTOR_BYTES - 1 > limit) return std::nullopt;
    Descriptor found{.address = base + offset,
                     .segment = read_descriptor(memory_.load(base + offset, DESCRIPTOR_BYTES, Level::KERNEL))};
    found.segment.selector = selector;
    return found;
}

Processor::Descriptor Processor::descriptor(uint16_t selector) const {
    const std::optional<Descriptor> found = find_descriptor(selector);
    if (!found) raise_protection(selector);
    return *found;
}

void Processor::mark_accessed(Descriptor& descriptor) {
    if (descriptor.segment.has(attribute::ACCESSED)) return;
    descriptor.segment.attributes |= attribute::ACCESSED;
    const uint64_t at = descriptor.address + 5;
    memory_.store(at, 1, memory_.load(at, 1, Level::KERNEL) | attribute::ACCESSED, Level::KERNEL);
}

// Of such a privilege level. What is wrong raises #GP, or #TS as a task's.
SegmentRegister Processor::stack_segment(uint16_t selector, unsigned privilege, Vector otherwise) {
    const std::optional<Descriptor> known = find_descriptor(selector);
    if (!known) raise(otherwise, selector & 0xfffc);
    Descriptor found = *known;
    const bool writable = !found.is_system() && !found.segment.is_code() && found.segment.has(attribute::WRITABLE);
    if (!writable || (selector & REQUESTED) != privilege || found.segment.dpl() != privilege)
        raise(otherwise, selector & 0xfffc);
    if (!found.present()) raise(Vector::STACK, selector & 0xfffc);
    mark_accessed(found);
    return found.segment;
}

// For a far transfer that is to execute at that privilege level.
SegmentRegister Processor::code_segment(uint16_t selector, unsigned privilege, bool returns) {
    Descriptor found = descriptor(selector);
    if (found.is_system()) {
        const unsigned type = found.segment.type();
        const bool modelled = returns || type == 0 || type == 2 || type == 8;
        if (!modelled) throw std::runtime_error("x86_64: call gates and task switches are not modelled");
    }
    if (!found.segment.is_code()) raise_protection(selector);
    const unsigned dpl = found.segment.dpl(), requested = selector & REQUESTED;
    const bool fits = found.segment.has(attribute::CONFORMING)
                          ? dpl <= privilege
                          : dpl == privilege && (returns || requested <= privilege);
    if (!fits) raise_protection(selector);
    if (state_.is_long() && found.segment.has(attribute::L) && found.segment.has(attribute::DB))
        raise_protection(selector);
    if (!found.present()) raise(Vector::NOT_PRESENT, selector & 0xfffc);
    mark_accessed(found);
    found.segment.selector = static_cast<uint16_t>((selector & ~REQUESTED) | privilege);
    return found.segment;
}

void Processor::load_segment(unsigned number, uint16_t selector) {
    SegmentRegister& segment = state_.segments[number];
    if (!state_.is_protected()) {
        segment.selector = selector;
        segment.base = uint64_t{selector} << 4;
    } else if (number == SS) {
        const bool may_be_null = in_64() && state_.cpl != 3 && selector == state_.cpl;
        if (may_be_null)
            segment = {.selector = selector, .limit = 0, .attributes = attribute::UNUSABLE | state_.cpl << 5};
        else
            segment = stack_segment(selector, state_.cpl, Vector::PROTECTION);
    } else if (is_null(selector)) {
        segment = {.selector = selector, .limit = 0, .attributes = attribute::UNUSABLE};
    } else {
        Descriptor found = descriptor(selector);
        const bool readable = !found.segment.is_code() || found.segment.has(attribute::READABLE);
        const bool conforms = found.segment.is_code() && found.segment.has(attribute::CONFORMING);
        const unsigned weaker = std::max<unsigned>(selector & REQUESTED, state_.cpl);
        if (found.is_system() || !readable || (!conforms && weaker > found.segment.dpl())) raise_protection(selector);
        if (!found.present()) raise(Vector::NOT_PRESENT, selector & 0xfffc);
        mark_accessed(found);
        segment = found.segment;
    }
    if (number == FS || number == GS) registers_.base(number) = segment.base;
}

// What a more privileged level has loaded does not stay for the outer one.
void Processor::leave_for_outer(unsigned privilege) {
    for (unsigned number : {ES, DS, FS, GS}) {
        SegmentRegister& segment = state_.segments[number];
        const bool conforms = segment.is_code() && segment.has(attribute::CONFORMING);
        if (segment.has(attribute::UNUSABLE) || conforms || segment.dpl() >= privilege) continue;
        segment = {.selector = 0, .limit = 0, .attributes = attribute::UNUSABLE};
        if (number >= FS) registers_.base(number) = 0;
    }
}

void Processor::set_cpl(unsigned privilege) {
    if (privilege != state_.cpl) changes_ |= CHANGES_LEVEL;
    state_.cpl = privilege;
}

// LLDT
void Processor::load_local_table() {
    require_protected();
    require_kernel();
    const auto selector = static_cast<uint16_t>(source(2));
    if (is_null(selector)) {
        state_.segments[LDTR] = {.selector = selector, .limit = 0, .attributes = attribute::UNUSABLE};
        return;
    }
    constexpr unsigned LOCAL_TABLE = 2;
    Descriptor found = descriptor(selector);
    if (selector & LOCAL || !found.is_system() || found.segment.type() != LOCAL_TABLE) raise_protection(selector);
    if (!found.present()) raise(Vector::NOT_PRESENT, selector & 0xfffc);
    if (state_.is_long()) found.segment.base |= memory_.load(found.address + 8, 4, Level::KERNEL) << 32;
    state_.segments[LDTR] = found.segment;
}

// LTR
void Processor::load_task() {
    constexpr unsigned AVAILABLE_16 = 1, AVAILABLE = 9, BUSY = 2;
    require_protected();
    require_kernel();
    const auto selector = static_cast<uint16_t>(source(2));
    Descriptor found = descriptor(selector);
    const unsigned type = found.segment.type();
    const bool available = type == AVAILABLE || (type == AVAILABLE_16 && !state_.is_long());
    if (selector & LOCAL || !found.is_system() || !available) raise_protection(selector);
    if (!found.present()) raise(Vector::NOT_PRESENT, selector & 0xfffc);
    if (state_.is_long()) found.segment.base |= memory_.load(found.address + 8, 4, Level::KERNEL) << 32;
    found.segment.attributes |= BUSY;
    const uint64_t at = found.address + 5;
    memory_.store(at, 1, memory_.load(at, 1, Level::KERNEL) | BUSY, Level::KERNEL);
    state_.segments[TR] = found.segment;
}

// SLDT, STR
void Processor::store_selector() {
    require_protected();
    require_kernel_by_umip();
    const uint16_t selector = state_.segments[insn_->extension() == 0 ? LDTR : TR].selector;
    insn_->in_memory() ? store_operand(2, selector) : set_general(insn_->rm(), insn_->operand_size(), selector);
}

// VERR, VERW
void Processor::verify() {
    constexpr unsigned VERW = 5;
    require_protected();
    const auto selector = static_cast<uint16_t>(source(2));
    const std::optional<Descriptor> found = find_descriptor(selector);
    bool good = found && !found->is_system();
    if (good) {
        const SegmentRegister& segment = found->segment;
        const bool code = segment.is_code(), conforms = code && segment.has(attribute::CONFORMING);
        if (insn_->extension() == VERW)
            good = !code && segment.has(attribute::WRITABLE);
        else
            good = !code || segment.has(attribute::READABLE);
        good &= conforms || std::max<unsigned>(selector & REQUESTED, state_.cpl) <= segment.dpl();
    }
    registers_.set_flags((registers_.flags() & ~rflags::ZF) | (good ? rflags::ZF : 0));
}

// LAR, LSL
void Processor::load_rights() {
    constexpr uint8_t LAR = 0x02;
    // Types of system segments that they know of, by number: SDM vol. 2.
    constexpr unsigned KNOWN_LAR = 0b0001'1010'0011'1110, KNOWN_LSL = 0b0000'1010'0000'1110,
                       KNOWN_LONG = 0b0001'1010'0000'0100, KNOWN_LONG_LSL = 0b0000'1010'0000'0100;
    require_protected();
    const auto selector = static_cast<uint16_t>(source(2));
    const std::optional<Descriptor> found = find_descriptor(selector);
    const bool rights = insn_->opcode == LAR;
    bool good = found.has_value();
    if (good) {
        const SegmentRegister& segment = found->segment;
        const unsigned known = state_.is_long() ? (rights ? KNOWN_LONG : KNOWN_LONG_LSL)
                               : rights         ? KNOWN_LAR
                                                : KNOWN_LSL;
        if (found->is_system()) good = known >> segment.type() & 1;
        const bool conforms = segment.is_code() && segment.has(attribute::CONFORMING);
        good &= conforms || std::max<unsigned>(selector & REQUESTED, state_.cpl) <= segment.dpl();
        if (good) {
            const uint64_t limits = memory_.load(found->address, 8, Level::KERNEL) >> 32 & 0xf'0000;
            const uint64_t value = rights ? uint64_t{segment.attributes} << 8 | limits : segment.limit;
            set_general(insn_->reg(), insn_->operand_size(), value);
        }
    }
    registers_.set_flags((registers_.flags() & ~rflags::ZF) | (good ? rflags::ZF : 0));
}

// MOV to a segment register
void Processor::move_to_segment() {
    const unsigned number = insn_->extension();
    if (number == CS || number > GS) raise_undefined();
    load_segment(number, static_cast<uint16_t>(source(2)));
    shadows_ = number == SS;
}

void Processor::move_from_segment() {
    const unsigned number = insn_->extension();
    if (number > GS) raise_undefined();
    const uint16_t selector = state_.segments[number].selector;
    insn_->in_memory() ? store_operand(2, selector) : set_general(insn_->rm(), insn_->operand_size(), selector);
}

void Processor::pop_segment() {
    const bool of_one_byte = insn_->map == OpcodeMap::ONE_BYTE;  // ES, SS, DS
    const unsigned number = of_one_byte ? insn_->opcode >> 3 & 3 : unsigned{insn_->opcode == 0xa1 ? FS : GS};
    load_segment(number, static_cast<uint16_t>(peek(0, 2)));
    release(insn_->stack_size());
    shadows_ = number == SS;
}

// LSS, LFS, LGS, LES, LDS
void Processor::load_far_pointer() {
    const unsigned size = insn_->operand_size();
    const uint64_t offset = load_operand(size);
    const auto selector = static_cast<uint16_t>(load_operand(2, size));
    const bool of_one_byte = insn_->map == OpcodeMap::ONE_BYTE;
    const unsigned number = of_one_byte ? (insn_->opcode == 0xc4 ? ES : DS) : (insn_->opcode & 7u);  // SS, FS, GS
    load_segment(number, selector);
    set_general(insn_->reg(), size, offset);
    shadows_ = number == SS;
}

}  // namespace perfemu::x86_64
