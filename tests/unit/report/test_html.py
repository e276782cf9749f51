"""What `perfemu html` puts into its page, from recordings made by hand: numbers, names, source, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guests import guest
from perfcore.abi.constants import SampleType
from perfcore.abi.records import Comm
from perfemu import api
from perfemu.cli.main import main
from perfemu.html.metrics import Metric, metrics
from perfemu.html.naming import bare_name, renamed
from perfemu.html.sources import AROUND, _parts, _text
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

ROOT = Path(__file__).resolve().parents[3]
TEXT = ADDRESS + TEXT_OFFSET
MAIN, MIDDLE, LEAF, TWIN = (TEXT + 0x100 * number for number in range(4))
CHAINS = SAMPLE_TYPE | SampleType.CALLCHAIN
DOCUMENT = re.compile(rb'<script type="application/json" id="document">(.*?)</script>', re.DOTALL)


def recording(directory: Path, name: str = "prog", leaf: str = "leaf", **kind: Any) -> Recording:
    """Of a program whose last two functions are called the same."""
    names = ("main", "middle", leaf, leaf)
    symbols = [ElfSymbol(each, 0x100 * number, 0x100) for number, each in enumerate(names)]
    made = Recording([event(**({"sample_type": CHAINS} | kind))])
    directory.mkdir(exist_ok=True)
    made.start(synthetic_elf(directory / name, symbols), 0x1000, name, address=TEXT, pgoff=TEXT_OFFSET)
    return made


def called(made: Recording, *path: int, period: int = 1000, **options: int) -> None:
    """A sample; `path` is outermost first."""
    made.sample(path[-1] + 4, [address + 8 for address in path[-2::-1]], period=period, **options)


def page(directory: Path, *files: Path | str, options: tuple[str, ...] = ()) -> bytes:
    output = directory / "page.html"
    assert main(["html", *map(str, files), "-o", str(output), *options]) == 0
    return output.read_bytes()


def document(contents: bytes) -> dict[str, Any]:
    (found,) = DOCUMENT.findall(contents)
    return dict(json.loads(found))


def told(found: dict[str, Any], number: int = 0, side: str = "new") -> tuple[Counter[str], Counter[str]]:
    """Of an event, the periods of functions as the page's script finds them: their own, and with what they call."""
    strings, depths, of = found["strings"], found["nodes"]["depth"], found["nodes"]["function"]
    paths: list[tuple[int, ...]] = []
    for depth, function in zip(depths, of, strict=True):
        paths.append((*(paths[-1] if paths else ())[:depth], function))
    own, total = Counter[str](), Counter[str]()
    shown = found["events"][number]
    row = 0
    for _, length in shown["tasks"]:
        node = 0
        for _ in range(length):
            node += shown["nodes"][row]
            path = paths[node]
            value = shown[side][row]
            own[strings[found["functions"][path[-1]][0]]] += value
            for name in {strings[found["functions"][function][0]] for function in path}:
                total[name] += value
            row += 1
    assert row == len(shown["nodes"])
    return own, total


