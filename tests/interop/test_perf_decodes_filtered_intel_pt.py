"""record --filter of intel_pt: perf lists what has retired there, and nothing else."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from emulator.probes import Probe
from intel_pt_truth import built, instructions, perfs, retired, session_of, without_repeats
from perfemu.errors import PerfemuError
from perfemu.events.attributes import Sampling
from perfemu.events.changes import Changes, Filter
from perfemu.recording import record
from real_perf import RealPerf

Ranges = list[tuple[int, int]]
LOOP = 0xF  # of inner, from its beginning
BR_TAKEN = 1 << Probe.BR_TAKEN


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not position-independent: what is at an offset of the file is at that much behind 0x400000."""
    return built("places", tmp_path_factory.mktemp("intel_pt"), "-no-pie")


def functions(program: Path) -> dict[str, tuple[int, int]]:
    """First address and the one behind the last, as pyelftools reads them."""
    with program.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return {symbol.name: (symbol["st_value"], symbol["st_value"] + symbol["st_size"]) for symbol in symbols}


Retired = list[tuple[int, bool]]
"""Addresses; and whether there was a branch that was taken."""


def traced(program: Path, text: str, file: Path, cpus: int = 1) -> list[Retired]:
    """Record it with this filter. By CPU: each instruction that has retired."""
    session = session_of([program], "skylake", cpus)
    recorders = retired(session)
    changes = Changes(filters=(Filter(0, text),))
    record(session, ["intel_pt//u"], Sampling(), str(file), changes=changes)
    return [[(op[0], bool(op[9] & BR_TAKEN)) for op in recorder.take_selected()] for recorder in recorders]


def within(retired: Retired, ranges: Ranges) -> list[int]:
    """What the unit traces: from a branch into a range on until one that leads elsewhere. Intel SDM volume 3, "Filter
    Enable (FilterEn)"."""
    found, traces = [], False
    lands = True
    for address, branches in retired:
        if lands:
            traces = any(first <= address < end for first, end in ranges)
        if traces:
            found.append(address)
        lands = branches
    return found


FILTERS: dict[str, tuple[str, Callable[[dict[str, tuple[int, int]]], Ranges]]] = {
    "a function": ("filter inner @ {0}", lambda of: [of["inner"]]),
    "two functions": ("filter outer @ {0}, filter thread @ {0}", lambda of: [of["outer"], of["thread"]]),
    "from one to another": ("filter inner / outer @ {0}", lambda of: [(of["inner"][0], of["outer"][1])]),
    "all": ("filter * @ {0}", lambda of: [(0x401000, 0x402000)]),
    "a part of a loop": ("filter {1:#x}/{2} @ {0}", lambda of: [part_of_loop(of)]),
}


