// What an x86-64 processor does where a guest's own kernel executes: all instructions that user mode may not execute,
// or that depend on what a kernel has set, and exceptions. The engine executes what is left.
//
// Not modelled, and refused by name: hardware task switches, call gates, virtual-8086 mode, breakpoints at
// ports, SYSCALL of AMD's outside of long mode. Nobody checks alignment (#AC) nor, but for what this class executes,
// the limits of segments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "archive.hpp"
#include "ops/access.hpp"
#include "shown_cycles.hpp"
#include "x86_64/row.hpp"
#include "x86_64_system/device_access.hpp"
#include "x86_64_system/engine_registers.hpp"
#include "x86_64_system/state.hpp"
#include "x86_64_system/system_memory.hpp"
#include "x86_64_system/taken_exceptions.hpp"

namespace perfemu::x86_64 {

// What comes of a system instruction.
enum class After : uint8_t {
    RETIRES,
    HALTS,  // it has retired, and waits for an interrupt
    ASKS,   // nothing has happened: the machine answers, or does it
};

class Processor {
  public:
    Processor(uc_engine* engine, std::shared_ptr<PhysicalMemory> memory, GuestRam ram);

    const std::shared_ptr<PageTables>& tables() const { return memory_.tables(); }
    const State& state() const { return state_; }
    void reset();
    void archive(Archive& state);  // between two instructions
    // The engine, whose registers are those of this one again, executes as it says.
    void resume() { registers_.follow(state_); }

    // --- instructions ---

    // Whether this class executes it, at that level.
    bool executes(const Instruction& insn, Level level) const;
    // The instruction at RIP, one of those. Throws Fault: then nothing has happened. `now`: the core's cycles.
    After execute(const Instruction& insn, uint64_t now);
    // Of the last one: what it asks the machine, as Trap has it, and has changed, bits of Change; whether no interrupt
    // is taken before the next one has retired.
    Trap asks() const { return asks_; }
    uint8_t changes() const { return changes_; }
    bool shadows() const { return shadows_; }
    PortAccess port() const { return port_; }
    // Writes what a port has answered. False: it repeats, and is asked again.
    bool complete_port(const Instruction& insn, uint64_t value);

    // --- devices in memory ---

    // Of an access at `linear` that finds no RAM, but `physical`; none where that instruction is not modelled so.
    std::optional<DeviceAccess> begin_device(const Instruction& insn, uint64_t linear, uint64_t physical);
    struct Completion {
        std::optional<uint64_t> stores{};  // at the same place, where it updates
        bool goes_on = false;              // it repeats
    };
    // What the instruction is about to access, as the engine will.
    std::vector<DataAccess> data_accesses(const Instruction& insn);
    Completion complete_device(const Instruction& insn, const DeviceAccess& access, uint64_t loaded);

    // --- exceptions ---

    enum class Cause : uint8_t { FAULT, TRAP, SOFTWARE, EXTERNAL };
    // By the guest's interrupt descriptor table, with RIP as it is; whatever that raises, too. False: a triple fault.
    // `now`: the core's cycles.
    bool take(Fault fault, Cause cause, uint64_t now);
    TakenExceptions& taken() { return taken_; }
    bool accepts_interrupts() const { return registers_.flags() & rflags::IF; }
    bool is_stepped() const { return registers_.flags() & rflags::TF; }  // RFLAGS.TF
    // Whether the last instruction was an IRET to one that no breakpoint stops: RFLAGS.RF, which is kept no longer.
    bool resumes() const { return resumes_; }
    bool accepts_nmi() const { return !state_.handles_nmi; }

    // --- for the machine ---

    // The TSC is that of this core's own reference cycles, `now`, which only the machine sees.
    uint64_t read(uint32_t number, uint64_t now) const;
    void write(uint32_t number, uint64_t value, uint64_t now);
    EngineRegisters& registers() { return registers_; }
    SystemMemory& memory() { return memory_; }
    void share(std::shared_ptr<ShownCycles> shown) { shown_ = std::move(shown); }

  private:
    friend struct SystemTable;

    uint64_t shown_time() const { return shown_->reference(shown_->show(now_)); }
    // What an instruction of the x87 or vector units raises as control registers are.
    std::optional<Vector> refusal(const Instruction& insn) const;

