"""perfemu annotate: counts of instructions and lines are stat's; layout; what is refused, and how."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import perfemu as api
import require
from emulator.linux.process.elf import EM_AARCH64, EM_X86_64
from end_to_end.command import complaint, perfemu
from guests import ISAS, guest
from perfcore.perfdata.records import BuildId
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.annotation.disassembly import instructions
from perfemu.annotation.sources import SourceTexts
from perfemu.annotation.stdio import Layout, function_lines
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import Recording, event, features

TEXT = ADDRESS + TEXT_OFFSET
EVENTS = ["instructions", "branches", "cycles"]


@pytest.mark.parametrize("isa", ISAS)
def test_exact_counts_of_all_functions_and_the_rest_are_stats(isa: str, tmp_path: Path) -> None:
    """To the last event: over instructions, over lines, and in the sums that the command prints."""
    program, data = guest("sort", isa).path, tmp_path / "data"
    perfemu("record", "-q", "--exact", "-e", ",".join(EVENTS), "-o", data, program)
    counted = api.stat(api.Guest([program], core="ideal"), EVENTS, capture=True)
    done = perfemu("annotate", "-i", data, "--json")
    functions = json.loads(done.stdout)
    for number, (name, count) in enumerate(counted.items()):
        assert [function["events"][number]["name"] for function in functions] == [name] * len(functions)
        assert all(function["events"][number]["exact"] for function in functions)
        assert sum(function["events"][number]["count"] for function in functions) == count
        for part in ("instructions", "lines"):
            assert sum(row["counts"][number] for each in functions for row in each[part]) == count
    said = perfemu("annotate", "-i", data).stdout.decode()
    instructions = counted["instructions"]
    assert f"# instructions:u: {instructions:,}, of which {instructions:,} in {len(functions)} functions" in said


def test_what_has_no_symbol_is_told(tmp_path: Path) -> None:
    made = _by_hand(tmp_path)
    path = made.write(tmp_path / "data")
    said = perfemu("annotate", "-i", path).stdout.decode()
    assert "# instructions:u: 4,000, of which 3,000 in 1 functions and 1,000 in code without symbols" in said


def test_the_loop_is_counted_by_instruction(tmp_path: Path) -> None:
    """guest_programs/loop_1k/aarch64.S: mov once, subs and b.ne 1000 times each, then mov, mov, svc once."""
    data = tmp_path / "data"
    api.record(api.Guest([guest("loop_1k", "aarch64").path], core="ideal"), EVENTS[:2], exact=True, output=data)
    function = api.annotate(data, "_start")
    assert function.events == ("instructions:u", "branches:u")
    assert function.counts == {"instructions:u": 2004, "branches:u": 1000}
    assert [row.counts for row in function.instructions] == [
        (1, 0), (1000, 0), (1000, 1000), (1, 0), (1, 0), (1, 0)
    ]  # fmt: skip
    assert function.instructions[2].text.startswith("b.ne")
    assert sum(counts["instructions:u"] for counts in function.lines.values()) == 2004


def _by_hand(directory: Path, build_id: bytes = b"") -> Recording:
    """Two samples at the third byte of leaf, one at its last, one behind all symbols."""
    symbols = [ElfSymbol("main", 0, 0x100), ElfSymbol("leaf", 0x100, 0x10)]
    made = Recording([event()])
    program = synthetic_elf(directory / "prog", symbols, build_id=build_id)
    made.start(program, 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    for offset in (0x102, 0x102, 0x10F, 0x300):
        made.sample(TEXT + offset)
    return made


def test_layout_is_perfs(tmp_path: Path) -> None:
    data = _by_hand(tmp_path).write(tmp_path / "data")
    lines = perfemu("annotate", "-i", data, "leaf").stdout.decode().splitlines()
    assert (
        lines[0]
        == " Percent |\tSource code & Disassembly of prog for instructions:u (3 samples, percent: local period)"
    )
    shown = [line for line in lines if re.search(r"[1-9]\.", line.partition(":")[0]) or "100.00" in line]
    assert shown == ["   66.67 :   401102: nop", "   33.33 :   40110f: nop"]
    numbers = perfemu("annotate", "-i", data, "-n", "--asm-raw", "leaf").stdout.decode().splitlines()
    assert "       2 :   401102: 90                      nop" in numbers
    whole = perfemu("annotate", "-i", data, "--percent-type", "global-hits", "leaf").stdout.decode()
    assert "   50.00 :   401102: nop" in whole


def test_nothing_is_wider_than_the_terminal(tmp_path: Path) -> None:
    data = _by_hand(tmp_path).write(tmp_path / "data")
    function = api.annotate(data, "leaf")
    for line in function_lines(function, Layout(width=40, colour=True)):
        assert len(re.sub(r"\033\[\d*m", "", line)) <= 40
    assert any("\033[31m   66.67\033[m" in line for line in function_lines(function, Layout(colour=True)))


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    data = _by_hand(tmp_path).write(tmp_path / "data")
    stripped = Recording([event()])
    stripped.start(synthetic_elf(tmp_path / "stripped"), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    stripped.sample(TEXT)
    without = stripped.write(tmp_path / "without")
    empty = Recording([event()]).write(tmp_path / "empty")
    for options, said in (
        ((data, "laef"), "no function 'laef' has samples; did you mean leaf?"),
        ((data, "main"), f"no sample is in main of {tmp_path}/prog"),
        ((data, "-d", "libc.so.6", "leaf"), "no function of libc.so.6 has samples; there are files prog"),
        ((without,), f"no sample is in a function that has a name; no symbols in {tmp_path}/stripped"),
        ((data, "leaf", "main"), "one function at a time"),
        ((data, "leaf", "-C", "0"), "does not say on which CPU"),
        ((data, "leaf", "--prefix-strip", "1"), "--prefix-strip needs --prefix"),
        ((data, "--stdio2"), "is not modelled yet"),
    ):
        assert said in complaint(perfemu("annotate", "-i", *options))
    assert "has no samples" in perfemu("annotate", "-i", empty).stderr.decode()


def test_a_binary_that_has_changed_is_named(tmp_path: Path) -> None:
    made = _by_hand(tmp_path, build_id=bytes(range(20)))
    told = features()
    told.build_ids = (BuildId(str(tmp_path / "prog"), bytes(20)[:-1] + b"\1"),)
    path = tmp_path / "data"
    with PerfDataWriter(path, made.events, told) as writer:
        writer.write(b"".join(made.records))
    said = perfemu("annotate", "-i", path, "leaf").stderr.decode()
    assert f"{tmp_path}/prog: build id {bytes(range(20)).hex()} is not the recording's" in said
    with pytest.raises(api.PerfemuError, match="is not the recording's"):
        api.annotate(path, "leaf")


def test_source_lines_are_found_where_prefix_says(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "main.c").write_text("first\n\tsecond\x1b\n")
    texts = SourceTexts(prefix=str(tmp_path), strip=2)
    assert texts.line("/build/of/deep/main.c", 2) == "        second\\x1b"
    assert texts.line("/build/of/deep/main.c", 3) in (None, "")
    assert texts.line("/build/of/deep/other.c", 1) is None
    assert SourceTexts(symfs=str(tmp_path)).line("/deep/main.c", 1) == "first"


def test_code_that_is_no_instruction_is_data() -> None:
    rows = list(instructions(bytes.fromhex("06 c3"), 0x10, EM_X86_64, lambda _: ""))
    assert [(row.address, row.size) for row in rows] == [(0x10, 1), (0x11, 1)]
    branch = next(instructions(bytes.fromhex("02 00 00 14"), 0x1000, EM_AARCH64, lambda address: f"f+{address:#x}"))
    assert branch.text == "b      1008 <f+0x1008>"


@pytest.mark.parametrize("isa", ISAS)
def test_source_stands_above_its_instructions(isa: str, tmp_path: Path) -> None:
    compiler = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}[isa]
    package = {"x86_64": "gcc", "aarch64": "gcc-aarch64-linux-gnu"}[isa]
    if isa == "x86_64":
        package = "gcc"
    tool = require.command(compiler, package=package)
    (tmp_path / "loop.c").write_text(
        "void _start(void) {\n  for (volatile int i = 0; i < 9; i++);\n  for (;;) *(volatile int *)0;\n}\n"
    )
    built = [tool, "-g", "-O1", "-nostdlib", "-static", "-ffreestanding", "-o", tmp_path / "loop", tmp_path / "loop.c"]
    subprocess.run(built, check=True)
    perfemu("record", "-q", "--exact", "-e", "instructions", "-o", tmp_path / "data", tmp_path / "loop")
    lines = perfemu("annotate", "-i", tmp_path / "data", "_start").stdout.decode().splitlines()
    assert any(line.endswith("  for (volatile int i = 0; i < 9; i++);") and " : 2 " in line for line in lines)
