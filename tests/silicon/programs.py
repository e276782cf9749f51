"""Whole programs on this x86-64 host, timed, and on our core for it: a table of docs/accuracy.md.

usage: python -m tests.silicon.programs [CORE [NAME...]]

The host's cycles are the CPU time of the fastest of many runs, in units of a one-cycle add: a long chain of dependent
adds is run between the programs. What a program takes that does nothing is taken off on both sides: `true` for those
that the C library starts. The C library is kept from choosing code that
our CPUs do not offer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import perfemu
from tests.silicon import measure

GUESTS = Path(__file__).resolve().parents[2] / "guest_programs"
ADDS = 100_000_000
RUNS = 12
# What the emulated CPUs do not have, as glibc names it.
TUNABLES = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-FMA,-F16C,-ERMS,-FSRM,-XSAVE,-XSAVEC,-RTM"
CHAIN = """
int main(void) {
    unsigned long n = %d / 10, x = 0;
    do {
        __asm__ volatile("add $1,%%0; add $1,%%0; add $1,%%0; add $1,%%0; add $1,%%0;"
                         "add $1,%%0; add $1,%%0; add $1,%%0; add $1,%%0; add $1,%%0" : "+r"(x));
    } while (--n);
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    argv: tuple[str, ...]


def workloads(folder: Path) -> list[Workload]:
    text = folder / "text"
    text.write_text(" ".join(f"{(i * 2654435761 % 4093):x} of {i % 977} and the" for i in range(20_000)))
    (folder / "lines").write_text("".join(f"{i * 7919 % 100_003}\n" for i in range(30_000)))
    packed = folder / "text.gz"
    packed.write_bytes(subprocess.run(["gzip", "-c", text], check=True, capture_output=True).stdout)

    def guest(name: str, argument: int) -> Workload:
        return Workload(name, (str(GUESTS / name / "x86_64.elf"), str(argument)))

    def lua(name: str, source: str) -> Workload:
        return Workload(f"lua {name}", ("/usr/bin/lua5.4", "-e", source))

    sql = (
        "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n "
        "where i<6000) insert into t select i, 'name'||(i*7919%20011) from n; create index x on t(b); "
        "select count(*) from t where b like 'name1%'; select sum(p.a) from t p join t q on p.b=q.b;"
    )
    return [
        guest("embedded_mix", 800),
        guest("sort", 150_000),
        guest("matrix", 128),
        guest("compression", 160),
        guest("interpreter", 8),
        guest("sha256", 300),
        guest("integer_mix", 500),
        Workload("gzip", ("/bin/gzip", "-c", str(text))),
        Workload("gunzip", ("/bin/gzip", "-dc", str(packed))),
        Workload("bzip2", ("/bin/bzip2", "-c", str(text))),
        lua("sort", "local t={} for i=1,30000 do t[i]=(i*7919)%100003 end table.sort(t) print(t[1])"),
        lua("fib", "local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end print(f(24))"),
        lua(
            "strings", "local t={} for i=1,12000 do t[#t+1]=string.format('%d:%s',i,i*1.5) end print(#table.concat(t))"
        ),
        Workload("sqlite3", ("/usr/bin/sqlite3", ":memory:", sql)),
        Workload(
            "busybox awk", ("/bin/busybox", "awk", "BEGIN{for(i=0;i<60000;i++){s+=i%7;t=t i%10};print s,length(t)}")
        ),
        Workload("busybox sha256sum", ("/bin/busybox", "sha256sum", str(text), str(text), str(text))),
        Workload("sort -n", ("/usr/bin/sort", "-n", str(folder / "lines"))),
    ]


def seconds(argv: tuple[str, ...]) -> float:
    environment = {"PATH": "/usr/bin:/bin", "GLIBC_TUNABLES": TUNABLES, "LC_ALL": "C"}
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen(argv, stdout=nowhere, stderr=nowhere, stdin=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(argv)[:80]} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def host_cycles(workload: Workload, chain: Path) -> float:
    """Cycles of the fastest run, its clock taken from the fastest chain around it."""
    chains, starts, runs = [], [], []
    for _ in range(RUNS):
        chains.append(seconds((str(chain),)))
        starts.append(seconds(nothing(workload).argv))
        runs.append(seconds(workload.argv))
    return (min(runs) - min(starts)) * ADDS / min(chains)


def nothing(workload: Workload) -> Workload:
    """A program that does nothing, started as `workload` is."""
    ours = workload.argv[0].startswith(str(GUESTS))
    return Workload("nothing", (str(GUESTS / "loop_1k" / "x86_64.elf") if ours else "/bin/true",))


def model_cycles(workload: Workload, core: str) -> tuple[int, int]:
    """(cycles, instructions) in user mode."""
    counted = perfemu.stat(
        list(workload.argv), ["cycles:u", "instructions:u"], core=core, capture=True, environment={"LC_ALL": "C"}
    )
    assert counted.exit_status == 0, workload.name
    return counted["cycles:u"], counted["instructions:u"]


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's, without ties."""
    ranks = [[sorted(column).index(value) for value in column] for column in zip(*pairs, strict=True)]
    n = len(pairs)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n * n - 1))


def main() -> int:
    host, core = measure.host_core()
    core = sys.argv[1] if len(sys.argv) > 1 else core
    if core is None:
        print(f"the host is {host}, which no core of ours models: name one", file=sys.stderr)
        return 1
    print(f"The host is {host}; our core is {core}.\n")
    print("| program | instructions | host, cycles | model | difference |\n|---|---|---|---|---|")
    pairs: list[tuple[float, float]] = []
    per_instruction: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chain = folder / "chain"
        subprocess.run(
            ["gcc", "-O1", "-static", "-x", "c", "-o", chain, "-"], input=CHAIN % ADDS, text=True, check=True
        )
        for workload in workloads(folder):
            if sys.argv[2:] and workload.name not in sys.argv[2:]:
                continue
            measured = host_cycles(workload, chain)
            modelled, instructions = (
                whole - start
                for whole, start in zip(
                    model_cycles(workload, core), model_cycles(nothing(workload), core), strict=True
                )
            )
            pairs.append((measured, modelled))
            per_instruction.append((measured / instructions, modelled / instructions))
            row = (
                f"{workload.name} | {instructions:,} | {measured:,.0f} | {modelled:,} | {modelled / measured - 1:+.1%}"
            )
            print(f"| {row} |", flush=True)
    if len(pairs) > 1:
        error = mean(abs(modelled / measured - 1) for measured, modelled in pairs)
        print(
            f"\nMean absolute difference of {len(pairs)}: {error:.1%}; rank correlation of cycles per instruction:",
            end=" ",
        )
        print(f"{rank_correlation(per_instruction):.2f}, of cycles: {rank_correlation(pairs):.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
