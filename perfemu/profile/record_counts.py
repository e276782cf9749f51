"""record_counts: how many records of each kind a file has, as perf report --stats prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.records import UserRecord
from perfemu.profile.event_names import event_name
from perfemu.visible import visible

_NAMES = {int(kind): kind.name for kind in RecordType}
_NAMES |= {int(kind): kind.name.removeprefix("HEADER_") for kind in UserRecord}


def record_count_lines(file: PerfDataFile) -> Iterator[str]:
    """Of everything in the file, whatever is chosen to be reported. Raises PerfDataError."""
    kinds, samples = Counter[int](), Counter[int]()
    for record in file.records():
        kinds[record.type] += 1
        if record.type == RecordType.SAMPLE:
            samples[file.event_number(record)] += 1
    total = kinds.total()
    yield from ("", "Aggregated stats:", _line("TOTAL", total))
    for kind, count in sorted(kinds.items()):
        yield f"{_line(_NAMES.get(kind, f'type {kind}'), count)}  ({100.0 * count / total:4.1f}%)"
    for number, count in sorted(samples.items()):
        event = file.events[number]
        yield f"{visible(event.name) or event_name(event.attr)} stats:"
        yield _line("SAMPLE", count)


def _line(name: str, count: int) -> str:
    return f"{name:>16} events: {count:10}"
