// What differs between the two instruction sets, for the core.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/registers.hpp"
#include "engine/translation_guard.hpp"
#include "memory/guest_page_tables.hpp"
#include "ops/access.hpp"
#include "ops/call_rules.hpp"
#include "ops/op.hpp"

namespace perfemu {

struct RegisterFile;
namespace x86_64 {
class Processor;
}

// ILLEGALLY: to a state that there is not, which the architecture knows. UNMODELLED: the engine executes what we do
// not.
enum class Returned : uint8_t { AS_IT_SHOULD, ILLEGALLY, UNMODELLED };

class Isa : public BlockRules {
  public:
    bool begins_block(std::span<const uint8_t>) const override { return false; }
    // From now on PTWRITE is there. Throws std::invalid_argument where it is none of the instruction set's.
    virtual void add_ptwrite() { throw std::invalid_argument("PTWRITE is x86-64's"); }
    bool is_64() const override { return true; }

    // By name, "aarch64" or "x86_64"; with these of the features that not every core has, by the names of
    // /proc/cpuinfo. Throws std::invalid_argument.
    static std::unique_ptr<Isa> make(std::string_view name, std::span<const std::string> features = {});

    virtual std::string_view name() const = 0;
    virtual uc_arch engine_arch() const = 0;
    virtual uc_mode engine_mode() const = 0;
    // Before the engine's first use: CPU model, page size.
    virtual void configure(uc_engine* engine) const = 0;
    // After it: user privilege, and what Linux lets user mode do.
    virtual void enter_user_mode(uc_engine* engine) const = 0;

    // Unicorn's register numbers in the order of emulator/_native.pyi.
    virtual std::span<const int> registers() const = 0;
    virtual int pc() const = 0;
    virtual int frame_pointer() const = 0;
    virtual const CallRules& call_rules() const = 0;
    // Where the syscall number and its six arguments are.
    virtual std::span<const int, 7> syscall_registers() const = 0;
    virtual int first_vector() const = 0;
    virtual unsigned vectors() const = 0;

    // Single-step: after each instruction the engine raises interrupt 1. `rearm` after each of those.
    virtual void set_stepping(uc_engine* engine, bool on) = 0;
    virtual void rearm_stepping(uc_engine* engine) = 0;
    // Whether a guest's own kernel steps what is stepped here, too: each of those interrupts is an exception then.
    virtual bool steps_for_guest() const { return false; }
    // A stepped instruction has read the masks of exceptions: without what stepping has changed of them.
    virtual void correct_masks(uc_engine*, int8_t into) const { (void)into; }
    // It reports a finished step, or, on Arm, also an undefined instruction: the PC tells.
    static constexpr uint32_t STEP_INTERRUPT = 1;

    // The SYSCALL instruction's own effects on registers that the engine leaves out. PC is behind it.
    virtual void complete_syscall(uc_engine* engine) const = 0;
    // The ops in `bytes`, which lie at `address` and execute at that level. Bytes that are no instruction become one op
    // that traps.
    virtual std::vector<Op> decode(uint64_t address, std::span<const uint8_t> bytes, Level level = Level::USER) = 0;
    // The data address, within the page at `page` or before it, where the instruction has faulted; `page` if it cannot
    // be told.
    virtual uint64_t faulting_operand(uc_engine* engine, const AddressTranslation& space, uint64_t pc,
                                      std::span<const uint8_t> bytes, uint64_t page) = 0;
    // Whether that address is none, and of the stack, so that the exception is another.
    virtual bool raises_stack_fault(uc_engine*, uint64_t pc, std::span<const uint8_t>, uint64_t address) {
        (void)pc, (void)address;
        return false;
    }
    // The data address of an instruction that has raised an alignment fault; `pc` if that itself is the cause.
    virtual uint64_t misaligned_operand(uc_engine*, uint64_t pc, std::span<const uint8_t>) { return pc; }
    // Whether an instruction that wants alignment does not raise an exception for that address.
    virtual bool aligned(const AccessSite& site, uint64_t address) const {
        return address % (site.size / site.elements) == 0;
    }
    // Whether instructions that use vector registers may raise exceptions. `file`: if it is known.
    virtual bool raises_on_vectors(uc_engine*, const RegisterFile* file) const {
        (void)file;
        return false;
    }
    // Whether the instruction at `pc` has branched to `target`, which is no address. If so, the stack pointer is again
    // what it was before: such a branch faults itself. Intel SDM vol. 2, CALL, JMP and RET, "64-Bit Mode Exceptions".
    virtual bool undo_branch(uc_engine*, const AddressTranslation&, uint64_t pc, uint64_t target) {
        (void)pc, (void)target;
        return false;
    }
    // The address that the page tables know: without what user mode may write into its top byte.
    virtual uint64_t untagged(uint64_t address) const { return address; }

    // --- where a guest's own kernel executes ---

    // In place of `enter_user_mode`: the highest privilege that the engine offers, as a reset leaves it.
    virtual std::shared_ptr<GuestPageTables> enter_kernel_mode(uc_engine* engine,
                                                               std::shared_ptr<PhysicalMemory> memory,
                                                               GuestRam ram) = 0;
    // Where several guests' kernels share the engine: the one with these tables, which that has returned, executes.
    virtual void change_guest(const GuestPageTables&) {}
    // x86: what executes, then, all that the engine does not; null elsewhere.
    virtual x86_64::Processor* processor() const { return nullptr; }
    // What the processor does as it takes an exception of that kind, at the present PC. Arm: kind 0 synchronous, 1 IRQ,
    // 2 FIQ, 3 SError, with ESR_EL1 and FAR_EL1, where the exception writes them.
    virtual void take_exception(uc_engine* engine, unsigned kind, std::optional<uint64_t> syndrome,
                                std::optional<uint64_t> address) const = 0;
    // Whether what executes does not mask interrupts.
    virtual bool takes_interrupts(uc_engine* engine) const = 0;
    // What has become of a return from an exception, right behind it.
    virtual Returned returned(uc_engine*) const { return Returned::AS_IT_SHOULD; }
    // Whether a watchpoint's exception is taken behind the instruction, rather than before its access.
    virtual bool traps_behind_access() const { return false; }
    // AArch64: what the instruction at `pc` accesses as the registers are now.
    virtual DataAccess data_access(uc_engine*, uint64_t pc, std::span<const uint8_t>) const {
        (void)pc;
        return {};
    }
    // Whether what executes masks its kernel's debug exceptions (PSTATE.D).
    virtual bool masks_debug_exceptions(uc_engine*) const { return false; }
    // PSTATE, as SPSR_EL1 has it; of what is written, only what no exception has to go with.
    virtual uint64_t processor_state(uc_engine*) const { return 0; }
    virtual void set_processor_state(uc_engine*, uint64_t) const {}
    // What the last exception has saved of it (SPSR_EL1).
    virtual uint64_t saved_state(uc_engine*) const { return 0; }
    virtual void set_saved_state(uc_engine*, uint64_t) const {}
    // Where MRS and MSR, or RDMSR and WRMSR, find it in the engine.
    virtual uint64_t read_kernel_register(uc_engine* engine, uint32_t number) const = 0;
    virtual void write_kernel_register(uc_engine* engine, uint32_t number, uint64_t value) const = 0;
};

std::unique_ptr<Isa> make_aarch64(std::span<const std::string> features);
std::unique_ptr<Isa> make_x86_64();

}  // namespace perfemu
