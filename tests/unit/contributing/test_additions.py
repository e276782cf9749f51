"""Each thing that CONTRIBUTING.md says is added in one file is added to a copy of the tree, and works there.

A report's format is in test_contributing.py. What is native is compiled, and linked with what `make venv` has built; a
new probe changes every file, so that the copy is built as a whole only by `make additions`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

import require
from emulator import _native
from end_to_end.assembled import program
from guests import guest

ROOT = Path(__file__).resolve().parents[3]
NATIVE = Path("emulator/native")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXTENSION = Path(_native.__file__)
PACKAGES = ("emulator", "pmu", "perfcore", "perfemu")


class Tree:
    """A copy of what is installed, to be changed. `extension`: the native half, which need not be the built one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for package in PACKAGES:
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__", "native"))
        self.extension = root / "emulator" / EXTENSION.name
        self.extension.symlink_to(EXTENSION)

    def insert(self, file: str, before: str, text: str) -> None:
        path = self.root / file
        source = path.read_text(encoding="utf-8")
        assert source.count(before) == 1, f"{file}: {before}"
        path.write_text(source.replace(before, text + before), encoding="utf-8")

    def python(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Without site.py, which would lead to the tree that is installed."""
        path = os.pathsep.join([str(self.root), sysconfig.get_path("platlib")])
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-S", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.root, env=environment, check=False,
        )  # fmt: skip

    def perfemu(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Not by -m, which looks for nothing where PYTHONPATH says."""
        return self.python("-c", "import sys; from perfemu.cli.main import main; sys.exit(main())", *arguments)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def example(section: str, language: str) -> str:
    """The code below `### section` in CONTRIBUTING.md."""
    found = re.search(rf"^### {section}\n.*?^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert found, section
    return found[1]


def test_a_file_of_proc_is_a_row(tree: Tree) -> None:
    busybox = require.command("busybox", package="busybox-static")
    cat = ("run", "--core", "ideal", busybox, "cat", "/proc/sys/kernel/ngroups_max")
    assert tree.perfemu(*cat).returncode == 1
    tree.insert("emulator/linux/proc/procfs.py", '    "sys/kernel/hostname"', example("A file of /proc", "python"))
    assert tree.perfemu(*cat).stdout == "65536\n"


HOME_NODE = '''"""Which node of memory pages come from."""

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.syscalls.table import Address, Size, syscall


@syscall(aarch64=450, x86_64=450)
def set_mempolicy_home_node(task: Task, start: Address, len: Size, home_node: Size, flags: Size) -> int:
    """There is one node."""
    if home_node:
        raise LinuxError(EINVAL, f"node {home_node}")
    return 42
'''
# The call, with its four arguments 0, and exit with what it returns. movz x8, #450; svc; movz x8, #93; svc.
# xor edi, edi; xor esi, esi; xor edx, edx; xor r10d, r10d; mov eax, 450; syscall; mov edi, eax; mov eax, 60; syscall.
CALLS_450 = {
    "aarch64": "483880d2010000d4a80b80d2010000d4",
    "x86_64": "31ff31f631d24531d2b8c20100000f0589c7b83c0000000f05",
}


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_a_system_call_is_one_file(isa: str, tree: Tree, tmp_path: Path) -> None:
    path = program(tmp_path / "guest", isa, CALLS_450[isa])
    assert tree.perfemu("run", "--core", "ideal", path).returncode == 256 - 38  # -ENOSYS
    (tree.root / "emulator/linux/syscalls/home_node.py").write_text(HOME_NODE, encoding="utf-8")
    traced = tree.perfemu("trace", "--core", "ideal", path)
    assert traced.returncode == 42
    assert re.search(r"set_mempolicy_home_node\(NULL, 0, 0, 0\) += 42$", traced.stderr, re.MULTILINE), traced.stderr


def test_a_core_is_one_file(tree: Tree) -> None:
    """It dispatches an instruction a cycle, where the Neoverse N1 does four."""
    (tree.root / "emulator/cores/narrow-n1.toml").write_text(example("A core", "toml"), encoding="utf-8")
    assert "narrow-n1" in tree.perfemu("list", "cores").stdout
    matrix = guest("matrix", "aarch64")
    instructions = matrix.counts["INST_RETIRED"]

    def cycles(core: str) -> int:
        counted = tree.perfemu("stat", "-x,", "-e", "cycles:u", "--core", core, matrix.path)
        return int(counted.stderr.split(",")[0])

    assert cycles("neoverse-n1") < instructions <= cycles("narrow-n1")


# --- native ---


def build_folder() -> Path:
    folders = [file.parent for file in ROOT.glob("build/*/build.ninja")]
    if not folders:
        require.missing("build/ of `make venv` is needed")
    return max(folders, key=lambda folder: (folder / "build.ninja").stat().st_mtime)


def recorded_commands(folder: Path) -> dict[str, str]:
    """Of each object file, and of the extension, the command that makes it."""
    ours = Path(sys.executable).with_name("ninja")  # where the machine has none
    ninja = str(ours) if ours.exists() else require.command("ninja", package="ninja-build")
    shown = subprocess.run(
        [ninja, "-C", folder, "-t", "commands", EXTENSION.name], capture_output=True, text=True, check=True
    )
    commands = {}
    for line in shown.stdout.splitlines():
        if target := re.search(r" -o (\S+)", line):
            commands[target[1]] = line
    return commands


def run(commands: Sequence[str], folder: Path) -> None:
    for command in commands:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=folder, check=False)
        assert done.returncode == 0, done.stderr


# Two ways: A, B, A, C. The least recently used line is B. NRU finds all used, forgets that, and takes the first: A.
REPLACES = """
import emulator
from array import array
from emulator._native import MemorySystem, replacement_policies
import struct

assert "nru" in replacement_policies()

def misses(policy):
    l1d = {"size": 128, "ways": 2, "latency": 4, "replacement": policy}
    memory = MemorySystem({"l1d": l1d, "memory": {"latency": 50}})
    accesses = [struct.pack("<QQQIHH", line * 64, 0, 1000 * n, 8, 0, 0) for n, line in enumerate([8, 9, 8, 10, 9])]
    ready = array("Q", memory.run(b"".join(accesses), False)).tolist()
    return [cycle - 1000 * n for n, cycle in enumerate(ready)]

assert misses("lru") == [50, 50, 4, 50, 50]
assert misses("nru") == [50, 50, 4, 50, 4]
"""


def linked_with(tree: Tree, source: Path, like: str) -> None:
    """The tree's extension is everything as it is, and `source`, compiled as the file `like` of the native half is."""
    folder = build_folder()
    commands = recorded_commands(folder)
    there = next(target for target in commands if target.endswith(f"{like}.o"))
    new = source.with_suffix(".o")
    compiles = commands[there].replace(there, str(new)).replace(str(ROOT / NATIVE / like), str(source))
    tree.extension.unlink()
    links = (
        commands[EXTENSION.name]
        .replace(f"-o {EXTENSION.name}", f"-o {tree.extension}")
        .replace(f" {there} ", f" {there} {new} ")
    )
    run([compiles, links], folder)


def test_a_replacement_policy_is_one_file(tree: Tree, tmp_path: Path) -> None:
    source = tmp_path / "replacement_nru.cpp"
    includes = '#include <algorithm>\n\n#include "cache/replacement.hpp"\n\nnamespace perfemu {\n\n'
    source.write_text(f"{includes}{example('A replacement policy', 'cpp')}\n}}  // namespace perfemu\n")
    linked_with(tree, source, "cache/replacement_lru.cpp")
    done = tree.python("-c", REPLACES)
    assert done.returncode == 0, done.stderr


# A loop's branch is taken, taken, not taken, and so on: what came last is wrong twice of three times.
PREDICTS = """
import struct
import emulator
from emulator._native import BranchUnit
from emulator.probes import Probe
unit = BranchUnit({"branch": {"direction": "last_direction", "last_direction": {"entries": 16}}})
taken, not_taken = (struct.pack("<4Q", 0x1000, 1, to, 0x1004) for to in (0x900, 0x1004))
unit.resolve_all((taken + taken + not_taken) * 100)
print(unit.total(Probe.BR_MISPREDICTED))
"""


def test_a_branch_predictor_is_one_file(tree: Tree, tmp_path: Path) -> None:
    source = tmp_path / "last_direction.cpp"
    includes = '#include "predictor/direction.hpp"\n\nnamespace perfemu {\n\nnamespace {\n\n'
    source.write_text(f"{includes}{example('A branch predictor', 'cpp')}\n}}\n}}  // namespace perfemu\n")
    linked_with(tree, source, "predictor/bimodal.cpp")
    done = tree.python("-c", PREDICTS)
    assert done.stdout == "200\n", done.stderr


# movz x0, #0; movz x8, #93; madd x1, x2, x3, x4, three times; svc
MULTIPLIES = "000080d2a80b80d2" + "4110039b" * 3 + "010000d4"
ROW = '    Event(0x00F0, "MADD_SPEC", (Probe.MADD_OP,), Support.APPROXIMATE, "nothing is executed speculatively"),\n'


def add_probe(tree: Tree) -> None:
    """An event that nothing fires yet: a row of probes, a row of events, its name in a model, and what fires it."""
    shutil.copytree(ROOT / NATIVE, tree.root / NATIVE, ignore=shutil.ignore_patterns("__pycache__"))
    tree.insert("pmu/arm/event_rows.py", '    Event(0x0006, "LD_RETIRED"', ROW)
    tree.insert("pmu/models/armv8_pmuv3.py", "    SW_INCR ", "    MADD_SPEC\n")
    madd = ".adjusted(multiply_add).follows(&Flow::multiply),  // MSUB"
    tree.insert(str(NATIVE / "aarch64/rows_general.cpp"), madd, ".fires(Probe::MADD_OP)")
    tree.insert(
        "emulator/probes.py", "    MUL_OP = ", "    MADD_OP = Source.INSTRUCTION  # AArch64: multiplications that add\n"
    )


TABLE = ("op", "row", "rows_general", "rows_memory", "rows_vector")
# Whether the decoder says it of MADD, and of nothing else: what the rest of the extension knows is not needed.
DECODES = """
#include <cstdio>

#include "aarch64/op.hpp"

int main() {
    const auto features = perfemu::aarch64::bit(perfemu::aarch64::Feature::NONE);
    for (uint32_t word : {0x9b031041u, 0x8b030041u}) {  // MADD, ADD
        const perfemu::Op op = perfemu::aarch64::read_op(word, features);
        std::printf("%d", (op.probes & perfemu::bit(perfemu::Probe::MADD_OP)) != 0);
    }
}
"""


def test_an_event_with_a_new_probe_is_its_rows(tree: Tree, tmp_path: Path) -> None:
    """The Python half, and the decoder by itself."""
    add_probe(tree)
    listed = tree.python("-c", "from pmu.model import model; print(model('armv8_pmuv3').events.find('MADD_SPEC'))")
    assert "MADD_OP" in listed.stdout, listed.stderr
    folder = build_folder()
    compiles = recorded_commands(folder)["CMakeFiles/_native.dir/aarch64/op.cpp.o"]
    generated = tmp_path / "generated"
    generated.mkdir()
    for rows, enum in (("probes", "Probe"), ("op_classes", "OpClass")):
        done = tree.python(NATIVE / "generate_enum.py", f"emulator/{rows}.py", enum, generated / f"{rows}.hpp")
        assert done.returncode == 0, done.stderr
    (tmp_path / "main.cpp").write_text(DECODES, encoding="utf-8")
    flags = " ".join(re.findall(r"-std=\S+|-isystem \S+", compiles))
    sources = " ".join(str(tree.root / NATIVE / f"aarch64/{name}.cpp") for name in TABLE)
    run(
        [
            f"c++ {flags} -I{generated} -I{tree.root / NATIVE} {includes(compiles)} -O0"
            f" {tmp_path}/main.cpp {sources}"
            f" -static -Wl,--unresolved-symbols=ignore-all -o {tmp_path}/decodes"
        ],
        folder,
    )
    assert subprocess.run([tmp_path / "decodes"], capture_output=True, text=True, check=True).stdout == "10"


def includes(command: str) -> str:
    """Of libraries' headers alone: ours are the copy's."""
    return " ".join(f"-I{path}" for path in re.findall(r"-I(\S+)", command) if "-packages/" in path)


@pytest.mark.skipif("ADDITIONS" not in os.environ, reason="builds the whole native half: make additions")
def test_an_event_with_a_new_probe_counts(tree: Tree, tmp_path: Path) -> None:
    add_probe(tree)
    tree.extension.unlink()
    build = tmp_path / "build"
    python = f"-DPython_EXECUTABLE={sys.executable}"
    run([f"cmake -S {tree.root / NATIVE} -B {build} {python}", f"cmake --build {build} --parallel 2"], tmp_path)
    shutil.copy(build / EXTENSION.name, tree.extension)
    path = program(tmp_path / "guest", "aarch64", MULTIPLIES)
    counted = tree.perfemu("stat", "-x,", "-e", "MADD_SPEC", "--core", "ideal", path)
    assert counted.stderr.split(",")[0] == "3", counted.stderr
