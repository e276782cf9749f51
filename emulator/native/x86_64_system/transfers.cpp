// Far transfers of control, to other privilege levels and back. Intel SDM vol. 2, and vol. 3, chapter 5.
#include <stdexcept>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr uint16_t REQUESTED = 3;
// What SYSCALL, SYSENTER and their returns load, whatever the descriptors say.
constexpr uint32_t FLAT_CODE = 0xa09b, FLAT_CODE_32 = 0xc09b, FLAT_DATA = 0xc093, OF_USER = 3 << attribute::DPL_AT;
constexpr uint32_t WHOLE = 0xffff'ffff;

constexpr uint64_t truncated(uint64_t value, unsigned bytes) {
    return bytes == 8 ? value : value & ((uint64_t{1} << 8 * bytes) - 1);
}

SegmentRegister flat(uint16_t selector, uint32_t attributes) {
    return {.selector = selector, .limit = WHOLE, .attributes = attributes};
}

}  // namespace

// Bytes that a displacement of the stack has.
unsigned Processor::stack_address_bytes() const { return in_64() ? 8 : state_.segments[SS].has(attribute::DB) ? 4 : 2; }

// So far above the stack pointer.
uint64_t Processor::stack_offset(int64_t from) const {
    return truncated(registers_.general(RSP) + static_cast<uint64_t>(from), stack_address_bytes());
}

// The value of that number from the top of the stack, behind so many bytes.
uint64_t Processor::peek(unsigned index, unsigned bytes, uint64_t above) const {
    const uint64_t offset = stack_offset(static_cast<int64_t>(uint64_t{index} * bytes + above));
    return memory_.load(linear(SS, offset, bytes), bytes, level());
}

void Processor::release(uint64_t bytes) {
    set_general(RSP, stack_address_bytes(), stack_offset(static_cast<int64_t>(bytes)));
}

// All or none.
void Processor::push(unsigned bytes, std::initializer_list<uint64_t> values) {
    int64_t at = 0;
    for (uint64_t value : values) {
        (void)value;
        at -= bytes;
        memory_.check(linear(SS, stack_offset(at), bytes), bytes, level(), WRITE);
    }
    at = 0;
    for (uint64_t value : values) {
        at -= bytes;
        memory_.store(linear(SS, stack_offset(at), bytes), bytes, value, level());
    }
    set_general(RSP, stack_address_bytes(), stack_offset(at));
}

Processor::FarTarget Processor::far_target() {
    const unsigned size = insn_->operand_size();
    if (!insn_->has_modrm)  // immediate
        return {static_cast<uint16_t>(insn_->second_immediate), truncated(insn_->immediate, size)};
    const uint64_t offset = load_operand(size);
    return {static_cast<uint16_t>(load_operand(2, size)), offset};
}

void Processor::enter_code(uint16_t selector, uint64_t offset, const SegmentRegister& segment) {
    const bool long_code = state_.is_long() && segment.has(attribute::L);
    if (long_code ? !is_canonical(offset) : state_.is_protected() && offset > segment.limit) raise_protection();
    state_.segments[CS] = segment;
    state_.segments[CS].selector = selector;
    next_ = offset;
}

void Processor::jump_far() {
    const auto [selector, offset] = far_target();
    if (!state_.is_protected()) {
        state_.segments[CS].selector = selector;
        state_.segments[CS].base = uint64_t{selector} << 4;
        next_ = offset;
        return;
    }
    const SegmentRegister segment = code_segment(selector, state_.cpl, false);
    enter_code(segment.selector, offset, segment);
}

void Processor::call_far() {
    const auto [selector, offset] = far_target();
    const unsigned size = insn_->operand_size();
    const uint64_t back = next_, from = state_.segments[CS].selector;
    if (!state_.is_protected()) {
        push(size, {from, back});
        state_.segments[CS].selector = selector;
        state_.segments[CS].base = uint64_t{selector} << 4;
        next_ = offset;
        return;
    }
    const SegmentRegister segment = code_segment(selector, state_.cpl, false);
    push(size, {from, back});
    enter_code(segment.selector, offset, segment);
}