def part_of_loop(of: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Of inner, as gcc -O1 makes it: from where its jump leads back to, where the first round comes without a branch,
    up to the add, behind which the loop goes on."""
    first, _ = of["inner"]
    return first + LOOP, first + LOOP + 9


@pytest.mark.parametrize("what", FILTERS)
@pytest.mark.parametrize("cpus", [1, 4])
def test_what_has_retired_there(tmp_path: Path, places: Path, what: str, cpus: int) -> None:
    text, ranges_of = FILTERS[what]
    ranges = ranges_of(functions(places))
    first, end = ranges[0]
    file = tmp_path / "perf.data"
    truth = traced(places, text.format(places, first - 0x400000, end - first), file, cpus)
    wanted = [without_repeats(within(of_cpu, ranges)) for of_cpu in truth]
    assert sum(map(len, wanted)) > 300
    for perf in perfs(tmp_path):
        assert [without_repeats(found) for found in instructions(perf, file, cpus)] == wanted


@pytest.mark.parametrize("cpus", [1, 4])
def test_a_library_that_is_mapped_meanwhile(tmp_path: Path, places: Path, cpus: int) -> None:
    """Ten calls of cos(), which is where the one file is executed that was not there at the beginning."""
    file = tmp_path / "perf.data"
    library = "/lib/x86_64-linux-gnu/libm.so.6"
    truth = traced(places, f"filter * @ {library}", file, cpus)
    for perf in perfs(tmp_path):
        found = instructions(perf, file, cpus)
        assert sum(map(len, found)) > 200
        lines = perf.run("script", "-i", file, "--itrace=i1ie", "-F", "ip,sym,dso").splitlines()
        assert {line.split()[-1] for line in lines} == {f"({Path(library).resolve()})"}
        [mapped] = re.findall(rf"\[(0x\w+)\(\w+\) @ (0x\w+) .*: r-xp {Path(library).resolve()}", mappings(perf, file))
        start, offset = (int(word, 16) for word in mapped)
        places_of = exported(Path(library))
        exports = min(places_of)[0] + start - offset, max(end for _, end in places_of) + start - offset
        assert [within(of_cpu, [exports]) for of_cpu in truth] == found


def mappings(perf: RealPerf, file: Path) -> str:
    return perf.run("script", "-i", file, "--show-mmap-events", "--itrace=x")


def exported(library: Path) -> Ranges:
    """Its functions, all that the stripped file names, at offsets that are their addresses."""
    with library.open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".dynsym").iter_symbols())
    kinds = ("STT_FUNC", "STT_LOOS")  # which here are indirect functions
    here = [each for each in symbols if each["st_info"]["type"] in kinds and each["st_shndx"] != "SHN_UNDEF"]
    return [(each["st_value"], each["st_value"] + each["st_size"]) for each in here]


def test_a_trace_stops_where_a_range_is_entered(tmp_path: Path, places: Path) -> None:
    """Until then all is there; behind it nothing before the unit is enabled anew, as another task has its turn."""
    file = tmp_path / "perf.data"
    [truth] = traced(places, f"tracestop inner @ {places}", file)
    first, end = functions(places)["inner"]
    addresses = [address for address, _ in truth]
    entered = addresses.index(first)
    for perf in perfs(tmp_path):
        [found] = instructions(perf, file)
        assert without_repeats(found)[: len(wanted := without_repeats(addresses[:entered]))] == wanted
        assert not [address for address in found if first <= address < end]
        assert len(found) < len(truth)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("start main @ {0}", "it filters by ranges alone"),
        ("stop 0x1000 @ {0}", "it filters by ranges alone"),
        ("filter 0x1000 @ {0}", "has no size"),
        ("filter outer / inner @ {0}", "ends before it begins"),
        ("filter nowhere @ {0}", "has no function nowhere"),
        ("filter main", "without @ FILE it is of the kernel"),
        ("filter main @ /nowhere", "is not a file"),
        ("trace main @ {0}", "'trace' is none of filter, start, stop, tracestop"),
        ("main", "is no address filter"),
        (" , ", "there is none in it"),
        ("filter inner @ {0}, filter outer @ {0}, filter main @ {0}", "3 filters: it has 2 ranges"),
    ],
)
def test_what_cannot_be(tmp_path: Path, places: Path, text: str, why: str) -> None:
    with pytest.raises(PerfemuError, match=re.escape(why)):
        traced(places, text.format(places), tmp_path / "perf.data")


def test_a_guest_says_so_itself(tmp_path: Path) -> None:
    """Each by itself, and the last takes all before away. Then an event of a CPU can have the unit, which a task's has
    left, but no filter of a file."""
    program = built("filters_itself", tmp_path)
    texts = {
        f"filter 0x1000/0x100@{program}": 0,
        f"filter 0x1000/0x100@{program}, stop 0/1@{program}": 0,
        f"start 0x1000@{program}": errno.EOPNOTSUPP,
        f"filter 0x1000@{program}": errno.EINVAL,
        "filter 0x1000/0x100@/nowhere": errno.ENOENT,
        f"filter 1/1@{program},filter 1/1@{program},filter 1/1@{program}": errno.EOPNOTSUPP,
        "": 0,
    }
    command = [sys.executable, "-m", "perfemu", "run", "--core", "skylake", program, *texts]
    said = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert [int(line) for line in said.split()] == [*texts.values(), 0, errno.EOPNOTSUPP]
