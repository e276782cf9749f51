"""SAMPLE_OPTIONS: what a user may want in the samples and records of all events, by perf record's options.

What each becomes in the events' attributes is as evsel__config of tools/perf/util/evsel.c has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from emulator.linux.arch import architecture
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import ReadFormat, SampleType
from perfcore.events.preparations import sampled_registers

_NO_SAMPLES, _NO_READS = SampleType(0), ReadFormat(0)
_TIMES = ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING


@dataclass(frozen=True, slots=True)
class SampleOption:
    """One option without a value."""

    flags: tuple[str, ...]
    help: str
    samples: SampleType = _NO_SAMPLES  # bits of sample_type that it adds
    without: SampleType = _NO_SAMPLES  # ... that it takes away
    reads: ReadFormat = _NO_READS
    every: Mapping[str, int] = field(default_factory=dict)  # fields of each event
    tracking: Mapping[str, int] = field(default_factory=dict)  # ... of the one that tells of tasks and mappings

    @property
    def name(self) -> str:
        """As Python has it."""
        return self.flags[-1].lstrip("-").replace("-", "_")


_ROWS = (
    SampleOption(
        ("-d", "--data"), "addresses of data, of events that know one, and mappings of data",
        SampleType.ADDR | SampleType.DATA_SRC, tracking={"mmap_data": 1},
    ),
    SampleOption(("--phys-data",), "their physical addresses", SampleType.PHYS_ADDR),
    SampleOption(("--data-page-size",), "the sizes of their pages", SampleType.DATA_PAGE_SIZE),
    SampleOption(("--code-page-size",), "the sizes of the code's pages", SampleType.CODE_PAGE_SIZE),
    SampleOption(("-W", "--weight"), "weights: cycles, of events that know one; else 0", SampleType.WEIGHT_STRUCT),
    SampleOption(("-P", "--period"), "periods, also where they are fixed", SampleType.PERIOD),
    SampleOption(("-T", "--timestamp"), "times, also with --per-thread", SampleType.TIME),
    SampleOption(("--no-timestamp",), "no times", without=SampleType.TIME),
    SampleOption(("--sample-cpu",), "record the CPU of each sample; always, if several", SampleType.CPU),
    SampleOption(("--sample-identifier",), "the event's number where each record has it", SampleType.IDENTIFIER),
    SampleOption(
        ("-R", "--raw-samples"), "raw data: of tracepoints, which always have them, and of IBS",
        SampleType.TIME | SampleType.CPU | SampleType.RAW,
    ),
    SampleOption(("--running-time",), "with :S, for how long events were enabled and counted", reads=_TIMES),
    SampleOption(
        ("-s", "--stat"), "record the counts of each task at its end", reads=_TIMES, every={"inherit_stat": 1}
    ),
    SampleOption(("--switch-events",), "record context switches", tracking={"context_switch": 1}),
    SampleOption(
        ("--all-cgroups",), "record the control group of each sample, and each new one", SampleType.CGROUP,
        tracking={"cgroup": 1},
    ),
    SampleOption(("--namespaces",), "record the namespaces of each task", tracking={"namespaces": 1}),
    SampleOption(("--no-bpf-event",), "nothing of BPF programs", tracking={"bpf_event": 0}),
    SampleOption(("--user-callchains",), "with -g: callers in user mode alone", every={"exclude_callchain_kernel": 1}),
    SampleOption(("--kernel-callchains",), "with -g: callers in the kernel alone", every={"exclude_callchain_user": 1}),
)  # fmt: skip
SAMPLE_OPTIONS = {option.name: option for option in _ROWS}

_NAMES = {  # of registers, by the numbers of uapi/asm/perf_regs.h, as perf record -I? prints them
    "aarch64": (*(f"x{number}" for number in range(30)), "lr", "sp", "pc"),
    "x86_64": (
        "ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip", "flags", "cs", "ss", "ds", "es", "fs", "gs",
        *(f"r{number}" for number in range(8, 16)),
    ),
}  # fmt: skip


def apply_options(names: Iterable[str], attr: PerfEventAttr, isa: str, *, tracking: bool) -> None:
    """What these options become in `attr`."""
    for name in names:
        option = SAMPLE_OPTIONS[name]
        samples = option.samples
        if samples is SampleType.WEIGHT_STRUCT and isa != "x86_64":  # arch_evsel__set_sample_weight
            samples = SampleType.WEIGHT
        attr.sample_type = (attr.sample_type | samples) & ~option.without
        attr.read_format |= option.reads
        for changed, value in (*option.every.items(), *(option.tracking.items() if tracking else ())):
            setattr(attr, changed, value)


def all_registers(isa: str) -> int:
    """The mask of those that samples can have."""
    return sum(1 << bit for bit in sampled_registers(architecture(isa)))


def register_mask(text: str, isa: str) -> int:
    """Of ``ip,sp``; of all if there is no text. ValueError names those that there are."""
    there = all_registers(isa)
    known = {name: 1 << bit for bit, name in enumerate(_NAMES[isa]) if there >> bit & 1}
    wanted = [name for name in text.lower().split(",") if text]
    for name in wanted:
        if name not in known:
            raise ValueError(f"{isa} has no register '{name}' in its samples; there are {','.join(known)}")
    return sum({known[name] for name in wanted}) if wanted else there
