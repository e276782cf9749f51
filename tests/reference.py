"""Independent instruction counts: qemu-user with the plugin of tests/qemu_plugin, and single-stepping by ptrace.

`qemu_counts` gives what a program retires, by instruction and by symbol. `REP` retires once, as on hardware. What a
qemu-user run and ours may differ in is the start-up code that looks at the CPU, so give both the same CPU, arguments
and environment.
"""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import capstone
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import debian
import require

PLUGIN_SOURCE = Path(__file__).parent / "qemu_plugin" / "counts.c"
QEMU = {"aarch64": "qemu-aarch64", "x86_64": "qemu-x86_64"}
# What emulator.arch offers, so that the C library makes the same choices.
CPU = {
    "aarch64": "cortex-a72",
    "x86_64": "Haswell-noTSX,-avx,-avx2,-fma,-f16c,-xsave,-xsaveopt,-rdrand,-erms,-smep,-invpcid,-pcid,-x2apic"
    ",-tsc-deadline,-vme,-mtrr,-mca,-mce",
}
DISASSEMBLER = {
    "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
}
TIMEOUT_SECONDS = 300


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
    mappings: list[tuple[int, int, int, str]] = field(repr=False)  # start, end, file offset, path

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
    def total(self) -> int:
        return self.probes["INST_RETIRED"]

    @cached_property
    def by_symbol(self) -> dict[str, int]:
        """Retired instructions by `file:symbol`; what lies in no symbol is `file:?`."""
        tables = {path: SymbolTable(path) for *_, path in self.mappings}
        counts: Counter[str] = Counter()
        for i in self.instructions:
            counts[self._symbol(tables, i.address)] += self.retired(i)
        return dict(counts)

    def _symbol(self, tables: Mapping[str, SymbolTable], address: int) -> str:
        for start, end, offset, path in self.mappings:
            if start <= address < end:
                return f"{Path(path).name}:{tables[path].name_at_offset(address - start + offset)}"
        return f"?:{address:#x}"


class SymbolTable:
    """Names of the functions of an ELF file, by file offset; also from its debug file below `debug`, a file tree."""

    def __init__(self, path: str, debug: Path | None = None) -> None:
        self._functions: list[tuple[int, int, str]] = []
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return
            elf = ELFFile(file)
            segments = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
            names = _function_names(elf)
            if debug is not None and (debug_file := _debug_file(elf, debug)):
                with debug_file.open("rb") as separate:
                    names = _function_names(ELFFile(separate)) | names
            for address, (size, name) in sorted(names.items()):
                for s in segments:
                    if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_filesz"]:
                        self._functions.append((address - s["p_vaddr"] + s["p_offset"], size, name))
        self._functions.sort()

    def name_at_offset(self, offset: int) -> str:
        index = bisect_right(self._functions, (offset, 1 << 64, "")) - 1
        if index < 0:
            return "?"
        start, size, name = self._functions[index]
        return name if offset < start + max(size, 1) else "?"


def _function_names(elf: ELFFile) -> dict[int, tuple[int, str]]:
    """Address -> (size, name)."""
    names: dict[int, tuple[int, str]] = {}
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            for symbol in section.iter_symbols():
                if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS") and symbol["st_value"]:
                    names.setdefault(symbol["st_value"], (symbol["st_size"], symbol.name))
    return names


def _debug_file(elf: ELFFile, debug: Path) -> Path | None:
    """What -dbg packages have: usr/lib/debug/.build-id/<first byte>/<the others>.debug."""
    note = elf.get_section_by_name(".note.gnu.build-id")
    if note is None:
        return None
    build_id = next(iter(note.iter_notes()))["n_desc"]
    file = debug / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    return file if file.exists() else None


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
    start: int | None = None,
    stdin: Path | None = None,
    cwd: Path | None = None,
) -> QemuRun:
    """Run `argv` (the file is `executable` or argv[0]) under qemu-user with exactly `environment`.

    With `start`, counting starts at the first system call of that number (-1: at the first of all).
    """
    qemu = require.command(QEMU[isa], package="qemu-user")
    with TemporaryDirectory(prefix="perfemu-reference-") as directory:
        out = Path(directory) / "counts"
        arguments = f"{plugin()},out={out}" + (",memory=on" if memory else "")
        arguments += f",start={start}" if start is not None else ""
        command = [qemu, "-plugin", arguments, "-cpu", cpu or CPU[isa], "-seed", "1", "-0", argv[0]]
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
            )
            stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        written = Path(f"{out}.{process.pid}")
        if not written.exists():
            raise RuntimeError(f"{' '.join(command)} left no counts: {stderr.decode(errors='replace')}")
        instructions, mappings = _parse(written)
    return QemuRun(isa, process.returncode, stdout, stderr, instructions, mappings)


def _parse(written: Path) -> tuple[list[Instruction], list[tuple[int, int, int, str]]]:
    instructions = []
    mappings = []
    for line in written.read_text(encoding="utf-8").splitlines():
        kind, *fields = line.split()
        if kind == "i":
            address, code, *counts = fields
            instructions.append(Instruction(int(address, 16), bytes.fromhex(code), *map(int, counts)))
        elif len(fields) >= 6 and fields[5].startswith("/"):
            start, end = (int(part, 16) for part in fields[0].split("-"))
            mappings.append((start, end, int(fields[2], 16), fields[5]))
    return instructions, mappings
