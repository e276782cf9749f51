"""Independent instruction counts: qemu-user with the plugin of tests/qemu_plugin, and single-stepping by ptrace.

`qemu_counts` gives what a program retires, by instruction. `REP` retires once, as on hardware. What a
qemu-user run and ours may differ in is the start-up code that looks at the CPU, so give both the same CPU, arguments
and environment.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import capstone

import debian
import require

PLUGIN_SOURCE = Path(__file__).parent / "qemu_plugin" / "counts.c"
QEMU = {"aarch64": "qemu-aarch64", "x86_64": "qemu-x86_64"}
# What emulator.arch offers, so that the C library makes the same choices.
CPU = {
    "aarch64": "cortex-a72",
    # All feature flags are equal. What is not: leaf 2 (ours refers to leaf 4), leaves 4 and 8000_0006H (L2 and L3), the
    # processor's name, and leaves 5, 6, 8000_0005H and 4000_0000H, which we do not have.
    "x86_64": "Haswell-noTSX,model=94,stepping=3,-hypervisor,+pdpe1gb,-avx,-avx2,-fma,-f16c,-xsave,-xsaveopt,-rdrand"
    ",-erms,-smep,-invpcid,-pcid,-x2apic,-tsc-deadline,-vme,-mtrr,-mca,-mce",
}
DISASSEMBLER = {
    "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
}
TIMEOUT_SECONDS = 300
STACK_BYTES = 8 << 20
EVENT = struct.Struct("<QII")
CLOCK_CALLS = {"aarch64": {113, 169}, "x86_64": {96, 201, 228}}  # clock_gettime, gettimeofday, time

Event = tuple[int, int, int]  # address, size in bytes, EXECUTED or LOADED or STORED
EXECUTED, LOADED, STORED = range(3)
FileMapping = tuple[int, int, int, str]  # start, end, file offset, path


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction at one address, and what became of it. See qemu_plugin/counts.c."""

    address: int
    code: bytes
    executed: int
    continued: int
    left: int
    loads: int
    stores: int


@dataclass(frozen=True)
class QemuRun:
    """A finished run. `instructions` is of the first process; a program that forks has one `QemuRun` only."""

    isa: str
    exit_status: int
    stdout: bytes
    stderr: bytes
    instructions: list[Instruction]
    mappings: list[FileMapping] = field(repr=False)  # start, end, file offset, path
    pid: int
    stack_top: int
    trace: list[Event] = field(repr=False)  # everything in order, with trace=True
    time_s: int  # when it first asked for the time, seconds since 1970; 0 if it did not

    def retired(self, instruction: Instruction) -> int:
        if self.isa == "x86_64" and is_repeated(instruction.code):
            return instruction.executed - instruction.continued
        return instruction.executed

    @cached_property
    def probes(self) -> dict[str, int]:
        """Counts by the names of emulator.probes. LOAD and STORE need a run with memory=True."""
        counts: Counter[str] = Counter()
        for i in self.instructions:
            kind = branch_kind(self.isa, i.code, i.address)
            retired = self.retired(i)
            counts["INST_RETIRED"] += retired
            counts["BR_RETIRED"] += retired if kind else 0
            counts["BR_COND"] += retired if kind == "conditional" else 0
            counts["BR_COND_TAKEN"] += i.left if kind == "conditional" else 0
            counts["LOAD"] += i.loads
            counts["STORE"] += i.stores
        return dict(counts)

    @cached_property
    def by_address(self) -> Counter[int]:
        """How often the instructions at each address retired."""
        counts: Counter[int] = Counter()
        for i in self.instructions:
            counts[i.address] += self.retired(i)
        return counts

    @cached_property
    def total(self) -> int:
        return self.probes["INST_RETIRED"]


def is_repeated(code: bytes) -> bool:
    """An x86 string instruction with a REP prefix: prefixes, with F2 or F3 among them, then A4-A7, AA-AF or 6C-6F."""
    prefixes = 0
    while prefixes < len(code) - 1 and (code[prefixes] in LEGACY_PREFIXES or code[prefixes] & 0xF0 == 0x40):
        prefixes += 1
    opcode = code[prefixes]
    return bool({0xF2, 0xF3} & set(code[:prefixes])) and (opcode in STRING_OPCODES)


LEGACY_PREFIXES = frozenset({0xF2, 0xF3, 0x66, 0x67, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65})
STRING_OPCODES = frozenset({*range(0xA4, 0xA8), *range(0xAA, 0xB0), *range(0x6C, 0x70)})


def branch_kind(isa: str, code: bytes, address: int) -> str:
    """ "conditional", "other", or "" for what is not a branch: on x86 SYSCALL and INT are, on Arm SVC is not."""
    decoded = next(_disassembler(isa).disasm(code, address, 1), None)
    if decoded is None:
        return ""
    return (_x86_branch if isa == "x86_64" else _arm_branch)(decoded)


