// One hardware thread: an engine, the blocks it has run, and what they add up to.
//
// The engine calls `on_block` before every translated block. Almost always the block fits into the budget: it is
// counted as a whole, and runs. Where something is due inside it (a counter's overflow, the deadline, an instruction
// that the machine answers), the core steps through it, instruction by instruction, until that point is reached
// exactly.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "address/instruction_accesses.hpp"
#include "config.hpp"
#include "core/block.hpp"
#include "core/block_table.hpp"
#include "core/calls.hpp"
#include "core/counters.hpp"
#include "core/debugging.hpp"
#include "core/ledger.hpp"
#include "core/path_listeners.hpp"
#include "core/retirement.hpp"
#include "engine/guest_tlb.hpp"
#include "engine/register_file.hpp"
#include "engine/translations.hpp"
#include "instructions/trace_writes.hpp"
#include "isa/isa.hpp"
#include "memory/fetched_pages.hpp"
#include "memory/memory.hpp"
#include "memory/remembered_pages.hpp"
#include "shown_cycles.hpp"
#include "x86_64_system/device_access.hpp"
#include "x86_64_system/taken_exceptions.hpp"

namespace perfemu {

// emulator.cpu.ExitReason; the last two are for the inside.
enum class Exit : uint8_t {
    SYSCALL,
    REGISTER,
    OVERFLOW,
    FAULT,
    EXCEPTION,
    DEADLINE,
    BREAKPOINT,
    IDLE,
    DEVICE,
    WATCHPOINT,
    STEP,
    SOFTWARE_STEP,
    INTERRUPT,
    SHUTDOWN,
    INTERRUPTED,
    NONE
};
// emulator.cpu.ExceptionKind
enum class Exception : uint8_t {
    UNDEFINED,
    BREAKPOINT,
    DIVIDE,
    ALIGNMENT,
    PRIVILEGED,
    SOFTWARE_INTERRUPT,
    INTERNAL,
    X87,
    SIMD,
    STACK,
    STEP,
    ILLEGAL_STATE,
    VECTORS,
};
// emulator/_native.pyi, Core.fault_access
enum class FaultAccess : uint8_t { READ = 1, WRITE = 2, FETCH = 4 };
// emulator.cpu.Gear: how much of a core with models hears of what executes. What no gear changes is counted in each.
enum class Gear : uint8_t {
    FUNCTIONAL,  // nothing; one cycle an instruction
    WARMING,     // caches, TLBs and predictors, so that they know what they would; they count nothing
    DETAILED,    // everything
};

class Archive;
class SharedMemory;
struct RunBlock;
struct Model;
struct ModelledBlock;
struct TracedAccess;

// Where no pipeline says otherwise: one cycle an instruction.
inline constexpr ProbeMask RETIREMENT = mask(Probe::INST_RETIRED, Probe::CYCLES);

class Core final : public Totals, private TranslationListener, private TraceWriteListener {
  public:
    // Without `counting` the engine runs bare: the yardstick for what counting costs. `model`: a core file's tables, or
    // null where nothing but instructions is to be counted. `shared`: what other cores of that model have, too.
    Core(std::string_view isa, std::span<const std::string> features, std::shared_ptr<PhysicalMemory> memory,
         bool counting, const Config* model, std::shared_ptr<SharedMemory> shared = nullptr);
    ~Core() override;
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    void set_address_space(std::shared_ptr<AddressTranslation> space);
    CounterBank& add_bank(unsigned counters);

    // Between two runs. Throws std::invalid_argument if this core has no models, and so but one gear.
    void set_gear(Gear gear);
    Gear gear() const { return gear_; }

    // Runs until an exit. `poll` is called every few million instructions; if it returns true, the run ends with
    // INTERRUPTED, between two blocks.
    Exit run(uint64_t until_cycle, const std::function<bool()>& poll);
    // Whether the next run returns at once with what this one could not: an exit on which an interrupt fell. Until then
    // the kernel may not touch the registers: the instruction has retired, and what it asks has not been answered.
    bool owes_exit() const { return pending_exit_ != Exit::NONE; }

