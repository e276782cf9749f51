#include "core/core.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/model.hpp"
#include "engine/aarch64_translator.hpp"
#include "engine/exit_checks.hpp"
#include "engine/translation_guard.hpp"
#include "instructions/families.hpp"

namespace perfemu {

namespace {

constexpr uint64_t CODE_CACHE_BYTES = 64 << 20;

// The engine's TLB starts small and grows only when it is flushed.
constexpr uint64_t FILLS_BEFORE_FLUSH = 1000, FILLS_BEFORE_LATE_FLUSH = 20'000, EARLY_FLUSHES = 8;

void check(uc_err error, const char* call) {
    if (error != UC_ERR_OK) throw std::runtime_error(std::string(call) + ": " + uc_strerror(error));
}

}  // namespace

Core::Core(std::string_view isa, std::span<const std::string> features, std::shared_ptr<PhysicalMemory> memory,
           bool counting, const Config* model, std::shared_ptr<SharedMemory> shared)
    : isa_(Isa::make(isa, features)), memory_(std::move(memory)), previous_(&none_),
      fills_until_flush_(FILLS_BEFORE_FLUSH) {
    if (isa_->engine_arch() == UC_ARCH_X86) {
        guard_translator();
        install_instructions();
    } else {
        aarch64::correct_translator();
        take_over_tlb_flushes();
        hear_translations();
    }
    check(uc_open(isa_->engine_arch(), isa_->engine_mode(), &engine_), "uc_open");
    uc_ctl_set_tcg_buffer_size(engine_, CODE_CACHE_BYTES);
    isa_->configure(engine_);
    check(uc_ctl_tlb_mode(engine_, UC_TLB_VIRTUAL), "uc_ctl_tlb_mode");
    check(uc_ctl_exits_enable(engine_), "uc_ctl_exits_enable");
    check(uc_ctl_set_exits(engine_, static_cast<uint64_t*>(nullptr), static_cast<size_t>(0)), "uc_ctl_set_exits");
    check(uc_mem_map_ptr(engine_, 0, memory_->size_bytes(), UC_PROT_ALL, memory_->host(0)), "uc_mem_map_ptr");

    auto hook = [this](int type, void* callback, int instruction, void* user) {
        uc_hook handle;
        check(uc_hook_add(engine_, &handle, type, callback, user, 1, 0, instruction), "uc_hook_add");
    };
    if (counting) elides_exit_checks_ = elide_exit_checks(engine_);
    if (model) most_blocks_ >>= 2;  // each is some KB then
    if (counting && model) {
        VisitLog log(*this, previous_, EXHAUSTED, reinterpret_cast<const void*>(&Core::on_known_block));
        models_ = std::make_unique<Model>(*model, isa, totals_.data(), std::move(shared), std::move(log));
        model_ = models_.get();
    }
    if (counting) hook_blocks();
    hook(UC_HOOK_INTR, reinterpret_cast<void*>(&Core::on_interrupt), 0, this);
    hook(UC_HOOK_TLB_FILL, reinterpret_cast<void*>(&Core::on_tlb_fill), 0, this);
    if (isa_->engine_arch() == UC_ARCH_X86)
        hook(UC_HOOK_INSN, reinterpret_cast<void*>(&Core::on_syscall), UC_X86_INS_SYSCALL, this);
    isa_->enter_user_mode(engine_);
    memory_->add_core();
    if (model_) {
        model_->addresses = Addresses::make(engine_, *isa_);
        model_->calls.emplace(engine_, isa_->engine_arch(), reinterpret_cast<const void*>(&Core::on_block_modelled));
    }
}

// As the gear wants to be told of them.
void Core::hook_blocks() {
    auto* on_block = model_ ? &Core::on_block_modelled : calls_ ? &Core::on_block<true> : &Core::on_block<false>;
    void* const told = model_ ? static_cast<void*>(&model_->log) : this;
    check(uc_hook_add(engine_, &block_hook_, UC_HOOK_BLOCK, reinterpret_cast<void*>(on_block), told, 1, 0, 0),
          "uc_hook_add");
}

// The engine remembers each place at which it has translated a call of the hook, until the hook goes: of a guest that
// executes at ever new addresses, for ever.
void Core::renew_block_hook() {
    uc_ctl_flush_tb(engine_);
    fills_nothing_ = true;  // it looks for what it has translated there
    uc_hook_del(engine_, block_hook_);
    fills_nothing_ = false;
    hook_blocks();
    flush_tlb();
    hook_is_full_ = false;
    hooked_from_ = decoded_blocks_;
}

Core::~Core() {
    uc_close(engine_);
    memory_->remove_core();
}

void Core::keep_calls() {
    if (guest_tables_) throw std::invalid_argument("calls of a guest's own kernel are not followed");
    calls_ = std::make_unique<Calls>(
        engine_, *isa_, [this](uint64_t address, std::span<uint8_t> into) { return read_code(address, into); });
    uc_hook_del(engine_, block_hook_);
    hook_blocks();
}

void Core::set_address_space(std::shared_ptr<AddressTranslation> space) {
    if (&space->memory() != memory_.get()) throw std::invalid_argument("the address space is over other memory");
    space_ = std::move(space);
    if (blocks_.use_slots_of(*space_)) unlink_successors();
    seen_space_generation_ = space_->generation();
    seen_watch_generation_ = memory_->watch_generation();
    if (models_) {
        models_->addresses->set_address_space(*space_);
        models_->memory.set_address_space(space_);
    }
    uc_ctl_flush_tlb(engine_);
}

CounterBank& Core::add_bank(unsigned counters) {
    banks_.push_back(std::make_unique<CounterBank>(*this, counters));
    return *banks_.back();
}

bool Core::on_tlb_fill(uc_engine*, uint64_t address, uc_mem_type type, uc_tlb_entry* entry, void* user) {
    Core& core = *static_cast<Core*>(user);
    if (core.fills_nothing_) return false;
    auto access = type == UC_MEM_FETCH   ? FaultAccess::FETCH
                  : type == UC_MEM_WRITE ? FaultAccess::WRITE
                                         : FaultAccess::READ;
    uint8_t needed = access == FaultAccess::FETCH ? EXECUTE : access == FaultAccess::WRITE ? WRITE : READ;
    if (--core.fills_until_flush_ == 0) {
        core.fills_until_flush_ = core.flushes_++ < EARLY_FLUSHES ? FILLS_BEFORE_FLUSH : FILLS_BEFORE_LATE_FLUSH;
        core.flush_tlb();
    }
    if (!core.guest_tables_) address = core.isa_->untagged(address);
    const Page page = core.lookup(address, access);
    if (!page.present || !(page.protection & needed)) {
        core.faulted_ = true;
        core.fault_address_ = address;
        core.fault_access_ = access;
        return false;
    }
    const bool watched = !core.debugging_.watchpoints.empty() && !core.debugging_.passes && core.watches_page(address);
    if (watched && access != FaultAccess::FETCH) {
        core.faulted_ = core.debugging_.refused = true;
        core.fault_address_ = address;
        core.fault_access_ = access;
        return false;
    }
    uint8_t protection = watched ? EXECUTE : page.protection;
    // A store where the engine may execute goes a long way: it may where it has.
    if (core.guest_tables_ && access != FaultAccess::FETCH && !core.memory_->executable(page.frame))
        protection &= static_cast<uint8_t>(~EXECUTE);
    // The engine watches stores only where it may also execute.
    if (protection & WRITE && core.memory_->executable(page.frame)) {
        if (!core.guest_tlb_ && core.memory_->mark_changeable(page.frame)) {
            core.forget_blocks();
            if (core.memory_->has_several_cores()) core.memory_->code_changed();
        }
        protection |= EXECUTE;
    }
    // By an entry that allows it, the engine may execute without asking again.
    if (protection & EXECUTE && !core.guest_tlb_) core.watch_code(page);
    entry->paddr = uint64_t{page.frame} << PAGE_SHIFT;
    entry->perms = static_cast<uc_prot>(protection);
    return true;
}

void Core::flush_tlb() {
    if (guest_tlb_)
        guest_tlb_->refill();
    else
        uc_ctl_flush_tlb(engine_);
}

// Makes the engine forget what it should not remember of page tables.
void Core::refresh_mappings() {
    const bool remapped = !guest_tlb_ && seen_space_generation_ != space_->generation();
    if (remapped || seen_watch_generation_ != memory_->watch_generation()) {
        seen_space_generation_ = space_->generation();
        seen_watch_generation_ = memory_->watch_generation();
        flush_tlb();
    }
    if (blocks_.use_slots_of(*space_)) unlink_successors();
}

void Core::forget_code() {
    drop_blocks();
    uc_ctl_flush_tb(engine_);
    flush_tlb();
}

// ... and of code.
void Core::refresh_translations() {
    refresh_mappings();
    if (seen_code_generation_ != memory_->code_generation()) {
        seen_code_generation_ = memory_->code_generation();
        forget_code();
    }
    if (seen_breakpoint_generation_ != memory_->breakpoint_generation()) look_for_breakpoints();
}

Exit Core::run(uint64_t until_cycle, const std::function<bool()>& poll) {
    if (!space_) throw std::logic_error("the core has no address space");
    until_ = until_cycle;
    poll_ = &poll;
    for (;;) {
        const Exit found = run_on();
        if (!path_listeners_.empty()) leave_path(found);
        if (!hook_is_full_) return found;
        renew_block_hook();
        if (found != Exit::DEADLINE || cycles() >= until_) return found;
    }
}

Exit Core::run_on() {
    if (pending_exit_ != Exit::NONE) return std::exchange(pending_exit_, Exit::NONE);
    if (take_interrupts()) return Exit::OVERFLOW;
    if (cycles() >= until_) return Exit::DEADLINE;
    if (guest_tables_) hear_others();
    if (processor_ && nmi_is_due()) {
        interrupts_guest();
        if (exit_ == Exit::SHUTDOWN) return exit_;
    }
    if (is_interrupted()) {
        if (processor_) return Exit::INTERRUPT;
        take_irq();
    }
    if (guest_step_is_due()) return Exit::SOFTWARE_STEP;
    refresh_translations();
    if (model_) {
        model_->addresses->notice_mappings();
        model_->memory.notice_mappings();
    }
    plan();
    if (calls_ && !model_ && calls_->expects_jump()) hold(budget_, held_);
    debugging_.due = false;
    if (interrupt_line_ || debugging_.steps || guest_steps()) drop_budget();
    exit_ = Exit::NONE;
    changes_ = 0;
    if (!path_listeners_.empty()) path_listeners_.enter(linear_pc(), cycles());
    GuardedTranslation guarded(*space_, *isa_);
    HeardTranslations heard(guest_tlb_ ? this : nullptr);
    HeardTraceWrites traced(*this);
    while (exit_ == Exit::NONE) {
        faulted_ = debugging_.refused = false;
        uc_err error = uc_emu_start(engine_, pc(), 0, 0, 0);
        leave(error);
        if (model_) check_addresses();
        if (guest_tables_ && !guest_tables_->refusal().empty()) throw std::runtime_error(guest_tables_->refusal());
    }
    progress_.store(retired(), std::memory_order_relaxed);
    return exit_;
}

uint64_t Core::pc() const { return read_register(engine_, isa_->pc()); }

uint64_t Core::read(unsigned number) const {
    if (number >= isa_->registers().size()) throw std::out_of_range("no register " + std::to_string(number));
    return read_register(engine_, isa_->registers()[number]);
}

void Core::write(unsigned number, uint64_t value) {
    if (number >= isa_->registers().size()) throw std::out_of_range("no register " + std::to_string(number));
    write_register(engine_, isa_->registers()[number], value);
}

// Linux: arch/arm64/kernel/perf_callchain.c and arch/x86/events/core.c, perf_callchain_user.
std::vector<uint64_t> Core::frame_chain(unsigned limit) const {
    std::vector<uint64_t> chain;
    bool arm = isa_->engine_arch() == UC_ARCH_ARM64;
    uint64_t frame = read_register(engine_, isa_->frame_pointer());
    while (chain.size() < limit) {
        if (arm && (!frame || frame & 7)) break;
        struct {
            uint64_t next, return_address;
        } record;
        std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(&record), sizeof record);
        if (space_->read(frame, bytes) != sizeof record) break;
        chain.push_back(record.return_address);
        if (arm && frame >= record.next) break;
        frame = record.next;
    }
    return chain;
}

}  // namespace perfemu
