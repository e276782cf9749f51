"""Core schema: what a core file may say: its tables and keys, one row each.

Reading, checking, ``--set`` and docs/cores.md come from these rows. Latencies are in cycles, and those of memory levels
are load-to-use totals from the first level upward, not increments.
"""

from __future__ import annotations

from dataclasses import replace

from emulator.aarch64_features import LATER_NAMES
from emulator.core_file.keys import (
    IN_ORDER,
    ISAS,
    MODELLED,
    MODELS,
    MOST_BYTES,
    OUT_OF_ORDER,
    Key,
    Kind,
    Table,
    cycles,
    entries,
    fixed,
    native,
    one_of,
    ports,
    several_of,
)
from emulator.core_file.units import BRANCH_RECORDS, UNITS
from emulator.op_classes import OpClass

REPLACEMENT = one_of("replacement", "which line makes room", native("replacement_policies"), default="lru")

_CACHE = (
    Key("size", Kind.SIZE, "bytes", 64, MOST_BYTES, required=True),
    Key("ways", Kind.INTEGER, "lines that a set holds", 1, 1024, required=True),
    Key("line", Kind.SIZE, "bytes of a line; the same at every level", 16, 4096, default=64, power_of_two=True),
    cycles("latency", "load-to-use cycles of a hit", required=True),
    REPLACEMENT,
    several_of("prefetchers", "what fetches lines ahead; parameters in [prefetcher.NAME]", native("prefetchers")),
    Key("mshrs", Kind.INTEGER, "misses under way at once; without: any number", 1, 1024),
)
_FIRST = tuple(replace(key, maximum=1000) if key.name == "latency" else key for key in _CACHE)
_WRITES = (
    one_of(
        "write_policy",
        "when a store goes on; untracked: never, for counts of misses alone",
        fixed("write_back", "write_through", "untracked"),
        default="write_back",
    ),
    cycles("write_back_cycles", "between written lines that go", least=0, default=0, most=1000),
    Key("write_allocate", Kind.BOOLEAN, "whether a store that misses fetches its line", default=True),
)


def _outer(scope: str) -> tuple[Key, ...]:
    """Of the caches behind the first level."""
    inclusion = fixed("inclusive", "exclusive", "non_inclusive")
    return (
        *_CACHE,
        one_of("inclusion", "of the inner levels' lines", inclusion, default="non_inclusive"),
        Key("banks", Kind.INTEGER, "by a line's number; without: no limit", 1, 1024, power_of_two=True),
        cycles("bank_cycles", "for which a line keeps its bank", default=1, most=1000),
        one_of("scope", "one per core, or one for all", fixed("private", "shared"), default=scope),
    )


_TLB = (
    entries("entries", "translations of 4 KiB pages", required=True),
    entries("ways", "0: fully associative", least=0, default=0),
    REPLACEMENT,
)
_OP = (
    cycles("latency", "from issue to the result", most=10_000),
    several_of("ports", "one of these starts it; []: needs none", ports),
    cycles("busy_cycles", "for which that port takes nothing else; without: 1", most=900),
    Key("also", Kind.TEXTS, 'what it needs besides: "P5", "P0|P1", "P5*2", "DIV@24"'),
    Key("micro_ops", Kind.INTEGER, "slots that it takes; without: 1 and those of also", 0, 200),
    cycles("chain_latency", "from issue to the next of the same class; without: latency", most=10_000),
    cycles("accumulate_latency", "from the accumulator's arrival to the result; without: latency", most=10_000),
    one_of("dual_issue", "its place in a pair", fixed("first", "second", "both", "none")),
)
_NOP_ROW = (cycles("latency", "of what it does not compute", least=0, most=10_000), *_OP[1:])
_OP_ROW = tuple(replace(key, required=key.name in ("latency", "ports"), models=MODELLED) for key in _OP)


def _pipeline(models: tuple[str, ...], *keys: Key) -> tuple[Key, ...]:
    return tuple(replace(key, models=models) for key in keys)


