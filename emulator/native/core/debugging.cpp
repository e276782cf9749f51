// Debugging: watchpoints, and steps of one instruction, by means that change nothing of what the guest does.
//
// The engine is never given a page with a watched address for data. Where it asks for one, it stops before the
// instruction; the core looks at what that accesses, and either stops, too, or lets this one instruction have the page.
// On x86-64 it has it in any case: data breakpoints are traps there, behind each iteration of a REP.
// The guest's own software step follows the state machine of Arm's (Arm ARM DDI 0487, "Software Step exceptions"): an
// exception return with SPSR_EL1.SS lets one instruction execute, and a step is due where none may.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/core.hpp"
#include "x86_64/instruction.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu {

constexpr uint64_t SPSR_SS = 1 << 21;

void Core::set_watchpoints(std::vector<Watchpoint> watchpoints) {
    debugging_.watchpoints = std::move(watchpoints);
    flush_tlb();
}

void Core::set_breakpoints(std::vector<uint64_t> addresses) {
    for (uint64_t address : addresses) memory_->note_breakpoint(address);
    debugging_.breakpoints = std::move(addresses);
}

// Whether the page that holds `address` has a watched one.
bool Core::watches_page(uint64_t address) const {
    for (const Watchpoint& each : debugging_.watchpoints)
        if (each.overlaps(address & ~PAGE_MASK, PAGE_SIZE)) return true;
    return false;
}

// The engine has been refused a watched page for the instruction at `now`, which has not executed.
void Core::look_at_access(uint64_t now) {
    if (isa_->traps_behind_access())
        debugging_.due = finds_hits(now);
    else if (stops_at_access(now))
        return;
    exit_ = Exit::NONE;
    debugging_.passes = true;
}

// Whether a watchpoint that has not been answered hits what the instruction there accesses.
bool Core::stops_at_access(uint64_t now) {
    const Debugging::Moment moment{now, retired()};
    if (debugging_.passed == moment || !finds_hits(now)) return false;
    debugging_.passed = moment;
    return true;
}

// Which watchpoints are hit by what the instruction there accesses.
bool Core::finds_hits(uint64_t now) {
    debugging_.hits = 0;
    for (const DataAccess& access : accesses_at(now)) note_hits(access);
    return debugging_.hits;
}

std::vector<DataAccess> Core::accesses_at(uint64_t now) {
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    const uint64_t size = read_code(now, bytes);
    const std::span<const uint8_t> code = std::span(bytes).first(size);
    if (processor_) {
        return processor_->data_accesses(x86_64::read_instruction(code, processor_->state().mode()));
    }
    if (!isa_->traps_behind_access()) return {isa_->data_access(engine_, now, code)};
    if (!accesses_) accesses_ = std::make_unique<InstructionAccesses>(isa_->engine_arch());
    return accesses_->find(engine_, *space_, now, code);
}

void Core::note_hits(const DataAccess& access) {
    const bool for_user = access.acts_for_user && guest_tables_ && guest_tables_->acts_for_user();
    const unsigned whose = 1U << static_cast<unsigned>(for_user ? Level::USER : level_);
    const bool masks = level_ != Level::USER && isa_->masks_debug_exceptions(engine_);
    for (size_t i = 0; i < debugging_.watchpoints.size(); i++) {
        const Watchpoint& each = debugging_.watchpoints[i];
        if (!(each.accesses & access.kinds) || !(each.levels & whose) || !each.overlaps(access.address, access.bytes))
            continue;
        if (!(each.taken_from >> static_cast<unsigned>(level_) & 1) || (each.maskable && masks)) continue;
        const uint64_t first = std::max(access.address, each.address);
        if (!debugging_.hits || first < fault_address_) {
            fault_address_ = first;
            const bool reads = each.accesses & access.kinds & static_cast<uint8_t>(FaultAccess::READ);
            fault_access_ = reads ? FaultAccess::READ : FaultAccess::WRITE;
        }
        debugging_.hits |= uint64_t{1} << i;
    }
}

// Behind the instruction that has hit: the guest's exception, and an exit for who watches from outside. Intel SDM
// vol. 3, "Data Memory and I/O Breakpoint Exception Conditions". `status`: DR6's of a step that has the same exception.
void Core::tell_access(uint64_t status) {
    uint64_t guests = status;
    bool outside = false;
    for (size_t i = 0; i < debugging_.watchpoints.size(); i++) {
        if (!(debugging_.hits >> i & 1)) continue;
        const int8_t number = debugging_.watchpoints[i].debug_register;
        if (number < 0)
            outside = true;
        else
            guests |= uint64_t{1} << number;
    }
    debugging_.due = false;
    exit_ = outside ? Exit::WATCHPOINT : Exit::NONE;
    if (!guests) return;
    if (!status) {
        fire(Probe::EXC_UNDEF, 1);
        fire(Probe::EXC_TAKEN, 1);
    }
    raise_debug(guests);
}

// The instruction that was to reach watched pages has done so, or will not.
void Core::stop_passing() {
    if (std::exchange(debugging_.passes, false)) flush_tlb();
}

// Whether the guest's kernel has what executes now stepped.
bool Core::guest_steps() const {
    if (!(debugging_.guest_steps >> static_cast<unsigned>(level_) & 1)) return false;
    return level_ == Level::USER || !isa_->masks_debug_exceptions(engine_);
}

// ... and the one instruction has been executed, or there was to be none.
bool Core::guest_step_is_due() const { return guest_steps() && debugging_.guest_step_from != retired(); }

// An exception return has been made, by the kernel's SPSR_EL1. Arm ARM DDI 0487, DebugExceptionReturnSS().
void Core::begin_guest_step() {
    debugging_.guest_step_from.reset();
    const bool is_stepped = std::exchange(debugging_.guest_steps_return, false);
    if (!guest_steps()) return;
    if (is_stepped) {
        debugging_.guest_step_from = retired() - 1;
    } else if (isa_->saved_state(engine_) & SPSR_SS) {
        debugging_.guest_step_from = retired();
    }
}

// An exception has been taken: what it has saved says whether the instruction is still to be executed.
void Core::save_guest_step(bool pending) {
    if (pending) isa_->set_saved_state(engine_, isa_->saved_state(engine_) | SPSR_SS);
    debugging_.guest_step_from.reset();
}

// Before a block that is not being stepped: whether its first instruction executes alone. False: as if nobody asked.
bool Core::step_alone(Block& block) {
    if (!debugging_.steps && !debugging_.passes && !guest_steps()) return false;
    if (block.ops[0].changes) {  // the engine ends its block there
        debugging_.guest_steps_return = block.ops[0].changes & CHANGES_LEVEL && guest_steps();
        plan();
        count(block);
    } else {
        begin_stepping(block.address, block.address + 1);
    }
    return true;
}

}  // namespace perfemu
