"""Exact callchains against DWARF unwinding by the unmodified perf, of the same run: equal, or DWARF knows less."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

import require
from end_to_end.command import perfemu
from real_perf import RealPerf

SOURCE = Path(__file__).parent.parent / "counts" / "call_stacks.c"
OURS = set(re.findall(r"\b(\w+)\([^;{]*\) \{", SOURCE.read_text(encoding="utf-8")))
EXCEPTIONS = """
#include <functional>
#include <stdexcept>
#define PLAIN __attribute__((noinline))
volatile int sink;
extern "C" PLAIN void marker() { sink = sink + 1; }
struct Guard { ~Guard() { marker(); } };
PLAIN void throws(int n) { Guard guard; if (n == 0) throw std::runtime_error("x"); throws(n - 1); }
PLAIN void catches(int n) { try { throws(n); } catch (const std::exception&) { marker(); } marker(); }
PLAIN void rethrows(int n) { try { throws(n); } catch (...) { marker(); throw; } }
PLAIN void with_alloca(int n) {
    char* room = static_cast<char*>(__builtin_alloca(n * 64));
    room[0] = 1;
    try { rethrows(2); } catch (...) { marker(); }
    marker();
    sink = sink + room[0];
}
int main() {
    for (int n = 0; n < 3; n++) catches(n);
    with_alloca(40);
    std::function<int(int)> nested = [&](int n) { marker(); return n ? nested(n - 1) + 1 : 0; };
    return nested(3) != 3;
}
"""


def address_of_marker(program: Path) -> int:
    with program.open("rb") as file:
        (symbol,) = ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name("marker")
        return int(symbol["st_value"])


def chains(program: Path, how: str, directory: Path) -> list[list[str]]:
    """Functions' names, the innermost first, each time that `marker` begins."""
    file = directory / "perf.data"
    event = f"mem:{address_of_marker(program):#x}:x"
    done = perfemu("record", "-q", "--call-graph", how, "-e", event, "-o", file, program)
    assert done.returncode == 0, done.stderr
    text = RealPerf(directory).run("script", "--no-inline", "-F", "ip,sym", "-i", file)
    samples = [sample.split("\n") for sample in text.split("\n\n")]
    found = [[line.split(None, 1)[1].strip() for line in sample if line.strip()] for sample in samples]
    return [chain for chain in found if chain]


def built(directory: Path, compiler: str, source: Path) -> Path:
    program = directory / "program"
    command = [require.command(compiler, package=compiler), "-O2", "-fomit-frame-pointer", "-no-pie", "-pthread"]
    subprocess.run([*command, "-o", program, source], check=True)
    return program


def test_exceptions_and_lambdas(tmp_path: Path) -> None:
    source = tmp_path / "exceptions.cpp"
    source.write_text(EXCEPTIONS, encoding="utf-8")
    program = built(tmp_path, "g++", source)
    exact = chains(program, "exact", tmp_path)
    # catches(n): n + 1 guards, then 2; with_alloca: 3 guards, 3; nested: 4.
    assert len(exact) == (1 + 2 + 3) + 3 * 2 + 3 + 3 + 4
    assert exact == chains(program, "dwarf", tmp_path)


def test_where_a_stack_is_copied_in_part_its_chain_ends(tmp_path: Path) -> None:
    program = built(tmp_path, "gcc", SOURCE)
    exact = [[name for name in chain if name in OURS] for chain in chains(program, "exact", tmp_path)]
    dwarf = [[name for name in chain if name in OURS] for chain in chains(program, "dwarf,65528", tmp_path)]
    shorter = [ours for ours, theirs in zip(exact, dwarf, strict=True) if ours != theirs]
    assert all(theirs == ours[: len(theirs)] for ours, theirs in zip(exact, dwarf, strict=True))
    # The copy is of the alternate stack, or ends in a page of the large frame that nobody has touched.
    assert len(shorter) == 2 + 2
    assert all("in_handler" in chain or "large" in chain for chain in shorter)
