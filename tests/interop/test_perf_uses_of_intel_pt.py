"""What perf makes of our recordings of intel_pt beside lists of instructions.

That is branches, calls, call chains, last branches, the bytes of instructions, quick decoding, and files with samples
in the trace's place. Each is judged by what the core's own listeners heard of.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import require
from guests import guest
from intel_pt_truth import Truth, built, instructions, perfs, traced

_CALLS, _RETURNS = {4, 5}, {6}  # kinds of branches, by `RetirementRecorder.take_branches`
_FLAGS = {1: "jcc", 2: "jmp", 3: "jmp", 4: "call", 5: "call", 6: "return"}
_INDIRECT = {3, 5}
_ENTRIES = 64  # of branch stacks, unless perf is told otherwise


@pytest.fixture(scope="module")
def many_ways(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """With threads, a child, signals, longjmp and faults."""
    folder = tmp_path_factory.mktemp("intel_pt")
    return traced(built("many_ways", folder), folder / "perf.data")


@pytest.fixture(scope="module")
def recursion(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """102 calls deep: returns are compressed, and are not where more than the unit remembers are open."""
    return traced(guest("recursion", "x86_64").path, tmp_path_factory.mktemp("intel_pt") / "perf.data")


@pytest.fixture(scope="module")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return traced(guest("branch_patterns", "x86_64").path, tmp_path_factory.mktemp("intel_pt") / "perf.data")


@pytest.mark.parametrize(
    ("options", "kinds"), [("b", set(_FLAGS)), ("c", _CALLS), ("r", _RETURNS), ("cr", _CALLS | _RETURNS)]
)
def test_branches_calls_and_returns(tmp_path: Path, many_ways: Truth, options: str, kinds: set[int]) -> None:
    """Each, in that order, and what kind it is. What leads out of the trace or into it has a side that is 0."""
    truth = [(each.source, each.target, _FLAGS[each.kind]) for each in many_ways.branches if each.taken]
    names = {_FLAGS[kind] for kind in kinds}
    for perf in perfs(tmp_path):
        found = []
        text = perf.run("script", "-i", many_ways.file, f"--itrace={options}e", "-F", "flags,ip,addr")
        for line in text.splitlines():
            *flags, source, _, target = line.split()
            if int(source, 16) and int(target, 16):
                found.append((int(source, 16), int(target, 16), *flags))
            else:
                assert set(flags) & {"strt", "end"}
        assert found == [each for each in truth if each[2] in names]
        assert len(found) > 4000


def test_call_chains(tmp_path: Path, recursion: Truth) -> None:
    """Of each instruction, by names and offsets: where it is, and where each call that is open returns to."""
    starts = _functions(guest("recursion", "x86_64").path)
    expected, returns = [], []
    following = dict(pairwise(sorted(_lengths(guest("recursion", "x86_64").path))))
    for address, branch in recursion.steps():
        expected.append([_symbol(starts, each) for each in (address, *reversed(returns))])
        if branch and branch.kind in _CALLS:
            returns.append(following[address])
        elif branch and branch.kind in _RETURNS:
            assert returns.pop() == branch.target
    assert max(map(len, expected)) == 103
    for perf in perfs(tmp_path):
        text = perf.run("script", "-i", recursion.file, "--itrace=i1ig1024e", "-F", "ip,sym,symoff")
        samples = [part.split()[1::2] for part in re.split(r"\n\s*\n", text)]
        found = [sample for sample in samples if sample]
        assert found == expected


def test_calls_by_their_depth(tmp_path: Path, recursion: Truth) -> None:
    """`--call-trace`: each call, indented by how many are open; a last one, SYSCALL, leads where there are no names."""
    names = ["_start", *["descend"] * 101, "leaf"]
    expected = [" " * 4 * depth + name for depth, name in enumerate(names)] + [""]
    for perf in perfs(tmp_path):
        lines = perf.run("script", "-i", recursion.file, "--call-trace").splitlines()
        found = [line.split("\t", 1)[1].rstrip() for line in lines if "\t" in line]
        assert found == expected


@pytest.mark.parametrize(("options", "entries"), [("i1il", _ENTRIES), ("i1il8", 8)])
@pytest.mark.parametrize("program", ["recursion", "patterns"])
def test_last_branches(
    tmp_path: Path, program: str, options: str, entries: int, request: pytest.FixtureRequest
) -> None:
    """Of each instruction, those that were taken before it, the latest first; the trace's ends are entries, too."""
    truth: Truth = request.getfixturevalue(program)
    taken: list[tuple[int, int]] = []
    expected = []
    for address, branch in truth.steps():
        expected.append((address, taken[: -entries - 1 : -1]))
        if branch and branch.taken:
            taken.append((branch.source, branch.target))
    for perf in perfs(tmp_path):
        lines = perf.run("script", "-i", truth.file, f"--itrace={options}e", "-F", "ip,brstack").splitlines()
        for line, (address, before) in zip(lines, expected, strict=True):
            word, *stack = line.split()
            assert int(word, 16) == address
            pairs = [(int(one, 16), int(other, 16)) for one, other, *_ in (each.split("/") for each in stack)]
            within = [pair for pair in pairs if all(pair)]
            assert within == before[: len(within)]
            assert len(pairs) == entries or len(within) == len(before)
        assert any(len(before) == entries for _, before in expected)


