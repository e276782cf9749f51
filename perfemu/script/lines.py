"""lines: samples as perf script prints them, one function for each event, composed once of its fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfcore.abi.constants import FAULTS, Misc, PerfType, SampleType
from perfcore.abi.sample import Sample
from perfcore.perfdata.features import EventDescription
from perfemu.profile.places import Place
from perfemu.profile.tasks import Thread
from perfemu.script.branches import branch_text
from perfemu.script.frames import Frames
from perfemu.visible import visible

_MOST_CACHED = 50_000  # texts of places and chains
_MICROSECOND, _SECOND = 1000, 1_000_000_000  # ns
_LEVELS = (  # perf's letters for cpumodes that the bits of `misc` contain
    (Misc.KERNEL, "K"),
    (Misc.USER, "U"),
    (Misc.HYPERVISOR, "H"),
    (Misc.GUEST_KERNEL, "G"),
    (Misc.GUEST_USER, "g"),
)


@dataclass(slots=True)
class LineOptions:
    """How times, names and chains are shown."""

    nanoseconds: bool = False
    relative: bool = False  # to the first line
    deltas: bool = False  # to the line before
    chains: bool = True
    most_frames: int = 127
    full_source_paths: bool = False


class Clock:
    """Time stamps, which may be relative to what came before."""

    def __init__(self, options: LineOptions) -> None:
        self._options = options
        self._first = self._last = 0  # 0: none yet, as in perf

    def text(self, time_ns: int) -> str:
        """With the colon and the space behind it."""
        shown = time_ns
        if self._options.relative:
            self._first = self._first or time_ns
            shown = time_ns - self._first
        elif self._options.deltas:
            shown = time_ns - self._last if self._last else 0
            self._last = time_ns
        seconds, rest = divmod(shown, _SECOND)
        if self._options.nanoseconds:
            return f"{seconds:5}.{rest:09}: "
        return f"{seconds:5}.{rest // _MICROSECOND:06}: "


def start_line(fields: frozenset[str], clock: Clock, in_block: bool) -> Callable[[str, Sample, str], str]:
    """What every line starts with, of (comm, sample, letters of misc). `in_block`: frames follow on lines below."""
    comm = "{} ".format if in_block else "{:>16} ".format
    with_comm, with_cpu, with_misc, with_time = (name in fields for name in ("comm", "cpu", "misc", "time"))
    with_pid, with_tid = "pid" in fields, "tid" in fields

    def start(name: str, sample: Sample, letters: str) -> str:
        text = comm(name) if with_comm else ""
        if with_pid:
            text += f"{sample.pid:5}/{sample.tid:<5} " if with_tid else f"{sample.pid:5} "
        elif with_tid:
            text += f"{sample.tid:5} "
        if with_cpu:
            text += f"[{sample.cpu:03}] "
        if with_misc:
            text += letters.ljust(6) if len(letters) < 6 else letters + " "
        return text + clock.text(sample.time) if with_time else text

    return start


def misc_letters(misc: int) -> str:
    """Of the cpumode, as perf has it: USER's bit is one of HYPERVISOR's."""
    return "".join(letter for bits, letter in _LEVELS if misc & bits == bits)


class SampleLines:
    """Texts of the samples of one event."""

    def __init__(
        self,
        described: EventDescription,
        fields: frozenset[str],
        name: str,  # padded as all events' are
        frames: Frames,
        clock: Clock,
        options: LineOptions,
        trace: Callable[[bytes], str] | None,
    ) -> None:
        self._frames = frames
        self._misc, self._addr, self._weight = "misc" in fields, "addr" in fields, "weight" in fields
        self._ip, self._phys_addr = "ip" in fields, "phys_addr" in fields
        self._branches = branch_text(fields, frames)
        self._in_block = options.chains and bool(described.attr.sample_type & SampleType.CALLCHAIN) and "ip" in fields
        self._most = options.most_frames
        self._start = start_line(fields, clock, self._in_block)
        self._event = f"{name}: " if "event" in fields else ""
        self._period = "period" in fields
        self._trace = trace if "trace" in fields else None
        attr = described.attr
        self._symbol_of_address = attr.type == PerfType.BREAKPOINT or (
            attr.type == PerfType.SOFTWARE and attr.config in FAULTS
        )
        self._fields = fields
        self._texts: dict[object, str] = {}

    def text(self, sample: Sample, thread: Thread, place: Place) -> str:
        """The line, or the block, with its end."""
        text = self._start(thread.comm, sample, misc_letters(sample.misc) if self._misc else "")
        if self._period:
            text += f"{sample.period:10} "
        text += self._event
        if self._trace is not None and sample.raw:
            text += visible(self._trace(sample.raw))
        if self._addr:
            text += self._address(sample)
        if self._weight:
            text += f"{sample.weight:16}"
        if self._ip:
            text += self._place(sample, place)
        if self._branches is not None:
            text += self._branches(sample)
        if self._phys_addr:
            text += f"{sample.phys_addr:16x}"
        return text + "\n"

    def _address(self, sample: Sample) -> str:
        text = f"{sample.addr:16x}"
        if not self._symbol_of_address:
            return text
        place = self._frames.data(sample)
        return text + self._frames.symbol(place, self._fields)

    def _place(self, sample: Sample, place: Place) -> str:
        texts = self._texts
        if not self._in_block:
            found = texts.get(place)
            if found is None:
                found = f" {place.address:16x}{self._frames.named(place, self._fields)}"
                self._keep(place, found)
            return found
        chain = self._frames.chain(sample)[: self._most]
        found = texts.get(chain)
        if found is None:
            found = "\n" + "".join([self._frame(each) for each in chain])
            self._keep(chain, found)
        return found

    def _frame(self, place: Place) -> str:
        address = place.address if place.in_kernel or not place.path else place.offset
        return f"\t{address:16x}{self._frames.named(place, self._fields)}\n"

    def _keep(self, key: object, text: str) -> None:
        if len(self._texts) >= _MOST_CACHED:
            self._texts.clear()
        self._texts[key] = text


def padded_names(names: Sequence[str]) -> list[str]:
    """As wide as the widest."""
    width = max(map(len, names), default=0)
    return [name.rjust(width) for name in names]
