"""The native core: everything that runs per instruction, per block or per access. Built from ``emulator/native``.

Python is never called while the engine runs: ``Core.run`` drops the GIL, runs until something needs Python, and
returns why. At every return the architectural state (registers, memory, counts) is exact: all instructions before
``pc`` have retired, and none after.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

# The tables of a core file: TOML's values, and tables of them.
ModelValue: TypeAlias = "bool | int | float | str | Sequence[str] | ModelTables"
ModelTables: TypeAlias = Mapping[str, ModelValue]

PAGE_SIZE: int  # 4096 bytes
PROBE_COUNT: int  # must equal len(emulator.probes.Probe); checked at import

class PhysicalMemory:
    """The guest's RAM: one host mapping, handed out in zeroed 4 KiB frames with reference counts."""

    def __init__(self, size_bytes: int) -> None: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def used_bytes(self) -> int: ...
    def allocate(self, count: int = 1) -> int:
        """First of `count` contiguous zeroed frames with one reference each. MemoryError when RAM is full."""
    def reserve(self, bytes: int) -> bool:
        """What the machine keeps of its RAM elsewhere, so that no frames are left for it; False if it does not fit."""
    def retain(self, frame: int, count: int = 1) -> None: ...
    def release(self, frame: int, count: int = 1) -> None: ...
    def references(self, frame: int) -> int: ...
    def write(self, frame: int, offset: int, data: bytes) -> None:
        """Into one frame. Code that has run may change so: every core hears of it."""
    def saved_state(self) -> bytes:
        """What is known of frames, not their bytes, for a memory that has handed out all of its own, as this one."""
    def load_state(self, state: bytes) -> None:
        """ValueError: it is of another memory."""
    def next_used(self, first: int) -> tuple[int, int]:
        """(first, count) of the next frames, from `first` on, that are not zeroes; few zeroes among them count, too.

        Count 0: there are no more.
        """
    def map_file(self, descriptor: int, offset: int, first: int, count: int) -> None:
        """These frames' bytes are those of the host's file from `offset` on; what is written does not go there.

        ValueError: the file is too short.
        """
    def view(self, frame: int, count: int = 1) -> memoryview:
        """Writable bytes of `count` contiguous frames. For data only: code that may have run must not change so."""

class AddressTranslation:
    """Where a guest's addresses lie in RAM, for what executes now. Protection: READ 1, WRITE 2, EXECUTE 4."""

    def lookup(self, address: int) -> tuple[int, int] | None:
        """(frame, protection) of the page holding `address`, or None if not present."""
    def set_breakpoint(self, address: int) -> None:
        """`Core.run` stops with BREAKPOINT before an instruction that starts there, each time; the next run passes it.

        What the guest does, and what is counted, is the same. Only between runs of the cores.
        """
    def clear_breakpoint(self, address: int) -> None: ...
    def read(self, address: int, size: int) -> bytes | int:
        """`size` bytes, or, if some page is not present, the address (int) of the first byte that is missing."""
    def write(self, address: int, data: bytes) -> int:
        """Write, whatever the protection. Returns how many bytes were written before a page that is not present."""
    def write_permitted(self, address: int, data: bytes | memoryview) -> int:
        """The same before a page that is not present, or may not be written."""
    def read_string(self, address: int, limit: int) -> bytes | int:
        """Bytes before the first NUL, at most `limit`; or the address of the first missing byte."""
    def read_u64(self, address: int) -> int | None: ...

class AddressSpace(AddressTranslation):
    """One process's page tables, kept by a kernel that is modelled. A page holds a reference on its frame."""

    def __init__(self, memory: PhysicalMemory) -> None: ...
    def map(self, address: int, frame: int, count: int, protection: int) -> None:
        """Map `count` contiguous frames at page-aligned `address`, in place of what was there; retains each."""
    def unmap(self, address: int, count: int) -> int:
        """Unmap `count` pages (holes allowed), dropping their references. Returns how many were present."""
    def protect(self, address: int, count: int, protection: int) -> None:
        """Change the protection of the present pages among `count` pages."""
    def present(self, address: int, count: int) -> list[int]:
        """Addresses of the pages present among `count` pages."""
    def present_pages(self) -> int:
        """How many pages are present in all."""
    def fork(self) -> AddressSpace:
        """A copy that shares every frame, with WRITE removed in both: copy on write is the kernel's work.

        Breakpoints are not copied.
        """

class GuestPageTables(AddressTranslation):
    """Page tables that a guest's own kernel keeps in RAM, read as the engine's registers say that they are to be read.

    `lookup` and all that goes by it are for who executes now.
    """

    def walk(
        self, address: int, level: int | None = None
    ) -> tuple[tuple[int, int] | None, int, int, tuple[int, ...], int]:
        """As an access at that emulator.cpu.Level finds it, or one of who executes now.

        (what `lookup` says, emulator.cpu.WalkFault, level of the last descriptor, physical addresses of all that were
        read, physical address that was found: with EXTERNAL, where no RAM is).
        """

