#include "core.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "exit_checks.hpp"
#include "last_exception.hpp"

namespace perfemu {

namespace {

constexpr ProbeMask RETIREMENT = mask(Probe::INST_RETIRED, Probe::CYCLES);           // one cycle an instruction
constexpr ProbeMask DYNAMIC_BRANCHES = mask(Probe::BR_COND_TAKEN, Probe::BR_TAKEN);  // not known from the block alone
constexpr uint64_t POLL_INSTRUCTIONS = 2'000'000;
constexpr uint64_t POLL_REPEATS = 1'000'000;
constexpr uint64_t FOLD_INSTRUCTIONS = uint64_t{1} << 40;
constexpr uint64_t MOST_EVENTS = uint64_t{1} << 30;
constexpr uint64_t NEVER_FITS = uint64_t{1} << 30;  // a cost that sends the block through `consider`
constexpr uint64_t CODE_CACHE_BYTES = 64 << 20;

constexpr size_t LONGEST_INSTRUCTION = 15;  // bytes

// The engine's TLB starts small and grows only when it is flushed.
constexpr uint64_t FILLS_BEFORE_FLUSH = 1000, FILLS_BEFORE_LATE_FLUSH = 20'000, EARLY_FLUSHES = 8;

// Stands for "no block" as the predecessor of the first block of a run.
Block no_block{.tag = 0, .end = 0, .cost = 0, .address = 0, .size = 0};

// What the engine's interrupt numbers mean.
struct InterruptRow {
    uint32_t number;
    Exception kind;
};
constexpr InterruptRow ARM_INTERRUPTS[] = {
    {1, Exception::UNDEFINED}, {3, Exception::ALIGNMENT}, {4, Exception::ALIGNMENT}, {7, Exception::BREAKPOINT}};
constexpr InterruptRow X86_INTERRUPTS[] = {
    {0, Exception::DIVIDE},      {1, Exception::BREAKPOINT}, {3, Exception::BREAKPOINT}, {6, Exception::UNDEFINED},
    {13, Exception::PRIVILEGED}, {16, Exception::DIVIDE},    {19, Exception::DIVIDE}};
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

Core::Core(std::string_view isa, std::shared_ptr<PhysicalMemory> memory, bool counting)
    : isa_(Isa::make(isa)), memory_(std::move(memory)), previous_(&no_block), fills_until_flush_(FILLS_BEFORE_FLUSH) {
    check(uc_open(isa_->engine_arch(), isa_->engine_mode(), &engine_), "uc_open");
    uc_ctl_set_tcg_buffer_size(engine_, CODE_CACHE_BYTES);
    isa_->configure(engine_);
    check(uc_ctl_tlb_mode(engine_, UC_TLB_VIRTUAL), "uc_ctl_tlb_mode");
    check(uc_ctl_exits_enable(engine_), "uc_ctl_exits_enable");
    check(uc_ctl_set_exits(engine_, static_cast<uint64_t*>(nullptr), static_cast<size_t>(0)), "uc_ctl_set_exits");
    check(uc_mem_map_ptr(engine_, 0, memory_->size_bytes(), UC_PROT_ALL, memory_->host(0)), "uc_mem_map_ptr");

    auto hook = [this](int type, void* callback, int instruction) {
        uc_hook handle;
        check(uc_hook_add(engine_, &handle, type, callback, this, 1, 0, instruction), "uc_hook_add");
        hooks_.push_back(handle);
    };
    if (counting) elides_exit_checks_ = elide_exit_checks(engine_);
    if (counting) hook(UC_HOOK_BLOCK, reinterpret_cast<void*>(&Core::on_block), 0);
    hook(UC_HOOK_INTR, reinterpret_cast<void*>(&Core::on_interrupt), 0);
    hook(UC_HOOK_TLB_FILL, reinterpret_cast<void*>(&Core::on_tlb_fill), 0);
    if (isa_->engine_arch() == UC_ARCH_X86)
        hook(UC_HOOK_INSN, reinterpret_cast<void*>(&Core::on_syscall), UC_X86_INS_SYSCALL);
    isa_->enter_user_mode(engine_);
}

Core::~Core() { uc_close(engine_); }

void Core::set_address_space(std::shared_ptr<AddressSpace> space) {
    if (&space->memory() != memory_.get()) throw std::invalid_argument("the address space is over other memory");
    space_ = std::move(space);
    seen_space_generation_ = space_->generation();
    uc_ctl_flush_tlb(engine_);
}

CounterBank& Core::add_bank(unsigned counters) {
    banks_.push_back(std::make_unique<CounterBank>(*this, counters));
    return *banks_.back();
}

// --- the engine's calls ---------------------------------------------------------------------------------------------

void Core::on_block(uc_engine*, uint64_t address, uint32_t size, void* user) {
    Core& core = *static_cast<Core*>(user);
    if (core.follows_branches_) [[unlikely]]
        core.previous_->departures += address != core.previous_->end;
    Block* block = core.blocks_.cached(address);
    uint64_t budget = core.budget_ - block->cost;
    if (block->tag == BlockTable::tag(address, size) && !(budget & EXHAUSTED)) [[likely]] {
        core.budget_ = budget;
        core.previous_ = block;
        if (block->runs++ == 0) [[unlikely]]
            core.note_run(block);
        return;
    }
    core.consider(address, size);
}

void Core::on_syscall(uc_engine*, void* user) {
    Core& core = *static_cast<Core*>(user);
    core.exit(Exit::SYSCALL);
}

void Core::on_interrupt(uc_engine*, uint32_t number, void* user) {
    Core& core = *static_cast<Core*>(user);
    if (core.exit_ != Exit::NONE) return;  // the step trap of a SYSCALL
    bool arm = core.isa_->engine_arch() == UC_ARCH_ARM64;
    if (core.stepping_ && number == Isa::STEP_INTERRUPT) {
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
    core.delivers_ = !arm && adds_up(number);
    core.exception_ = exception_kind(arm ? std::span<const InterruptRow>(ARM_INTERRUPTS) : X86_INTERRUPTS, number,
                                     arm ? Exception::INTERNAL : Exception::SOFTWARE_INTERRUPT);
    core.exit(Exit::EXCEPTION);
}

bool Core::on_tlb_fill(uc_engine* engine, uint64_t address, uc_mem_type type, uc_tlb_entry* entry, void* user) {
    Core& core = *static_cast<Core*>(user);
    auto access = type == UC_MEM_FETCH   ? FaultAccess::FETCH
                  : type == UC_MEM_WRITE ? FaultAccess::WRITE
                                         : FaultAccess::READ;
    uint8_t needed = access == FaultAccess::FETCH ? EXECUTE : access == FaultAccess::WRITE ? WRITE : READ;
    const Page* page = core.space_->lookup(address);
    if (!page || !(page->protection & needed)) {
        core.faulted_ = true;
        core.fault_address_ = address;
        core.fault_access_ = access;
        return false;
    }
    if (access == FaultAccess::FETCH) core.memory_->mark_code(page->frame);
    uint8_t protection = page->protection;
    // The engine watches stores only where it may also execute.
    if (protection & WRITE && core.memory_->executable(page->frame)) {
        if (core.memory_->mark_changeable(page->frame)) core.forget_blocks();
        protection |= EXECUTE;
    }
    entry->paddr = uint64_t{page->frame} << PAGE_SHIFT;
    entry->perms = static_cast<uc_prot>(protection);
    if (--core.fills_until_flush_ == 0) {
        core.fills_until_flush_ = core.flushes_++ < EARLY_FLUSHES ? FILLS_BEFORE_FLUSH : FILLS_BEFORE_LATE_FLUSH;
        uc_ctl_flush_tlb(engine);
    }
    return true;
}

// --- blocks ---------------------------------------------------------------------------------------------------------

// A block that is new, or does not fit, or is special, or is a single step.
void Core::consider(uint64_t address, uint32_t size) {
    if (!stepping_) note_interrupted_store(address, block_at(address, size));
    if (std::exchange(blocks_stale_, false)) drop_blocks();
    Block& block = block_at(address, size);
    if (stepping_) {
        consider_step(block);
        return;
    }
    drop_budget();
    if (poll_due() && (*poll_)()) {
        exit(Exit::INTERRUPTED);
        return;
    }
    if (retired() >= until_) {
        exit(Exit::DEADLINE);
        return;
    }
    if (block.ops[0].trap != Trap::NONE) {
        trapped_ = block.ops[0];
        exit(Exit::REGISTER);
        return;
    }
    if (needs_stepping_inside(block)) {
        begin_stepping(block);
        return;
    }
    plan();
    if (block.ops[0].repeated) {
        consider_repeat(block);
    } else if (fits(block)) {
        count(block);
    } else {
        begin_stepping(block);
    }
}

// A REP comes once for each iteration, and once more to find its count at zero and go on: then it retires.
void Core::consider_repeat(Block& block) {
    if (must_step(block)) {
        begin_stepping(block);
        return;
    }
    const Op& op = block.ops[0];
    uint64_t left = read_register(engine_, UC_X86_REG_RCX);
    if (op.address_32) left = static_cast<uint32_t>(left);
    if (left == 0) {
        count(block);
        return;
    }
    for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] += op.iteration_probes >> probe & 1;
    repeats_since_poll_++;
    repeat_ = &block;
    previous_ = &no_block;
}

// A trap or a REP behind the first instruction is reached by stepping, so that the block that starts with it comes.
bool Core::needs_stepping_inside(const Block& block) {
    for (size_t i = 1; i < block.ops.size(); i++)
        if (block.ops[i].trap != Trap::NONE || block.ops[i].repeated) return true;
    return false;
}

uint64_t Core::cost(const Block& block) const {
    uint64_t events = 0;
    for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
        if (costed_probes_ >> probe & 1) events += block.counts[probe];
    return block.instructions() | events << 32;
}

bool Core::fits(const Block& block) const { return !((budget_ - cost(block)) & EXHAUSTED); }

void Core::count(Block& block) {
    repeat_ = nullptr;
    budget_ -= cost(block);
    previous_ = &block;
    if (block.runs++ == 0) note_run(&block);
}

void Core::note_run(Block* block) { ran_.push_back(block); }

// The block that was counted as a whole stopped before the instruction at `pc`.
void Core::uncount_from(uint64_t pc) {
    Block& block = *previous_;
    size_t index = block.index_of(pc);
    drop_budget();
    if (index == block.ops.size()) return;
    if (block.runs-- == 0) note_run(&block);
    retired_ -= block.ops.size() - index;
    for (size_t i = 0; i < index; i++) {
        for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] += block.ops[i].probes >> probe & 1;
        if (tallying_) tally_[block.address + block.ops[i].offset]++;
    }
    previous_ = &no_block;
}

Block& Core::block_at(uint64_t address, uint32_t size) {
    Block* block = blocks_.find(address, size);
    if (!block) return decode(address, size);
    if (!block->changeable || unchanged(*block)) return *block;
    if (previous_ == block) previous_ = &no_block;
    fold();
    blocks_.erase(*block);
    return decode(address, size);
}

Block& Core::decode(uint64_t address, uint32_t size) {
    auto block = std::make_unique<Block>(Block{
        .tag = BlockTable::tag(address, size), .end = address + size, .cost = 0, .address = address, .size = size});
    block->bytes.resize(size);
    if (space_->read(address, block->bytes) != size)
        throw std::logic_error("the engine runs a block that is not mapped");  // cannot happen: it has fetched it
    block->ops = isa_->decode(address, block->bytes);
    if (block->ops.empty()) block->ops.push_back(Op{.trap = Trap::UNDEFINED});
    for (const Op& op : block->ops)
        for (unsigned probe = 0; probe < PROBE_COUNT; probe++) block->counts[probe] += op.probes >> probe & 1;
    block->ends_conditional = block->ops.back().conditional;
    for (uint64_t page = address & ~PAGE_MASK; page < block->end; page += PAGE_SIZE)
        block->changeable |= changeable(*space_->lookup(page));
    if (!block->changeable) block->bytes = {};
    const Op& first = block->ops[0];
    block->special = block->changeable || first.trap != Trap::NONE || first.repeated || needs_stepping_inside(*block);
    set_cost(*block);
    return blocks_.insert(std::move(block));
}

// The code of blocks that have been decoded as unchangeable can change from now on. Called in the middle of a block.
void Core::forget_blocks() {
    blocks_stale_ = true;
    drop_budget();  // so that the next block is considered
}

void Core::drop_blocks() {
    previous_ = &no_block;
    repeat_ = nullptr;
    fold();
    ran_.clear();
    blocks_.clear();
}

bool Core::changeable(const Page& page) const { return page.protection & WRITE || memory_->changeable(page.frame); }

void Core::set_cost(Block& block) const { block.cost = block.special ? NEVER_FITS : cost(block); }

bool Core::unchanged(const Block& block) const {
    std::vector<uint8_t> now(block.size);
    return space_->read(block.address, now) == block.size && now == block.bytes;
}

// On x86 a store into its own block ends that block: the engine runs the store again, alone. Its first, whole count is
// taken back from the store on.
void Core::note_interrupted_store(uint64_t address, const Block& next) {
    if (isa_->engine_arch() != UC_ARCH_X86 || previous_->ops.size() < 2 || !previous_->contains(address)) return;
    bool alone = next.ops.size() == 1 && next.ops[0].probes & bit(Probe::STORE) &&
                 !(next.ops[0].probes & bit(Probe::BR_RETIRED));
    if (!alone || previous_->index_of(address) == previous_->ops.size()) return;
    if (follows_branches_) previous_->departures--;
    uncount_from(address);
}

// --- the budget -----------------------------------------------------------------------------------------------------

uint64_t Core::retired() const { return retired_ + (planned_instructions_ - static_cast<uint32_t>(budget_)); }

// Books what was taken from the budget; nothing fits until the next `plan`.
void Core::drop_budget() {
    retired_ = retired();
    planned_instructions_ = 0;
    budget_ = 0;
}

void Core::plan() {
    drop_budget();
    if (retired_ - folded_at_ > FOLD_INSTRUCTIONS) fold();
    ProbeMask event_probes = 0;
    uint64_t instructions = std::min(until_ - retired_, POLL_INSTRUCTIONS);
    uint64_t events = MOST_EVENTS;
    for (auto& bank : banks_) {
        for (const CounterBank::Armed& counter : bank->armed()) {
            if (counter.probes & ~RETIREMENT) {
                event_probes |= counter.probes;
                events = std::min(events, counter.remaining);
            } else {
                uint64_t each = static_cast<uint64_t>(std::popcount(counter.probes));
                instructions = std::min(instructions, (counter.remaining + each - 1) / each);
            }
        }
    }
    // A conditional branch may turn out to be taken.
    if (event_probes & DYNAMIC_BRANCHES) event_probes |= bit(Probe::BR_COND);
    if (event_probes != costed_probes_) {
        costed_probes_ = event_probes;
        blocks_.each([this](Block& block) { set_cost(block); });
    }
    planned_instructions_ = static_cast<uint32_t>(instructions - 1);
    budget_ = planned_instructions_ | (events - 1) << 32;
}

bool Core::poll_due() {
    uint64_t now = retired();
    if (now - polled_ < POLL_INSTRUCTIONS && repeats_since_poll_ < POLL_REPEATS) return false;
    polled_ = now;
    repeats_since_poll_ = 0;
    progress_.store(now, std::memory_order_relaxed);
    return true;
}

// --- totals ---------------------------------------------------------------------------------------------------------

void Core::fold() {
    folded_at_ = retired();
    for (Block* block : ran_) {
        if (block->runs)
            for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] += block->runs * block->counts[probe];
        if (block->runs && tallying_)
            for (const Op& op : block->ops) tally_[block->address + op.offset] += block->runs;
        if (block->ends_conditional) {
            totals_[static_cast<unsigned>(Probe::BR_COND_TAKEN)] += block->departures;
            totals_[static_cast<unsigned>(Probe::BR_TAKEN)] += block->departures;
        }
        block->runs = 0;
        block->departures = 0;
    }
    ran_.clear();
    // It may still depart.
    if (previous_ != &no_block) note_run(previous_);
}