def _x86_branch(decoded: capstone.CsInsn) -> str:
    name = decoded.mnemonic.split()[-1]
    if name.startswith("j"):
        return "other" if name in ("jmp", "ljmp") else "conditional"
    if name.startswith("loop"):
        return "conditional"
    return "other" if name in ("call", "lcall", "ret", "retf", "iretq", "syscall", "int", "int3") else ""


def _arm_branch(decoded: capstone.CsInsn) -> str:
    name = decoded.mnemonic
    if name.startswith("b.") or name in ("cbz", "cbnz", "tbz", "tbnz"):
        return "conditional"
    return "other" if name in ("b", "bl", "br", "blr", "ret") else ""


_DISASSEMBLERS = {isa: capstone.Cs(*mode) for isa, mode in DISASSEMBLER.items()}
for _each in _DISASSEMBLERS.values():
    _each.detail = False


def _disassembler(isa: str) -> capstone.Cs:
    return _DISASSEMBLERS[isa]


def plugin() -> Path:
    """The compiled plugin, in the cache; newer than its source."""
    require.command("gcc", package="gcc")
    built = debian.cache_directory().parent / "counts.so"
    if not built.exists() or built.stat().st_mtime < PLUGIN_SOURCE.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_suffix(f".{os.getpid()}")
        command = ["gcc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o", str(unfinished), str(PLUGIN_SOURCE)]
        subprocess.run(command, check=True)
        unfinished.rename(built)
    return built


def qemu_counts(
    isa: str,
    argv: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    executable: str | None = None,
    sysroot: Path | None = None,
    cpu: str | None = None,
    memory: bool = False,
    trace: bool = False,
    stdin: Path | None = None,
    cwd: Path | None = None,
) -> QemuRun:
    """Run `argv` (the file is `executable` or argv[0]) under qemu-user with exactly `environment`, on one processor."""
    qemu = require.command(QEMU[isa], package="qemu-user")
    with TemporaryDirectory(prefix="perfemu-reference-") as directory:
        out = Path(directory) / "counts"
        arguments = f"{plugin()},out={out}" + (",memory=on" if memory else "") + (",trace=on" if trace else "")
        command = [
            qemu,
            "-plugin",
            arguments,
            "-cpu",
            cpu or CPU[isa],
            "-s",
            str(STACK_BYTES),
            "-seed",
            "1",
            "-0",
            argv[0],
        ]
        if sysroot is not None:
            command += ["-L", str(sysroot)]
        command += [executable or argv[0], *argv[1:]]
        with (stdin or Path(os.devnull)).open("rb") as standard_input:
            process = subprocess.Popen(
                command,
                env=dict(reversed((environment or {}).items())),  # qemu turns their order round
                stdin=standard_input,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
            )
            stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        written = Path(f"{out}.{process.pid}")
        if not written.exists():
            raise RuntimeError(f"{' '.join(command)} left no counts: {stderr.decode(errors='replace')}")
        rows = _rows(written)
        traced = Path(f"{written}.trace")
        events = list(EVENT.iter_unpack(traced.read_bytes())) if trace else []
    return QemuRun(
        isa,
        process.returncode,
        stdout,
        stderr,
        [_instruction(*row) for row in rows["i"]],
        [found for row in rows["m"] if (found := _mapping(*row))],
        process.pid,
        _stack_top(rows["m"]),
        events,
        min((int(seconds) for number, seconds in rows["s"] if int(number) in CLOCK_CALLS[isa]), default=0),
    )


def _rows(written: Path) -> dict[str, list[list[str]]]:
    """The fields of the lines of each kind."""
    rows: dict[str, list[list[str]]] = {"i": [], "m": [], "s": []}
    for line in written.read_text(encoding="utf-8").splitlines():
        kind, *fields = line.split()
        rows[kind].append(fields)
    return rows


def _instruction(address: str, code: str, *counts: str) -> Instruction:
    return Instruction(int(address, 16), bytes.fromhex(code), *map(int, counts))


def _mapping(extent: str, _protection: str, offset: str, _device: str, _inode: str, *path: str) -> FileMapping | None:
    if not path or not path[0].startswith("/"):
        return None
    start, end = (int(part, 16) for part in extent.split("-"))
    return start, end, int(offset, 16), " ".join(path)


def _stack_top(maps: list[list[str]]) -> int:
    """qemu keeps one page without access below the stack, and has the guest's mappings in the lowest TiB."""
    guard_end = ""
    for extent, protection, *_ in maps:
        start, end = extent.split("-")
        if start == guard_end and protection.startswith("rw") and int(end, 16) - int(start, 16) >= STACK_BYTES:
            return int(start, 16) + STACK_BYTES
        guard = protection.startswith("---") and int(end, 16) - int(start, 16) == 4096 and int(end, 16) < 1 << 40
        guard_end = end if guard else ""
    raise RuntimeError(f"no stack in {maps}")