class CounterBank:
    """Counters over probe totals: the part of a PMU that counts. A PMU model in Python gives them register faces.

    A counter adds up the probes of its mask while it is connected; it wraps at 2**width and then sets its overflow
    bit. If it is armed, `Core.run` stops with OVERFLOW right after the instruction that wrapped it.
    """

    @property
    def size(self) -> int: ...
    def connect(self, counter: int, probes: int) -> None:
        """Count the probes whose bits are set in the mask from now on; 0 stops counting. The value is kept.

        Bit 128 + n takes away how often probe n fires, which it does only together with one that is added.
        """
    def connected(self, counter: int) -> int: ...
    def filter(self, counter: int, levels: int) -> None:
        """Count only at these privilege levels from now on: bits 1 << emulator.cpu.Level. At first: at all."""
    def set_width(self, counter: int, bits: int, overflow_bits: int = 0) -> None:
        """`overflow_bits`: it overflows when that many of its bits wrap, and counts on to its width; 0: when all do."""
    def chain(self, counter: int, on: bool) -> None:
        """Whether the counter behind this one, which is connected to nothing, counts how often this one overflows."""
    def arm(self, counters: int) -> None:
        """Mask of the counters whose overflow stops `Core.run`."""
    def read(self, counter: int) -> int: ...
    def write(self, counter: int, value: int) -> None: ...
    def read_each(self, counters: Sequence[int]) -> list[int]:
        """In that order."""
    def write_each(self, counters: Sequence[int], values: Sequence[int]) -> None:
        """ValueError: there is not one value for each, or one has more bits than its counter."""
    def add(self, counter: int, amount: int) -> None:
        """Software increment: as if a probe had fired `amount` times."""
    def overflowed(self) -> int:
        """Mask of counters that have wrapped since the bit was last cleared."""
    def set_overflowed(self, counters: int) -> None: ...
    def clear_overflowed(self, counters: int) -> None: ...

class RegisterState:
    """The registers of a task that is not on a core, vectors included. Any core of the same ISA may restore them."""

class SharedCaches:
    """What cores of one model have in common: the last caches, memory, and who holds which line (MESI)."""

    def __init__(self, model: ModelTables, cores: int) -> None:
        """For so many cores, all of which must live as long as one of them runs. ValueError: not more than 64."""
    @property
    def returns(self) -> int:
        """How often a line has come back to a core that others had taken it from."""
    @property
    def coherence_latency(self) -> int:
        """Cycles until another core's cache answers."""

class RetirementListener:
    """What a core tells of what retires."""

class RetirementRecorder(RetirementListener):
    """Counts instructions as they retire, and with `keep` keeps what it is told of them (core/retirement.hpp)."""

    branches: int
    taken: int
    selections: int
    def __init__(self, keep: bool = False) -> None: ...
    def write_to(self, descriptor: int, whole: bool = False) -> None:
        """An open file: of what is selected from now on its address, of taken branches two, as 64-bit words.

        With a period of 1 the address is there once for each event that the instruction made.

        `whole`: of what is selected 13: pc, next, data address, the same in the machine's memory, cycle, dispatched,
        issued, completed, walked, waited, fired probes (two), and in the last from bit 0 on the bytes of the access, 16
        the level, 24 the kind of branch, 32 whether the address is known.
        """
    def flush(self) -> None:
        """All that is told of until now is written."""
    def take_branches(self) -> list[tuple[int, int, int, int, bool, bool]]:
        """Those kept since it was called last: (from, to, cycle, kind, taken, mispredicted).

        `to` is the next instruction's address, also where it was not taken. Kinds are `BranchKind`'s numbers:
        1 conditional, 2 direct, 3 indirect, 4 call, 5 indirect call, 6 return.
        """
    def take_trace_writes(self) -> list[tuple[int, int, int, int, int]]:
        """PTWRITEs kept since it was called last: (pc, value, bytes, cycle, branches that were told of before)."""
    def take_selected(
        self,
    ) -> list[tuple[int, int, int, int, int | None, int, int, int, int, int, int, int, int, int]]:
        """(pc, next, OpClass, kind of branch or 0, data address or None, bytes, level, cycle, cycles, fired probes,
        dispatched, completed, walked, waited).

        `cycles`: since the instruction before it retired. Levels: 0 none, 1 L1, 2 L2, 3 the last, 4 another core,
        5 memory. Addresses and levels are known where memory is modelled. The last four are cycles: when the back end
        got it and its results were there, and how long its address and then its data took if not in the first level.
        """

OpRow = tuple[int, int, int, int | None, int, int, int, int, int, int, int, int]

class OpSampler:
    """Counts events of a core and keeps one instruction behind so many, as a sampling unit does
    (units/op_sampler.hpp)."""

    valid: bool
    """`op` is one that was kept."""
    sequence: int
    """Where the sequence of pseudo-random numbers is: 31 bits, not 0."""
    def __init__(self, core: Core) -> None: ...
    def start(self, probes: int, distance: int, wanted: int = 0, period: int = 0, random_bits: int = 0) -> None:
        """Behind `distance` events an instruction is tagged: which makes the last of them, or behind so many CYCLES the
        next. If it fires one of `wanted`, or that is 0, it is kept, and the core stops with OVERFLOW; else it counts
        `period` anew, less some of [0, 2**random_bits). ValueError as `Core.select`."""
    def stop(self) -> None: ...
    def random(self, bits: int) -> int:
        """Of a sequence that is the same each time."""
    @property
    def counted(self) -> int:
        """Events since then."""
    @property
    def left(self) -> int:
        """... and until an instruction is tagged, at least one."""
    @property
    def op(self) -> OpRow:
        """(pc, next, fired probes, data address or None, bytes, level that answered, cycle, dispatched, completed,
        walked, waited, privilege level): see RetirementRecorder.take_selected."""