void Core::follow_branches() {
    if (std::exchange(follows_branches_, true)) return;
    followed_from_start_ = retired() == 0;
}

void Core::watch(ProbeMask probes) {
    if (probes & DYNAMIC_BRANCHES) follow_branches();
}

uint64_t Core::total(Probe probe) {
    if (bit(probe) & DYNAMIC_BRANCHES && !followed_from_start_)
        throw std::logic_error(
            "where conditional branches went is only known if follow_branches is called before the first run");
    return sum(bit(probe));
}

uint64_t Core::sum(ProbeMask probes) {
    uint64_t sum = static_cast<uint64_t>(std::popcount(probes & RETIREMENT)) * retired();
    if (!(probes & ~RETIREMENT)) return sum;
    fold();
    for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
        if ((probes & ~RETIREMENT) >> probe & 1) sum += totals_[probe];
    return sum;
}

void Core::fire(Probe probe, uint64_t amount) {
    if (bit(probe) & RETIREMENT) throw std::invalid_argument("only the core retires instructions");
    totals_[static_cast<unsigned>(probe)] += amount;
}

void Core::start_tally() {
    fold();
    tallying_ = true;
    tally_.clear();
}

const Core::Tally& Core::tally() {
    fold();
    return tally_;
}

// --- stepping -------------------------------------------------------------------------------------------------------

