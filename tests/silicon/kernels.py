"""Probe kernels on this x86-64 host and on our core for it: cycles of one repetition (tests/silicon/kernels.toml).

usage: python -m tests.silicon.kernels [CORE [NAME...]]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.silicon import measure, programs, runs
from tests.silicon.__main__ import table

REPETITIONS = 2_000_000  # that are timed
ROUNDS = 60
PASSES = 3  # over all kernels: a disturbance may last longer than a kernel is timed
START = """.intel_syntax noprefix
.globl _start
_start: mov rsi, [rsp+16]
xor edi, edi
1: movzx ecx, byte ptr [rsi]
test cl, cl
jz 2f
imul rdi, rdi, 10
lea rdi, [rdi+rcx-48]
inc rsi
jmp 1b
2: lea rsi, data[rip]
xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor ebp, ebp; xor r12d, r12d; xor r13d, r13d
mov r8d, 1; mov r9d, 1; mov r10d, 1; mov r11d, 1; xor r14d, r14d; xor r15d, r15d
"""
END = """
9: dec rdi
jnz loop
mov eax, 60; xor edi, edi; syscall
.bss
.balign 4096
data: .skip 65536
"""


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    setup: str
    body: str  # of one iteration
    times: int  # that what is timed is in it

    def build(self, folder: Path) -> Path:
        source, program = folder / f"{self.name}.s", folder / self.name
        source.write_text(f"{START}{self.setup}\n.p2align 6\nloop: {self.body}\n{END}", encoding="utf-8")
        subprocess.run(["gcc", "-nostdlib", "-static", "-Wa,-W", "-o", program, source], check=True)
        return program


def dispatching(name: str, targets: int, order: int) -> Kernel:
    """Handlers that jump to the next one's: an interpreter of a program that was drawn once."""
    drawn = random.Random(1)
    codes = ",".join(str(drawn.randrange(targets)) for _ in range(order))
    handlers = [f"handler{target}" for target in range(targets)]
    jump = f"cmp rcx, {order}; jae 9f; movzx eax, byte ptr [r9+rcx]; inc rcx; jmp [rdx+rax*8]"
    tables = f"places: .quad {', '.join(handlers)}; codes: .byte {codes}"
    setup = f".data; {tables}; .text; lea rdx, places[rip]; lea r9, codes[rip]"
    body = f"xor ecx, ecx; {jump}; " + "; ".join(f".p2align 4; {handler}: add r10, 1; {jump}" for handler in handlers)
    return Kernel(name, setup, body, order)


def kernels() -> list[Kernel]:
    rows = tomllib.loads(Path(__file__).with_name("kernels.toml").read_text(encoding="utf-8"))
    found = []
    for name, row in rows.items():
        if "order" in row:
            found.append(dispatching(name, row["targets"], row["order"]))
            continue
        times = row.get("times", 1)
        body = "; ".join(row["body"].replace("@", str(number)) for number in range(times))
        found.append(Kernel(name, row.get("setup", ""), body, times))
    return found


def work(program: str, kernel: Kernel) -> runs.Workload:
    little = max(4, REPETITIONS // 8 // kernel.times)
    return runs.Workload(kernel.name, (program, str(4 * little)), (program, str(little)))


def main() -> int:
    host, core = measure.host_core()
    core = sys.argv[1] if len(sys.argv) > 1 else core
    if core is None:
        print(f"the host is {host}, which no core of ours models: name one", file=sys.stderr)
        return 1
    print(f"The host is {host}; our core is {core}.")
    with tempfile.TemporaryDirectory() as name:
        timer = runs.build(Path(name))
        chosen = [kernel for kernel in kernels() if not sys.argv[2:] or kernel.name in sys.argv[2:]]
        works = {kernel: work(str(kernel.build(Path(name))), kernel) for kernel in chosen}
        passes = [{kernel: runs.host_cycles(timer, works[kernel], ROUNDS) for kernel in chosen} for _ in range(PASSES)]
        rows = []
        for kernel in chosen:
            repetitions = kernel.times * (int(works[kernel].much[1]) - int(works[kernel].little[1]))
            measured = min(each[kernel] for each in passes) / repetitions
            rows.append((kernel.name, measured, programs.model_cycles(works[kernel], core)[0] / repetitions))
    for line in table("kernel", rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