class SpeSampler:
    """Arm's Statistical Profiling Extension, as far as it is in the core (units/spe_sampler.hpp)."""

    sequence: int
    """Where the sequence of pseudo-random numbers is: 31 bits, not 0."""
    context: int
    """What CONTEXTIDR_EL1 holds, where the kernel is modelled."""
    def __init__(self, core: Core) -> None: ...
    def start(
        self,
        *,
        distance: int,
        interval: int,
        jitter: bool,
        room: int,
        wanted: int,
        packets: int,
        types: int,
        events: int,
        no_events: int,
        min_latency: int,
        filters: int,
        levels: int,
        ram_base: int,
        context_register: int,
    ) -> None:
        """`distance` instructions until the first sample, then `interval`, with jitter some of [0, 256) more.

        Records go into `room` bytes. `wanted`: mask of the events that this version of the unit has. `packets`: 1
        physical addresses, 2 the context. `filters`: 1 by `types` (1 branch, 2 load, 4 store), 2 by `events`, 4 by
        `min_latency`, 8 by `no_events`. `levels`: mask of those whose instructions count. `ram_base`: physical address
        of the first frame. `context_register`: number of CONTEXTIDR_EL1 where the guest has its own kernel, else 0.
        """
    def stop(self) -> int:
        """Instructions that are left until the next sample."""
    @property
    def full(self) -> bool:
        """There was no room for another record behind the last: it has stopped, and the core with it."""
    @property
    def lost(self) -> bool:
        """... nor was there for the last."""
    @property
    def samples(self) -> int:
        """Operations that have been chosen, of all."""
    collided: bool
    """One was chosen before the one before it was through, and is lost."""
    def take(self) -> tuple[bytes, list[int]]:
        """The records since the last time, 64 bytes each, and the cycle of each; the last 9 bytes of its packets, at
        the place that byte 63 says, are for the timestamp."""

class PtSettings:
    """What an Intel PT trace says, and how often (units/pt_encoder.hpp)."""

    branches: bool
    compresses_returns: bool
    tsc: bool
    mtc: bool
    cyc: bool
    ptwrite: bool
    ptwrite_addresses: bool
    bytes_between_psbs: int
    mtc_shift: int
    """An MTC whenever the crystal clock's counter is another without so many of its lowest bits."""
    cyc_threshold: int
    tsc_at_start: int
    tsc_ticks: int
    """So many of the time stamp counter are as long as `ctc_ticks` of the crystal clock."""
    ctc_ticks: int
    levels: int
    """That are traced: bit (1 << Level)."""
    only_cr3: int | None
    """Only what executes with this one is traced."""
    power: bool
    core_hz: int
    bus_hz: int
    def add_range(self, first: int, last: int, stops: bool) -> None:
        """Only what is in such ranges is traced, or, where it `stops`, tracing ends where it is entered."""

