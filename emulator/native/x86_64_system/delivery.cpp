// Exceptions and interrupts, by the guest's interrupt descriptor table. Intel SDM vol. 3, chapter 6.
#include <stdexcept>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {
namespace {

constexpr uint32_t EXTERNAL_EVENT = 1, IN_IDT = 2;  // in error codes
constexpr unsigned TASK_GATE = 5, INTERRUPT_16 = 6, TRAP_16 = 7, INTERRUPT = 14, TRAP = 15;
// Of a task state segment.
constexpr unsigned FIRST_STACK_64 = 4, FIRST_INTERRUPT_STACK = 36, FIRST_STACK_32 = 4;

enum class Severity : uint8_t { BENIGN, CONTRIBUTORY, PAGE, DOUBLE };

Severity severity(Vector vector) {
    switch (vector) {
        case Vector::DIVIDE:
        case Vector::INVALID_TSS:
        case Vector::NOT_PRESENT:
        case Vector::STACK:
        case Vector::PROTECTION: return Severity::CONTRIBUTORY;
        case Vector::PAGE_FAULT: return Severity::PAGE;
        case Vector::DOUBLE_FAULT: return Severity::DOUBLE;
        default: return Severity::BENIGN;
    }
}

// SDM vol. 3, table 6-5.
bool doubles(Severity first, Severity second) {
    if (first == Severity::CONTRIBUTORY) return second == Severity::CONTRIBUTORY;
    return first == Severity::PAGE && second != Severity::BENIGN;
}

}  // namespace

bool Processor::take(Fault fault, Cause cause, uint64_t now) {
    now_ = now;
    changes_ = 0;
    shadows_ = false;
    for (;;) {
        if (fault.address) state_.cr2 = *fault.address;
        try {
            deliver(fault, cause);
            return true;
        } catch (const Fault& another) {
            const Severity before = severity(fault.vector), now = severity(another.vector);
            if (before == Severity::DOUBLE && now != Severity::BENIGN) return false;
            if (another.address) state_.cr2 = *another.address;
            const bool is_double = cause != Cause::SOFTWARE && cause != Cause::EXTERNAL && doubles(before, now);
            fault = is_double ? Fault{Vector::DOUBLE_FAULT, 0} : another;
            cause = Cause::FAULT;
        }
    }
}

// An exception or interrupt has been taken, or nothing has changed.
void Processor::deliver(const Fault& fault, Cause cause) {
    next_ = registers_.rip();
    if (cause != Cause::EXTERNAL)
        taken_.note({.cycle = now_,
                     .rip = next_,
                     .cpl = state_.cpl,
                     .vector = static_cast<unsigned>(fault.vector),
                     .error = fault.error,
                     .address = fault.address,
                     .software = cause == Cause::SOFTWARE});
    if (state_.is_protected())
        deliver_in_protected_mode(fault, cause);
    else
        deliver_in_real_mode(static_cast<unsigned>(fault.vector));
    if (fault.vector == Vector::DEBUG) state_.debug[7] &= ~dr7::GD;
    if (fault.vector == Vector::NMI && cause == Cause::EXTERNAL) state_.handles_nmi = true;
    registers_.follow(state_);
    registers_.set_rip(next_);
}

void Processor::deliver_in_real_mode(unsigned vector) {
    constexpr unsigned ENTRY_BYTES = 4;
    if (vector * ENTRY_BYTES + ENTRY_BYTES - 1 > state_.idtr.limit) raise_protection(vector * 8 + IN_IDT);
    const uint64_t entry = memory_.load(state_.idtr.base + vector * ENTRY_BYTES, ENTRY_BYTES, Level::KERNEL);
    const uint64_t flags = registers_.flags();
    push(2, {flags, state_.segments[CS].selector, next_});
    registers_.set_flags(flags & ~(rflags::IF | rflags::TF | rflags::AC));
    state_.segments[CS].selector = static_cast<uint16_t>(entry >> 16);
    state_.segments[CS].base = uint64_t{state_.segments[CS].selector} << 4;
    next_ = entry & 0xffff;
}