    uint64_t pc() const;
    uint64_t linear_pc() const;
    // None where the kernel is modelled, and on AArch64.
    std::optional<ExecutionPlace> execution_place() const;
    uint64_t last_retired_pc() const { return last_retired_pc_; }
    uint64_t fault_address() const { return fault_address_; }
    FaultAccess fault_access() const { return fault_access_; }
    Exception exception() const { return exception_; }
    const Op& trapped() const { return trapped_; }
    void complete_trapped();
    // x86, where a guest's own kernel executes: what the instruction at PC asks of a device, at a port or in memory
    // where no RAM is; none where that is not modelled.
    std::optional<x86_64::DeviceAccess> device_access() const { return device_access_; }
    // It has answered; of a store, whatever. What is to be stored then, if the instruction updates memory.
    std::optional<uint64_t> complete_access(uint64_t loaded);
    // Where the breakpoint is for which the core has stopped, if no instruction has retired since: it passes that one,
    // whatever happens before the instruction retires. x86 calls it the resume flag. It belongs to the registers.
    std::optional<uint64_t> passed_breakpoint() const {
        return passed_at_ == retired() ? passed_breakpoint_ : std::nullopt;
    }
    void pass_breakpoint(std::optional<uint64_t> address) {
        passed_breakpoint_ = address;
        passed_at_ = retired();
    }

    uint64_t read(unsigned number) const;
    void write(unsigned number, uint64_t value);
    bool elides_exit_checks() const { return elides_exit_checks_; }
    const Isa& isa() const { return *isa_; }
    uc_engine* engine() const { return engine_; }

    // The present run, or else the next one, ends at its next poll. For who owns `poll`.
    void request_return() { return_requested_ = true; }
    bool take_return_request() { return std::exchange(return_requested_, false); }

    // Time: cycles in user mode, and those that the kernel took.
    uint64_t cycles() const;
    // The kernel works for so long.
    void elapse(uint64_t cycles);
    // The kernel works for so long: cycles at KERNEL, where nothing else happens. Has that made an armed counter wrap?
    bool work(uint64_t cycles);
    // So long passes while nothing in the machine does anything: no part of it hears of that. All cores that share
    // something must skip the same time.
    void skip(uint64_t cycles) { skipped_ += cycles; }
    // The kernel has just written a whole page of the space in which this core executes.
    void place_page(uint64_t address);
    // Before a REP's iteration behind so many of them `run` ends with DEADLINE, and comes no further. On the ideal core
    // they take no time, and they are no instructions anywhere. One that a device answers counts as a thousand.
    void limit_iterations(uint64_t most) { most_iterations_ = most; }
    bool repeats_too_long() const { return repeats_too_long_; }
    // How many instructions had retired at the last poll. The one call that other threads may make during `run`.
    uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
    // Of what has executed, whatever its level.
    uint64_t sum(ProbeMask probes);
    uint64_t sum(ProbeMask probes, LevelMask levels) override;
    void watch(ProbeMask probes) override;
    // How often the probe has fired since the core was made.
    uint64_t total(Probe probe);
    // ... while the core was at that level.
    uint64_t total(Probe probe, Level level);
    // What executes from now on is at this level: an exception was taken, or returned from. Between two runs. As long
    // as it is never called all is at USER, and costs nothing.
    void set_level(Level level);
    Level level() const override { return level_; }