void Core::begin_stepping(Block& block) { begin_stepping(block.address, block.end); }

void Core::begin_stepping(uint64_t address, uint64_t end) {
    drop_budget();
    stepping_ = true;
    stepping_from_ = address;
    stepping_end_ = end;
    previous_ = &no_block;
    isa_->set_stepping(engine_, true);
    redispatch(address);
}

// Whether the engine, translating a block at `pc`, has looked into a page that its first instruction does not touch.
bool Core::fetched_ahead(uint64_t pc) {
    uint64_t page_end = (pc & ~PAGE_MASK) + PAGE_SIZE;
    if (fault_address_ < page_end) return false;
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    size_t size = space_->read(pc, std::span(bytes).first(std::min<uint64_t>(bytes.size(), page_end - pc)));
    std::vector<Op> ops = isa_->decode(pc, std::span(bytes).first(size));
    return !ops.empty() && ops[0].trap != Trap::UNDEFINED;  // one that crosses into the next page looks like that here
}

void Core::end_stepping() {
    stepping_ = false;
    stepped_ = nullptr;
    isa_->set_stepping(engine_, false);
}

// Leaves the present translation before it runs, for one that fits the present mode.
void Core::redispatch(uint64_t address) { write_register(engine_, isa_->pc(), address); }

bool Core::must_step(const Block& block) const {
    const Op& op = block.ops[0];
    return !fits(block) || op.repeat_may_end_early || op.iteration_probes & costed_probes_;
}