def reported(path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[Counter[str], Counter[str]]:
    """The same as `report` has it."""
    capsys.readouterr()
    assert main(["report", "-i", str(path), "--sort", "sym", "--format", "json"]) == 0
    own, total = Counter[str](), Counter[str]()
    (table,) = [each for each in json.loads(capsys.readouterr().out)["events"] if each["name"] == name]
    for row in table["rows"]:
        symbol = row["symbol"].partition("] ")[2]
        own[symbol] += row["period"]
        total[symbol] += row.get("children_period", row["period"])
    return own, total


def test_sums_are_the_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3000 in leaf, of which 1000 through a middle that calls itself; 50 in main itself; periods differ."""
    made = recording(tmp_path)
    called(made, MAIN, MIDDLE, MIDDLE, LEAF, period=1000)
    called(made, MAIN, LEAF, period=2000)
    called(made, MAIN, period=50)
    data = made.write(tmp_path / "perf.data")
    own, total = told(document(page(tmp_path, data)))
    assert own == Counter(leaf=3000, main=50)
    assert total == Counter(leaf=3000, main=3050, middle=1000)
    assert (own, total) == reported(data, "instructions:u", capsys)


def test_exact_counts_are_the_programs_to_the_last_event(tmp_path: Path) -> None:
    """loop_1k retires 2004 instructions on AArch64, 1000 of them branches."""
    data = tmp_path / "perf.data"
    program = guest("loop_1k", "aarch64").path
    api.record(api.Guest([program], core="ideal"), ["instructions", "branches"], output=data, exact=True, capture=True)
    found = document(page(tmp_path, data))
    assert [shown["total"][1] for shown in found["events"]] == [2004, 1000]
    assert [sum(shown["new"]) for shown in found["events"]] == [2004, 1000]
    assert all(shown["exact"] and not shown["chains"] for shown in found["events"])
    assert found["nodes"]["depth"] == [0, 1]  # the file, and _start


def test_threads_and_commands_are_told_apart(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.add(Comm(PID, PID + 1, "prog"))
    called(made, MAIN)
    called(made, MAIN, LEAF, tid=PID + 1, period=500)
    found = document(page(tmp_path, made.write(tmp_path / "perf.data")))
    assert [[found["strings"][comm], pid, tid] for comm, pid, tid in found["tasks"]] == [
        ["prog", PID, PID],
        ["prog", PID, PID + 1],
    ]
    assert found["events"][0]["tasks"] == [[0, 1], [1, 1]]
    assert found["events"][0]["new"] == [1000, 500]


def test_functions_of_one_name_stay_apart(tmp_path: Path) -> None:
    made = recording(tmp_path)
    called(made, LEAF)
    called(made, TWIN, period=10)
    found = document(page(tmp_path, made.write(tmp_path / "perf.data")))
    assert [found["strings"][name] for name, _ in found["functions"]] == ["leaf", "leaf"]
    assert sorted(found["events"][0]["new"]) == [10, 1000]


def test_differences_of_a_renamed_program(tmp_path: Path) -> None:
    """prog_old has become prog_new; leaf is 1000 instead of 700, old_only has vanished, and pids are others."""
    old = recording(tmp_path / "a", "prog_old")
    called(old, MAIN, LEAF, period=700)
    called(old, MAIN, MIDDLE, period=30)
    new = recording(tmp_path / "b", "prog_new")
    called(new, MAIN, LEAF, period=1000)
    called(new, MAIN, TWIN, period=5)
    found = document(page(tmp_path, new.write(tmp_path / "new.data"), old.write(tmp_path / "old.data")))
    (shown,) = found["events"]
    assert shown["compared"]
    assert shown["total"] == [730, 1005] == [sum(shown["old"]), sum(shown["new"])]
    assert len(found["tasks"]) == 1
    assert told(found, side="old")[0] == Counter(leaf=700, middle=30)
    assert told(found)[0] == Counter(leaf=1005, middle=0)
    rows = Counter(zip(shown["old"], shown["new"], strict=True))
    assert rows == Counter([(700, 1000), (30, 0), (0, 5)])
    assert ["taken as the same", "prog_old (old) and prog_new"] in found["facts"]


def test_a_renamed_function_is_the_same(tmp_path: Path) -> None:
    """As diff matches them: it has become another clone of one function, and its file another version."""
    old = recording(tmp_path / "a", "libx.so.1.0", "leaf.constprop.0")
    called(old, MAIN, LEAF, period=700)
    new = recording(tmp_path / "b", "libx.so.1.2", "leaf.isra.0")
    called(new, MAIN, LEAF, period=900)
    found = document(page(tmp_path, new.write(tmp_path / "new.data"), old.write(tmp_path / "old.data")))
    assert list(zip(found["events"][0]["old"], found["events"][0]["new"], strict=True)) == [(700, 900)]
    assert [
        [found["strings"][found["functions"][number][0]], found["strings"][name]] for number, name in found["was"]
    ] == [["leaf.isra.0", "leaf.constprop.0"]]


def test_only_a_lone_name_is_taken_for_another() -> None:
    assert renamed({"libc", "old"}, {"libc", "new"}) == {"old": "new"}
    assert renamed({"a", "b"}, {"c", "d"}) == {}
    assert renamed({"a"}, {"a", "b"}) == {}


HOSTILE = "</script><script>document.title='x'</script><!--\x1b[31m\n\u202e&\"'"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    made = recording(tmp_path, leaf=HOSTILE)
    made.start(tmp_path / "prog", 0x1000, "</title><b>", address=TEXT, pgoff=TEXT_OFFSET)
    called(made, MAIN, LEAF)
    name = tmp_path / "<b>&.data"
    contents = page(tmp_path, made.write(name))
    assert contents.isascii()
    assert contents.count(b"</script>") == 2  # the document's and ours
    assert contents.count(b"<script") == 2
    assert b"<b>" not in contents
    assert b"&lt;b&gt;&amp;.data</title>" in contents
    strings = document(contents)["strings"]
    assert HOSTILE.encode("unicode_escape").decode().replace("\\\\", "\\") in strings
    assert all(text.isprintable() for text in strings)


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    """Its policy names the hashes of what may run, and nothing in it is another file."""
    made = recording(tmp_path)
    called(made, MAIN)
    contents = page(tmp_path, made.write(tmp_path / "perf.data"))
    assert b"default-src 'none'" in contents
    assert not re.search(rb"(src|href)\s*=|@import|url\(|https?:", contents)


def test_bytes_do_not_depend_on_the_run(tmp_path: Path) -> None:
    made = recording(tmp_path)
    for number in range(20):
        called(made, MAIN, *([MIDDLE] * (number % 3)), (LEAF, TWIN)[number % 2], tid=PID + number % 4)
    data = made.write(tmp_path / "perf.data")
    pages = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "perfemu", "html", str(data), "-o", "-"],
            capture_output=True, check=True, cwd=ROOT, env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed},
        )  # fmt: skip
        pages.add(done.stdout)
    assert len(pages) == 1
    assert pages == {page(tmp_path, data)}


def test_source_around_what_was_sampled(tmp_path: Path) -> None:
    text = [f"line {number}" for number in range(1, 101)]
    first = 30 - AROUND
    assert _parts(text, [30]) == [(first, [f"line {number}" for number in range(first, 30 + AROUND + 1)])]
    joined = _parts(text, [30, 30 + 2 * AROUND])  # the lines around them meet
    assert [(start, len(lines)) for start, lines in joined] == [(first, 4 * AROUND + 1)]
    apart = _parts(text, [1, 100, 500])  # there is no line 500
    assert [(start, len(lines)) for start, lines in apart] == [(1, 1 + AROUND), (100 - AROUND, 1 + AROUND)]
    assert _parts(["\tx\x1b\u202e"], [1]) == [(1, ["        x\\x1b\\u202e"])]


@pytest.mark.parametrize("name", ["id_rsa", "shadow", "key.pem", ".c"])
def test_what_is_no_source_is_not_read(tmp_path: Path, name: str) -> None:
    """The recording names the file, and pages are passed on."""
    (tmp_path / name).write_text("secret")
    assert _text(str(tmp_path / name), "") == []


def test_a_pipe_is_no_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.c")
    assert _text(str(tmp_path / "pipe.c"), "") == []


def test_metrics_of_what_there_is() -> None:
    assert metrics(["cycles:u", "L1-dcache-load-misses:u"]) == []
    assert metrics(["cycles:u", "instructions:u"]) == [Metric("IPC", 1, 0, 1)]
    assert metrics(["instructions", "branches", "branch-misses"]) == [
        Metric("branch-misses per 1000 instructions", 2, 0, 1000)
    ]
    arm = metrics(["armv8_pmuv3_0/inst_retired/u", "armv8_pmuv3_0/l1d_cache_refill/", "cpu_cycles"])
    assert [metric.over for metric in arm] == [0, 1]


def test_names_without_modifiers() -> None:
    assert [bare_name(name) for name in ("cycles:u", "cycles", "sched:sched_switch", "cycles:Pu")] == [
        "cycles", "cycles", "sched:sched_switch", "cycles",
    ]  # fmt: skip


def refused(capsys: pytest.CaptureFixture[str], *arguments: Path | str) -> str:
    assert main(["html", *map(str, arguments), "-o", "/nowhere/page.html"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return str(line)


def test_what_cannot_be_shown_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = recording(tmp_path).write(tmp_path / "empty.data")
    made = recording(tmp_path)
    called(made, MAIN)
    data = made.write(tmp_path / "perf.data")
    other = Recording([event("cycles:u")])
    other.sample(MAIN)
    old = other.write(tmp_path / "old.data")
    assert refused(capsys, empty) == f"perfemu: {empty} has no samples, so there is nothing to show"
    assert refused(capsys, data, empty) == f"perfemu: {empty} has no samples, so there is nothing to show"
    assert refused(capsys, data, old) == f"perfemu: {old} has none of {data}'s events (instructions:u), but cycles:u"
    assert "No such file" in refused(capsys, tmp_path / "none.data")
    assert "not a perf.data file" in refused(capsys, tmp_path / "prog")
    assert "cannot write /nowhere/page.html" in refused(capsys, data)


def test_isas_that_differ_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    called(made, MAIN)
    new, old = made.write(tmp_path / "new.data"), made.write(tmp_path / "old.data", architecture="aarch64")
    found = document(page(tmp_path, new, old))
    said = f"perfemu: {new} is of x86_64 and {old} of aarch64: functions are compared by their names"
    assert capsys.readouterr().err.splitlines() == [said]
    assert ["architecture", "x86_64 (old: aarch64)"] in [
        [label, " ".join(text.split())] for label, text in found["facts"]
    ]


def test_cores_that_differ_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for core in ("skylake", "zen5"):
        files.append(tmp_path / f"{core}.data")
        api.record(
            api.Guest([guest("loop_1k", "x86_64").path], core=core), ["instructions"], exact=True, output=files[-1]
        )
    page(tmp_path, *files)
    said = f"perfemu: {files[0]} is of perfemu core skylake and {files[1]} of perfemu core zen5"
    assert capsys.readouterr().err.splitlines() == [said]


def test_an_event_that_old_has_not_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = recording(tmp_path)
    new.events = [*new.events, event("cycles:u", 2, CHAINS)]
    called(new, MAIN)
    called(new, MAIN, number=1)
    old = recording(tmp_path)
    called(old, MAIN, period=1)
    found = document(page(tmp_path, new.write(tmp_path / "new.data"), old.write(tmp_path / "old.data")))
    assert [(shown["name"], shown["compared"]) for shown in found["events"]] == [
        ("instructions:u", True),
        ("cycles:u", False),
    ]
    assert "has no cycles:u: shown without a comparison" in capsys.readouterr().err


def test_an_event_that_has_vanished_is_shown(tmp_path: Path) -> None:
    kinds = [event("instructions:u", 1, CHAINS), event("branch-misses:u", 2, CHAINS)]
    files = []
    for name, missed in (("new", False), ("old", True)):
        made = recording(tmp_path / name)
        made.events = kinds
        called(made, MAIN)
        if missed:
            called(made, MAIN, number=1)
        files.append(made.write(tmp_path / f"{name}.data"))
    found = document(page(tmp_path, *files))
    assert [(shown["name"], shown["total"]) for shown in found["events"]] == [
        ("instructions:u", [1000, 1000]),
        ("branch-misses:u", [1000, 0]),
    ]


def test_a_recording_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    called(made, MAIN)
    data = made.write(tmp_path / "perf.data")
    assert main(["html", str(data), "-o", str(data)]) == 129
    assert capsys.readouterr().err == f"perfemu: html -o {data}: that is the recording itself\n"
    assert data.read_bytes()[:8] == b"PERFILE2"