    // From now on a guest's own kernel executes, as after a reset, at physical addresses and then by its own page
    // tables: these. Before the first run. Throws std::invalid_argument where that is not modelled.
    std::shared_ptr<GuestPageTables> enter_kernel_mode(GuestRam ram);
    // Where several guests' kernels share the core, each with tables of its own. Between two runs.
    void change_guest(std::shared_ptr<GuestPageTables> tables);
    // x86: as a reset or INIT leaves it, but for time.
    void reset();
    // Whether an interrupt is pending at this processor. It takes it before the first instruction that does not mask
    // it.
    void set_interrupt_line(bool asserted) { interrupt_line_ = asserted; }
    // Between two runs, then: as Isa::take_exception. x86: vector, error code and CR2 of a fault.
    void take_exception(unsigned kind, std::optional<uint64_t> syndrome, std::optional<uint64_t> address);
    // Between two runs. WATCHPOINT: `fault_address` and `fault_access` say where and how, and these which, as bits. The
    // next run makes the access.
    void set_watchpoints(std::vector<Watchpoint> watchpoints);
    // Stops before instructions there, in whatever address space, as AddressTranslation::set_breakpoint does in one.
    void set_breakpoints(std::vector<uint64_t> addresses);
    // As passed_breakpoint(): the instruction whose access is the next one to be made.
    std::optional<uint64_t> passed_access() const {
        const auto& passed = debugging_.passed;
        return passed && passed->retired == retired() ? std::optional(passed->pc) : std::nullopt;
    }
    void pass_access(std::optional<uint64_t> pc) {
        debugging_.passed.reset();
        if (pc) debugging_.passed = {*pc, retired()};
    }
    uint64_t watchpoint_hits() const { return debugging_.hits; }
    // What MRS of these system registers reads: cycles, times numerator / denominator. No exit is made then, but where
    // instructions are stepped. At EL0 it is the second ones. AArch64; with a kernel of the guest's own. None: as
    // others.
    void set_counter(std::vector<uint16_t> registers, std::vector<uint16_t> user_registers, uint64_t numerator,
                     uint64_t denominator);
    // What the guest reads of that, or of its time stamp counter, never goes back behind what any core that shares it
    // has shown. With a kernel of the guest's own.
    void share_shown_cycles(std::shared_ptr<ShownCycles> shown);
    // Each run ends with STEP behind one instruction, if it does not end otherwise.
    void set_steps(bool on) { debugging_.steps = on; }
    // The guest's own kernel has what executes at these levels (bits) stepped: SOFTWARE_STEP is for it to hear of.
    void set_guest_steps(uint8_t levels) {
        debugging_.guest_steps = levels;
        debugging_.guest_step_from.reset();
    }
    // After SOFTWARE_STEP: whether an instruction has been executed since the exception return.
    bool has_stepped_guest() const { return debugging_.guest_step_from.has_value(); }
    // Where guests share the core: how many instructions ago the step that is under way has begun, if one is; and that
    // it is now, after others have executed.
    std::optional<uint64_t> guest_step_age() const {
        if (!debugging_.guest_step_from) return std::nullopt;
        return retired() - *debugging_.guest_step_from;
    }
    void set_guest_step_age(std::optional<uint64_t> age) {
        debugging_.guest_step_from.reset();
        if (age) debugging_.guest_step_from = retired() - *age;
    }
    // x86: an external interrupt, after an exit that asks for one; a non-maskable one, as soon as none is handled.
    void take_interrupt(unsigned vector);
    void raise_nmi() { nmi_ = true; }
    // ... that waits, and whether no interrupt is taken before the next instruction has retired. They belong to the
    // registers.
    bool waiting_nmi() const { return nmi_; }
    bool is_shadowed() const { return shadow_at_ == retired(); }
    void set_waiting(bool nmi, bool shadowed) {
        nmi_ = nmi;
        shadow_at_ = shadowed ? retired() : ~uint64_t{0};
    }
    // x86: those that were taken last. Who hears of them does so within a run.
    x86_64::TakenExceptions& exceptions_taken() const;
    // One that MRS and MSR, or RDMSR and WRMSR, find in the engine or in the processor.
    uint64_t read_kernel_register(uint32_t number) const;
    void write_kernel_register(uint32_t number, uint64_t value);
    // Where a guest's own kernel executes: what has begun completes, and what is only remembered is forgotten. Before
    // its state is saved, or loaded, and then nothing else. All cores that share something do so first. Between two
    // runs. Throws std::logic_error where there is more than can be kept.
    void rest();
    // What is saved of one core goes on in another that was made equal, in another process, as it goes on here. Throws
    // WrongState.
    void archive(Archive& state);
    // Of a guest with its own kernel: Isa::processor_state.
    uint64_t processor_state() const { return isa_->processor_state(engine_); }
    void set_processor_state(uint64_t state) { isa_->set_processor_state(engine_, state); }
    // Count where conditional branches go, from now on.
    void follow_branches();
    void fire(Probe probe, uint64_t amount);
    // From now on keep which instruction made the events of these columns, for each account that is attributed to.
    void attribute(std::vector<Ledger::Column> columns);
    void attribute_to(Ledger::Account account);
    // Rows as Ledger::take has them, exact at the present instruction.
    std::vector<uint64_t> take_attribution(Ledger::Account account);
    std::vector<uint64_t> frame_chain(unsigned limit) const;
    // From now on the call stack of what executes is kept. Before the first run. Throws std::invalid_argument where a
    // guest's own kernel executes.
    void keep_calls();
    // Null where they are not kept.
    Calls* calls() const { return calls_.get(); }
    // From now on this one is told of every branch. Before the first run, or between two. It must outlive the core, or
    // stop.
    void listen(RetirementListener& listener);
    // ... of the instruction that makes the last of so many such events, and of what it then asks for. With CYCLES it
    // is told of the cycle: the instruction may be any. What samples instructions (SPE, IBS) sits here, and what
    // records branches (LBR, BRBE) at `listen`. `levels`: at which they count. Throws std::invalid_argument.
    void select(RetirementListener& listener, ProbeMask probes, uint64_t distance, LevelMask levels = EVERY_LEVEL);
    void stop_listening(const RetirementListener& listener);
    // Where the byte at a virtual address lies, in frames of RAM from 0 on; nothing where no page is.
    std::optional<uint64_t> physical(uint64_t address) const;
    // x86-64: from now on PTWRITE is there. Before the first run. Throws std::invalid_argument.
    void add_ptwrite() { isa_->add_ptwrite(); }
    // Between two runs, where something else than the path's next instruction is about to execute, or a listener wants
    // to know where it is: an interrupt has come.
    void interrupt_path() { path_listeners_.interrupt(); }
    // By a listener, within a run: that ends with OVERFLOW before the next block, or else the next one begins so.
    void request_interrupt() {
        interrupt_requested_ = true;
        drop_budget();
    }
    // For tests: keep every data access that the models are told of.
    void start_trace();
    std::vector<TracedAccess> take_trace();
    const char* address_way() const;
    uint64_t decoded_blocks() const { return decoded_blocks_; }
    // How many translations were told which block they are.
    uint64_t known_calls() const { return known_calls_; }
    // So many are kept, or the instructions of so many; then all are forgotten, and decoded again when they run again.
    // So many translations are hooked.
    void keep_blocks(size_t most) { most_blocks_ = most; }