// Before a single instruction runs.
void Core::consider_step(Block& block) {
    const Op& op = block.ops[0];
    if (op.trap != Trap::NONE) {
        trapped_ = op;
        exit(Exit::REGISTER);
        return;
    }
    if (op.repeated) {
        plan();
        bool step = must_step(block);
        drop_budget();
        if (!step) {
            end_stepping();
            redispatch(block.address);
            return;
        }
        uint64_t count = read_register(engine_, UC_X86_REG_RCX);
        repeat_count_ = op.address_32 ? static_cast<uint32_t>(count) : count;
    }
    stepped_ = &block;
}

// After it has run.
void Core::step_done() {
    uint64_t now = pc();
    const Op& op = stepped_->ops[0];
    if (op.repeated && repeat_count_)
        for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] += op.iteration_probes >> probe & 1;
    bool repeats = op.repeated && now == stepped_->address;
    if (repeats) {
        repeats_since_poll_++;
    } else {
        retire(op, stepped_->address, now);
    }
    if (op.pushes_flags) {
        constexpr uint8_t TF_IN_SECOND_BYTE = 1;
        uint64_t stack = read_register(engine_, UC_X86_REG_RSP);
        if (uint8_t* host = space_->host(stack + 1)) *host &= static_cast<uint8_t>(~TF_IN_SECOND_BYTE);
    }
    if (interrupt_raised()) {
        exit(Exit::OVERFLOW);
    } else if (retired() >= until_) {
        exit(Exit::DEADLINE);
    } else if (poll_due() && (*poll_)()) {
        exit(Exit::INTERRUPTED);
    } else if (!repeats && (now <= stepped_->address || now >= stepping_end_)) {
        end_stepping();
    } else {
        isa_->rearm_stepping(engine_);
    }
}