    // Operands of the instruction at hand
    uint64_t offset_of(const Operand& operand) const;
    unsigned segment_of(const Operand& operand) const;
    uint64_t linear(unsigned segment, uint64_t offset, unsigned bytes) const;
    uint64_t linear_address(const Operand& operand) const;  // without a check
    uint64_t part(unsigned number, unsigned bytes) const;
    void set_part(unsigned number, unsigned bytes, uint64_t value);
    bool end_iteration(unsigned bytes, bool source, bool destination);
    bool has_no_iteration() const;
    uint64_t bit_test_offset(const Operands& operands) const;
    uint64_t table_entry() const;
    std::optional<DeviceAccess> begin_copy(DeviceAccess access, uint64_t linear);
    uint64_t general(unsigned number, unsigned bytes) const;
    void set_general(unsigned number, unsigned bytes, uint64_t value);
    uint64_t load_operand(unsigned bytes, uint64_t at = 0);
    void store_operand(unsigned bytes, uint64_t value, uint64_t at = 0);
    uint64_t source(unsigned bytes) { return insn_->in_memory() ? load_operand(bytes) : general(insn_->rm(), bytes); }
    Level level() const { return state_.level(); }
    bool in_64() const { return state_.is_64(); }

    // Stacks
    unsigned stack_address_bytes() const;
    uint64_t stack_offset(int64_t from) const;
    uint64_t peek(unsigned index, unsigned bytes, uint64_t above = 0) const;
    void release(uint64_t bytes);
    void push(unsigned bytes, std::initializer_list<uint64_t> values);

    // Descriptors
    struct Descriptor {
        uint64_t address;
        SegmentRegister segment;
        bool present() const { return segment.has(attribute::PRESENT); }
        bool is_system() const { return !segment.has(attribute::S); }
    };
    Descriptor descriptor(uint16_t selector) const;
    std::optional<Descriptor> find_descriptor(uint16_t selector) const;
    void mark_accessed(Descriptor& descriptor);
    void load_segment(unsigned number, uint16_t selector);
    SegmentRegister stack_segment(uint16_t selector, unsigned privilege, Vector otherwise);
    SegmentRegister code_segment(uint16_t selector, unsigned privilege, bool returns);
    void leave_for_outer(unsigned privilege);
    void set_cpl(unsigned privilege);

    // Instructions
    void require_kernel() const {
        if (state_.cpl) raise_protection();
    }
    void require_protected() const {
        if (!state_.is_protected()) raise_undefined();
    }
    // What tells a program of the kernel's tables: CR4.UMIP
    void require_kernel_by_umip() const {
        if (state_.cr4 & cr4::UMIP) require_kernel();
    }
    void ask(Trap what);
    void move_from_control();
    void move_to_control();
    void write_control(unsigned number, uint64_t value);
    void write_control_0(uint64_t value);
    unsigned debug_register() const;
    void move_from_debug();
    void move_to_debug();
    void detect_debug_access();
    void refuse_port_breakpoints(uint64_t controls) const;
    void clear_task_switched();
    void load_status_word();
    void store_status_word();
    void store_table();
    void load_table();
    void store_selector();
    void load_local_table();
    void load_task();
    void verify();
    void load_rights();
    void invalidate_page();
    void invalidate_caches();
    void swap_gs();
    void halt();
    void clear_interrupts();
    void set_interrupts();
    void pop_flags();
    void read_msr();
    void write_msr();
    void read_time();
    void read_counter();
    void access_port();
    void pop_segment();
    void move_to_segment();
    void move_from_segment();
    void load_far_pointer();
    void jump_far();
    void call_far();
    void return_far();
    void return_from_interrupt();
    void call_system();
    void return_from_system();
    void enter_system();
    void exit_system();
    void enter_flat(uint16_t selector);
    void return_to_flat(uint16_t code, uint16_t stack);
    void check_bounds();
    void interrupt();

    struct FarTarget {
        uint16_t selector;
        uint64_t offset;
    };
    FarTarget far_target();
    void enter_code(uint16_t selector, uint64_t offset, const SegmentRegister& segment);
    void set_flags_of_return(uint64_t popped, unsigned bytes);
    bool permits_port(uint16_t port, unsigned bytes) const;
    uint64_t read_register_of_machine(uint32_t number) const;

    // Delivery
    struct Gate {
        uint16_t selector;
        uint64_t offset;
        unsigned type, dpl, stack;
        bool present;
    };
    void deliver(const Fault& fault, Cause cause);
    Gate gate(unsigned vector, uint32_t external) const;
    void deliver_in_real_mode(unsigned vector);
    void deliver_in_protected_mode(const Fault& fault, Cause cause);
    uint64_t stack_of_task(unsigned privilege, unsigned interrupt_stack) const;

    State state_;
    EngineRegisters registers_;
    SystemMemory memory_;
    std::shared_ptr<ShownCycles> shown_ = std::make_shared<ShownCycles>();  // by the TSC, with other processors
    const Instruction* insn_ = nullptr;
    uint64_t now_ = 0, next_ = 0;  // RIP behind it
    After after_ = After::RETIRES;
    Trap asks_ = Trap::NONE;
    uint8_t changes_ = 0;
    bool shadows_ = false;
    bool resumes_ = false;
    PortAccess port_{};
    TakenExceptions taken_;
};

}  // namespace perfemu::x86_64