  private:
    template <bool FOLLOWS_CALLS>
    static void on_block(uc_engine*, uint64_t address, uint32_t size, void* core);
    static void on_block_modelled(uc_engine*, uint64_t address, uint32_t size, void* log);
    static void on_known_block(uc_engine*, uint64_t address, uint32_t size, void* log);
    static void on_interrupt(uc_engine*, uint32_t number, void* core);
    static void on_syscall(uc_engine*, void* core);
    static bool on_tlb_fill(uc_engine*, uint64_t address, uc_mem_type type, uc_tlb_entry* entry, void* core);

    // Blocks
    // Out of line, so that the common path of `on_block` saves no registers.
    [[gnu::noinline]] void consider(uint64_t address, uint32_t size);
    [[gnu::noinline]] void note_run(Block* block);
    // What it costs has been taken.
    void begin_run(Block& block) {
        previous_ = &block;
        if (block.runs++ == 0) note_run(&block);
    }
    void consider_repeat(Block& block);
    bool ends_repeating();
    void consider_step(Block& block);
    bool fits(const Block& block) const;
    void count(Block& block);
    void uncount_from(uint64_t pc);
    Block& block_at(uint64_t address, uint32_t size);
    std::unique_ptr<Block> decode(uint64_t address, uint32_t size, BlockFrames frames);
    BlockFrames frames_of(uint64_t address, uint32_t size) const;
    bool unchanged(const Block& block) const;
    // Before each run. Where a guest's own kernel executes A64, only when the engine has translated it anew.
    bool must_compare(const Block& block) const { return block.changeable && !guest_tlb_; }
    bool changeable(const Page& page) const;
    bool interrupts_store(uint64_t address, const Block& next) const;
    void note_interrupted_store(uint64_t address, const Block& next);
    uint64_t cost(const Block& block) const;
    void set_cost(Block& block) const;
    void note_special(Block& block) const;
    bool needs_a_look(const Block& block) const;
    bool remembers_wrongly(uint64_t address, uint32_t size);
    bool runs_unchanged(uint64_t address, uint32_t size);
    void look_for_breakpoints();
    bool has_breakpoint(uint64_t address) const;
    bool breaks_at(uint64_t address);
    bool breaks_inside(const Block& block) const;
    void forget_blocks();
    void drop_blocks();
    bool has_too_many_blocks() const;
    void unlink_successors();
    bool needs_stepping_inside(const Block& block) const;
    // One instruction that ends its block and is not stepped: what is due at it is met behind it.
    static bool runs_alone(const Block& block) { return block.changes && block.ops.size() == 1; }