class PtEncoder:
    """Writes what a core executes as Intel PT's packets."""

    def __init__(self, core: Core, clock: ShownCycles) -> None: ...
    def set_output(
        self, regions: Sequence[tuple[memoryview | bytearray, bool, bool]], region: int, offset: int
    ) -> None:
        """Memory, whether its end interrupts, and whether tracing stops there. Behind the last region is the first.

        The next byte goes to `offset` in `region`. ValueError where there is no such place.
        """
    def begin(self, settings: PtSettings, bytes_since_psb: int) -> None:
        """Trace from here on, with a PSB first if there are no bytes since the last one. Between two runs."""
    def end(self) -> None:
        """Between two runs. The memory is held no more."""
    def stop(self) -> None:
        """Likewise, but the trace has not ended."""
    def go_on(self, settings: PtSettings) -> None:
        """With the trace that had stopped, or been loaded: these were its settings."""
    def saved_state(self) -> bytes: ...
    def load_state(self, saved: bytes) -> None: ...
    def sleep(self) -> None: ...
    def wake(self, reason: int) -> None:
        """Also of a trace that has begun since it slept, or has ended: nothing then."""
    @property
    def region(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def interrupt_pending(self) -> bool:
        """A region that interrupts is full."""
    @property
    def interrupt_asserted(self) -> bool:
        """... and its interrupt has not been taken."""
    def take_interrupt(self) -> None: ...
    def set_interrupt(self, pending: bool) -> None: ...
    @property
    def bytes_since_psb(self) -> int: ...
    @property
    def in_context(self) -> bool: ...
    @property
    def in_filter(self) -> bool: ...

class BranchRecords(RetirementListener):
    """The last taken branches of a core that it listens to, in a ring of entries, or in a stack of calls."""

    size: int
    """Of entries."""
    top: int
    """The number of the newest entry; ValueError where there is none such."""
    recorded: int
    """How many branches have been recorded, ever."""
    def __init__(self, entries: int) -> None:
        """ValueError for none."""
    def record(self, kinds: int, as_stack: bool = False) -> None:
        """Which kinds from now on: a mask by `RetirementRecorder.take_branches`'s numbers.

        As a stack, calls of those kinds are entered, and each return takes the last one away.
        """
    def record_at(self, levels: int) -> None:
        """Of what executes at these levels alone, a bit for each `Level`; at first of all. Of far transfers those
        that lead there."""
    def note(self, cycles: bool, mispredictions: bool) -> None:
        """What is said of each from now on; at first both."""
    def forget_time(self) -> None:
        """The next branch has none before it, from which its cycles would be."""
    def hide_others(self) -> None:
        """Of what is not recorded, other levels and a modelled kernel, nothing is to be known from now on: the first
        branch behind it has none before it. Far transfers between levels are recorded if one of the two is, without
        the address that is of the other."""
    def pass_entry(self) -> None:
        """The next entry is none of those: there it only begins to listen again, after whoever has it was saved."""
    def clear(self) -> None:
        """All entries are empty."""
    def saved_state(self) -> bytes:
        """All entries, but not what is recorded: for records of as many."""
    def load_state(self, saved: bytes) -> None:
        """ValueError: that is not what such records have saved."""
    def read(self, number: int) -> tuple[int, int, int, int, bool, bool, int, int, int, bool, bool]:
        """(from, to, cycles since the one before, kind, mispredicted, whether those cycles are known, its level,
        what the unit has said of what it has written itself, an exception's cause (core/retirement.hpp), and which of
        its addresses there are); zeros of an empty one."""
    def write(
        self,
        number: int,
        from_address: int,
        to_address: int,
        cycles: int,
        kind: int,
        mispredicted: bool,
        timed: bool,
        level: int = 0,
        info: int = 0,
        cause: int = 0,
        has_from: bool = True,
        has_to: bool = True,
    ) -> None: ...

class ShownCycles:
    """What guests have seen of time: cores run in turns, so that one is ahead of another by up to a turn."""

    latest: int
    """In cycles since the machine started."""
    def show(self, now: int) -> int:
        """`now`, the cycles of the core that asks, or what was shown last if that is later."""
    def reference(self, cycles: int) -> int:
        """Reference cycles until a core has counted so many: the cycles themselves, or what `set_steps` says."""
    def set_steps(
        self, reference_hz: int, steps: Sequence[tuple[int, int, int]], lap_cycles: int, lap_reference: int
    ) -> None:
        """Cores change their frequency: `emulator.frequency.TimeBase`. What guests read counts reference cycles."""

class Core:
    """One hardware thread on Unicorn. ISA "aarch64" or "x86_64". Executes user mode, or a guest's own kernel."""

    def __init__(
        self,
        isa: str,
        memory: PhysicalMemory,
        counting: bool = True,
        model: ModelTables | None = None,
        shared: SharedCaches | None = None,
        features: Sequence[str] = (),
    ) -> None:
        """Without `counting` the engine runs bare, with no counts, traps or deadlines: the benchmarks' yardstick.

        `model`: a core file's tables, as emulator.core_file.core_file gives them; then time, caches, TLBs and branches
        are modelled for the whole run. Without, one instruction is one cycle. `shared`: with other cores of that model.
        `features`: what it executes beyond Armv8.0-A, by emulator.aarch64_features.
        """
    @property
    def elides_exit_checks(self) -> bool:
        """Whether the engine was found to be one whose exit checks after memory accesses can be left out."""
    def set_address_space(self, space: AddressSpace) -> None: ...
    def add_bank(self, counters: int) -> CounterBank: ...
    def set_gear(self, gear: int) -> None:
        """Between two runs: which of its models hear of what executes from now on, an emulator.cpu.Gear.

        ValueError if it has no models. Time goes on. Leaving DETAILED completes what has begun.
        """
    @property
    def gear(self) -> int: ...
    def run(self, until_cycle: int) -> int:
        """Run until an exit; returns an ExitReason value.

        Looks for host signals every few million instructions, and raises what their handlers raise.
        """
    def request_return(self) -> None:
        """A run ends with DEADLINE when it looks for host signals next. Their handlers may call it."""
    @property
    def owes_exit(self) -> bool:
        """An interrupt fell on a SYSCALL or EXCEPTION: the next run returns that; nothing may touch the registers."""
    def limit_iterations(self, most: int) -> None:
        """Before an iteration of a REP behind so many, of which one that a device answers counts as a thousand, runs
        end with DEADLINE, and come no further: `repeats_too_long` then."""
    @property
    def repeats_too_long(self) -> bool: ...
    def save_state(self) -> RegisterState:
        """The registers, to be restored here or on another core. Not while an exit is owed."""
    def save_state_into(self, state: RegisterState) -> None: ...
    def restore_state(self, state: RegisterState) -> None: ...
    def rest(self) -> None:
        """Where a guest's own kernel executes: what has begun completes, and what is only remembered (translated code,
        what a pipeline knows of it) is forgotten. Before its state is saved, or loaded: all cores first.

        RuntimeError where there is more than can be kept, such as listeners.
        """
    def saved_state(self) -> bytes:
        """Of a core at rest, all but RAM: for one that was made equal, in any process. Both go on in the same way."""
    def load_state(self, state: bytes) -> None:
        """After as many `add_bank`, and at rest. ValueError: another core's; this one is of no use then."""
    @property
    def exclusive_open(self) -> bool:
        """Whether the last exclusive load still waits for its store (AArch64's local monitor). False on x86.

        Saved registers have it closed, and so has the core that they are restored to.
        """
    def close_exclusive(self) -> None:
        """As an exception return does: a store that follows fails."""
    @property
    def decoded_blocks(self) -> int:
        """How many blocks this core has decoded: each once, as long as its frames hold the same code."""
    @property
    def known_calls(self) -> int:
        """How many of the engine's translations have been told which block they are, so that they call an entry of its
        own: those of blocks that run often on a core with models, while nobody follows branches. 0 where it cannot be.
        """
    def keep_blocks(self, most: int) -> None:
        """Keep so many decoded blocks, then forget them all: a guest may have ever new code. Results are the same."""
    # what the last exit was about
    @property
    def pc(self) -> int: ...
    @property
    def last_retired_pc(self) -> int:
        """After OVERFLOW: the address of the instruction that made the counter wrap."""
    @property
    def fault_address(self) -> int:
        """After FAULT: the faulting data or fetch address (exact byte where it can be decoded, else the page).

        After an EXCEPTION of kind ALIGNMENT: the misaligned one.
        """
    @property
    def fault_access(self) -> int:
        """After FAULT: 1 read, 2 write, 4 fetch. After an EXCEPTION of kind ALIGNMENT as well."""
    @property
    def exception(self) -> int:
        """After EXCEPTION: an ExceptionKind value."""
    @property
    def trapped(self) -> tuple[int, int, int]:
        """After REGISTER: (TrapKind, encoding, number of Rt or -1). PC is on the instruction, which has not retired.

        AArch64: every MRS and MSR but of TPIDR_EL0, TPIDRRO_EL0, NZCV, FPCR, FPSR, CTR_EL0 and DCZID_EL0 comes here,
        with its encoding as SysReg.encoding gives it.
        x86_64, where a guest's own kernel executes: of IN, OUT, INS and OUTS (port, size in bytes).
        """
    @property
    def access(self) -> tuple[int, int, int, int] | None:
        """x86_64, after DEVICE, or REGISTER by a port: what the instruction at PC asks of a device.

        (physical address or port; size in bytes; 0 a load, 1 a store, 2 a load and then a store; what is stored, if it
        is 1). None: that instruction is not modelled for devices.
        """
    def complete_access(self, loaded: int = 0) -> int | None:
        """The device has answered `access` with that: the instruction takes it, and retires.

        Returns what is to be stored there then, if `access` is a load and a store. One that repeats stays at PC until
        its last iteration, and is another exit for each.
        """
    @property
    def exceptions_taken(self) -> list[tuple[int, int, int, int, int | None, int | None, bool]]:
        """x86_64: the guest's last exceptions that were taken, or could not be taken, without interrupts: at most 8.

        Of each: cycle, CPL, RIP as its handler has it, vector, error code, CR2, and whether INT n has made it.
        """
    def hear_exceptions(self, hear: Callable[[tuple[int, int, int, int, int | None, int | None, bool]], None]) -> None:
        """x86_64: `hear` is called with each of them, before its handler begins. It must not refer to the core."""
    def complete_trapped(self) -> None:
        """Retire the trapped instruction and step over it. Its result registers have been written by the caller."""
    # registers, 64 bits each, by number:
    # aarch64: 0..30 X0..X30, 31 SP, 32 PC, 33 NZCV, 34 TPIDR_EL0, 35 FPCR, 36 FPSR
    # x86_64:  0 RAX, 1 RBX, 2 RCX, 3 RDX, 4 RSI, 5 RDI, 6 RBP, 7 RSP, 8..15 R8..R15, 16 RIP, 17 RFLAGS,
    #          18 FS_BASE, 19 GS_BASE, 20 MXCSR, 21 FPCW, 22 FPSW, 23 FPTAG,
    #          and selectors: 24 DS, 25 ES, 26 FS, 27 GS
    def read_register(self, number: int) -> int: ...
    def write_register(self, number: int, value: int) -> None: ...
    def read_registers(self, numbers: Iterable[int]) -> list[int]: ...
    def registers(self) -> list[int]:
        """All of the above, in order."""
    def syscall_arguments(self) -> tuple[int, int, int, int, int, int, int]:
        """(number, a0..a5) in the ISA's syscall registers: one call per syscall."""
    def read_vector(self, number: int) -> bytes: ...
    def write_vector(self, number: int, value: bytes) -> None: ...
    def read_x87(self, number: int) -> bytes:
        """Ten bytes of a physical register (not counted from the stack's top); x86 only."""

    def write_x87(self, number: int, value: bytes) -> None: ...
    # counts
    @property
    def cycles(self) -> int:
        """Cycles since the core was made, the kernel's included. Without a model: instructions retired."""
    def elapse(self, cycles: int) -> None:
        """Time goes by, and no counter counts."""
    def work(self, cycles: int) -> bool:
        """The kernel works for so long. Those are CYCLES at KERNEL; True: an armed counter has wrapped."""
    def skip(self, cycles: int) -> None:
        """So long passes while nothing in the machine does anything: no model hears of it. For all cores at once."""
    def place_page(self, address: int) -> None:
        """The kernel has just written a whole page of the space in which this core executes.

        With fresh_pages = "l1d" in the core file's [kernel] its lines are in L1D then. No counter counts.
        """
    @property
    def address_way(self) -> str:
        """How the model gear finds data addresses; "none" where nothing is modelled."""
    def start_trace(self) -> None:
        """For tests: keep every data access that the models are told of. RuntimeError where nothing is modelled."""
    def take_trace(self) -> list[tuple[int, int, int, int, bool]]:
        """(pc, address, size in bytes, elements, is store) of each access since the last call, in program order."""
    @property
    def progress(self) -> int:
        """Instructions retired, a few million ago: the one member that another thread may read during `run`."""
    def total(self, probe: int, level: int | None = None) -> int:
        """How often the probe has fired, exact at the present instruction; at that emulator.cpu.Level, or at all.

        BR_COND_TAKEN and BR_TAKEN: RuntimeError unless `follow_branches` was called before the first run.
        """
    def set_level(self, level: int) -> None:
        """Between two runs: what executes from now on is at that emulator.cpu.Level. It is USER at first."""
    @property
    def level(self) -> int: ...
    def change_guest(self, tables: GuestPageTables) -> None:
        """Another guest's kernel executes, by `tables`, as `enter_kernel_mode` made them for it before the first run.

        Between two runs, behind `restore_state` of its registers.
        """
    def enter_kernel_mode(self, ram_base: int = 0, first_frame: int = 0, frames: int | None = None) -> GuestPageTables:
        """From now on a guest's own kernel executes, as after a reset: these tables are its address space.

        Of RAM it has so many frames, or all, from `first_frame` on, which is at the physical address `ram_base`.
        Before the first run, in place of `set_address_space`. The core follows by itself what the guest does to its
        tables and its level. AArch64's exceptions are the machine's to deliver; x86_64's the core takes by the guest's
        own interrupt descriptor table, and executes its system instructions. ValueError where that is not modelled.
        """
    def reset(self) -> None:
        """x86_64: all registers are as a reset or an INIT leaves them."""
    def take_exception(self, kind: int, syndrome: int | None = None, address: int | None = None) -> None:
        """Between two runs: what the processor does as it takes an exception at the present PC.

        AArch64: kind 0 synchronous, 1 IRQ, 2 FIQ, 3 SError; `syndrome` and `address` become ESR_EL1 and FAR_EL1.
        x86_64: a vector, the error code of those that have one, and CR2 of a page fault.
        """
    def set_interrupt_line(self, asserted: bool) -> None:
        """Whether an interrupt is pending here. A run takes it before the first instruction that does not mask it.

        x86_64: it ends there, with INTERRUPT.
        """
    def take_interrupt(self, vector: int) -> None:
        """x86_64, after INTERRUPT: an external interrupt of that vector."""
    def raise_nmi(self) -> None:
        """x86_64: a non-maskable interrupt, which is taken at once, or after the one that is being handled."""
    def set_watchpoints(self, watchpoints: Sequence[tuple[int, int, int, int, int, bool, int]]) -> None:
        """From now on these, 64 at most: (address, bytes, accesses, levels, taken_from, maskable,
        debug_register). Between two runs.

        A run stops with WATCHPOINT before an access of that kind (1 read, 2 write) to one of the bytes; `fault_address`
        and `fault_access` say what it was. `levels`, bits 1 << emulator.cpu.Level: whose accesses; `taken_from`: where
        the core is then; `maskable`: not while PSTATE.D is set at KERNEL. On x86_64 the stop is behind the
        instruction, and of a REP behind each iteration; `debug_register`: of the guest's own kernel, else -1.
        """
    def set_breakpoints(self, addresses: Sequence[int]) -> None:
        """From now on these, besides those of the address space. Between two runs."""
    @property
    def passed_breakpoint(self) -> int | None:
        """Where the breakpoint is for which the core has stopped, if no instruction has retired since."""
    def pass_breakpoint(self, address: int | None) -> None:
        """The next instruction, if it is there, is executed without a stop, as with x86's RFLAGS.RF."""
    def pass_access(self, pc: int | None) -> None:
        """The same of the instruction whose access has hit a watchpoint; None: it hits again. AArch64."""
    @property
    def watchpoint_hits(self) -> int:
        """After WATCHPOINT: bits, by their number in what was set."""
    def set_counter(
        self, registers: Sequence[int], user_registers: Sequence[int], numerator: int, denominator: int
    ) -> None:
        """MRS of these (SysReg.encoding) reads `reference cycles * numerator // denominator` without an exit, but where
        instructions are stepped; at USER those of `user_registers`. AArch64; guests with a kernel of their own. An
        empty sequence: as other registers.
        """
    def share_shown_cycles(self, shown: ShownCycles) -> None:
        """What the guest reads of `set_counter`'s registers, or of its time stamp counter, never goes back behind what
        any core with the same `shown` has shown. Guests with a kernel of their own.
        """
    def set_steps(self, on: bool) -> None:
        """Each run ends behind one instruction, with STEP if with nothing else."""
    def set_guest_steps(self, levels: int) -> None:
        """The guest's own kernel has what executes at these levels stepped, as MDSCR_EL1.SS does: bits by Level."""
    @property
    def has_stepped_guest(self) -> bool:
        """After SOFTWARE_STEP: whether one instruction has been executed since the exception return."""
    guest_step_age: int | None
    """How many instructions ago the guest's step has begun that is under way, if one is. For who changes guests."""
    def read_kernel_register(self, number: int) -> int:
        """One that a guest's own kernel finds in the engine, by SysReg.encoding. It never makes a REGISTER exit.

        x86_64: by the numbers of emulator.x86_64_system.
        """
    def write_kernel_register(self, number: int, value: int) -> None: ...
    @property
    def processor_state(self) -> int:
        """AArch64, a guest with its own kernel: PSTATE as SPSR_EL1 has it. Flags and masks alone can be written."""
    @processor_state.setter
    def processor_state(self, state: int) -> None: ...
    def listen(self, listener: RetirementListener) -> None:
        """Tell it of branches, from now on. No count or cycle becomes another by it."""
    def select(self, recorder: RetirementRecorder, probes: int, period: int) -> None:
        """Tell it of one instruction each time that events of `probes` have come to another `period`.

        That is the one which made the last of them; of CYCLES it is any. ValueError for no period, no probes, or CYCLES
        among others.
        """
    def follow(
        self, recorder: RetirementRecorder, probes: int, distances: Sequence[int], from_now: bool = False
    ) -> None:
        """As `select`, once for each distance, which may be another each time.

        `from_now`: counted from when the last one was selected, rather than from where that was due. Of CYCLES it is
        the next instruction that retires.
        """
    def stop_listening(self, listener: RetirementListener) -> None: ...
    def follow_branches(self) -> None:
        """Count where conditional branches go, from now on. Connecting a counter to such a probe does it, too."""
    def fire(self, probe: int, amount: int = 1) -> None:
        """Fire a probe from outside the pipeline: an exception taken by the kernel, say."""
    def attribute(self, columns: Sequence[int]) -> None:
        """From now on keep which instruction made which events, for the accounts that `attribute_to` names.

        A column is a mask as `CounterBank.connect` takes it. Columns of what instructions' bytes tell cost nothing per
        block; those of what models count (cycles, too) make them hear of each instruction alone.
        """
    def attribute_to(self, account: int) -> None:
        """What follows is of this account; 0 is nobody's, and not kept. RuntimeError before `attribute`."""
    def take_attribution(self, account: int) -> bytes:
        """What it has come to, exact at the present instruction, and forget it.

        Rows of 64-bit words, in the host's order: an instruction's address, then a count for each column. Sorted by
        address.
        """
    def frame_chain(self, limit: int) -> list[int]:
        """Return addresses found by following frame pointers, innermost first, without PC."""
    def add_ptwrite(self) -> None:
        """From now on it is no undefined instruction. Before the first run; ValueError where it is not x86-64's."""
    def keep_calls(self) -> None:
        """Follow calls and returns from now on. Before the first run; ValueError in kernel mode."""
    @property
    def keeps_calls(self) -> bool: ...
    def call_chain(self, limit: int) -> list[int]:
        """The return addresses of all calls that have not returned, innermost first, without PC."""
    def begin_calls(self) -> None:
        """What executes next is another program: nobody has called it."""
    def fork_calls(self, shares_memory: bool, has_new_stack: bool) -> None:
        """The registers become a child's: it has its parent's calls, or none on a stack of its own."""
    def enter_handler(self, pc: int, stack_pointer: int, trampoline: int, trampoline_stack: int) -> None:
        """A signal's handler begins, which returns to the trampoline, and that to where the task was interrupted."""
    def leave_handler(self, pc: int, stack_pointer: int, caller: int, caller_stack: int) -> None:
        """A signal's handler has ended. The task goes on there; `caller`: of a function that begins there."""

def decode(isa: str, address: int, code: bytes, features: Sequence[str] = ()) -> list[tuple[int, int, int, int, int]]:
    """What the core finds in code, for tests: (offset, length, probes, probes of a REP's iterations, trap) of each."""

def timed_decode(isa: str, address: int, code: bytes) -> list[dict[str, Any]]:
    """What the timing models see in code, for tests: the fields of emulator/native/ops/timed_op.hpp by name.

    Registers that are none are left out; `flags` is the list of the bools that are set.
    """

class MemorySystem:
    """The caches, TLBs and memory of `cores` cores, without the cores: for tests. `config`: a core file's tables.

    A core's accesses come in program order, at whatever cycles; each returns the cycle at which its data are there.
    """

    def __init__(self, config: dict[str, Any], cores: int = 1) -> None:
        """ValueError names the key that is wrong, and what would be right."""
    def load(self, core: int, address: int, size: int, pc: int = 0, cycle: int = 0, elements: int = 1) -> int: ...
    def store(self, core: int, address: int, size: int, pc: int = 0, cycle: int = 0, elements: int = 1) -> int: ...
    def fetch(self, core: int, address: int, cycle: int = 0) -> int: ...
    def prefetch(self, core: int, address: int, pc: int = 0, cycle: int = 0) -> None: ...
    def place_page(self, core: int, address: int, cycle: int = 0) -> None:
        """The kernel writes a whole page, which counts nothing."""
    def run(self, records: bytes, chained: bool = False) -> bytes:
        """Many accesses: records of struct "<QQQIHH": address, pc, cycle, size, kind, core. Kinds: 0 load, 1 store,
        2 fetch, 3 prefetch. Returns the ready cycles, 64 bits each. `chained`: a record's cycle counts from when the
        one before was ready.
        """
    def totals(self, core: int = 0) -> list[int]:
        """By Probe."""

def replacement_policies() -> list[str]:
    """The names that a core file's `replacement` may have."""

def prefetchers() -> list[str]:
    """The names that a core file's `prefetchers` may list."""

class AddressTracer:
    """Data addresses found in an engine with nothing of the core around it, for tests.

    Two restrictions make it do without what it finds in the engine beyond the API.
    """

    def __init__(
        self, isa: str, space: AddressSpace, no_register_file: bool = False, no_call_range: bool = False
    ) -> None: ...
    def run(self, most_blocks: int = ..., stepping: bool = False, recording: bool = True) -> str:
        """Run to a "syscall", "fault" or "exception", or so many "blocks". RuntimeError if addresses were lost."""
    @property
    def pc(self) -> int: ...
    def read_register(self, number: int) -> int:
        """By the numbers of `Core.read_register`."""
    def write_register(self, number: int, value: int) -> None: ...
    def flush_translations(self) -> None: ...
    def drop_slices(self) -> None: ...
    def seen(self) -> bytes:
        """What was accessed since the last call, four u64 each: pc, address, size in bytes, 1 for a store."""
    @property
    def accesses(self) -> int:
        """Operands accessed in all, recorded or not."""
    @property
    def checksum(self) -> int:
        """The sum of their addresses, modulo 2**64."""
    @property
    def blocks_by_code(self) -> int:
        """How many blocks' addresses were also found by host code made for them. RuntimeError if they differed."""
    @property
    def way(self) -> str: ...
    @property
    def retranslations(self) -> int:
        """How often a block was translated anew, with calls in its middle."""
    @property
    def remade_slices(self) -> int:
        """How often a load met a store of its own block, so that its slice had to be made again."""

def indirect_predictors() -> list[str]:
    """What `branch.indirect` can be."""

def pipeline_names() -> list[str]:
    """What [pipeline].model may be."""

def simulate(
    isa: str,
    config: dict[str, Any],
    code: bytes,
    iterations: int,
    addresses: list[tuple[int, int, int] | list[int]] | None = None,
    sizes: list[int] | None = None,
    taken: list[bool] = [True],
    pieces: list[int] = [],
    repeats: int = 1,
    address: int = 0x10000,
) -> dict[str, Any]:
    """Run `code` as a loop's body on a fresh pipeline, memory system and branch unit: {"cycles": int, "totals": list}.

    `totals` is by probe; `cycles` is when the last instruction is done. Memory operands are numbered in program order,
    a read-modify-write's load before its store; the address of each, in iteration i, is start + i * stride % modulo
    (0: no modulo) or the i-th of a list, over and over; by default each instruction has a cache line of its own.
    `sizes`, of each operand in bytes, are by default what the decoder says. The branch at the end goes back or does not
    as the next of `taken` says, over and over; all others fall through. `pieces`: so many instructions are handed to
    the pipeline at once, over and over; by default a whole iteration. Each REP has `repeats` iterations.
    """

def simulate_ops(
    config: dict[str, Any],
    ops: list[dict[str, Any]],
    iterations: int,
    addresses: list[tuple[int, int, int] | list[int]] | None = None,
    sizes: list[int] | None = None,
    taken: list[bool] = [True],
    pieces: list[int] = [],
    repeats: int = 1,
    address: int = 0x10000,
) -> dict[str, Any]:
    """The same with ops in the form of `timed_decode`; a field that is missing is empty, a length 4 bytes."""

class AccessWitness:
    """What the engine itself says of a modelled core's accesses, by its MEM hooks: for tests, and slow."""

    def __init__(self, core: Core, space: AddressSpace) -> None:
        """Before the core's first run; its accesses are traced from now on. Must live as long as it runs."""
    def set_address_space(self, space: AddressSpace) -> None:
        """That of the core's next run."""
    def compare(self) -> int:
        """After each run, before anything is mapped anew: how many accesses there were. RuntimeError if they differ."""

def tell_accesses() -> None:
    """MEM hooks of this process's engines hear of our own instructions' accesses too, from now on: for tests."""

class Pebs:
    """Intel's PEBS of one bank of counters (units/pebs.hpp): what of it does not stand in registers."""

    buffer_overflowed: bool
    """The DS area's index has reached its threshold; nobody takes that back but who reads it."""
    def __init__(self, core: Core, bank: CounterBank, clock: ShownCycles) -> None: ...
    def begin(
        self,
        *,
        area: memoryview,
        buffer: memoryview,
        branches: BranchRecords | None,
        counters: int,
        slow_loads: int,
        latency: int,
        general: int,
        resets: int,
        adaptive: bool,
        with_groups: int,
        config: int,
        tsc_at_start: int,
    ) -> None:
        """Until `end` overflows of `counters` (a mask of the bank's) write records to `buffer`, by the DS area.

        Of `slow_loads` only loads of more than `latency` cycles do. The first `general` counters of the bank are no
        fixed ones, whose reset values come behind `resets` words for those. `adaptive`: records are; those of
        `with_groups` by `config`, MSR_PEBS_DATA_CFG, with `branches`. ValueError where the DS area is in no order.
        """
    def end(self) -> None: ...

class BranchTraceStore:
    """Intel's BTS of one core (units/branch_trace_store.hpp): what of it does not stand in registers."""

    def __init__(self, core: Core) -> None: ...
    def begin(self, area: memoryview, buffer: memoryview, interrupts: bool, levels: int = 3) -> None:
        """Until `end` taken branches of these levels, a bit for each `Level`, go to `buffer`, by the words of the DS
        management area. ValueError where these are in no order."""
    def end(self) -> None: ...
    @property
    def interrupt_pending(self) -> bool: ...
    def clear_interrupt(self) -> None: ...