void Core::retire(const Op& op, uint64_t pc, uint64_t next_pc) {
    retired_++;
    for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] += op.probes >> probe & 1;
    if (op.conditional && next_pc != pc + op.length) {
        totals_[static_cast<unsigned>(Probe::BR_COND_TAKEN)]++;
        totals_[static_cast<unsigned>(Probe::BR_TAKEN)]++;
    }
    if (tallying_) tally_[pc]++;
    last_retired_pc_ = pc;
}

bool Core::interrupt_raised() {
    bool raised = false;
    for (auto& bank : banks_) raised |= bank->take_interrupt();
    return raised;
}

// --- running --------------------------------------------------------------------------------------------------------

void Core::exit(Exit reason) {
    exit_ = reason;
    uc_emu_stop(engine_);
}

// Makes the engine forget what it should not remember of page tables and code.
void Core::refresh_translations() {
    if (seen_space_generation_ != space_->generation()) {
        seen_space_generation_ = space_->generation();
        uc_ctl_flush_tlb(engine_);
    }
    if (seen_code_generation_ != memory_->code_generation()) {
        seen_code_generation_ = memory_->code_generation();
        drop_blocks();
        uc_ctl_flush_tb(engine_);
        uc_ctl_flush_tlb(engine_);
    }
}

Exit Core::run(uint64_t until_cycle, const std::function<bool()>& poll) {
    if (!space_) throw std::logic_error("the core has no address space");
    until_ = until_cycle;
    poll_ = &poll;
    if (pending_exit_ != Exit::NONE) return std::exchange(pending_exit_, Exit::NONE);
    if (interrupt_raised()) return Exit::OVERFLOW;
    if (retired() >= until_) return Exit::DEADLINE;
    refresh_translations();
    plan();
    exit_ = Exit::NONE;
    while (exit_ == Exit::NONE) {
        faulted_ = false;
        uc_err error = uc_emu_start(engine_, pc(), 0, 0, 0);
        leave(error);
    }
    progress_.store(retired(), std::memory_order_relaxed);
    return exit_;
}

