// A guest's own kernel in the core: its page tables translate, and it changes them, and the level, while it executes.
//
// The engine ends a block behind an instruction that does so. Such a block is special; the next one is considered
// before it runs, and by then the core has followed. What the engine asks for meanwhile, to find that next block, it is
// told by the registers as they are.
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu {

std::shared_ptr<GuestPageTables> Core::enter_kernel_mode(uint64_t ram_base) {
    if (retired() || space_)
        throw std::logic_error("a core enters kernel mode before it has an address space, or runs");
    std::shared_ptr<GuestPageTables> tables = isa_->enter_kernel_mode(engine_, memory_, ram_base);
    processor_ = isa_->processor();
    guest_tables_ = tables.get();
    tables->read_registers(engine_);
    set_address_space(tables);
    set_level(tables->level());
    return tables;
}

// Takes over what the guest has set.
void Core::follow_guest() {
    guest_tables_->read_registers(engine_);
    set_level(guest_tables_->level());
}

// TLBI of the inner shareable domain: cores execute in turns, so that the others hear it before they execute. What
// changes one core's own registers is heard, too, for nothing.
void Core::hear_other_cores() {
    if (std::exchange(seen_tables_generation_, memory_->tables_generation()) != memory_->tables_generation())
        guest_tables_->forget();
}

// Of a data access that has found no page: whether tables lead it beyond RAM.
bool Core::reaches_device() const {
    if (!guest_tables_ || fault_access_ == FaultAccess::FETCH) return false;
    const PageWalk walk = guest_tables_->walk(fault_address_, guest_tables_->level());
    return walk.fault == WalkFault::EXTERNAL && walk.page.protection & static_cast<uint8_t>(fault_access_);
}

void Core::take_irq() {
    constexpr unsigned IRQ = 1;
    take_exception(IRQ, std::nullopt, std::nullopt);
    fire(Probe::EXC_TAKEN, 1);
}

void Core::take_exception(unsigned kind, std::optional<uint64_t> syndrome, std::optional<uint64_t> address) {
    if (!guest_tables_) throw std::logic_error("only a guest's own kernel takes exceptions");
    if (owes_exit()) throw std::logic_error("the core owes an exit: it cannot take another exception");
    if (processor_) {
        std::optional<uint32_t> error;
        if (syndrome) error = static_cast<uint32_t>(*syndrome);
        deliver(kind, error, address, false);
        return;
    }
    const bool step_pending = guest_steps() && debugging_.guest_step_from == retired();
    isa_->take_exception(engine_, kind, syndrome, address);
    follow_guest();
    save_guest_step(step_pending);
}

uint64_t Core::read_kernel_register(uint32_t number) const {
    return processor_ ? processor_->read(number, cycles()) : isa_->read_kernel_register(engine_, number);
}

void Core::write_kernel_register(uint32_t number, uint64_t value) {
    if (processor_)
        processor_->write(number, value, cycles());
    else
        isa_->write_kernel_register(engine_, number, value);
    if (guest_tables_) follow_guest();
}

// The block is about to run. Nothing fits until `take_changes`.
void Core::note_changes(const Block& block) {
    changes_ = block.changes;
    drop_budget();
}

// Before the block at `next`, behind one that changes something. True: it does not run now.
bool Core::follow_changes(uint64_t next) {
    if (model_ && model_->visit.block) finish_visit(next);
    last_retired_pc_ = previous_->address + previous_->ops.back().offset;
    const uint8_t changes = changes_;
    take_changes();
    if (changes & CHANGES_LEVEL && has_returned_illegally()) return true;
    if (interrupt_raised()) {
        exit(Exit::OVERFLOW);
        return true;
    }
    if (is_interrupted()) {
        exit(Exit::DEADLINE);  // the next run takes it
        return true;
    }
    if (debugging_.steps) {
        exit(Exit::STEP);
        return true;
    }
    if (!(changes & CHANGES_TRANSLATION)) return false;
    forget_departure();
    redispatch(next);  // the engine has looked it up as things were
    return true;
}

// Behind an exception return. True: what is there does not run.
bool Core::has_returned_illegally() {
    const Returned returned = isa_->returned(engine_);
    if (returned == Returned::AS_IT_SHOULD) return false;
    if (returned == Returned::UNMODELLED) guest_tables_->refuse("a return to AArch32 (SPSR_EL1.M) is not modelled");
    exception_ = Exception::ILLEGAL_STATE;
    previous_ = &none_;  // it has executed whole, wherever PC is now
    exit(Exit::EXCEPTION);
    return true;
}

// What the last block has changed is so from now on.
void Core::take_changes() {
    const uint8_t changes = std::exchange(changes_, 0);
    if (!(changes & (CHANGES_TRANSLATION | CHANGES_LEVEL))) return;
    if (changes & CHANGES_TRANSLATION) {
        guest_tables_->forget();
        memory_->tables_changed();
        seen_tables_generation_ = memory_->tables_generation();
    }
    follow_guest();
    if (changes & CHANGES_LEVEL) begin_guest_step();
    refresh_mappings();
    if (model_) {
        model_->addresses->notice_mappings();
        model_->memory.set_address_space(space_);
    }
}

Page Core::lookup(uint64_t address, FaultAccess access) {
    if (!guest_tables_) return space_->lookup(address);
    if (changes_) guest_tables_->read_registers(engine_);
    if (!guest_tables_->refusal().empty()) return {};
    const auto protection = static_cast<uint8_t>(access);
    const bool for_user = access != FaultAccess::FETCH && stepping_ && stepped_ && stepped_->ops[0].acts_for_user &&
                          guest_tables_->acts_for_user();
    return guest_tables_->find(address, for_user ? Level::USER : guest_tables_->level(), protection);
}

// The engine is about to translate code in that page: what is stored there must be noticed from now on.
void Core::watch_code(const Page& page) {
    memory_->mark_code(page.frame);
    if (!guest_tables_ || memory_->executable(page.frame)) return;
    memory_->mark_executable(page.frame);  // no kernel of ours has said so when it mapped the page
    seen_watch_generation_ = memory_->watch_generation();
    uc_ctl_flush_tlb(engine_);
}

}  // namespace perfemu