_PAIRS = fixed("compare_branch", "arithmetic_branch", "aes", "move_computation")
_FUSES = several_of("fuses", "pairs that go through as one", _PAIRS)
_DUAL_ISSUE = fixed("first", "second", "both", "none")
_PIPELINE = (
    one_of("model", "the algorithm", fixed(*MODELS), required=True),
    *_pipeline(
        MODELLED,
        Key("ports", Kind.TEXTS, "the execution ports, at most 32", required=True),
        several_of("load_ports", "one micro-op of each load", ports, required=True),
        several_of("store_address_ports", "one micro-op of each store", ports, required=True),
        several_of("store_data_ports", "a second one of each store; without: the first takes the data along", ports),
        several_of("write_back_ports", "of an address's write-back; without: free and at once", ports),
        Key("load_bytes", Kind.INTEGER, "the most that one micro-op reads", 1, 4096, default=16),
        Key("load_registers", Kind.INTEGER, "the most that one micro-op fills; 0: any number", 0, 16, default=0),
        Key("store_bytes", Kind.INTEGER, "the most that one micro-op writes", 1, 4096, default=16),
        cycles("vector_load_extra_cycles", "added to loads into vector registers", least=0, default=0, most=1000),
        cycles(
            "complex_address_extra_cycles",
            "added to loads with a scaled or shifted index",
            least=0,
            default=0,
            most=1000,
        ),
        cycles("split_load_cycles", "added to loads that cross a line", least=0, default=0, most=1000),
        cycles(
            "mispredict_cycles",
            "from a mispredicted branch's result to the right way's dispatch",
            required=True,
            most=1000,
        ),
        cycles(
            "late_redirect_cycles",
            "fetch bubble of a target that was not known; without: taken_branch_bubble",
            least=0,
            most=1000,
        ),
        cycles("taken_branch_bubble", "fetch bubble of a taken branch predicted right", least=0, default=0, most=1000),
        entries("taken_branches_per_cycle", "a further one ends the cycle's fetch", default=1, most=16),
        Key("fetch_bytes", Kind.INTEGER, "fetched in one cycle", 1, 4096, default=16),
        Key("fetch_aligned", Kind.BOOLEAN, "fetch reads naturally aligned pieces", default=False),
        cycles("fetch_ahead_cycles", "how far fetch may be ahead of dispatch", least=0, default=8, most=1000),
        entries("store_buffer", "stores not yet written to the cache", required=True, most=4096),
        entries("stores_per_cycle", "written from the store buffer to the cache", default=1, most=64),
        Key("repeat_bytes", Kind.INTEGER, "of REP MOVS, STOS for one micro-op; 0: each iteration", 0, 4096, default=0),
        cycles("repeat_start_cycles", "dispatch stands still before a REP", least=0, default=0, most=1000),
        cycles("microcode_cycles", "dispatch stands still for a microcoded instruction", least=0, default=0, most=1000),
        _FUSES,
    ),
    *_pipeline(
        OUT_OF_ORDER,
        entries("dispatch_width", "slots a cycle", required=True, most=64),
        entries("retire_width", "slots retired a cycle; without: dispatch_width", most=64),
        entries("decode_width", "instructions a cycle; without: dispatch_width", most=64),
        entries("rob_entries", "slots between dispatch and retirement", required=True, most=65_536, least=8),
        entries(
            "scheduler_entries",
            "of one scheduler for all ports; without it and [pipeline.schedulers]: no limit",
            most=1000,
        ),
        cycles(
            "indirect_branch_bubble",
            "taken_branch_bubble of indirect branches and returns; without: the same",
            least=0,
            most=1000,
        ),
        cycles(
            "far_branch_bubble",
            "at least, of a branch that is not in the first branch target buffer",
            least=0,
            default=0,
            most=1000,
        ),
        Key(
            "loop_stream", Kind.BOOLEAN, "straight code that goes back to its start is not fetched again", default=False
        ),
        entries("load_queue", "loads between dispatch and retirement; without: no limit", most=65_536),
        several_of("vector_store_data_ports", "store_data_ports of vector registers' data; without: the same", ports),
        Key(
            "micro_fusion",
            Kind.BOOLEAN,
            "a load with its computation, a store's address and data: one slot",
            default=False,
        ),
        several_of("eliminates", "done by the renamer", fixed("move", "fp_move", "zero", "constant", "add_constant")),
        entries("eliminated_moves_per_cycle", "further moves are executed; without: no limit", most=64),
        cycles(
            "store_forward_cycles", "from a store's data to a load that it answers", least=0, required=True, most=1000
        ),
        cycles(
            "stack_forward_cycles", "the same by the stack pointer; without: store_forward_cycles", least=0, most=1000
        ),
        cycles(
            "predicted_forward_cycles",
            "the same of general registers, if a load is answered as the last time; without: store_forward_cycles",
            least=0,
            most=1000,
        ),
        one_of("predicted_forwards", "which loads may be so", fixed("whole", "unindexed"), default="whole"),
        entries(
            "line_stores_per_cycle",
            "written to the cache if they are to one line; without: stores_per_cycle",
            most=64,
        ),
        cycles("store_forward_blocked_cycles", "of a load that a store covers in part", least=0, default=0, most=1000),
        cycles(
            "alias_4k_cycles",
            "of a load behind a store to the same offset in another page",
            least=0,
            default=0,
            most=1000,
        ),
    ),
    *_pipeline(
        IN_ORDER,
        entries("issue_width", "instructions a cycle", required=True, most=16),
        one_of("load_dual_issue", "place of a load in a pair", _DUAL_ISSUE, default="both"),
        one_of("store_dual_issue", "place of a store in a pair", _DUAL_ISSUE, default="both"),
        Key("blocking_misses", Kind.BOOLEAN, "nothing issues until a missing load has its data", default=False),
        cycles(
            "address_extra_cycles", "a result is needed so much earlier as an address", least=0, default=0, most=100
        ),
        cycles("flags_late_cycles", "flags may arrive so late after issue", least=0, default=0, most=100),
        cycles("store_data_late_cycles", "a store's data may arrive so late after issue", least=0, default=0, most=100),
    ),
)