    // Listeners
    // Where the block that was entered last has gone, if branches are followed.
    void depart(uint64_t next, uint32_t size) {
        previous_->departures += next != previous_->end;
        if (!path_listeners_.empty()) tell_departure(next, size);
    }
    void tell_departure(uint64_t next, uint32_t size);

    // Calls
    // The block that was entered last has come to its end, and execution goes on at `next`.
    void follow_calls(uint64_t next, uint32_t size) {
        if (calls_->expects_jump() || !calls_->follow(*previous_, next)) land(next, size);
    }
    [[gnu::noinline]] void land(uint64_t next, uint32_t size);
    [[gnu::noinline]] void count_behind_transfer(uint64_t address, Block* block, uint64_t budget);
    bool counts_following(uint64_t address, uint32_t size);
    // The next block is to be looked at, whether or not it fits into the budget.
    static void hold(uint64_t& budget, uint64_t& held) { held = std::exchange(budget, 0); }
    static void give_back(uint64_t& budget, uint64_t& held) { budget += std::exchange(held, 0); }
    [[gnu::noinline]] void count_departed(uint64_t address, uint32_t size);
    void tell_branch(const Op& op, uint64_t pc, uint64_t next, bool mispredicted, Level level);
    void tell_far(uint64_t from, Level level, bool by_gate);
    void tell_return(uint64_t from, Level level, uint64_t to);
    void trace_written(uint64_t value, unsigned bytes) override;
    void leave_path(Exit found);
    void retire_log(size_t blocks);
    const uint64_t* retire_logged(size_t first, size_t last, const uint64_t* found);
    // Branches that were predicted wrong, as far as the models have heard of them.
    uint64_t mispredictions() const { return totals_[static_cast<unsigned>(Probe::BR_MISPREDICTED)]; }
    void begin_observation();
    void forget_observation() { observed_cycle_ = UNOBSERVED; }
    void end_observation(unsigned number, uint64_t next);
    void observe_timed(const Op& op, uint64_t pc, uint64_t next);
    void observe(const Op& op, uint64_t pc, uint64_t next);
    void observe_behind(const RetiredOp& iteration);
    void note_times();
    bool choose();
    OpClass class_of(uint64_t pc);

    // Budget
    void plan();
    bool undue() const;
    void grant(uint64_t instructions, uint64_t events);
    void drop_budget();
    uint64_t user_cycles() const;
    uint64_t retired() const { return retired_ + (planned_instructions_ - static_cast<uint32_t>(budget_ + held_)); }

    // Models
    std::unique_ptr<ModelledBlock, DropModelledBlock> model_block(const Block& block);
    void tell_what_follows_block(TimedOp& last, uint64_t end) const;
    [[gnu::noinline]] void visit(uint64_t address, uint32_t size);
    [[gnu::noinline]] void log_otherwise(uint64_t address, uint32_t size, const void* return_address);
    const void* make_entry(const Block& block);
    void make_known(Block& block, const void* return_address);
    void make_unknown(Block& block);
    bool log_found(Block& block);
    bool log_called(Block& block);
    void log(Block& block, uint64_t* found_end);
    void check_log(const RunBlock* running);
    void open_log(uint64_t most_instructions);
    void end_log();
    void close_log();
    bool enter(Block& block);
    bool forget_departure();
    bool consume_ahead(Block& block);
    bool may_raise(const Block& block) const;
    bool may_fault(const Block& block) const;
    void consume(unsigned last, uint64_t next, uint64_t limit);
    void finish_visit(uint64_t next);
    void finish_step(const Op& op, uint64_t now, bool repeats);
    void cut_visit(unsigned last, uint64_t next);
    void settle_visit(uint64_t now, bool within_a_block);
    bool enter_iteration(Block& block);
    void consume_answered(uint64_t at, uint64_t next);
    void trace(unsigned first, unsigned last);
    bool near(uint64_t instructions);
    bool near_in_events(uint64_t instructions);
    uint64_t loggable_instructions();
    uint64_t uneventful_instructions(uint64_t wanted);
    bool due();
    void plan_model();
    void check_addresses() const;

