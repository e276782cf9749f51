"""--from-symbol and --to-symbol: what a function and all that it calls count, and nothing before, between or behind."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import require
from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import ISAS, guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu import api
from perfemu.errors import PerfemuError, UsageError
from perfemu.symbols.elf import ElfFile

SOURCE = Path(__file__).with_name("regions.c")
MODELLED = {"aarch64": "neoverse-n1", "x86_64": "skylake"}
WORK = 3  # instructions


@pytest.fixture(scope="module", params=ISAS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, request.param, tmp_path_factory.mktemp(request.param) / "regions")


def isa_of(program: Path) -> str:
    return next(isa for isa in ISAS if program.parent.name.startswith(isa))


def counted(
    program: Path, *arguments: object, from_symbol: str | None = "work", event: str = "instructions",
    core: str = "ideal", **options: Any,
) -> int:  # fmt: skip
    run = api.Guest([program, *map(str, arguments)], core=core)
    return api.stat(run, [f"{event}:u"], from_symbol=from_symbol, capture=True, **options)[event]


def test_several_entries_add_up(program: Path) -> None:
    assert counted(program, "calls", 1) == WORK
    assert counted(program, "calls", 1000) == 1000 * WORK


def test_a_recursion_is_counted_once(program: Path) -> None:
    # each call above the bottom: test, branch, decrement, call, return; and on aarch64 the frame: a store, a load
    above, bottom = {"aarch64": (6, 4), "x86_64": (5, 3)}[isa_of(program)]
    assert counted(program, "countdown", 10, from_symbol="countdown") == 10 * above + bottom


def test_a_jump_to_the_entry_is_no_entry(program: Path) -> None:
    # aarch64: cbz, sub, b each time, and cbz, nop, ret; x86-64: test, jz, dec, jmp, and test, jz, ret
    each = {"aarch64": 3, "x86_64": 4}[isa_of(program)]
    assert counted(program, "tail", 10, from_symbol="tail") == 10 * each + 3


@pytest.mark.parametrize("isa", ISAS)
def test_functions_of_a_guest_program(isa: str) -> None:
    """By the sums of guest_programs/recursion/expected.toml."""
    descend, leaf = {"aarch64": (807, 2), "x86_64": (908, 4)}[isa]
    path = guest("recursion", isa).path
    assert counted(path, from_symbol="descend") == descend + leaf
    assert counted(path, from_symbol="leaf") == leaf


@pytest.mark.parametrize("cpus", [1, 2])
def test_regions_are_of_each_thread(program: Path, cpus: int) -> None:
    """5 calls by the first thread, 400 and 800 by the others."""
    result = api.stat(
        api.Guest([program, "threads", "400"], core="ideal", cpus=cpus, quantum=100),
        ["instructions:u"],
        from_symbol="work",
        per_thread=True,
    )
    assert sorted(part["instructions"] for part in result.parts.values()) == [5 * WORK, 400 * WORK, 800 * WORK]


def test_from_one_function_to_another(program: Path) -> None:
    # `work`, two NOPs, the call of `other`
    assert counted(program, "pair", 7, to_symbol="other") == 7 * (WORK + 3)


def test_a_child_of_a_region_is_inside(program: Path) -> None:
    # up to and with the system call, then RET in both
    call = {"aarch64": 7, "x86_64": 2}[isa_of(program)]
    assert counted(program, "fork", from_symbol="forker") == call + 2


def test_another_program_begins_outside(program: Path) -> None:
    """main leaves for another program, whose main calls `work` 5 times."""
    assert counted(program, "exec", 5) == 5 * WORK
    # main of both, with execve's wrapper: what comes before the second main is much more
    whole = counted(program, "calls", 5, from_symbol="main")
    assert whole < counted(program, "exec", 5, from_symbol="main") < whole + 1000
    assert counted(program, "calls", 5, from_symbol="_start") > 10 * whole


@pytest.mark.parametrize("rounds", [10, 10_000])
def test_a_longjmp_ends_a_region_where_it_lands(program: Path, rounds: int) -> None:
    """What main does behind it counts as little for 10,000 rounds as for 10."""
    options = ("-x,", "-e", "instructions", "--from-symbol", "jumping")
    done = perfemu("stat", *options, program, "jump", str(rounds))
    said, line = done.stderr.decode().splitlines()
    assert said == (
        "perfemu: region from jumping: left 1 times by longjmp or an exception: it ended where the stack pointer told"
    )
    assert 10 < int(line.split(",")[0]) < 100


def exact(program: Path, output: Path, *arguments: str, event: str, core: str, **options: Any) -> Counter[str]:
    """Function -> how many events are attributed to it."""
    run = api.Guest([program, *arguments], core=core)
    api.record(run, [event], output=output, exact=True, capture=True, **options)
    counts = Counter[str]()
    with ElfFile(str(program)) as elf, open_perf_data(str(output)) as file:
        table = elf.symbol_table()
        for raw in file.records():
            if raw.type == RecordType.SAMPLE:
                sample = file.decode_sample(raw, 0)
                symbol = table.find(elf.offset_of(sample.ip) or 0)
                counts[symbol.name if symbol else ""] += sample.period
    return counts


@pytest.mark.parametrize("core", ["ideal", "modelled"])
@pytest.mark.parametrize("event", ["instructions", "cycles"])
@pytest.mark.parametrize("isa", ISAS)
def test_a_region_is_what_is_attributed_to_its_functions(isa: str, core: str, event: str, tmp_path: Path) -> None:
    """And so what is left is what is attributed to all others: together they are the total."""
    path = guest("recursion", isa).path
    options = {"core": MODELLED[isa] if core == "modelled" else core}
    whole = exact(path, tmp_path / "whole", event=event, **options)
    assert sum(whole.values()) == counted(path, event=event, from_symbol=None, **options)
    inside = counted(path, event=event, from_symbol="descend", **options)
    assert inside == whole["descend"] + whole["leaf"]
    assert exact(path, tmp_path / "region", event=event, from_symbol="descend", **options) == {
        name: count for name, count in whole.items() if name != "_start"
    }


def test_samples_are_of_the_region(program: Path, tmp_path: Path) -> None:
    recording = api.record(
        api.Guest([program, "calls", "1000"], core="ideal"),
        ["instructions:u"],
        period=100,
        output=tmp_path / "data",
        from_symbol="work",
    )
    assert recording.sample_count == 1000 * WORK // 100


def test_regions_change_nothing(program: Path) -> None:
    core = MODELLED[isa_of(program)]
    plain = api.stat(api.Guest([program, "threads", "50"], core=core, cpus=2), ["instructions:u"])
    within = api.stat(api.Guest([program, "threads", "50"], core=core, cpus=2), ["instructions:u"], from_symbol="work")
    assert within["instructions"] == (5 + 50 + 100) * WORK
    assert within.elapsed_ns == plain.elapsed_ns


LIBRARY = "int work(int x) { return x + 1; }\n"
LOADER = """
#include <dlfcn.h>
int work(int x) { return x; }
int main(int argc, char **argv) {
    int (*function)(int) = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "work");
    return function(function(1)) + work(0) != 3;
}
"""


def test_a_library_that_comes_later_and_a_position_independent_program(tmp_path: Path) -> None:
    """`work` is in both: the loader's is called once, the library's twice."""
    compiler = require.command("gcc", package="gcc")
    library, loader = tmp_path / "libwork.so", tmp_path / "loader"
    for text, output, flags in ((LIBRARY, library, ["-shared", "-fPIC"]), (LOADER, loader, ["-pie", "-fno-inline"])):
        source = tmp_path / f"{output.name}.c"
        source.write_text(text)
        subprocess.run([compiler, "-O1", *flags, "-o", output, source, "-ldl"], check=True)
    length = {"libwork.so": 2, "loader": 2}  # lea, ret; mov, ret
    assert counted(loader, library, from_symbol="libwork.so:work") == 2 * length["libwork.so"]
    assert counted(loader, library, from_symbol="loader:work") == length["loader"]
    done = perfemu("stat", "-x,", "-e", "instructions:u", "--from-symbol", "work", loader, library)
    said, line = done.stderr.decode().splitlines()
    assert said == "perfemu: region from work: 2 functions: libwork.so:work, loader:work"
    assert int(line.split(",")[0]) == 6


CLASSES = """
#include <cstdio>
namespace shapes {
struct Square { int side; int area() const __attribute__((noinline)); };
int Square::area() const { if (side < 0) throw side; return side * side; }
}
int main(int argc, char **) {
    shapes::Square good{argc + 1}, bad{-argc};
    int sum = good.area();
    try { sum += bad.area(); } catch (int) { for (volatile int i = 0; i < 100000; i++) {} }
    return sum != 4;
}
"""


def test_names_mangled_or_not_and_exceptions(tmp_path: Path) -> None:
    compiler = require.command("g++", package="g++")
    (tmp_path / "classes.cpp").write_text(CLASSES)
    subprocess.run([compiler, "-O1", "-o", tmp_path / "classes", tmp_path / "classes.cpp"], check=True)
    shown = counted(tmp_path / "classes", from_symbol="shapes::Square::area")
    assert shown == counted(tmp_path / "classes", from_symbol="_ZNK6shapes6Square4areaEv")
    assert 1000 < shown < 200_000  # with the search for who catches, without the 400,000 behind that


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"from_symbol": "wrok"},
            "region from wrok: no file that the program has mapped has such a function; near: work",
        ),
        ({"from_symbol": "libwork.so:work"}, "the program has mapped no file libwork.so; there are regions"),
        ({"from_symbol": "jumping"}, "region from jumping: never reached: the program does not call regions:jumping"),
        (
            {"from_symbol": "work", "to_symbol": "other"},
            "region to other: never reached from work, so that the region did not end",
        ),
    ],
)
def test_a_region_that_is_never_reached_is_an_error(program: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(PerfemuError, match=message.replace("(", r"\(")):
        counted(program, "calls", 3, **options)


def test_what_the_command_says_of_a_region_that_is_not_there(program: Path, tmp_path: Path) -> None:
    for command in ("stat", "record"):
        done = perfemu(command, "--from-symbol", "wrok", program, cwd=tmp_path)
        assert done.returncode == 1
        assert complaint(done).startswith(
            "region from wrok: no file that the program has mapped has such a function; near:"
        )
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_asked(program: Path) -> None:
    with pytest.raises(UsageError, match="--to-symbol other: a region begins with --from-symbol"):
        counted(program, from_symbol=None, to_symbol="other")
    with pytest.raises(UsageError, match="--from-symbol work: regions are of the program's threads: not with -a or -C"):
        counted(program, all_cpus=True)
