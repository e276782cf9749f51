// A guest's own kernel in the core: its page tables translate, and it changes them, and the level, while it executes.
//
// The engine ends a block behind an instruction that does so. Such a block is special; the next one is considered
// before it runs, and by then the core has followed. What the engine asks for meanwhile, to find that next block, it is
// told by the registers as they are.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"
#include "x86_64_system/processor.hpp"

namespace perfemu {

std::shared_ptr<GuestPageTables> Core::enter_kernel_mode(GuestRam ram) {
    if (retired() || (space_ && !guest_tables_))
        throw std::logic_error("a core enters kernel mode before it has an address space, or runs");
    std::shared_ptr<GuestPageTables> tables = isa_->enter_kernel_mode(engine_, memory_, ram);
    processor_ = isa_->processor();
    guest_tables_ = tables.get();
    path_listeners_.stay();
    tables->read_registers(engine_);
    set_address_space(tables);
    if (isa_->engine_arch() == UC_ARCH_ARM64 && !guest_tlb_) {
        guest_tlb_ = std::make_unique<GuestTlb>(engine_, accessed_, fetched_);
        if (!memory_->stores_into_code()) memory_->log_stores_into_code();
    }
    follow_guest();
    return tables;
}

// Another guest's kernel, whose registers the engine has by now. What its tables have led to before, blocks and what
// the modelled TLBs know, goes by ids that no other guest has, and is still right.
void Core::change_guest(std::shared_ptr<GuestPageTables> tables) {
    if (!guest_tables_) throw std::logic_error("only a core with a guest's own kernel changes guests");
    if (owes_exit()) throw std::logic_error("the core owes an exit: it cannot change guests");
    drop_budget();
    stop_passing();
    fetched_.forget();
    accessed_.forget();
    flush_tlb();
    isa_->change_guest(*tables);
    processor_ = isa_->processor();
    guest_tables_ = tables.get();
    guest_tables_->read_registers(engine_);
    set_address_space(std::move(tables));
    follow_guest();
}

// Takes over what the guest has set. True: what the engine has looked up for what comes next is perhaps wrong.
bool Core::follow_guest() {
    guest_tables_->read_registers(engine_);
    set_level(guest_tables_->level());
    const bool outdated = guest_tlb_ && guest_tlb_->follow(*guest_tables_);
    if (blocks_.use_slots_of(*space_)) unlink_successors();
    return outdated;
}

// What other cores and devices have done: cores execute in turns, so that it is heard before anything executes.
void Core::hear_others() {
    if (guest_tlb_) hear_stores();
    // TLBI of the inner shareable domain; others are heard, too, for nothing.
    if (std::exchange(seen_tables_generation_, memory_->tables_generation()) == memory_->tables_generation()) return;
    fetched_.forget();
    forget_tables();
    if (guest_tlb_) guest_tlb_->flush();
}

// Of the guest's own page tables. The engine forgets by itself, or as it sees the generation; and with a TLB of its own
// what has been fetched and accessed is forgotten as it forgets.
void Core::forget_tables() {
    if (guest_tlb_) {
        guest_tables_->forget_translations();
    } else {
        fetched_.forget();
        accessed_.forget();
        guest_tables_->forget();
    }
}

// Into code, of which the engine has not heard: what it has translated there is not right any more.
void Core::hear_stores() {
    StoresIntoCode& stores = *memory_->stores_into_code();
    const bool all_known = stores.each_since(seen_stores_, [this](const StoresIntoCode::Store& store) {
        if (store.by != this) forget_translations(engine_, store.physical, store.end - store.physical);
    });
    seen_stores_ = stores.position();
    if (!all_known) forget_code();
}

// Blocks there must be compared with the bytes that they were decoded from.
void Core::on_translation(uint64_t address) { blocks_.doubt(address); }

void Core::on_watched_store(uint64_t physical, uint32_t size) {
    if (memory_->has_several_cores()) memory_->stores_into_code()->note(physical, size, this);
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
    const uint64_t from = linear_pc();
    const Level level = level_;
    isa_->take_exception(engine_, kind, syndrome, address);
    follow_guest();
    constexpr unsigned EC = 26;
    const uint64_t cause = syndrome ? *syndrome >> EC & 0x3f : FarTransfer::WITHOUT_SYNDROME | kind;
    path_listeners_.tell(FarTransfer{.from = from,
                                     .to = linear_pc(),
                                     .cycle = cycles(),
                                     .from_level = level,
                                     .to_level = level_,
                                     .kind = BranchKind::EXCEPTION,
                                     .cause = static_cast<uint8_t>(cause)});
    save_guest_step(step_pending);
}

void Core::set_counter(std::vector<uint16_t> registers, std::vector<uint16_t> user_registers, uint64_t numerator,
                       uint64_t denominator) {
    if (!denominator) throw std::invalid_argument("a counter's denominator is zero");
    counter_ = {std::move(registers), std::move(user_registers), numerator, denominator};
}

// Whether the trapped instruction reads the counter, and nobody wants to hear of each instruction.
bool Core::asks_counter() const {
    if (trapped_.trap != Trap::MRS || debugging_.steps || guest_steps()) return false;
    const auto& registers = level() == Level::USER ? counter_.user_registers : counter_.registers;
    return std::ranges::find(registers, trapped_.trap_encoding) != registers.end();
}

void Core::answer_counter() {
    exit_ = Exit::NONE;
    const uint64_t reference = shown_->reference(shown_->show(cycles()));
    const auto scaled = static_cast<unsigned __int128>(reference) * counter_.numerator / counter_.denominator;
    constexpr int8_t ZERO_REGISTER = 31;
    if (trapped_.trap_register != ZERO_REGISTER)
        write(static_cast<unsigned>(trapped_.trap_register), static_cast<uint64_t>(scaled));
    complete_trapped();
    if (take_interrupts()) exit_ = Exit::OVERFLOW;
}

uint64_t Core::read_kernel_register(uint32_t number) const {
    return processor_ ? processor_->read(number, shown_->reference(cycles()))
                      : isa_->read_kernel_register(engine_, number);
}

void Core::write_kernel_register(uint32_t number, uint64_t value) {
    if (processor_)
        processor_->write(number, value, shown_->reference(cycles()));
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
    const Level level = level_;
    bool outdated = take_changes();
    if (changes & CHANGES_LEVEL) tell_return(last_retired_pc_, level, next);
    if (guest_tlb_ && changes & FORGETS_TRANSLATIONS) outdated |= !fetch_again(next);
    if (changes & CHANGES_LEVEL && has_returned_illegally()) return true;
    if (take_interrupts()) {
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
    if (!outdated) return false;
    forget_departure();
    redispatch(next);
    return true;
}

// An exception return has been made: AArch64's.
void Core::tell_return(uint64_t from, Level level, uint64_t to) {
    path_listeners_.tell(FarTransfer{.from = from,
                                     .to = to,
                                     .cycle = cycles(),
                                     .from_level = level,
                                     .to_level = level_,
                                     .kind = BranchKind::EXCEPTION_RETURN});
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

// What the last block has changed is so from now on. True: as `follow_guest`.
bool Core::take_changes() {
    const uint8_t changes = std::exchange(changes_, 0);
    if (!(changes & FOLLOWED)) return false;
    if (guest_tlb_ ? changes & FORGETS_TRANSLATIONS : changes & CHANGES_TRANSLATION) {
        forget_tables();
        memory_->tables_changed();
        seen_tables_generation_ = memory_->tables_generation();
    }
    bool outdated = follow_guest();
    if (changes & CHANGES_LEVEL) begin_guest_step();
    refresh_mappings();
    if (!guest_tlb_) outdated = changes & CHANGES_TRANSLATION;
    if (model_) {
        model_->addresses->notice_mappings();
        model_->memory.set_address_space(space_);
    }
    return outdated;
}

Page Core::lookup(uint64_t address, FaultAccess access) {
    if (!guest_tables_) return space_->lookup(address);
    if (changes_) guest_tables_->read_registers(engine_);
    if (!guest_tables_->refusal().empty()) return {};
    if (guest_tlb_) return look_up_remembered(address, access);
    if (std::exchange(accessed_regime_, guest_tables_->regime()) != guest_tables_->regime()) accessed_.forget();
    const bool fetches = access == FaultAccess::FETCH;
    const Page page = fetches ? find_code(address) : find_data(address, access);
    return with_what_else_is_known(page, address, fetches, static_cast<unsigned>(guest_tables_->level()));
}

// The engine has one place for code and data of a page: what it has not asked for it is told only where it has asked
// before, and both are in the same place. `index`: of `accessed_`.
Page Core::with_what_else_is_known(Page page, uint64_t address, bool fetches, unsigned index) const {
    const uint64_t number = address >> PAGE_SHIFT;
    const PageWalk* other = fetches ? accessed_.find(index, number) : fetched_.find(guest_tables_->id(), number);
    const uint8_t others = fetches ? READ | WRITE : EXECUTE;
    const uint8_t known = other && other->page.frame == page.frame ? other->page.protection & others : 0;
    page.protection = static_cast<uint8_t>((page.protection & ~others) | known);
    return page;
}

// x86-64: for loads and stores.
Page Core::find_data(uint64_t address, FaultAccess access) {
    const auto wanted = static_cast<uint8_t>(access);
    const auto index = static_cast<unsigned>(guest_tables_->level());
    const PageWalk* known = accessed_.find(index, address >> PAGE_SHIFT);
    if (known && known->page.protection & wanted) return known->page;
    const Page page = guest_tables_->find(address, guest_tables_->level(), wanted);
    if (!page.present || !(page.protection & wanted)) return page;
    if (accessed_.is_full(index)) {
        accessed_.forget();
        flush_tlb();
    }
    accessed_.note(index, address >> PAGE_SHIFT, {.page = page});
    return page;
}

// What the engine is to remember, as it is here alone that it asks for it.
Page Core::look_up_remembered(uint64_t address, FaultAccess access) {
    const bool fetches = access == FaultAccess::FETCH;
    const PageWalk walk = fetches ? walk_to_code(address) : walk_to_data(address, access);
    if (!walk.page.present || !(walk.page.protection & static_cast<uint8_t>(access))) return walk.page;
    if (fetches) {
        note_fetch(address, walk);
        watch_code(walk.page);
        fetched_.note(guest_tables_->id(), address >> PAGE_SHIFT, walk);
    }
    guest_tlb_->note_fill(*guest_tables_, address, walk, fills_for_user());
    return with_what_else_is_known(walk.page, address, fetches, filled_index());
}

// AArch64: for loads and stores. What has been found and does not allow this one is looked up again.
PageWalk Core::walk_to_data(uint64_t address, FaultAccess access) {
    const unsigned index = filled_index();
    const uint64_t number = address >> PAGE_SHIFT;
    const auto wanted = static_cast<uint8_t>(access);
    if (fills_for_user()) guest_tlb_->follow_user(*guest_tables_);
    const PageWalk* known = accessed_.find(index, number);
    if (known && known->page.protection & wanted) return *known;
    const PageWalk walk = guest_tables_->walk(address, fills_for_user() ? Level::USER : guest_tables_->level());
    if (!walk.page.present || !(walk.page.protection & wanted)) return walk;
    if (accessed_.is_full(index)) guest_tlb_->flush();
    accessed_.note(index, number, walk);
    return walk;
}

// x86-64: the tables' entries are marked by the first fetch alone.
Page Core::find_code(uint64_t address) {
    const uint64_t number = address >> PAGE_SHIFT;
    if (const PageWalk* fetched = fetched_.find(guest_tables_->id(), number)) return fetched->page;
    const Page page = guest_tables_->find(address, guest_tables_->level(), EXECUTE);
    if (page.present && page.protection & EXECUTE) fetched_.note(guest_tables_->id(), number, {.page = page});
    return page;
}

PageWalk Core::walk_to_code(uint64_t address) const {
    const PageWalk* fetched = fetched_.find(guest_tables_->id(), address >> PAGE_SHIFT);
    return fetched ? *fetched : guest_tables_->walk(address, guest_tables_->level());
}

// The engine goes on from block to block within a page, whatever has been forgotten. False: it must not.
bool Core::fetch_again(uint64_t address) {
    const PageWalk walk = walk_to_code(address);
    if (!walk.page.present || !(walk.page.protection & EXECUTE)) {
        flush_tlb();
        return false;
    }
    fetched_.note(guest_tables_->id(), address >> PAGE_SHIFT, walk);
    return true;
}

Page Core::code_page(uint64_t address) const {
    return guest_tables_ ? walk_to_code(address).page : space_->lookup(address);
}

// As AddressTranslation::read, where code is fetched.
uint64_t Core::read_code(uint64_t address, std::span<uint8_t> into) const {
    uint64_t read = 0;
    while (read < into.size()) {
        const uint64_t at = address + read, offset = at & PAGE_MASK;
        const Page page = code_page(at);
        if (!page.present) break;
        const uint64_t piece = std::min<uint64_t>(into.size() - read, PAGE_SIZE - offset);
        std::memcpy(into.data() + read, memory_->host(page.frame) + offset, piece);
        read += piece;
    }
    return read;
}

// The engine fetches from there, for the first time since it has last forgotten the page.
void Core::note_fetch(uint64_t address, const PageWalk& walk) {
    if (walk.is_local && guest_tables_->level() == Level::KERNEL && guest_tables_->note_local_code()) {
        guest_tlb_->flush();
        forget_slots();
    }
    auto holds = [this](uint64_t page, Frame frame) { return blocks_.holds(guest_tables_->id(), page, frame); };
    const uint64_t page = address >> PAGE_SHIFT, next = (page + 1) << PAGE_SHIFT;
    bool held = holds(page, walk.page.frame);
    if (model_)  // a block looks at what is behind it
        if (const Page behind = code_page(next); behind.present) held &= holds(page + 1, behind.frame);
    if (!held) forget_slots();
}

// What is said to be at an address may be elsewhere, or nowhere. Called in the middle of a block.
void Core::forget_slots() {
    slots_stale_ = true;
    drop_budget();  // so that the next block is considered
}

// The engine is about to translate code in that page: what is stored there must be noticed from now on.
void Core::watch_code(const Page& page) {
    memory_->mark_code(page.frame);
    if (!guest_tables_ || memory_->executable(page.frame)) return;
    memory_->mark_executable(page.frame);  // no kernel of ours has said so when it mapped the page
    seen_watch_generation_ = memory_->watch_generation();
    flush_tlb();
}

}  // namespace perfemu