    // Gears
    void hook_blocks();
    void renew_block_hook();
    void stop_counting_models();
    void settle_models();
    void forget_uncounted();

    // Stepping
    void begin_stepping(Block& block);
    void begin_stepping(uint64_t address, uint64_t end);
    bool fetched_ahead(uint64_t pc);
    void end_stepping();
    void set_linear_pc(uint64_t address);
    uint64_t stack_address() const;
    void redispatch(uint64_t address);
    void step_done();
    bool comes_again_to_step(uint64_t address) const;
    void forget_step();
    bool finish_untrapped_step(uint64_t next);
    bool retires_untrapped(uint64_t now) const;
    void retire(const Op& op, uint64_t pc, uint64_t next_pc);
    bool must_step(const Block& block);

    // A guest's own kernel
    static constexpr uint8_t FOLLOWED = CHANGES_TRANSLATION | CHANGES_LEVEL | FORGETS_TRANSLATIONS;
    void note_changes(const Block& block);
    bool follow_changes(uint64_t next);
    bool is_interrupted() const { return interrupt_line_ && isa_->takes_interrupts(engine_) && !is_shadowed(); }
    // Where the processor does what is a board's software's elsewhere.
    void answer_for_guest(uint64_t now, uint64_t last);
    void execute_system(uint64_t now);
    void fault(uint64_t now, uint64_t last);
    void deliver(unsigned vector, std::optional<uint32_t> error, std::optional<uint64_t> address, bool is_trap);
    void raise_debug(uint64_t status);
    bool is_guests_step() const { return exit_ == Exit::EXCEPTION && exception_ == Exception::STEP; }
    bool nmi_is_due() const;
    bool interrupts_guest();
    void follow_transfer(uint64_t from, bool by_gate);
    void tell_tables();
    uint8_t code_bits() const;
    void follow_processor();
    bool take_changes();
    bool has_returned_illegally();
    bool follow_guest();
    bool reaches_device() const;
    void take_irq();
    bool asks_counter() const;
    void answer_counter();
    void restart_pipeline();
    void archive_exit(Archive& state);
    void archive_model(Archive& state);
    void hear_others();
    void hear_stores();
    void forget_tables();
    PageWalk walk_to_code(uint64_t address) const;
    bool fetch_again(uint64_t address);
    Page code_page(uint64_t address) const;
    uint64_t read_code(uint64_t address, std::span<uint8_t> into) const;
    void on_translation(uint64_t address) override;
    void on_watched_store(uint64_t physical, uint32_t size) override;
    Page lookup(uint64_t address, FaultAccess access);
    Page find_code(uint64_t address);
    Page look_up_remembered(uint64_t address, FaultAccess access);
    PageWalk walk_to_data(uint64_t address, FaultAccess access);
    Page with_what_else_is_known(Page page, uint64_t address, bool fetches, unsigned index) const;
    Page find_data(uint64_t address, FaultAccess access);
    void note_fetch(uint64_t address, const PageWalk& walk);
    void watch_code(const Page& page);
    void forget_slots();
    void flush_tlb();
    void forget_code();

    // Debugging
    bool watches_page(uint64_t address) const;
    void look_at_access(uint64_t now);
    bool stops_at_access(uint64_t now);
    bool finds_hits(uint64_t now);
    std::vector<DataAccess> accesses_at(uint64_t now);
    void note_hits(const DataAccess& access);
    void tell_access(uint64_t status);
    void stop_passing();
    bool guest_steps() const;
    bool guest_step_is_due() const;
    void begin_guest_step();
    void save_guest_step(bool pending);
    bool step_alone(Block& block);

