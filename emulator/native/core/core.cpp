#include "core/core.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/model.hpp"
#include "engine/aarch64_translator.hpp"
#include "engine/exit_checks.hpp"
#include "engine/last_exception.hpp"
#include "engine/translation_guard.hpp"
#include "instructions/families.hpp"

namespace perfemu {

namespace {

constexpr int64_t NEVER_HAPPENED = -1;  // times
constexpr uint64_t CODE_CACHE_BYTES = 64 << 20;

// The engine's TLB starts small and grows only when it is flushed.
constexpr uint64_t FILLS_BEFORE_FLUSH = 1000, FILLS_BEFORE_LATE_FLUSH = 20'000, EARLY_FLUSHES = 8;

// What the engine's interrupt numbers mean.
struct InterruptRow {
    uint32_t number;
    Exception kind;
};
constexpr InterruptRow ARM_INTERRUPTS[] = {
    {1, Exception::UNDEFINED}, {3, Exception::ALIGNMENT}, {4, Exception::ALIGNMENT}, {7, Exception::BREAKPOINT}};
constexpr InterruptRow X86_INTERRUPTS[] = {
    {0, Exception::DIVIDE},      {1, Exception::STEP}, {3, Exception::BREAKPOINT}, {6, Exception::UNDEFINED},
    {13, Exception::PRIVILEGED}, {16, Exception::X87}, {19, Exception::SIMD}};
constexpr uint32_t ARM_SVC = 2;

Exception exception_kind(std::span<const InterruptRow> rows, uint32_t number, Exception otherwise) {
    for (const InterruptRow& row : rows)
        if (row.number == number) return row.kind;
    return otherwise;
}

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
    auto* on_block = model_ ? &Core::on_block_modelled : &Core::on_block;
    void* const told = model_ ? static_cast<void*>(&model_->log) : this;
    check(uc_hook_add(engine_, &block_hook_, UC_HOOK_BLOCK, reinterpret_cast<void*>(on_block), told, 1, 0, 0),
          "uc_hook_add");
}

Core::~Core() {
    uc_close(engine_);
    memory_->remove_core();
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

void Core::on_syscall(uc_engine*, void* user) {
    Core& core = *static_cast<Core*>(user);
    core.exit(Exit::SYSCALL);
}

void Core::on_interrupt(uc_engine*, uint32_t number, void* user) {
    Core& core = *static_cast<Core*>(user);
    if (core.exit_ != Exit::NONE) return;  // the step trap of a SYSCALL
    bool arm = core.isa_->engine_arch() == UC_ARCH_ARM64;
    if (core.stepping_ && number == Isa::STEP_INTERRUPT && !core.isa_->steps_for_guest()) {
        const Op& op = core.stepped_->ops[0];
        bool undefined = arm && core.pc() == core.stepped_->address && !(op.probes & bit(Probe::BR_RETIRED));
        if (!undefined) {
            core.step_done();
            return;
        }
    }
    if (arm && number == ARM_SVC) {
        core.exit(Exit::SYSCALL);
        return;
    }
    core.engine_vector_ = number;
    core.delivers_ = !arm && adds_up(number);
    core.exception_ = exception_kind(arm ? std::span<const InterruptRow>(ARM_INTERRUPTS) : X86_INTERRUPTS, number,
                                     arm ? Exception::INTERNAL : Exception::SOFTWARE_INTERRUPT);
    core.exit(Exit::EXCEPTION);
}

bool Core::on_tlb_fill(uc_engine*, uint64_t address, uc_mem_type type, uc_tlb_entry* entry, void* user) {
    Core& core = *static_cast<Core*>(user);
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
    if (access == FaultAccess::FETCH && !core.guest_tlb_) core.watch_code(page);
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
    entry->paddr = uint64_t{page.frame} << PAGE_SHIFT;
    entry->perms = static_cast<uc_prot>(protection);
    return true;
}

void Core::exit(Exit reason) {
    exit_ = reason;
    uc_emu_stop(engine_);
}

void Core::flush_tlb() {
    if (guest_tlb_)
        guest_tlb_->flush();
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
    if (pending_exit_ != Exit::NONE) return std::exchange(pending_exit_, Exit::NONE);
    if (interrupt_raised()) return Exit::OVERFLOW;
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
    if (interrupt_line_ || debugging_.steps || guest_steps()) drop_budget();
    exit_ = Exit::NONE;
    changes_ = 0;
    GuardedTranslation guarded(*space_, *isa_);
    HeardTranslations heard(guest_tlb_ ? this : nullptr);
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

// After the engine has stopped: settles the counts, and what the exit is about.
void Core::leave(uc_err error) {
    uint64_t now = linear_pc();
    if (model_) close_log();
    if (error != UC_ERR_OK) {
        exit_ = debugging_.refused ? Exit::WATCHPOINT : faulted_ ? Exit::FAULT : Exit::EXCEPTION;
        if (!faulted_) exception_ = error == UC_ERR_INSN_INVALID ? Exception::UNDEFINED : Exception::INTERNAL;
    } else if (exit_ == Exit::NONE) {
        if (!guest_tables_ || processor_) return;  // a hint such as WFI: go on
        exit_ = Exit::IDLE;
    }
    if (std::exchange(delivers_, false)) forget_last_exception(engine_);
    bool fetch = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    if (fetch && !stepping_ && fetched_ahead(now)) {  // go there step by step: perhaps it never arrives
        if (follows_branches_) depart(now, 0);
        if (model_ && model_->visit.block) finish_visit(now);
        repeat_ = nullptr;
        exit_ = Exit::NONE;
        begin_stepping(now, (now & ~PAGE_MASK) + PAGE_SIZE);
        return;
    }
    const uint64_t last = previous_->ops.empty() ? last_retired_pc_ : previous_->address + previous_->ops.back().offset;
    settle_counts(now);
    stop_passing();
    if (changes_) take_changes();
    if (guest_tables_ && !guest_tables_->refusal().empty()) return;  // as far as this did the guest come
    if (exit_ == Exit::WATCHPOINT) look_at_access(now);
    if (fetch && (cycles() >= until_ || interrupt_raised())) {  // which has come first: the fetch will fault again
        last_retired_pc_ = last;
        exit_ = interrupt_raised() ? Exit::OVERFLOW : Exit::DEADLINE;
        return;
    }
    bool enters_kernel = exit_ == Exit::SYSCALL || exit_ == Exit::FAULT || exit_ == Exit::EXCEPTION;
    if (model_ && enters_kernel) {
        model_->pipeline->complete();
        if (attributes_models()) attribute_models(ledger_->last_address());
    }
    if (processor_) {
        answer_for_guest(now, last);
        return;
    }
    if (exit_ == Exit::REGISTER && asks_counter()) {
        answer_counter();
        return;
    }
    if (exit_ == Exit::REGISTER && trapped_.trap > Trap::OUTS) raise_trap(now);
    if (exit_ == Exit::SYSCALL) isa_->complete_syscall(engine_);
    if (exit_ == Exit::FAULT) locate_fault(now);
    // The branch has retired as far as counts go, whether or not it was a step.
    if (fetch && isa_->undo_branch(engine_, *space_, last, now)) write_register(engine_, isa_->pc(), last);
    if (exit_ == Exit::EXCEPTION && exception_ == Exception::ALIGNMENT) locate_misalignment(now);
    fire_exception_probes();
    if (exit_ == Exit::IDLE) last_retired_pc_ = last;
    if ((exit_ == Exit::SYSCALL || exit_ == Exit::EXCEPTION || exit_ == Exit::IDLE) && interrupt_raised()) {
        pending_exit_ = exit_;
        exit_ = Exit::OVERFLOW;
    }
}

// Exactly the instructions before PC have retired.
void Core::settle_counts(uint64_t now) {
    bool fetch = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    bool within_a_block = (exit_ == Exit::FAULT && !fetch) || exit_ == Exit::EXCEPTION || exit_ == Exit::WATCHPOINT;
    bool before_a_block = exit_ == Exit::DEADLINE || exit_ == Exit::REGISTER || exit_ == Exit::INTERRUPTED ||
                          exit_ == Exit::OVERFLOW || exit_ == Exit::BREAKPOINT || exit_ == Exit::STEP ||
                          exit_ == Exit::SOFTWARE_STEP;
    if (model_) settle_visit(now, within_a_block);
    if (stepping_) {
        bool trap = exit_ == Exit::EXCEPTION && stepped_ && now != stepped_->address;  // INT3: PC is after it
        if (exit_ == Exit::SYSCALL || exit_ == Exit::IDLE || trap) retire(stepped_->ops[0], stepped_->address, now);
        end_stepping();
    } else if (within_a_block && repeat_ && is_guests_step()) {  // the iteration has happened; was it the last?
        if (repeat_->address != now) retire(repeat_->ops[0], repeat_->address, now);
    } else if (within_a_block && repeat_ && repeat_->address == now) {
        add_at(now, repeat_->ops[0].iteration_probes, NEVER_HAPPENED);  // the iteration that faulted
    } else if (within_a_block && previous_->contains(now)) {
        uncount_from(now);
    } else if (!before_a_block && follows_branches_) {  // before a block, its hook has seen where the last one went
        depart(now, 0);
    }
    drop_budget();
    repeat_ = nullptr;
    previous_ = &none_;
}

// A trapped instruction that is no register's is an exception.
void Core::raise_trap(uint64_t now) {
    exit_ = Exit::EXCEPTION;
    exception_ = trapped_.trap == Trap::PRIVILEGED ? Exception::PRIVILEGED
                 : trapped_.trap == Trap::DEBUG    ? Exception::BREAKPOINT
                 : trapped_.trap == Trap::VECTORS  ? Exception::VECTORS
                                                   : Exception::UNDEFINED;
    if (trapped_.trap == Trap::DEBUG) {  // reported after the instruction has retired
        write_register(engine_, isa_->pc(), now + trapped_.length);
        if (model_) consume_answered(now, now + trapped_.length);
        retire(trapped_, now, now + trapped_.length);
    }
}

// The engine tells the page; the instruction tells the byte, and that an update of memory is a write from the start.
void Core::locate_fault(uint64_t now) {
    if (fault_access_ == FaultAccess::FETCH) {
        if (fault_address_ == (now & ~PAGE_MASK)) fault_address_ = now;
        return;
    }
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    uint64_t size = read_code(now, bytes);
    std::span<const uint8_t> code = std::span(bytes).first(size);
    fault_address_ = isa_->faulting_operand(engine_, *space_, now, code, fault_address_);
    if (isa_->raises_stack_fault(engine_, now, code, fault_address_)) {
        exit_ = Exit::EXCEPTION;
        exception_ = Exception::STACK;
    }
    std::vector<Op> ops = isa_->decode(now, code, level_);
    const ProbeMask accesses = ops.empty() ? 0 : ops[0].probes & mask(Probe::LOAD, Probe::STORE);
    const bool only_stores = accesses == bit(Probe::STORE);  // where one looks before it stores, it reads
    if (only_stores || (!ops.empty() && ops[0].updates_memory)) fault_access_ = FaultAccess::WRITE;
    if (reaches_device()) {
        exit_ = !debugging_.watchpoints.empty() && stops_at_access(now) ? Exit::WATCHPOINT : Exit::DEVICE;
        trapped_ = ops.empty() ? Op{} : ops[0];  // none: the tables have lost the code that the engine remembers
    }
}

void Core::locate_misalignment(uint64_t now) {
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    uint64_t size = read_code(now, bytes);
    std::span<const uint8_t> code = std::span(bytes).first(size);
    fault_address_ = isa_->misaligned_operand(engine_, now, code);
    std::vector<Op> ops = isa_->decode(now, code, level_);
    bool stores = !ops.empty() && ops[0].probes & bit(Probe::STORE);
    fault_access_ = stores ? FaultAccess::WRITE : FaultAccess::READ;
}

void Core::fire_exception_probes() {
    bool fetch = fault_access_ == FaultAccess::FETCH;
    if (exit_ == Exit::SYSCALL) fire(Probe::EXC_SVC, 1);
    if (exit_ == Exit::FAULT) fire(fetch ? Probe::EXC_PABORT : Probe::EXC_DABORT, 1);
    if (exit_ == Exit::EXCEPTION) fire(Probe::EXC_UNDEF, 1);
    if (exit_ == Exit::SYSCALL || exit_ == Exit::FAULT || exit_ == Exit::EXCEPTION) fire(Probe::EXC_TAKEN, 1);
}

uint64_t Core::pc() const { return read_register(engine_, isa_->pc()); }

void Core::complete_trapped() {
    uint64_t at = linear_pc();
    if (model_) consume_answered(at, at + trapped_.length);
    retire(trapped_, at, at + trapped_.length);
    set_linear_pc(at + trapped_.length);
}

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
