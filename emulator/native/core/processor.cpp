// A guest's own x86-64 kernel: its processor executes system instructions, and takes exceptions, in the core. Only what
// devices answer, and what the machine says of itself, is an exit.
#include "x86_64_system/processor.hpp"

#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"
#include "x86_64/instruction.hpp"

namespace perfemu {

using x86_64::DeviceAccess;
using x86_64::Fault;
using x86_64::Processor;
using x86_64::Vector;

namespace {

constexpr uint8_t SYSCALL = 0x05, SYSENTER = 0x34, INT3 = 0xcc, INTO = 0xce, INT1 = 0xf1;  // opcodes
constexpr unsigned DR6 = 0xffff'0016;                         // as x86_64/registers.cpp numbers it
constexpr uint64_t BREAKPOINTS = 0xf, SINGLE_STEP = 1 << 14;  // in it

bool is_syscall(const x86_64::Instruction& insn) {
    return insn.map == x86_64::OpcodeMap::TWO_BYTE && insn.opcode == SYSCALL;
}

bool is_sysenter(const x86_64::Instruction& insn) {  // which does not end stepping
    return insn.map == x86_64::OpcodeMap::TWO_BYTE && insn.opcode == SYSENTER;
}

// SDM vol. 1, "Far control transfers".
bool is_far(const x86_64::Instruction& insn) {
    constexpr uint8_t CALL = 0x9a, JUMP = 0xea, RETURN_RELEASING = 0xca, IRET = 0xcf, BY_MEMORY = 0xff;
    constexpr uint8_t SYSRET = 0x07, SYSEXIT = 0x35;
    const uint8_t opcode = insn.opcode;
    if (insn.map == x86_64::OpcodeMap::TWO_BYTE)
        return opcode == SYSCALL || opcode == SYSRET || opcode == SYSENTER || opcode == SYSEXIT;
    if (insn.map != x86_64::OpcodeMap::ONE_BYTE) return false;
    if (opcode == BY_MEMORY) return insn.extension() == 3 || insn.extension() == 5;
    return opcode == CALL || opcode == JUMP || (opcode >= RETURN_RELEASING && opcode <= IRET) || opcode == INT1;
}

bool writes_cr3(const x86_64::Instruction& insn) {
    constexpr uint8_t MOV_TO_CONTROL = 0x22;
    return insn.map == x86_64::OpcodeMap::TWO_BYTE && insn.opcode == MOV_TO_CONTROL && insn.reg() == 3;
}

bool is_interrupt(const x86_64::Instruction& insn) {
    const bool any = (insn.opcode >= INT3 && insn.opcode <= INTO) || insn.opcode == INT1;
    return insn.map == x86_64::OpcodeMap::ONE_BYTE && any;
}

}  // namespace

void Core::reset() {
    if (!processor_) throw std::logic_error("only an x86-64 processor is reset");
    processor_->reset();
    nmi_ = false;
    shadow_at_ = ~uint64_t{0};
    pending_exit_ = Exit::NONE;
    follow_guest();
}

void Core::share_shown_cycles(std::shared_ptr<ShownCycles> shown) {
    if (!guest_tables_ || !shown) throw std::logic_error("only a guest's own kernel is shown time by its cores");
    if (processor_) processor_->share(shown);
    shown_ = std::move(shown);
}

// Blocks are where their code is: on x86-64, where PC counts from the code segment's base, as far as that has one.
uint64_t Core::linear_pc() const { return processor_ ? processor_->state().linear(pc()) : pc(); }

void Core::set_linear_pc(uint64_t address) {
    const uint64_t base = processor_ ? processor_->state().code_base() : 0;
    write_register(engine_, isa_->pc(), base ? static_cast<uint32_t>(address - base) : address);
}

uint64_t Core::stack_address() const {
    const uint64_t pointer = read_register(engine_, UC_X86_REG_RSP);
    return processor_ ? processor_->state().stack_at(pointer) : pointer;
}

// After the engine has stopped: what its exit is for the guest. EXIT::NONE: it goes on.
void Core::answer_for_guest(uint64_t now, uint64_t last) {
    const bool system = exit_ == Exit::REGISTER && trapped_.trap == Trap::SYSTEM;
    const bool raises = exit_ == Exit::FAULT || exit_ == Exit::EXCEPTION ||
                        (exit_ == Exit::REGISTER && trapped_.trap == Trap::UNDEFINED);
    if (raises && model_) {
        model_->pipeline->complete();
        if (attributes_models()) attribute_models(ledger_->last_address());
    }
    if (debugging_.due && exit_ == Exit::STEP) tell_access(0);
    if (system)
        execute_system(now);
    else if (raises)
        fault(now, last);
    if (exit_ != Exit::NONE && exit_ != Exit::IDLE) return;
    if (take_interrupts()) {
        if (exit_ == Exit::IDLE) pending_exit_ = exit_;
        exit_ = Exit::OVERFLOW;
    } else if (nmi_is_due()) {
        interrupts_guest();
    } else if (debugging_.steps && exit_ == Exit::NONE) {
        exit_ = Exit::STEP;  // the next run takes what interrupts
    } else if (is_interrupted()) {
        exit_ = Exit::INTERRUPT;
    }
}

void Core::execute_system(uint64_t now) {
    answered_ = {};
    const size_t size = read_code(now, answered_);
    const x86_64::Instruction insn =
        x86_64::read_instruction(std::span(answered_).first(size), processor_->state().mode());
    exit_ = Exit::NONE;
    if (!insn.row || !processor_->executes(insn, level_)) {  // changed, behind what the engine has read of it
        drop_blocks();
        uc_ctl_remove_cache(engine_, now, now + 1);
        return;
    }
    trapped_.length = insn.length;
    const bool stepped = processor_->is_stepped() && !is_syscall(insn) && !is_interrupt(insn);  // which end it
    x86_64::After after;
    try {
        after = processor_->execute(insn, cycles());
    } catch (const Fault& raised) {
        if (model_) model_->pipeline->complete();
        fire(raised.vector == Vector::PAGE_FAULT ? Probe::EXC_DABORT : Probe::EXC_UNDEF, 1);
        fire(Probe::EXC_TAKEN, 1);
        deliver(static_cast<unsigned>(raised.vector), raised.error, raised.address, false);
        return;
    }
    if (after == x86_64::After::ASKS) {
        exit_ = Exit::REGISTER;
        trapped_.trap = processor_->asks();
        const x86_64::PortAccess port = processor_->port();
        trapped_.trap_encoding = port.port;
        trapped_.trap_register = static_cast<int8_t>(port.bytes);
        const bool goes_out = trapped_.trap == Trap::OUT || trapped_.trap == Trap::OUTS;
        device_access_ = DeviceAccess{.physical = port.port,
                                      .bytes = port.bytes,
                                      .kind = goes_out ? x86_64::AccessKind::STORE : x86_64::AccessKind::LOAD,
                                      .value = port.value};
        return;
    }
    const uint64_t next = linear_pc();
    const bool falls_through = insn.opcode == INTO && next == now + insn.length;
    if (model_) consume_answered(now, next);
    retire(trapped_, now, next);
    const bool calls = is_syscall(insn) || is_sysenter(insn);
    if (calls) fire(Probe::EXC_SVC, 1);
    if (calls || is_interrupt(insn)) {
        if (model_) model_->pipeline->complete();
        fire(Probe::EXC_TAKEN, 1);
    }
    if (processor_->shadows()) shadow_at_ = retired();
    if (processor_->resumes()) pass_breakpoint(linear_pc());
    if (after == x86_64::After::HALTS) exit_ = Exit::IDLE;
    if (is_far(insn) && !falls_through)
        follow_transfer(now, is_interrupt(insn));
    else
        follow_processor();
    if (!path_listeners_.empty() && writes_cr3(insn)) tell_tables();
    if (!stepped) return;
    fire(Probe::EXC_UNDEF, 1);
    fire(Probe::EXC_TAKEN, 1);
    raise_debug(SINGLE_STEP);
}

// Behind an instruction: the guest steps it, or has watched what it has accessed.
void Core::raise_debug(uint64_t status) {
    const uint64_t before = processor_->read(DR6, 0);
    processor_->write(DR6, (before & ~(status & BREAKPOINTS ? BREAKPOINTS : 0)) | status, 0);
    deliver(static_cast<unsigned>(Vector::DEBUG), std::nullopt, std::nullopt, true);
}

// What the engine has refused, or cannot do.
void Core::fault(uint64_t now, uint64_t last) {
    const bool fetch = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    if (exit_ == Exit::FAULT) locate_fault(now);
    if (exit_ == Exit::DEVICE) {
        answered_ = {};
        const size_t size = read_code(now, answered_);
        const x86_64::Instruction insn =
            x86_64::read_instruction(std::span(answered_).first(size), processor_->state().mode());
        const uint64_t physical = guest_tables_->walk(fault_address_, level_).output;
        try {
            device_access_ = processor_->begin_device(insn, fault_address_, physical);
            return;
        } catch (const Fault& raised) {
            exit_ = Exit::FAULT;
            fault_address_ = raised.address.value_or(0);
            fault_access_ = FaultAccess::WRITE;
        }
    }
    std::optional<uint32_t> error;
    std::optional<uint64_t> address;
    auto vector = Vector::UNDEFINED;
    if (exit_ == Exit::FAULT && !(processor_->state().is_long() && !x86_64::is_canonical(fault_address_))) {
        const auto access = static_cast<uint8_t>(fault_access_);
        if (fetch && guest_tables_->walk(now, level_).fault == WalkFault::EXTERNAL) return;  // no code: the machine's
        vector = Vector::PAGE_FAULT;
        error = processor_->tables()->error_code(fault_address_, level_, access);
        address = fault_address_;
    } else if (exit_ == Exit::FAULT || (exit_ == Exit::EXCEPTION && exception_ == Exception::STACK)) {
        if (fetch && isa_->undo_branch(engine_, *space_, last, now)) set_linear_pc(last);
        vector = exception_ == Exception::STACK && exit_ == Exit::EXCEPTION ? Vector::STACK : Vector::PROTECTION;
        error = 0;
    } else if (exit_ == Exit::EXCEPTION && exception_ != Exception::UNDEFINED) {
        if (exception_ == Exception::INTERNAL) return;
        vector = static_cast<Vector>(engine_vector_);
        if (vector == Vector::PROTECTION) error = 0;
    } else {
        exit_ = Exit::EXCEPTION;
    }
    fire_exception_probes();
    exit_ = Exit::NONE;
    if (vector == Vector::DEBUG) {
        debugging_.due ? tell_access(SINGLE_STEP) : raise_debug(SINGLE_STEP);
    } else {
        debugging_.due = false;  // it has not executed
        deliver(static_cast<unsigned>(vector), error, address, false);
    }
}

void Core::deliver(unsigned vector, std::optional<uint32_t> error, std::optional<uint64_t> address, bool is_trap) {
    const auto cause = is_trap ? Processor::Cause::TRAP : Processor::Cause::FAULT;
    const uint64_t from = linear_pc();
    const bool alive = processor_->take({static_cast<Vector>(vector), error, address}, cause, cycles());
    follow_transfer(from, true);
    if (!alive) pending_exit_ = exit_ = Exit::SHUTDOWN;
}

void Core::take_interrupt(unsigned vector) {
    if (!processor_) throw std::logic_error("only an x86-64 processor is told its interrupts' vectors");
    if (owes_exit()) throw std::logic_error("the core owes an exit: it cannot take an interrupt");
    if (vector > 255) throw std::invalid_argument("an interrupt's vector is below 256");
    fire(Probe::EXC_TAKEN, 1);
    const uint64_t from = linear_pc();
    const bool alive = processor_->take({static_cast<Vector>(vector)}, Processor::Cause::EXTERNAL, cycles());
    follow_transfer(from, true);
    if (!alive) pending_exit_ = Exit::SHUTDOWN;
}

bool Core::nmi_is_due() const { return nmi_ && processor_->accepts_nmi() && !is_shadowed(); }

bool Core::interrupts_guest() {
    nmi_ = false;
    fire(Probe::EXC_TAKEN, 1);
    const uint64_t from = linear_pc();
    const bool alive = processor_->take({Vector::NMI}, Processor::Cause::EXTERNAL, cycles());
    follow_transfer(from, true);
    exit_ = alive ? Exit::NONE : Exit::SHUTDOWN;
    return alive;
}

// ... behind a far transfer, too. That a triple fault goes on at the same place is told, to nobody's use.
void Core::follow_transfer(uint64_t from, bool by_gate) {
    const Level level = level_;
    follow_processor();
    if (!path_listeners_.empty()) tell_far(from, level, by_gate);
}

void Core::tell_tables() {
    const uint64_t cr3 = processor_->state().cr3, next = linear_pc();
    path_listeners_.tell_tables(cr3, next, cycles());
}

uint8_t Core::code_bits() const {
    if (!processor_) return 64;
    const x86_64::CodeMode mode = processor_->state().mode();
    return mode == x86_64::CodeMode::BITS_64 ? 64 : mode == x86_64::CodeMode::BITS_32 ? 32 : 16;
}

std::optional<ExecutionPlace> Core::execution_place() const {
    if (!processor_) return std::nullopt;
    return ExecutionPlace{linear_pc(), last_retired_pc_, processor_->state().cr3, level_, code_bits()};
}

// What it has changed is so from now on.
void Core::follow_processor() {
    const uint8_t changes = processor_->changes();
    if (changes & CHANGES_TRANSLATION) {
        fetched_.forget();
        accessed_.forget();
        guest_tables_->forget();
    }
    follow_guest();
    refresh_translations();
    if (!model_ || !(changes & (CHANGES_TRANSLATION | CHANGES_LEVEL))) return;
    model_->addresses->notice_mappings();
    model_->memory.set_address_space(space_);
}

std::optional<uint64_t> Core::complete_access(uint64_t loaded) {
    constexpr uint64_t ITERATIONS_OF_DEVICE = 1000;
    if (!processor_ || !device_access_) throw std::logic_error("no access waits for a device");
    const DeviceAccess access = *std::exchange(device_access_, std::nullopt);
    const x86_64::Instruction insn = x86_64::read_instruction(answered_, processor_->state().mode());
    bool goes_on = false;
    std::optional<uint64_t> stores;
    if (exit_ == Exit::DEVICE) {
        const Processor::Completion completion = processor_->complete_device(insn, access, loaded);
        goes_on = completion.goes_on;
        stores = completion.stores;
        if (trapped_.repeated) add_at(linear_pc(), trapped_.iteration_probes);
    } else {
        goes_on = !processor_->complete_port(insn, loaded);
    }
    if (goes_on) {
        iterations_ += ITERATIONS_OF_DEVICE;
        repeats_too_long_ |= iterations_ >= most_iterations_;
    } else {
        complete_trapped();
    }
    return stores;
}

x86_64::TakenExceptions& Core::exceptions_taken() const {
    if (!processor_) throw std::logic_error("only an x86-64 processor keeps what exceptions it has taken");
    return processor_->taken();
}

}  // namespace perfemu
