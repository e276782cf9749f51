"""Cycles of loops on the host, without a PMU: each is timed in turn with a chain of dependent additions.

One addition takes one cycle on every x86-64 core that we know, so the ratio of the two times is in cycles, whatever the
clock does. Times are by TSC, of some tens of microseconds: short enough that most are not interrupted.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROUNDS = 200  # pairs of times in one batch
UNDISTURBED = 0.05  # the quantile of times that counts: other threads of the core, and of the host, only ever add
PASSES = 6  # over all loops: a disturbance may last longer than a loop is timed
BATCHES = 5  # at most
STABLE = 0.01  # between the two least disturbed batches


@dataclass(frozen=True, slots=True)
class Loop:
    """`body` over and over, with DEC RDI and JNZ behind it. `addresses`: see emulator._native.simulate."""

    name: str
    judged: bool
    body: str
    setup: str = ""
    addresses: tuple[tuple[int, int, int], ...] | None = None

    def assembly(self, label: str) -> str:
        """The body and the branch back, in Intel's syntax."""
        lines = [part.strip() for part in self.body.split(";")]
        return "\n".join([f"{label}:", *lines, "9: dec rdi", f"jnz {label}", f"{label}_end:"])


def loops() -> list[Loop]:
    table = tomllib.loads((FOLDER / "loops.toml").read_text(encoding="utf-8"))
    found = []
    for kind in ("probe", "judged"):
        for name, row in table[kind].items():
            addresses = tuple(tuple(each) for each in row["addresses"]) if "addresses" in row else None
            found.append(Loop(name, kind == "judged", row["body"], row.get("setup", ""), addresses))
    return found


def build(chosen: list[Loop], folder: Path) -> Path:
    """The program that times the loops, times.c, with them in it."""
    source, program = folder / "loops.s", folder / "times"
    source.write_text("\n".join(_assembly(chosen)), encoding="utf-8")
    subprocess.run(["gcc", "-O2", "-o", program, FOLDER / "times.c", source], check=True)
    return program


def _assembly(chosen: list[Loop]) -> Iterator[str]:
    yield ".intel_syntax noprefix\n.text"
    for number, loop in enumerate(chosen):
        yield f".globl loop_{number}\n.p2align 6\nloop_{number}:"
        yield "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\nfninit"
        for register in ["rax", "rbx", "rcx", "rdx", "rbp"]:
            yield f"xor e{register[1:]}, e{register[1:]}"
        for index in range(8, 16):
            yield f"mov r{index}d, {2 * index - 13}"
            yield f"movsd xmm{index}, one[rip]\nmovlhps xmm{index}, xmm{index}"
        yield from (f"xorps xmm{index}, xmm{index}" for index in range(8))
        yield loop.setup.replace(";", "\n")
        yield f".p2align 6\n{loop.assembly(f'body_{number}')}"
        yield "fninit\npop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\nret"
    pointers = ", ".join(f"loop_{number}" for number in range(len(chosen)))
    yield f".data\n.globl loops\nloops: .quad {pointers}\none: .double 1.0"
    yield '.section .note.GNU-stack,"",@progbits\n'


def all_cycles(program: Path, numbers: list[int]) -> dict[int, float]:
    """Cycles of one iteration of each of these loops: the least of some passes over all."""
    passes = [{number: cycles(program, number) for number in numbers} for _ in range(PASSES)]
    return {number: min(each[number] for each in passes) for number in numbers}


def cycles(program: Path, number: int) -> float:
    """Of one iteration of loop `number`: what the two least batches agree on."""
    iterations = max(1000, int(30_000 / _run(program, number, 9, 1000)))  # for about 30 000 cycles
    found: list[float] = []
    while len(found) < BATCHES:
        found.append(_run(program, number, ROUNDS, iterations))
        least = sorted(found)[:2]
        if len(found) >= 2 and least[1] / least[0] - 1 < STABLE:
            break
    return statistics.fmean(least)


def chase_cycles(program: Path, size: int) -> float:
    """Of one load of a random chase through `size` bytes, a pointer in each line of 64."""
    return _run(program, "chase", size, max(2 * size // 64, 100_000))


def _run(program: Path, *arguments: object) -> float:
    """Times of loop and chain, each as undisturbed as it was, in cycles."""
    command = [program, *map(str, arguments)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times = [[float(time) for time in line.split()] for line in output.splitlines()]
    loop, addition = (sorted(column)[int(len(column) * UNDISTURBED)] for column in zip(*times, strict=True))
    return loop / addition


def host_core() -> tuple[str, str | None]:
    """What /proc/cpuinfo says that this machine is, and our core for it, if there is one."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    if platform.machine() != "x86_64":
        return platform.machine(), None
    vendor, family, model = fields["vendor_id"], int(fields["cpu family"]), int(fields["model"])
    described = f"{vendor} family {family} model {model} ({fields.get('model name', 'unnamed')})"
    redwood_cove = (0xAA, 0xAC, 0xAD, 0xAE)  # Meteor Lake's and Granite Rapids' large cores
    zen4 = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))  # of family 19h; the others are Zen 3
    match vendor, family:
        case "AuthenticAMD", 0x1A:
            return described, "zen5"
        case "AuthenticAMD", 0x19 if model in zen4:
            return described, "zen4"
        case "GenuineIntel", 6 if model in (0x4E, 0x5E, 0x8E, 0x9E):
            return described, "skylake-fused"
        case "GenuineIntel", 6 if model in redwood_cove or _is_redwood_cove(fields["flags"].split()):
            return described, "redwood-cove"
    return described, None


def _is_redwood_cove(flags: list[str]) -> bool:
    """By what is left where a hypervisor gives the model another number: AMX, as servers have, and 64 KiB of L1I."""
    l1i = Path("/sys/devices/system/cpu/cpu0/cache/index1")
    sizes = [each.read_text().strip() for each in (l1i / "type", l1i / "size") if each.exists()]
    return "amx_tile" in flags and sizes == ["Instruction", "64K"]