@pytest.mark.parametrize("name", ["recursion", "page_crossing", "branch_patterns"])
def test_bytes_of_instructions(tmp_path: Path, name: str) -> None:
    """`--insn-trace`: what has retired, each with the bytes that objdump says it has."""
    program = guest(name, "x86_64").path
    truth, lengths = traced(program, tmp_path / "perf.data"), _lengths(program)
    for perf in perfs(tmp_path):
        lines = perf.run("script", "-i", truth.file, "--insn-trace").splitlines()
        parts = [line.split(" insn: ") for line in lines]
        found = [(int(where.split()[-3], 16), words.split()) for where, words in parts]
        assert [address for address, _ in found] == truth.instructions
        assert all(lengths[address] == words for address, words in found)


@pytest.mark.parametrize("program", ["recursion", "patterns"])
def test_quick_decoding(tmp_path: Path, program: str, request: pytest.FixtureRequest) -> None:
    """`q` reads packets without the code: each address in them has retired, in that order; among them is each target of
    an indirect jump or call."""
    truth: Truth = request.getfixturevalue(program)
    wanted = Counter(branch.target for branch in truth.branches if branch.kind in _INDIRECT)
    for perf in perfs(tmp_path):
        found = [int(line, 16) for line in perf.run("script", "-i", truth.file, "--itrace=qi1ie", "-F", "ip").split()]
        left = iter(truth.instructions)
        assert all(any(address == there for there in left) for address in _changes(found))
        assert Counter(found) >= wanted
        assert sum(wanted.values()) < len(found) < len(truth.instructions) // 10


def test_quick_decoding_of_entries_and_exits(tmp_path: Path, many_ways: Truth) -> None:
    """Where the path enters and is interrupted is what it is with the code."""
    for perf in perfs(tmp_path):
        slow, quick = (
            perf.run("script", "-i", many_ways.file, f"--itrace={options}e", "-F", "flags,ip,addr").splitlines()
            for options in ("b", "qb")
        )
        ends = [line for line in slow if "tr strt" in line or "async" in line]
        assert quick == ends
        assert len(quick) > 100


@pytest.mark.parametrize("options", ["e", "qe", "qqe", "x", "xe", "w", "we"])
def test_what_there_is_none_of(tmp_path: Path, many_ways: Truth, options: str) -> None:
    """Errors, transactions, and PTWRITE."""
    for perf in perfs(tmp_path):
        assert perf.run("script", "-i", many_ways.file, f"--itrace={options}").split() == []


def test_samples_in_the_traces_place(tmp_path: Path, many_ways: Truth) -> None:
    """`perf inject`: a file without a trace, in which perf finds the samples that it finds in the trace. It guesses the
    times of those between two packets, and may sort the last two before a mapping otherwise."""
    for number, perf in enumerate(perfs(tmp_path)):
        file = tmp_path / f"{number}.data"
        perf.run("inject", "--itrace=i100ile", "-i", many_ways.file, "-o", file)
        fields = ("-F", "comm,tid,cpu,time,event,period,ip,brstack")
        injected = perf.run("script", "-i", file, *fields).splitlines()
        traced = perf.run("script", "-i", many_ways.file, "--itrace=i100ile", *fields).splitlines()
        assert sorted(injected) == sorted(traced)
        assert len(injected) == len(many_ways.instructions) // 100
        assert "PERF_RECORD_AUX" not in perf.run("script", "-D", "-i", file)
        assert any("do_lookup_x" in line for line in perf.report(file))


def test_build_ids_leave_the_trace(tmp_path: Path, recursion: Truth) -> None:
    """`perf inject -b` decodes nothing, `--itrace` or not."""
    for number, perf in enumerate(perfs(tmp_path)):
        file = tmp_path / f"{number}.data"
        perf.run("inject", "-b", "--itrace=i100usle", "-i", recursion.file, "-o", file)
        assert instructions(perf, file) == [recursion.instructions]


def test_reports_of_samples_in_the_traces_place(tmp_path: Path, recursion: Truth) -> None:
    """Each instruction is a sample of its function."""
    starts = _functions(guest("recursion", "x86_64").path)
    truth = Counter(_symbol(starts, address).split("+")[0] for address in recursion.instructions)
    for number, perf in enumerate(perfs(tmp_path)):
        file = tmp_path / f"{number}.data"
        perf.run("inject", "--itrace=i1ie", "-i", recursion.file, "-o", file)
        lines = perf.report(file, "--no-children", "-F", "sample,sym")
        found = {words[2]: int(words[0]) for words in map(str.split, lines) if words and words[0].isdigit()}
        assert found == truth


def _changes(addresses: Sequence[int]) -> Iterator[int]:
    """Without what is the same as the one before."""
    return (there for before, there in pairwise([None, *addresses]) if before != there)


def _lengths(program: Path) -> dict[int, list[str]]:
    """By address, the bytes of each instruction of an executable, as objdump reads it."""
    words = [require.command("objdump", package="binutils"), "-d", "-w", "--insn-width=16", program]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+)", text, re.MULTILINE)
    return {int(address, 16): code.split() for address, code in found}


def _functions(program: Path) -> dict[int, str]:
    """By address, the names of its functions."""
    words = [require.command("nm", package="binutils"), program]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(address, 16): name for address, kind, name in map(str.split, lines) if kind in "tT"}


def _symbol(starts: dict[int, str], address: int) -> str:
    start = max(start for start in starts if start <= address and "$" not in starts[start])
    return f"{starts[start]}+{address - start:#x}"
