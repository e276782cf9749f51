// Debugging: watchpoints, and steps of one instruction, by means that change nothing of what the guest does.
//
// The engine is never given a page with a watched address for data. Where it asks for one, it stops before the
// instruction; the core looks at what that accesses, and either stops, too, or lets this one instruction have the page.
// The guest's own software step follows the state machine of Arm's (Arm ARM DDI 0487, "Software Step exceptions"): an
// exception return with SPSR_EL1.SS lets one instruction execute, and a step is due where none may.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/core.hpp"

namespace perfemu {

constexpr uint64_t SPSR_SS = 1 << 21;

void Core::set_watchpoints(std::vector<Watchpoint> watchpoints) {
    debugging_.watchpoints = std::move(watchpoints);
    flush_tlb();
}

// Whether the page that holds `address` has a watched one.
bool Core::watches_page(uint64_t address) const {
    for (const Watchpoint& each : debugging_.watchpoints)
        if (each.overlaps(address & ~PAGE_MASK, PAGE_SIZE)) return true;
    return false;
}

// The engine has been refused a watched page for the instruction at `now`, which has not executed.
void Core::look_at_access(uint64_t now) {
    if (stops_at_access(now)) return;
    exit_ = Exit::NONE;
    debugging_.passes = true;
}

// Whether a watchpoint that has not been answered hits what the instruction there accesses.
bool Core::stops_at_access(uint64_t now) {
    const Debugging::Moment moment{now, retired()};
    if (debugging_.passed == moment) return false;
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    const uint64_t size = read_code(now, bytes);
    const DataAccess access = isa_->data_access(engine_, now, std::span(bytes).first(size));
    const bool for_user = access.acts_for_user && guest_tables_ && guest_tables_->acts_for_user();
    const unsigned whose = 1U << static_cast<unsigned>(for_user ? Level::USER : level_);
    const bool masks = level_ != Level::USER && isa_->masks_debug_exceptions(engine_);
    debugging_.hits = 0;
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
    if (debugging_.hits) debugging_.passed = moment;
    return debugging_.hits;
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
