"""llvm-mca: what LLVM's scheduling models say about kernels, and how our cores compare."""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.accuracy.kernels import FOLDER, LANGUAGES, Kernel, assemble, cycles_per_iteration, kernels

COMMAND = "llvm-mca-19"  # Debian's package llvm-19
FEW, MANY = 100, 300  # iterations
TARGETS = {  # by our core's name: its ISA, and what llvm-mca calls it
    "neoverse-n1": ("aarch64", ["-mtriple=aarch64", "-mcpu=neoverse-n1", "-mattr=+crypto,+crc"]),
    "skylake": ("x86_64", ["-mtriple=x86_64", "-mcpu=skylake"]),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    kernel: Kernel
    ours: float  # cycles, of one copy
    mca: float
    why: str | None  # the reason for a difference that we mean to have

    @property
    def error(self) -> float:
        return self.ours / self.mca - 1


def cycles(core: str, chosen: list[Kernel], folder: Path) -> list[float]:
    """Cycles of one iteration of each kernel in llvm-mca, when it has been running for a while."""
    source = folder / "mca.s"
    isa, options = TARGETS[core]
    header = LANGUAGES[isa].header if isa == "x86_64" else ""  # of AArch64, options say it
    regions = [f"# LLVM-MCA-BEGIN {kernel.name}\n{header}\n{kernel.text}\n# LLVM-MCA-END" for kernel in chosen]
    source.write_text("\n".join([*regions, ""]), encoding="utf-8")
    few, many = (_total_cycles(source, options, iterations) for iterations in (FEW, MANY))
    return [(last - first) / (MANY - FEW) for first, last in zip(few, many, strict=True)]


def _total_cycles(source: Path, options: list[str], iterations: int) -> list[int]:
    done = subprocess.run(
        [COMMAND, *options, f"-iterations={iterations}", "-json", source], capture_output=True, text=True, check=True
    )
    return [region["SummaryView"]["TotalCycles"] for region in json.loads(done.stdout)["CodeRegions"]]


def differences(core: str) -> dict[str, str]:
    """Kernel -> why our core does not agree with llvm-mca."""
    reasons: dict[str, str] = tomllib.loads((FOLDER / "differences.toml").read_text(encoding="utf-8"))[core]
    return reasons


def compare(core: str, tables: dict[str, object], folder: Path) -> list[Comparison]:
    """All kernels of its ISA on our core `core`, whose tables are `tables`, and in llvm-mca."""
    isa, _ = TARGETS[core]
    chosen, reasons = kernels(isa), differences(core)
    theirs = cycles(core, chosen, folder)
    codes = assemble(isa, [kernel.text for kernel in chosen], folder)
    return [
        Comparison(
            kernel,
            cycles_per_iteration(isa, tables, code) / kernel.copies,
            mca / kernel.copies,
            reasons.get(kernel.name),
        )
        for kernel, code, mca in zip(chosen, codes, theirs, strict=True)
    ]