// RETF
void Processor::return_far() {
    const unsigned size = insn_->operand_size();
    const uint64_t released = insn_->opcode == 0xca ? insn_->immediate & 0xffff : 0;
    const uint64_t offset = peek(0, size);
    const auto selector = static_cast<uint16_t>(peek(1, size));
    if (!state_.is_protected()) {
        release(2 * size + released);
        state_.segments[CS].selector = selector;
        state_.segments[CS].base = uint64_t{selector} << 4;
        next_ = offset;
        return;
    }
    const unsigned privilege = selector & REQUESTED;
    if (privilege < state_.cpl) raise_protection(selector);
    const SegmentRegister segment = code_segment(selector, privilege, true);
    if (privilege == state_.cpl) {
        enter_code(selector, offset, segment);
        release(2 * size + released);
        return;
    }
    const uint64_t stack = peek(2, size, released);
    const SegmentRegister stacks =
        stack_segment(static_cast<uint16_t>(peek(3, size, released)), privilege, Vector::PROTECTION);
    enter_code(selector, offset, segment);
    set_cpl(privilege);
    state_.segments[SS] = stacks;
    registers_.general(RSP) = truncated(stack + released, size);
    leave_for_outer(privilege);
}

// What IRET and POPF may change. RF is not kept: see `resumes`.
void Processor::set_flags_of_return(uint64_t popped, unsigned bytes) {
    using namespace rflags;
    uint64_t changed = CF | PF | AF | ZF | SF | TF | DF | OF | NT | AC | ID;
    const uint64_t before = registers_.flags();
    if (state_.cpl == 0) changed |= IOPL;
    if (state_.cpl <= (before >> IOPL_AT & 3)) changed |= IF;
    if (bytes == 2) changed &= 0xffff;
    registers_.set_flags((before & ~changed) | (popped & changed));
    changes_ |= CHANGES_MASKS;
}

void Processor::pop_flags() {
    const unsigned bytes = insn_->stack_size();
    const uint64_t popped = peek(0, bytes);
    set_flags_of_return(popped, bytes);
    release(bytes);
}

void Processor::return_from_interrupt() {
    const unsigned size = insn_->operand_size();
    const uint64_t offset = peek(0, size), flags = peek(2, size);
    const auto selector = static_cast<uint16_t>(peek(1, size));
    resumes_ = size > 2 && flags & rflags::RF;
    if (!state_.is_protected()) {
        set_flags_of_return(flags, size);
        release(3 * size);
        state_.segments[CS].selector = selector;
        state_.segments[CS].base = uint64_t{selector} << 4;
        next_ = offset;
        state_.handles_nmi = false;
        return;
    }
    if (registers_.flags() & rflags::NT) {
        if (state_.is_long()) raise_protection();
        throw std::runtime_error("x86_64: IRET with RFLAGS.NT, a task switch, is not modelled");
    }
    if (flags & rflags::VM && size > 2 && !state_.is_long() && state_.cpl == 0)
        throw std::runtime_error("x86_64: virtual-8086 mode is not modelled");
    const unsigned privilege = selector & REQUESTED;
    if (privilege < state_.cpl) raise_protection(selector);
    const SegmentRegister segment = code_segment(selector, privilege, true);
    if (!in_64() && privilege == state_.cpl) {
        enter_code(selector, offset, segment);
        set_flags_of_return(flags, size);
        release(3 * size);
    } else {
        const uint64_t stack = peek(3, size);
        const auto stacks = static_cast<uint16_t>(peek(4, size));
        const bool null = !(stacks & ~REQUESTED) && segment.has(attribute::L) && privilege != 3;
        if (null && (stacks & REQUESTED) != privilege) raise_protection(stacks);
        const SegmentRegister stack_register =
            null ? SegmentRegister{.selector = stacks,
                                   .limit = 0,
                                   .attributes = attribute::UNUSABLE | privilege << attribute::DPL_AT}
                 : stack_segment(stacks, privilege, Vector::PROTECTION);
        enter_code(selector, offset, segment);
        set_flags_of_return(flags, size);
        if (privilege != state_.cpl) {
            set_cpl(privilege);
            leave_for_outer(privilege);
        }
        state_.segments[SS] = stack_register;
        registers_.general(RSP) = truncated(stack, size);
    }
    state_.handles_nmi = false;
}