    void exit(Exit reason);
    Exit run_on();
    void leave(uc_err error);
    void settle_counts(uint64_t now);
    void raise_trap(uint64_t now);
    void locate_fault(uint64_t now);
    void locate_misalignment(uint64_t now);
    void fire_exception_probes();
    void fold();
    void add_runs(const Block& block, const std::array<uint64_t, DECODED_PROBES>& fired);
    void book_level();
    void add(ProbeMask probes, uint64_t times = 1);
    void add_at(uint64_t address, ProbeMask probes, int64_t times = 1);
    bool attributes_models();
    void attribute_models(uint64_t address);
    void refresh_mappings();
    void refresh_translations();
    bool take_interrupts();  // whether counters or listeners want the core to stop: said once
    bool poll_due();

    std::unique_ptr<Isa> isa_;
    std::shared_ptr<PhysicalMemory> memory_;
    std::shared_ptr<AddressTranslation> space_;
    GuestPageTables* guest_tables_ = nullptr;  // `space_`, where a guest's own kernel keeps it
    std::unique_ptr<GuestTlb> guest_tlb_;      // ... and what the engine knows of it; AArch64
    FetchedPages fetched_;                     // ... since it has last said that its tables have changed
    RememberedPages accessed_;                 // ... by AArch64's MMU indexes, or x86-64's levels
    uint64_t accessed_regime_ = 0;             // by which tables; x86-64
    uint8_t changes_ = 0;                      // bits of Change: what the block that was counted last ends with
    bool interrupt_line_ = false;
    struct {
        std::vector<uint16_t> registers, user_registers;
        uint64_t numerator = 1, denominator = 1;
    } counter_;
    std::shared_ptr<ShownCycles> shown_ = std::make_shared<ShownCycles>();  // by that, or by the time stamp counter
    x86_64::Processor* processor_ = nullptr;                                // the Isa's
    bool nmi_ = false;
    uint64_t shadow_at_ = ~uint64_t{0};  // `retired()` behind such an instruction
    uint32_t engine_vector_ = 0;         // of the exception that the engine has raised last
    std::optional<x86_64::DeviceAccess> device_access_;
    std::array<uint8_t, LONGEST_INSTRUCTION> answered_{};  // the instruction that asks
    uc_engine* engine_ = nullptr;
    bool elides_exit_checks_ = false;

    // The budget: how many instructions (low half) and armed events (high half) may pass before something is due, less
    // one each. A block's cost has the same layout; a set sign bit in either half means that it does not fit.
    static constexpr uint64_t EXHAUSTED = uint64_t{1} << 63 | uint64_t{1} << 31;
    uint64_t budget_ = 0;
    uint64_t held_ = 0;              // all of it instead, as long as the next block has to be looked at
    bool follows_branches_ = false;  // whether `departures` are counted: it costs a few per cent
    bool followed_from_start_ = false;
    // The predecessor of a run's first block.
    Block none_{.tag = 0, .cost = 0, .end = 0, .successors = BlockTable::nothing_behind(), .address = 0, .size = 0};
    Block* previous_;  // the block that was counted last
    BlockTable blocks_;
    uint64_t decoded_blocks_ = 0, known_calls_ = 0;
    uint64_t hooked_from_ = 0;  // how many were decoded when the block hook was new
    bool hook_is_full_ = false, fills_nothing_ = false;
    size_t most_blocks_ = size_t{1} << 19;  // some 300 MB: a guest may have ever new code
    bool blocks_stale_ = false, slots_stale_ = false;
    bool translation_stale_ = false;  // of the block at hand: perhaps another core has stored into it
    std::vector<Block*> ran_;         // blocks with runs since the last fold
    // With models a block points to its successor, as it is in the space that executes. Blocks that ran before the last
    // fold, but in this space; too many to be worth a list: all blocks may point somewhere.
    std::vector<Block*> linked_;
    bool all_linked_ = false;

    uint32_t planned_instructions_ = 0;  // what the low half of the budget started with
    // Until so many have retired, whatever they are, no armed counter on decoded occurrences can wrap, and what else
    // was planned holds: a new plan need not look at the counters. Iterations of REPs are taken from it.
    uint64_t undue_until_ = 0;
    uint64_t retired_ = 0;          // without what has been taken from the budget
    uint64_t polled_ = 0;           // `retired()` at the last poll
    uint64_t slow_since_poll_ = 0;  // what takes long, though nothing retires: in iterations of a REP
    uint64_t iterations_ = 0, most_iterations_ = ~uint64_t{0};
    bool repeats_too_long_ = false;