Processor::Gate Processor::gate(unsigned vector, uint32_t external) const {
    const unsigned bytes = state_.is_long() ? 16 : 8;
    const uint32_t error = vector * 8 + IN_IDT + external;
    if (vector * bytes + bytes - 1 > state_.idtr.limit) raise(Vector::PROTECTION, error);
    const uint64_t at = state_.idtr.base + vector * bytes, low = memory_.load(at, 8, Level::KERNEL);
    Gate gate{.selector = static_cast<uint16_t>(low >> 16),
              .offset = (low & 0xffff) | (low >> 32 & 0xffff'0000),
              .type = static_cast<unsigned>(low >> 40 & 31),
              .dpl = static_cast<unsigned>(low >> 45 & 3),
              .stack = state_.is_long() ? static_cast<unsigned>(low >> 32 & 7) : 0,
              .present = (low >> 47 & 1) != 0};
    if (state_.is_long()) gate.offset |= memory_.load(at + 8, 4, Level::KERNEL) << 32;
    const bool of_16 = gate.type == INTERRUPT_16 || gate.type == TRAP_16;
    if (gate.type == TASK_GATE && !state_.is_long()) throw std::runtime_error("x86_64: task gates are not modelled");
    if (gate.type != INTERRUPT && gate.type != TRAP && (!of_16 || state_.is_long())) raise(Vector::PROTECTION, error);
    if (of_16) gate.offset &= 0xffff;
    return gate;
}

// Where the task keeps a stack pointer: of a privilege level, or of a number in the gate.
uint64_t Processor::stack_of_task(unsigned privilege, unsigned interrupt_stack) const {
    const SegmentRegister& task = state_.segments[TR];
    unsigned offset = FIRST_STACK_32 + 8 * privilege;
    if (state_.is_long())
        offset = interrupt_stack ? FIRST_INTERRUPT_STACK + 8 * (interrupt_stack - 1) : FIRST_STACK_64 + 8 * privilege;
    if (offset + 7 > task.limit) raise(Vector::INVALID_TSS, task.selector & 0xfffcu);
    return memory_.load(task.base + offset, 8, Level::KERNEL);
}

void Processor::deliver_in_protected_mode(const Fault& fault, Cause cause) {
    const auto vector = static_cast<unsigned>(fault.vector);
    const uint32_t external = cause == Cause::SOFTWARE ? 0 : EXTERNAL_EVENT;
    const Gate gate = this->gate(vector, external);
    if (cause == Cause::SOFTWARE && gate.dpl < state_.cpl) raise(Vector::PROTECTION, vector * 8 + IN_IDT);
    if (!gate.present) raise(Vector::NOT_PRESENT, vector * 8 + IN_IDT + external);
    const std::optional<Descriptor> found = find_descriptor(gate.selector);
    const uint32_t error = (gate.selector & 0xfffc) + external;
    if (!found || !found->segment.is_code() || found->segment.dpl() > state_.cpl) raise(Vector::PROTECTION, error);
    SegmentRegister code = found->segment;
    if (state_.is_long() && (!code.has(attribute::L) || code.has(attribute::DB))) raise(Vector::PROTECTION, error);
    if (!found->present()) raise(Vector::NOT_PRESENT, error);
    const unsigned before = state_.cpl, privilege = code.has(attribute::CONFORMING) ? before : code.dpl();
    code.selector = static_cast<uint16_t>((gate.selector & ~3u) | privilege);

    const bool inner = privilege < before, long_mode = state_.is_long();
    const SegmentRegister old_stack = state_.segments[SS];
    const uint64_t old_pointer = registers_.general(RSP), flags = registers_.flags();
    uint64_t pointer = old_pointer;
    SegmentRegister stack = old_stack;
    if (inner || gate.stack) {
        const uint64_t words = stack_of_task(privilege, gate.stack);
        pointer = long_mode ? words : static_cast<uint32_t>(words);
        if (!long_mode) stack = stack_segment(static_cast<uint16_t>(words >> 32), privilege, Vector::INVALID_TSS);
        if (long_mode && inner)
            stack = {.selector = static_cast<uint16_t>(privilege),
                     .limit = 0,
                     .attributes = attribute::UNUSABLE | privilege << attribute::DPL_AT};
    }
    if (long_mode && !is_canonical(pointer)) raise(Vector::STACK, external);
    if (long_mode && !is_canonical(gate.offset)) raise(Vector::PROTECTION, external);
    const unsigned bytes = long_mode ? 8 : gate.type == INTERRUPT_16 || gate.type == TRAP_16 ? 2 : 4;
    const uint64_t base = long_mode ? 0 : stack.base;
    if (long_mode) pointer &= ~uint64_t{15};
    const uint64_t resumes = cause == Cause::FAULT ? rflags::RF : 0;
    uint64_t values[6];
    unsigned count = 0;
    if (long_mode || inner) {
        values[count++] = old_stack.selector;
        values[count++] = old_pointer;
    }
    values[count++] = flags | resumes;
    values[count++] = state_.segments[CS].selector;
    values[count++] = next_;
    if (fault.error) values[count++] = *fault.error;
    const Level at_level = privilege == 3 ? Level::USER : Level::KERNEL;
    for (unsigned i = 1; i <= count; i++) memory_.check(base + pointer - i * bytes, bytes, at_level, WRITE);
    for (unsigned i = 1; i <= count; i++) memory_.store(base + pointer - i * bytes, bytes, values[i - 1], at_level);

    using namespace rflags;
    set_cpl(privilege);
    state_.segments[SS] = stack;
    state_.segments[CS] = code;
    const bool masks = gate.type == INTERRUPT || gate.type == INTERRUPT_16;
    registers_.set_flags(flags & ~(TF | NT | RF | VM | (masks ? IF : 0)));
    registers_.general(RSP) = pointer - count * bytes;
    next_ = gate.offset;
}

}  // namespace perfemu::x86_64