TABLES = (
    Table(
        "",
        "what it is",
        (
            Key("base", Kind.TEXT, "the core file that this one changes: a name, or a path from here"),
            Key("without", Kind.TEXTS, "tables of the base that this core has not"),
            Key("name", Kind.TEXT, "shown by stat; the file's name if it has a base", required=True),
            Key("summary", Kind.TEXT, "one line", required=True),
            Key("isas", Kind.TEXTS, "what it executes", required=True, choices=fixed(*ISAS)),
            Key("frequency_hz", Kind.INTEGER, "cycles in a second", 1_000_000, 100_000_000_000, required=True),
            several_of("units", "what observes execution besides the PMU, see docs/units.md", fixed(*UNITS)),
            Key("sources", Kind.TEXTS, "where the facts are from", required=True),
            Key("validated", Kind.TEXT, "against what it was compared, in one line", required=True),
        ),
    ),
    Table("pmu", "the PMU of each ISA", tuple(Key(isa, Kind.TEXT, "a model in pmu/models/") for isa in ISAS)),
    Table(
        "pmu_interrupt",
        "how long after its overflow a counter interrupts the program; without: at once",
        (cycles("latency_cycles", "which no sample but precise ones (:pp) is spared", least=0, default=0),),
    ),
    Table(
        "identity",
        "what it says of itself; without: a Cortex-A72 r0p3, and GenuineIntel's 6, 94, 3",
        (
            Key("midr_el1", Kind.INTEGER, "AArch64", 0, 0xFFFF_FFFF),
            Key(
                "features",
                Kind.TEXTS,
                "AArch64: what it has beyond Armv8.0-A, as /proc/cpuinfo names it",
                choices=fixed(*LATER_NAMES),
            ),
            one_of("vendor", "x86-64: CPUID leaf 0", fixed("GenuineIntel", "AuthenticAMD")),
            Key("family", Kind.INTEGER, "CPUID leaf 1, base and extended family added up", 6, 0x10E),
            Key("model", Kind.INTEGER, "CPUID leaf 1, with the extended model", 0, 0xFF),
            Key("stepping", Kind.INTEGER, "CPUID leaf 1", 0, 15),
            Key("brand", Kind.TEXT, "CPUID leaves 80000002H to 80000004H: up to 47 characters"),
        ),
    ),
    Table(
        "activity_monitors",
        "AArch64: the Activity Monitors, on boards; without: there are none, as on the real parts",
        (
            one_of("version", "of the extension: FEAT_AMUv1, FEAT_AMUv1p1", fixed("v1", "v1p1"), default="v1p1"),
            Key("auxiliary", Kind.TEXTS, "what the second group counts: events of the core's PMU, up to 16"),
        ),
    ),
    Table(
        "spe",
        "AArch64: the Statistical Profiling Extension, where `units` has it or --unit lends it",
        (
            one_of(
                "version",
                "of the extension: FEAT_SPE, FEAT_SPEv1p1, FEAT_SPEv1p2",
                fixed("v1", "v1p1", "v1p2"),
                default="v1p2",
            ),
        ),
    ),
    Table(
        "pt",
        "x86-64: Intel PT, where `units` has it or --unit lends it",
        (
            Key("ptwrite", Kind.BOOLEAN, "whether PTWRITE is there, which writes into the trace", default=False),
            Key("power_events", Kind.BOOLEAN, "whether it tells where a CPU sleeps", default=False),
        ),
    ),
    Table(
        "brbe",
        "AArch64: the Branch Record Buffer Extension, where `units` has it or --unit lends it",
        (entries("records", "8, 16, 32 or 64", least=8, most=64, default=BRANCH_RECORDS, power_of_two=True),),
    ),
    Table(
        "kernel",
        "simulated cycles of kernel work, shown as sys",
        (
            cycles("syscall_cycles", "of each system call", least=0, default=0),
            cycles("fault_cycles", "of each page fault", least=0, default=0),
            cycles("exception_cycles", "of each other exception", least=0, default=0),
            cycles("switch_cycles", "of each time that a task goes to sleep", least=0, default=0),
            one_of(
                "fresh_pages",
                "where the lines of a page are that the kernel has just cleared or copied",
                fixed("memory", "l1d"),
                default="memory",
            ),
        ),
    ),
    Table("pipeline", "when instructions execute; docs/pipelines.md says exactly", _PIPELINE),
    Table(
        "pipeline.schedulers.*",
        "micro-ops between dispatch and issue, by ports (out_of_order)",
        (
            entries("entries", "micro-ops", most=1000, required=True),
            several_of("ports", "a port is in at most one scheduler", ports, required=True),
        ),
    ),
    Table("ops.NOP", "what takes a slot and nothing else; needs no row", _NOP_ROW),
    Table(
        "ops.*",
        "what instructions cost, by class (emulator/op_classes.py)",
        _OP_ROW,
        fixed(*(name for name in OpClass.__members__ if name != "NONE")),
    ),
    Table("ops.*.width.*", "... where operands of so many bytes differ", _OP, fixed("1", "2", "4", "8", "16", "32")),
    Table("l1i", "first cache of instructions", _FIRST),
    Table("l1d", "first cache of data", (*_FIRST, *_WRITES)),
    Table("l2", "second cache, of both", _outer("private")),
    Table("llc", "last cache", _outer("shared")),
    Table(
        "memory",
        "behind the caches",
        (
            cycles("latency", "load-to-use cycles", required=True),
            Key("cycles_per_line", Kind.REAL, "between two lines: the bandwidth; 0: no limit", 0, 100_000, default=0),
        ),
    ),
    Table("itlb", "translations for instructions", _TLB),
    Table("dtlb", "translations for data", _TLB),
    Table("l2tlb", "second level, of both", (*_TLB, cycles("latency", "cycles of a hit", required=True))),
    Table(
        "page_walk",
        "of the page tables",
        (
            cycles("latency", "cycles of a walk, besides what it reads"),
            Key("reads_entries", Kind.BOOLEAN, "whether it reads table entries through l2 or llc", default=False),
        ),
    ),
    Table(
        "coherence",
        "among several cores",
        (
            cycles("latency", "cycles until another core's cache answers; without: the first shared level's"),
            one_of("filter", "who is asked", fixed("directory", "none"), default="directory"),
        ),
    ),
    Table(
        "prefetcher.*",
        "parameters of a prefetcher that a cache names; each has some of these. It hears of accesses that miss, and of "
        "the first to a line that was prefetched, or that stores to it",
        (
            entries("degree", "lines at a time"),
            entries("distance", "lines ahead"),
            entries("entries", "instructions known"),
            entries("streams", "known at once"),
            entries("window", "lines in which a stream goes on"),
            entries("confidence", "repetitions before it starts"),
            Key("crosses_pages", Kind.BOOLEAN, "whether it goes on in the next page"),
        ),
        native("prefetchers"),
    ),
    Table(
        "branch",
        "prediction; what is left out is always right",
        (
            one_of("direction", "of conditional branches", native("direction_predictors")),
            one_of("indirect", "targets of indirect branches", native("indirect_predictors")),
            entries("btb_entries", "branches whose targets are known at fetch"),
            entries("btb_ways", "of the branch target buffer"),
            entries("first_btb_entries", "of a first one: others have far_branch_bubble; without: none have"),
            entries("first_btb_ways", "of the first one"),
            entries("return_stack", "calls remembered"),
        ),
    ),
    Table(
        "branch.*",
        "parameters of a predictor that [branch] names; each has some of these",
        (
            entries("entries", "of a table"),
            entries("base_entries", "of the table without history"),
            entries("history_bits", "outcomes that are hashed with the address"),
            entries("tables", "with histories of growing length"),
            entries("tag_bits", "of an entry"),
            entries("shortest_history", "of the tables'"),
            entries("longest_history", "of the tables'"),
            entries("shortest_path", "of the tables'"),
            entries("longest_path", "of the tables'"),
            entries("useful_period", "conditional branches between two agings"),
            entries("loop_entries", "of the loop predictor; 0: none", least=0),
        ),
        lambda data: [*native("direction_predictors")(data), *native("indirect_predictors")(data)],
    ),
)