// Settles the counts after the engine has stopped: exactly the instructions before PC have retired.
void Core::leave(uc_err error) {
    uint64_t now = pc();
    if (error != UC_ERR_OK) {
        exit_ = faulted_ ? Exit::FAULT : Exit::EXCEPTION;
        if (!faulted_) exception_ = error == UC_ERR_INSN_INVALID ? Exception::UNDEFINED : Exception::INTERNAL;
    } else if (exit_ == Exit::NONE) {
        return;  // a hint such as WFI: go on
    }
    if (std::exchange(delivers_, false)) forget_last_exception(engine_);
    bool fetch = exit_ == Exit::FAULT && fault_access_ == FaultAccess::FETCH;
    bool within = (exit_ == Exit::FAULT && !fetch) || exit_ == Exit::EXCEPTION;
    if (fetch && !stepping_ && fetched_ahead(now)) {  // go there step by step: perhaps it never arrives
        if (follows_branches_) previous_->departures += now != previous_->end;
        repeat_ = nullptr;
        exit_ = Exit::NONE;
        begin_stepping(now, (now & ~PAGE_MASK) + PAGE_SIZE);
        return;
    }
    if (stepping_) {
        bool trap = exit_ == Exit::EXCEPTION && stepped_ && now != stepped_->address;  // INT3: PC is after it
        if (exit_ == Exit::SYSCALL || trap) retire(stepped_->ops[0], stepped_->address, now);
        end_stepping();
    } else if (within && repeat_ && repeat_->address == now) {
        const Op& op = repeat_->ops[0];  // the iteration that faulted has not happened
        for (unsigned probe = 0; probe < PROBE_COUNT; probe++) totals_[probe] -= op.iteration_probes >> probe & 1;
    } else if (within && previous_->contains(now)) {
        uncount_from(now);
    } else if (exit_ != Exit::DEADLINE && exit_ != Exit::REGISTER && exit_ != Exit::INTERRUPTED) {
        if (follows_branches_) previous_->departures += now != previous_->end;  // else the block hook has seen it
    }
    drop_budget();
    repeat_ = nullptr;
    previous_ = &no_block;

    if (exit_ == Exit::REGISTER && trapped_.trap > Trap::XGETBV) {
        exception_ = trapped_.trap == Trap::PRIVILEGED ? Exception::PRIVILEGED
                     : trapped_.trap == Trap::DEBUG    ? Exception::BREAKPOINT
                                                       : Exception::UNDEFINED;
        exit_ = Exit::EXCEPTION;
        if (trapped_.trap == Trap::DEBUG) {  // a trap: the instruction has retired
            write_register(engine_, isa_->pc(), now + trapped_.length);
            retire(trapped_, now, now + trapped_.length);
        }
    }
    if (exit_ == Exit::SYSCALL) isa_->complete_syscall(engine_);
    if (exit_ == Exit::FAULT && !fetch) {
        std::array<uint8_t, 16> bytes{};
        uint64_t size = space_->read(now, bytes);
        std::span<const uint8_t> code = std::span(bytes).first(size);
        fault_address_ = isa_->operand_in_page(engine_, now, code, fault_address_);
        // The engine reads first; hardware asks for write access at once.
        std::vector<Op> ops = isa_->decode(now, code);
        if (!ops.empty() && ops[0].updates_memory) fault_access_ = FaultAccess::WRITE;
    } else if (fetch && fault_address_ == (now & ~PAGE_MASK)) {
        fault_address_ = now;
    }
    if (exit_ == Exit::SYSCALL || exit_ == Exit::FAULT || exit_ == Exit::EXCEPTION) {
        fire(Probe::EXC_TAKEN, 1);
        Probe cause = exit_ == Exit::SYSCALL ? Probe::EXC_SVC
                      : fetch                ? Probe::EXC_PABORT
                      : exit_ == Exit::FAULT ? Probe::EXC_DABORT
                                             : Probe::EXC_UNDEF;
        fire(cause, 1);
    }
    if ((exit_ == Exit::SYSCALL || exit_ == Exit::EXCEPTION) && interrupt_raised()) {
        pending_exit_ = exit_;
        exit_ = Exit::OVERFLOW;
    }
}

uint64_t Core::pc() const { return read_register(engine_, isa_->pc()); }

void Core::complete_trapped() {
    uint64_t at = pc();
    retire(trapped_, at, at + trapped_.length);
    write_register(engine_, isa_->pc(), at + trapped_.length);
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
