"""A machine of ours on which a static program starts as it does under valgrind: same stack, same places for memory, and
the processor that valgrind shows.
"""

from __future__ import annotations

import dataclasses
import os
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import pytest

import require
from emulator.arch.cpuid import Leaf
from emulator.linux.machine import LinuxMachine
from emulator.linux.mm.mapping_list import MappingList
from emulator.linux.process.program import Program

# valgrind 3.19, coregrind/m_aspacemgr/aspacemgr-linux.c: what asks for no place gets the lowest free one from 64 MiB
# on, but the first 8 MiB there are for brk.
BREAK = 0x400_0000
FIRST_MAPPING = BREAK + (8 << 20)
STACK_END = 0x1F_FF00_1000
# CPUID leaf 1, ECX: XSAVE, OSXSAVE: without them no AVX is usable on our core. NO_AVX makes glibc choose so for both.
REFUSED = 1 << 26 | 1 << 27
NO_AVX = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps="
    "-AVX_Fast_Unaligned_Load,-AVX,-AVX2,-FMA,-F16C,-ERMS,-FSRM,-XSAVE,-XSAVEC,-OSXSAVE,-RDRAND"
    ":glibc.pthread.rseq=0"  # valgrind refuses rseq
}

STACK_PROBE = """
        .globl _start                   # writes its stack, from the stack pointer to the end
_start: mov $1, %eax
        mov $1, %edi
        mov %rsp, %rsi
        mov $0x100000, %edx
        syscall
        mov $60, %eax
        xor %edi, %edi
        syscall
"""
CPUID_PROBE = r"""
#include <cpuid.h>
#include <stdio.h>
int main(void) {
    unsigned last, b, c, d;
    for (unsigned first = 0;; first = 0x80000000) {
        __cpuid_count(first, 0, last, b, c, d);
        for (unsigned leaf = first; leaf <= last; leaf++)
            for (unsigned sub = 0; sub < 8; sub++) {
                unsigned r[4];
                __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
                printf("%x %x %x %x %x %x\n", leaf, sub, r[0], r[1], r[2], r[3]);
            }
        if (first) return 0;
    }
}
"""
AT_NULL, AT_PHDR, AT_PHNUM, AT_ENTRY = 0, 3, 5, 9


@dataclass(frozen=True)
class Run:
    """A program as both run it. `path` is of the form DIRECTORY/0/NAME; a probe is put into DIRECTORY/1/NAME."""

    path: Path
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    directory: Path = Path("/")

    @property
    def argv(self) -> tuple[str, ...]:
        return (str(self.path), *self.arguments)


def valgrind(run: Run, tool: Sequence[str], path: Path | None = None) -> bytes:
    """What a run under `tool` writes into a file; of `path` with the same arguments and environment."""
    command = [require.command("valgrind", package="valgrind"), "-q", *tool, str(path or run.path), *run.arguments]
    with TemporaryFile() as out:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            env=dict(run.environment),
            cwd=run.directory,
            check=False,
        )
        out.seek(0)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return out.read()


def build(directory: Path, name: str, source: str, *options: str) -> Path:
    """A static program."""
    compiler = require.command("x86_64-linux-gnu-gcc", package="gcc")
    file, path = directory / f"{name}", directory / name.split(".")[0]
    file.write_text(source)
    subprocess.run([compiler, "-O2", "-static", str(file), "-o", str(path), *options], check=True)
    return path


def stack(run: Run) -> bytes:
    """What valgrind puts on the stack, up to its end."""
    beside = run.path.parent.parent / "1"
    beside.mkdir(exist_ok=True)
    probe = build(beside, "probe.S", STACK_PROBE, "-nostdlib").rename(beside / run.path.name)
    return valgrind(run, ["--tool=none"], probe)


def processor(directory: Path) -> dict[tuple[int, int], Leaf]:
    """What CPUID says under valgrind, without what our core refuses."""
    directory.mkdir()
    path = build(directory, "probe.c", CPUID_PROBE)
    written = valgrind(Run(path), ["--tool=none"]).decode()
    leaves: dict[tuple[int, int], Leaf] = {}
    for line in written.splitlines():
        leaf, sub, eax, ebx, ecx, edx = (int(word, 16) for word in line.split())
        if leaf == 1:
            ecx &= ~REFUSED
        leaves[leaf, sub] = eax, ebx, ecx, edx
    return leaves


def _lowest_gap(mappings: MappingList, length: int) -> int:
    """Instead of the highest one."""
    start = FIRST_MAPPING
    while found := mappings.overlapping(start, start + length):
        start = found[-1].end
    return start


def start(machine: LinuxMachine, run: Run, directory: Path, stdout: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start `run` as valgrind does. `directory` is for probes."""
    content = stack(run)
    architecture = machine.kernel.architecture
    layout = dataclasses.replace(architecture.layout, stack_top=STACK_END)
    monkeypatch.setattr(architecture, "layout", layout)
    monkeypatch.setattr(MappingList, "find_gap", _lowest_gap)
    leaves = processor(directory)
    cpu = machine.cpus[0]
    cpu.system_registers.claim_cpuid(lambda leaf, sub: leaves.get((leaf, sub & 7), (0, 0, 0, 0)))
    with open(os.devnull, "rb") as nothing:
        program = Program(
            str(run.path),
            run.argv,
            environment=tuple(run.environment.items()),
            cwd=str(run.directory),
            stdin=nothing.fileno(),
            stdout=stdout,
        )
        machine.start(program)
    task = machine.kernel.tasks[1000]
    own = dict(struct.iter_unpack("<QQ", task.mm.program.auxiliary_vector))
    content = _with_entries(content, {key: own[key] for key in (AT_PHDR, AT_PHNUM, AT_ENTRY)})
    task.mm.brk_start = task.mm.brk_end = BREAK
    beside, own_place = (str(run.path.parents[1] / which).encode() for which in "10")
    content = content.replace(beside, own_place)
    pointer = STACK_END - len(content)
    task.mm.write(pointer, content)
    task.mm.program.stack_start = pointer
    cpu.core.write_register(architecture.sp, pointer)


def _with_entries(stack: bytes, entries: Mapping[int, int]) -> bytes:
    """`stack` with other values in its auxiliary vector."""
    words = list(struct.unpack_from(f"<{len(stack) // 8}Q", stack))
    place = words.index(0, words[0] + 2) + 1  # behind argc, arguments, 0, environment, 0
    while words[place] != AT_NULL:
        words[place + 1] = entries.get(words[place], words[place + 1])
        place += 2
    size = 8 * len(words)
    return struct.pack(f"<{len(words)}Q", *words) + stack[size:]