    uint64_t folded_at_ = 0;
    uint64_t elapsed_ = 0;                        // the kernel's cycles, where nothing is modelled
    uint64_t skipped_ = 0;                        // cycles of which no pipeline has heard: those count up to 2**55
    std::array<uint64_t, PROBE_COUNT> totals_{};  // INST_RETIRED lives in retired_, CYCLES there or in the pipeline
    Level level_ = Level::USER;
    // Null while there was but one level. `booked`: the totals up to which all is in `at`.
    struct TotalsByLevel {
        std::array<uint64_t, PROBE_COUNT> booked{};
        std::array<std::array<uint64_t, PROBE_COUNT>, LEVELS> at{};
    };
    std::unique_ptr<TotalsByLevel> by_level_;
    uint64_t worked_ = 0;  // cycles of a kernel that works without executing
    std::unique_ptr<Model> models_;
    Model* model_ = nullptr;  // they, or null while none of them hears of anything
    Gear gear_ = Gear::DETAILED;
    struct {
        std::array<uint64_t, PROBE_COUNT> totals;
        uint64_t cycles;  // in user mode
    } uncounted_from_{};  // what the models had counted when the detailed gear was left
    bool lost_addresses_ = false;
    std::unique_ptr<Calls> calls_;  // null where nobody wants it
    ProbeMask armed_events_ = 0;    // the probes of armed counters, but for those of retirement and models
    ProbeMask costed_probes_ = 0;   // what blocks' costs were made for: those, or what was armed before there was none
    std::vector<std::unique_ptr<CounterBank>> banks_;
    std::unique_ptr<Ledger> ledger_;  // without the blocks' runs since the last fold; null where nobody wants it

    struct Selection {
        RetirementListener* listener;
        ProbeMask probes;
        uint64_t due;      // the sum at which the next one is selected
        LevelMask levels;  // of that sum
    };
    PathListeners path_listeners_;
    bool interrupt_requested_ = false;
    std::vector<Selection> selections_;
    std::optional<TraceWrite> trace_write_;  // with models: has executed, and is to be consumed
    RetiredOp observed_;                     // the last instruction that was told or executed for itself
    uint64_t choices_ = 0;                   // times that selections were looked at
    std::array<uint64_t, PROBE_COUNT> observed_from_{};
    static constexpr uint64_t UNOBSERVED = ~uint64_t{0};
    uint64_t observed_cycle_ = UNOBSERVED;   // at which that begins, if it has been observed
    std::unique_ptr<TimedDecoder> decoder_;  // made when it is wanted

    uint64_t until_ = 0;
    const std::function<bool()>* poll_ = nullptr;
    Exit exit_ = Exit::NONE;
    Exit pending_exit_ = Exit::NONE;  // to be returned by the next run, before anything executes
    bool stepping_ = false;
    Block* stepped_ = nullptr;  // the instruction that is being stepped, as a block
    uint64_t stepping_end_ = 0;
    uint64_t repeat_count_ = 0;  // the count register before the stepped iteration
    Block* repeat_ = nullptr;    // the REP whose iteration was counted last

    bool delivers_ = false;  // the exception of this exit is delivered by the machine: the engine must forget it
    bool faulted_ = false;
    uint64_t last_retired_pc_ = 0;
    uint64_t fault_address_ = 0;
    FaultAccess fault_access_ = FaultAccess::READ;
    Exception exception_ = Exception::INTERNAL;
    Op trapped_;
    Debugging debugging_;
    std::unique_ptr<InstructionAccesses> accesses_;  // made when it is wanted
    std::optional<uint64_t> passed_breakpoint_;
    uint64_t passed_at_ = 0;  // `retired()` then

    uint64_t seen_space_generation_ = 0;
    uint64_t seen_watch_generation_ = 0;
    uint64_t seen_tables_generation_ = 0;
    uint64_t seen_code_generation_ = 0;
    uint64_t seen_stores_ = 0;  // into code
    uint64_t seen_breakpoint_generation_ = 0;
    uint64_t fills_until_flush_;
    uint64_t flushes_ = 0;
    std::atomic<uint64_t> progress_ = 0;
    bool return_requested_ = false;
    uc_hook block_hook_ = 0;
};

}  // namespace perfemu