// SYSCALL. AMD's has compatibility mode, too; Intel's does not.
void Processor::call_system() {
    if (!(state_.efer & efer::SCE) || !(in_64() || state_.is_amd)) raise_undefined();
    if (!state_.is_long()) throw std::runtime_error("x86_64: SYSCALL of AMD's outside of long mode is not modelled");
    const uint64_t flags = registers_.flags() & ~rflags::RF, target = in_64() ? state_.lstar : state_.cstar;
    registers_.general(RCX) = next_;
    registers_.general(11) = flags;
    enter_flat(static_cast<uint16_t>(state_.star >> 32 & ~REQUESTED));
    registers_.set_flags(flags & ~state_.sfmask);
    next_ = target;
}

void Processor::return_from_system() {
    if (!(state_.efer & efer::SCE) || !in_64()) raise_undefined();
    require_kernel();
    using namespace rflags;
    const uint64_t target = registers_.general(RCX);
    if (insn_->rex_w && !is_canonical(target)) raise_protection();
    constexpr uint64_t RESTORED = CF | PF | AF | ZF | SF | TF | IF | DF | OF | IOPL | NT | AC | VIF | VIP | ID;
    const auto selector = static_cast<uint16_t>(state_.star >> 48);
    return_to_flat(static_cast<uint16_t>(selector + (insn_->rex_w ? 16 : 0)), static_cast<uint16_t>(selector + 8));
    registers_.set_flags(registers_.general(11) & RESTORED);
    next_ = insn_->rex_w ? target : static_cast<uint32_t>(target);
}

// SYSENTER, which AMD's processors do not have in long mode.
void Processor::enter_system() {
    if (state_.is_amd && state_.is_long()) raise_undefined();
    const auto selector = static_cast<uint16_t>(state_.sysenter_cs & ~REQUESTED);
    if (!state_.is_protected() || !selector) raise_protection();
    registers_.set_flags(registers_.flags() & ~(rflags::IF | rflags::VM));
    enter_flat(selector);
    registers_.general(RSP) = state_.is_long() ? state_.sysenter_esp : static_cast<uint32_t>(state_.sysenter_esp);
    next_ = state_.is_long() ? state_.sysenter_eip : static_cast<uint32_t>(state_.sysenter_eip);
}

// SYSEXIT
void Processor::exit_system() {
    constexpr uint16_t TO_32 = 16, TO_64 = 32, STACK = 8;  // from the kernel's code segment on
    if (state_.is_amd && state_.is_long()) raise_undefined();
    const auto selector = static_cast<uint16_t>(state_.sysenter_cs & ~REQUESTED);
    if (!state_.is_protected() || !selector) raise_protection();
    require_kernel();
    const uint64_t target = registers_.general(RDX), stack = registers_.general(RCX);
    if (insn_->rex_w && !(is_canonical(target) && is_canonical(stack))) raise_protection();
    const auto code = static_cast<uint16_t>(selector + (insn_->rex_w ? TO_64 : TO_32));
    return_to_flat(code, static_cast<uint16_t>(code + STACK));
    registers_.general(RSP) = insn_->rex_w ? stack : static_cast<uint32_t>(stack);
    next_ = insn_->rex_w ? target : static_cast<uint32_t>(target);
}

void Processor::enter_flat(uint16_t selector) {
    state_.segments[CS] = flat(selector, state_.is_long() ? FLAT_CODE : FLAT_CODE_32);
    state_.segments[SS] = flat(static_cast<uint16_t>(selector + 8), FLAT_DATA);
    set_cpl(0);
}

// REX.W says whether to 64-bit mode.
void Processor::return_to_flat(uint16_t code, uint16_t stack) {
    const uint32_t attributes = (insn_->rex_w ? FLAT_CODE : FLAT_CODE_32) | OF_USER;
    state_.segments[CS] = flat(static_cast<uint16_t>(code | REQUESTED), attributes);
    state_.segments[SS] = flat(static_cast<uint16_t>(stack | REQUESTED), FLAT_DATA | OF_USER);
    set_cpl(3);
    changes_ |= CHANGES_MASKS;
}

}  // namespace perfemu::x86_64
