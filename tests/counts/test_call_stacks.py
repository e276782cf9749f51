"""Exact callchains: against calls and returns that a CODE hook has seen, and where they are known by construction."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import c_programs
from code_hook import retired_addresses
from end_to_end.command import perfemu
from guests import ISAS, guest
from perfcore.abi.constants import PerfContext
from perfemu.api import record
from perfemu.guest import Guest

SOURCE = Path(__file__).with_name("call_stacks.c")
CORES = {"aarch64": ("ideal", "neoverse-n1"), "x86_64": ("ideal", "zen5")}
ON_CORES = [(isa, core) for isa in ISAS for core in CORES[isa]]
PERIODS = (1, 13)  # all instructions are stepped; most blocks are counted as a whole


def chains(path: Path, event: str, period: int, core: str, output: Path, how: str = "exact") -> list[list[int]]:
    """Of each sample: where it is, then the return addresses."""
    recording = record(Guest([path], core=core), [event], period=period, callchains=how, output=output, capture=True)
    assert recording.exit_status == 0
    found = [list(sample.callchain) for _, sample in recording.samples()]
    assert all(chain[0] == PerfContext.USER for chain in found)
    return [chain[1:] for chain in found]


def call_length(isa: str, code: bytes) -> int | None:
    """Of the two that the program has: CALL rel32 and CALL RAX; BL and BLR. 0 is a return, None all else."""
    if isa == "aarch64":
        word = int.from_bytes(code[:4], "little")
        if word == 0xD65F03C0:
            return 0
        return 4 if word >> 26 == 0x25 or word & 0xFFFFFC1F == 0xD63F0000 else None
    lengths = {b"\xe8": 5, b"\xff\xd0": 2, b"\xc3": 0}
    return next((length for begin, length in lengths.items() if code.startswith(begin)), None)


@cache
def derived_chains(isa: str) -> list[list[int]]:
    """Behind each instruction of `recursion`, from the instructions alone."""
    path = guest("recursion", isa).path
    with path.open("rb") as file:
        segments = [
            (segment["p_vaddr"], segment.data())
            for segment in ELFFile(file).iter_segments()
            if segment["p_type"] == "PT_LOAD"
        ]
    addresses = retired_addresses(isa, path)
    stack: list[int] = []
    derived = []
    for address, following in pairwise(addresses):
        begin, data = next((at, data) for at, data in segments if at <= address < at + len(data))
        length = call_length(isa, data[address - begin : address - begin + 8])
        if length == 0:
            stack.pop()
        elif length is not None:
            stack.append(address + length)
        derived.append([following, *reversed(stack)])
    return derived


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize(("isa", "core"), ON_CORES)
def test_a_callchain_is_the_calls_that_have_not_returned(isa: str, core: str, period: int, tmp_path: Path) -> None:
    assert max(map(len, derived_chains(isa))) == 103  # in leaf: 102 calls, of which 101 of descend
    derived = derived_chains(isa)[period - 1 :: period]
    found = chains(guest("recursion", isa).path, "instructions", period, core, tmp_path / "perf.data")
    assert found[: len(derived)] == derived


def expected_names() -> list[list[str]]:
    """Of `call_stacks.c`'s comments. Behind "|" is another stack, which main has not called but where it says so."""
    alone = ("coroutine", "thread")
    texts = re.findall(r"//: (.*)", SOURCE.read_text(encoding="utf-8"))
    stacks = [stack.split() for text in texts for stack in re.split(r" ?[,|] ?", text)]
    return [stack if stack[-1] in alone else [*stack, "main"] for stack in stacks]


@cache
def functions(path: Path) -> list[tuple[int, int, str]]:
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return [
            (each["st_value"], each["st_size"], each.name) for each in symbols if each["st_info"]["type"] == "STT_FUNC"
        ]


def names(path: Path, chain: list[int]) -> list[str]:
    """Of the functions of `call_stacks.c` in it, but for marker, which is the first."""
    ours = set(re.findall(r"\b(\w+)\([^;{]*\) \{", SOURCE.read_text(encoding="utf-8")))
    found = [name for address in chain for at, size, name in functions(path) if at <= address < at + size]
    assert found[0] == "marker"
    return [name for name in found[1:] if name in ours]


@pytest.mark.parametrize(("isa", "core"), ON_CORES)
def test_however_a_function_is_left_the_callchain_is_who_waits(isa: str, core: str, tmp_path: Path) -> None:
    path = c_programs.build(SOURCE, isa, tmp_path / "call_stacks", "-O2", "-fomit-frame-pointer")
    marker = next(at for at, _, name in functions(path) if name == "marker")
    found = chains(path, f"mem:{marker:#x}:x", 1, core, tmp_path / "perf.data")
    assert [names(path, chain) for chain in found] == expected_names()


def test_frame_pointers_are_still_there_to_be_walked(tmp_path: Path) -> None:
    recursion = guest("recursion", "x86_64").path
    exact = chains(recursion, "instructions", 13, "ideal", tmp_path / "exact.data")
    walked = chains(recursion, "instructions", 13, "ideal", tmp_path / "fp.data", how="fp")
    assert [chain[0] for chain in walked] == [chain[0] for chain in exact]
    # They differ where a function has made no frame yet, or none any more: it hides its caller there.
    different = [(one, other) for one, other in zip(walked, exact, strict=True) if one != other]
    assert different
    assert all(len(one) == len(other) - 1 for one, other in different)


def test_boards_have_frame_pointers_alone(tmp_path: Path) -> None:
    image = guest("recursion", "aarch64").path
    done = perfemu("record", "--board", "virt", "--call-graph", "exact", "-o", tmp_path / "perf.data", image)
    assert done.returncode == 129
    assert b"record --call-graph exact: is of programs; a board's callchains are by frame pointers" in done.stderr
