// What is told of instructions as they retire: the way that execution takes, and single instructions that were
// selected.
//
// Two kinds of listeners. A path listener hears of branches, and of where the path leaves user mode and enters it:
// branch records and traces are made of that. Blocks are logged as ever; a stretch of them is recalled at once up to a
// branch that somebody is told of. A selection is the instruction that makes the last of so many events: a deadline
// like a counter's overflow, at which the core arrives step by step, so that all is known of the instruction. Who hears
// of it says when the next one is due. Where nobody listens nothing is looked at; who listens changes no count and no
// cycle.
#pragma once

#include <cstdint>

#include "core/block.hpp"
#include "level.hpp"
#include "ops/branch_kind.hpp"

namespace perfemu {

struct RetiredBranch {
    uint64_t from = 0, to = 0;  // addresses; `to` is the next instruction's, also of one that is not taken
    uint64_t cycle = 0;         // of the core, at which it has retired
    BranchKind kind = BranchKind::NONE;
    bool taken = false;
    bool mispredicted = false;  // false where no branches are modelled
    uint8_t length = 0;         // of the instruction, bytes
    Level level = Level::USER;  // at which it executed
};

// Of a guest's own kernel, which executes: a system call, an exception or interrupt that has been taken, a return from
// these, or any other far transfer. `from`: of an instruction that makes one the instruction, else the one that would
// have been next, or has faulted; AArch64's exceptions are all from where they return to.
struct FarTransfer {
    uint64_t from = 0, to = 0;  // addresses
    uint64_t cycle = 0;         // of the core
    Level from_level = Level::USER, to_level = Level::KERNEL;
    BranchKind kind = BranchKind::FAR;
    uint8_t cause = 0;  // of an EXCEPTION: ESR_EL1.EC; of one without a syndrome WITHOUT_SYNDROME and Isa's number
    // x86's:
    bool by_gate = false;    // an exception, an interrupt, or an instruction that raises one
    uint8_t code_bits = 64;  // of the code there: 16, 32 or 64

    static constexpr uint8_t WITHOUT_SYNDROME = 1 << 6;
};

// Where a guest's own x86-64 kernel, or one of its programs, executes.
struct ExecutionPlace {
    uint64_t at = 0;      // address of the next instruction
    uint64_t behind = 0;  // ... of the last one
    uint64_t tables = 0;  // CR3
    Level level = Level::KERNEL;
    uint8_t code_bits = 64;
};

// Why the path has left user mode.
enum class Leaving : uint8_t {
    SYSTEM_CALL,         // by an instruction for that, which has retired
    SOFTWARE_INTERRUPT,  // by INT3, which has retired and of which `at` is the address
    FAULT,               // before an instruction, which it has not executed
    INTERRUPT,           // between two instructions
};

struct PathEnd {
    uint64_t at = 0;     // address: of the instruction that would have been next, behind that of a system call
    uint64_t cycle = 0;  // of the core
    Leaving why = Leaving::INTERRUPT;
};

// x86's PTWRITE, which has retired.
struct TraceWrite {
    uint64_t pc = 0, value = 0;
    uint64_t cycle = 0;  // of the core
    uint8_t bytes = 0;   // 4 or 8
};

// Which branches a path listener is told of.
struct WantedBranches {
    static constexpr BranchKinds EVERY_KIND = 0xffff;
    static constexpr uint64_t ALL = ~uint64_t{0};

    BranchKinds kinds = EVERY_KIND;
    bool not_taken = true;  // conditional ones, too, that have not been taken
    LevelMask levels = EVERY_LEVEL;
    uint64_t newest = ALL;  // so many suffice, the last, of those that the core learns of at once

    bool include(BranchKind kind, bool taken, Level level) const {
        return kinds >> static_cast<unsigned>(kind) & 1 && kind != BranchKind::NONE && (taken || not_taken) &&
               contains(levels, level);
    }
};

struct RetiredOp {
    uint64_t pc = 0, next = 0;  // addresses; `next` is where execution went on
    uint64_t address = 0;       // of its first data access, if that is known
    uint64_t cycle = 0;         // of the core, at which it has retired
    uint64_t cycles = 0;        // since the instruction before it retired: not how long it took
    uint64_t dispatched = 0;    // the cycle at which the back end has got it, the one at which it was issued to a unit
    uint64_t issued = 0;        // (in order that is one cycle), and the one at which its results were there: with a
    uint64_t completed = 0;     // pipeline; else `cycle`
    uint64_t walked = 0;        // cycles until its address was translated, if that was not in the first TLB
    uint64_t waited = 0;        // ... from then on until its data, if those were not in L1D
    ProbeMask fired = 0;        // all that it counted as: from them follows which level answered a load
    uint64_t choice = 0;  // a number of this time that it was selected: those who hear of it together have the same
    OpClass op_class = OpClass::NONE;  // for who wants it
    BranchKind branch = BranchKind::NONE;
    uint16_t size = 0;  // of that access, bytes
    bool address_known = false;
};

// What becomes of a selection that has come to its instruction.
struct Reaction {
    ProbeMask probes = 0;     // 0: as before
    uint64_t distance = 0;    // so many events until the next one; 0: there is none
    bool from_now = false;    // ... rather than from where this one was due, of which several may be at once
    bool interrupts = false;  // the core stops behind this one, as for a counter's overflow
};

class RetirementListener {
  public:
    virtual ~RetirementListener() = default;
    WantedBranches wanted;
    bool wants_class = false;  // of instructions that are selected

    virtual void branch(const RetiredBranch&) {}
    // Whatever it wants of branches. Behind what `changed_level` says of it.
    virtual void far(const FarTransfer&) {}
    virtual void trace_written(const TraceWrite&) {}
    // An instruction has written CR3, whatever it was before; execution goes on at `next`.
    virtual void changed_tables(uint64_t /*cr3*/, uint64_t /*next*/, uint64_t /*cycle*/) {}
    // How many branches it can hear of before it wants to be asked again, so that its interrupt is not late.
    virtual uint64_t room() const { return ~uint64_t{0}; }
    virtual Reaction selected(const RetiredOp&) { return {}; }
    // The path leaves user mode, and enters it at an address: where the kernel is modelled, not executed. Between the
    // two there is no branch. Exits of the core that no architecture knows of are none, nor are instructions that the
    // machine answers. What only time brings, the end of a slice or a signal, is told once it is known, before what
    // comes behind it. Who begins to listen is told of the next address as one that is entered.
    virtual void left(const PathEnd&) {}
    virtual void entered(uint64_t /*at*/, uint64_t /*cycle*/) {}
    // What is told from now on is of another level: of a guest's own kernel, which executes.
    virtual void changed_level(Level) {}
    // So many others that it wants have been before those that it is told of next: `wanted.newest` of them suffice.
    virtual void skipped(uint64_t /*branches*/) {}
};

// Where the data of a load or store came from, at the farthest.
enum class MemoryLevel : uint8_t { NONE, L1, L2, LAST, OTHER_CORE, MEMORY };
MemoryLevel level_that_answered(ProbeMask fired);

}  // namespace perfemu
