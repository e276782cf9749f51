// How the engine stops, and what an exit is about then: which instructions have retired, where a fault is.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/core.hpp"
#include "core/model.hpp"
#include "engine/last_exception.hpp"

namespace perfemu {

namespace {

constexpr int64_t NEVER_HAPPENED = -1;  // times

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

}  // namespace

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

void Core::exit(Exit reason) {
    exit_ = reason;
    uc_emu_stop(engine_);
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
        if (calls_) follow_calls(now, 0);
        if (model_ && model_->visit.block) finish_visit(now);
        repeat_ = nullptr;
        exit_ = Exit::NONE;
        begin_stepping(now, (now & ~PAGE_MASK) + PAGE_SIZE);
        return;
    }
    const uint64_t last = previous_->ops.empty() ? last_retired_pc_ : previous_->address + previous_->ops.back().offset;
    const bool returns = changes_ & CHANGES_LEVEL && !previous_->contains(now);  // else it stopped before that
    settle_counts(now);
    stop_passing();
    const Level level = level_;
    if (changes_) take_changes();
    if (returns) tell_return(last, level, now);
    if (guest_tables_ && !guest_tables_->refusal().empty()) return;  // as far as this did the guest come
    if (exit_ == Exit::WATCHPOINT && debugging_.refused) look_at_access(now);
    if (fetch) last_retired_pc_ = last;
    const bool interrupted = fetch && take_interrupts();
    if (fetch && (interrupted || cycles() >= until_)) {  // which has come first: the fetch will fault again
        exit_ = interrupted ? Exit::OVERFLOW : Exit::DEADLINE;
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
    if ((exit_ == Exit::SYSCALL || exit_ == Exit::EXCEPTION || exit_ == Exit::IDLE) && take_interrupts()) {
        pending_exit_ = exit_;
        exit_ = Exit::OVERFLOW;
    }
}

// Exactly the instructions before PC have retired.
void Core::settle_counts(uint64_t now) {
    bool fetch = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    bool within_a_block = (exit_ == Exit::FAULT && !fetch) || exit_ == Exit::EXCEPTION ||
                          (exit_ == Exit::WATCHPOINT && debugging_.refused);
    bool before_a_block = exit_ == Exit::DEADLINE || exit_ == Exit::REGISTER || exit_ == Exit::INTERRUPTED ||
                          exit_ == Exit::OVERFLOW || exit_ == Exit::BREAKPOINT || exit_ == Exit::STEP ||
                          exit_ == Exit::SOFTWARE_STEP || (exit_ == Exit::WATCHPOINT && !debugging_.refused);
    if (model_) settle_visit(now, within_a_block);
    if (stepping_) {
        if (retires_untrapped(now)) retire(stepped_->ops[0], stepped_->address, now);
        end_stepping();
    } else if (within_a_block && repeat_ && is_guests_step()) {  // the iteration has happened; was it the last?
        if (repeat_->address != now) retire(repeat_->ops[0], repeat_->address, now);
    } else if (within_a_block && repeat_ && repeat_->address == now) {
        add_at(now, repeat_->ops[0].iteration_probes, NEVER_HAPPENED);  // the iteration that faulted
    } else if (within_a_block && previous_->contains(now)) {
        uncount_from(now);
    } else if (!before_a_block) {  // before a block, its hook has seen where the last one went
        if (follows_branches_) depart(now, 0);
        if (calls_) follow_calls(now, 0);
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
        exit_ =
            !processor_ && !debugging_.watchpoints.empty() && stops_at_access(now) ? Exit::WATCHPOINT : Exit::DEVICE;
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

void Core::complete_trapped() {
    uint64_t at = linear_pc();
    if (model_) consume_answered(at, at + trapped_.length);
    retire(trapped_, at, at + trapped_.length);
    set_linear_pc(at + trapped_.length);
    path_listeners_.go_on(at + trapped_.length);
}

}  // namespace perfemu