Path = tuple[str, ...]  # of a table or key, from the file's top


def table_of(path: Path) -> Table | None:
    """The row for a table of a file, such as ``("ops", "ALU")``."""
    return next((table for pattern, table in _TABLES.get(len(path), ()) if _fits(pattern, path)), None)


def children_of(path: Path) -> list[str]:
    """The names of the tables right below `path`; ``*`` where the file names them."""
    names = (name for pattern, name in _CHILDREN.get(len(path), ()) if _fits(pattern, path))
    return list(dict.fromkeys(names))


def _by_depth() -> tuple[dict[int, list[tuple[Path, Table]]], dict[int, list[tuple[Path, str]]]]:
    """Tables by the length of their patterns; and the names that follow the beginnings of patterns, by the length of
    these: each core that is loaded asks for all."""
    tables: dict[int, list[tuple[Path, Table]]] = {}
    children: dict[int, dict[tuple[Path, str], None]] = {}
    for table in TABLES:
        pattern = table.pattern
        tables.setdefault(len(pattern), []).append((pattern, table))
        for depth, name in enumerate(pattern):
            children.setdefault(depth, {})[pattern[:depth], name] = None
    return tables, {depth: list(found) for depth, found in children.items()}


def _fits(pattern: Path, path: Path) -> bool:
    return all(want in ("*", part) for want, part in zip(pattern, path, strict=False))


_TABLES, _CHILDREN = _by_depth()
