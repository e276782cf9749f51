"""frames: places of samples and callchains, and the names that perf script gives them."""

from __future__ import annotations

from perfcore.abi.constants import Misc, PerfContext
from perfcore.abi.sample import Sample
from perfemu.profile.places import UNKNOWN, Place
from perfemu.profile.tasks import Tasks
from perfemu.symbols.jit import JIT_MAP
from perfemu.visible import visible

_CONTEXT_MAX = int(PerfContext.MAX)
_CONTEXTS = {int(PerfContext.KERNEL): True, int(PerfContext.USER): False}
_CPUMODE_MASK, _KERNEL = int(Misc.CPUMODE_MASK), int(Misc.KERNEL)


def in_kernel(sample: Sample) -> bool:
    return sample.misc & _CPUMODE_MASK == _KERNEL


class Frames:
    """Resolves addresses by what is known of tasks at this time."""

    def __init__(self, tasks: Tasks, full_source_paths: bool = False) -> None:
        self._tasks = tasks
        self._full_source_paths = full_source_paths

    def data(self, sample: Sample) -> Place:
        """Of the address that the sample tells."""
        return self._tasks.resolve(sample.pid, sample.addr, in_kernel=bool(sample.addr >> 63))

    def branch(self, sample: Sample, address: int) -> Place:
        """Of a branch before the sample, which perf takes for one at its level."""
        return self._tasks.resolve(sample.pid, address, in_kernel(sample))

    def chain(self, sample: Sample) -> tuple[Place, ...]:
        """Innermost first."""
        addresses = tuple(sample.callchain)
        chains = self._tasks.space(sample.pid).chains
        found = chains.get(addresses)
        if found is None:
            found = chains[addresses] = tuple(self._resolved(sample, addresses))
        return found

    def _resolved(self, sample: Sample, addresses: tuple[int, ...]) -> list[Place]:
        kernel = in_kernel(sample)
        places = []
        for address in addresses:
            if address >= _CONTEXT_MAX:
                kernel = _CONTEXTS.get(address, kernel)
            else:
                places.append(self._tasks.resolve(sample.pid, address, kernel))
        return places

    def symbol(self, place: Place, fields: frozenset[str]) -> str:
        """`` name+0x12 (file)``, as far as it is wanted."""
        text = ""
        if "sym" in fields:
            text = f" {place.symbol.shown}" if place.symbol else f" {UNKNOWN}"
            if "symoff" in fields and place.symbol:
                text += f"+{place.offset - place.symbol.start:#x}"
        return f"{text} ({file_of(place)})" if "dso" in fields else text

    def named(self, place: Place, fields: frozenset[str]) -> str:
        """The same, and the source line below it."""
        text = self.symbol(place, fields)
        if "srcline" not in fields or not place.path:
            return text
        return f"{text}\n  {self._source_line(place)}"

    def _source_line(self, place: Place) -> str:
        found = place.file.line(place.offset) if place.file else None
        if found:
            return f"{visible(found[0])}:{found[1]}"
        name = file_of(place) if place.path.startswith("[") else place.file_name
        if place.symbol:
            return f"{place.symbol.shown}+{place.offset - place.symbol.start:#x}"
        return f"{name}[{place.offset:x}]"


def file_of(place: Place) -> str:
    """perf's name for it: the path."""
    if not place.path:
        return UNKNOWN
    if JIT_MAP.fullmatch(place.path):
        return place.path
    return visible(place.path)
