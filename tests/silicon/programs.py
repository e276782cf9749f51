"""Whole programs on this x86-64 host, timed, and on our core for it: a table of docs/accuracy.md.

usage: python -m tests.silicon.programs [--core CORE] [--only NAME[,NAME...]] [--rounds N] [--host-times FILE]

See tests/silicon/runs.py for what is compared. With --host-times the host's cycles are taken from that file if it has
them, else measured and written there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

import perfemu
from tests.silicon import measure, runs
from tests.silicon.runs import Workload

COUNT_WORDS = "{n[$3]++; s+=length($1)} END {for (k in n) t+=n[k]; print s, t}"
GUESTS = Path(__file__).resolve().parents[2] / "guest_programs"


def workloads(folder: Path) -> list[Workload]:
    """Of one to three milliseconds."""

    def file(name: str, text: str) -> str:
        (folder / name).write_text(text, encoding="ascii")
        return str(folder / name)

    def words(count: int) -> str:
        return file(
            f"words{count}", " ".join(f"{(i * 2654435761 % 4093):x} of {i % 977} and the" for i in range(count))
        )

    def packed(count: int, by: str = "gzip", suffix: str = ".gz") -> str:
        subprocess.run([by, "-kf", words(count)], check=True)
        return words(count) + suffix

    def lines(count: int) -> str:
        rows = (f"{(i * 2654435761 % 4093):x} of {i % 977} and the\n" for i in range(count))
        return file(f"lines{count}", "".join(rows))

    def numbers(count: int) -> str:
        return file(f"numbers{count}", "".join(f"{i * 7919 % 100_003}\n" for i in range(count)))

    def guest(name: str, much: int, little: int) -> Workload:
        program = str(GUESTS / name / "x86_64.elf")
        return Workload(name, (program, str(much)), (program, str(little)))

    def tool(name: str, argv: str, much: str, little: str) -> Workload:
        return Workload(name, (*argv.split(), much), (*argv.split(), little))

    def script(name: str, argv: str, source: str, much: int, little: int) -> Workload:
        return tool(name, argv, source % much, source % little)

    lua = "/usr/bin/lua5.4 -e"
    sql = (
        "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n "
        "where i<%d) insert into t select i, 'name'||(i*7919%%20011) from n; create index x on t(b); "
        "select count(*) from t where b like 'name1%%'; select sum(p.a) from t p join t q on p.b=q.b;"
    )
    return [
        guest("embedded_mix", 240, 10),
        guest("sort", 30_000, 1000),
        guest("matrix", 128, 16),
        guest("compression", 60, 4),
        guest("interpreter", 11, 1),
        guest("sha256", 300, 10),
        guest("integer_mix", 200, 10),
        tool("gzip", "/bin/gzip -c", words(2000), words(100)),
        tool("gunzip", "/bin/gzip -dc", packed(16_000), packed(500)),
        tool("bzip2", "/bin/bzip2 -c", words(2000), words(100)),
        script(
            "lua sort", lua, "local t={} for i=1,%d do t[i]=(i*7919)%%100003 end table.sort(t) print(t[1])", 7000, 200
        ),
        script(
            "lua fib", lua, "local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end print(f(%d))", 21, 6
        ),
        script(
            "lua strings",
            lua,
            "local t={} for i=1,%d do t[#t+1]=string.format('%%d:%%s',i,i*1.5) end print(#table.concat(t))",
            3000,
            100,
        ),
        script("sqlite3", "/usr/bin/sqlite3 :memory:", sql, 1500, 50),
        script(
            "busybox awk",
            "/bin/busybox awk",
            "BEGIN{for(i=0;i<%d;i++){s+=i%%7;t=t i%%10};print s,length(t)}",
            5000,
            200,
        ),
        tool("busybox sha256sum", "/bin/busybox sha256sum", words(16_000), words(500)),
        tool("sort -n", "/usr/bin/sort -n", numbers(6000), numbers(100)),
        # These came later: docs/accuracy.md.
        tool("xz -0", "/usr/bin/xz -0 -c", words(2000), words(100)),
        tool("xz -d", "/usr/bin/xz -dc", packed(16_000, "xz", ".xz"), packed(2000, "xz", ".xz")),
        tool("bzip2 -d", "/bin/bzip2 -dc", packed(2000, "bzip2", ".bz2"), packed(100, "bzip2", ".bz2")),
        tool("sed", "/bin/sed s/of[[:space:]]\\([0-9]*\\)/\\1/", lines(4000), lines(100)),
        tool("md5sum", "/usr/bin/md5sum", words(16_000), words(500)),
        tool("sha1sum", "/usr/bin/sha1sum", words(16_000), words(500)),
        tool("base64", "/usr/bin/base64", words(16_000), words(500)),
        tool("wc", "/usr/bin/wc", words(16_000), words(500)),
        tool("sort lines", "/usr/bin/sort", lines(4000), lines(100)),
        tool("od", "/usr/bin/od -x", words(2000), words(100)),
        tool("factor", "/usr/bin/factor", "1000000016000000063", "10"),
        script(
            "perl",
            "/usr/bin/perl -e",
            "my %%h; for my $i (1..%d) { $h{$i * 7919 %% 1000} .= $i } my $n = 0; $n += length for values %%h",
            6000,
            200,
        ),
        Workload("mawk", ("/usr/bin/mawk", COUNT_WORDS, lines(8000)), ("/usr/bin/mawk", COUNT_WORDS, lines(100))),
        script(
            "lua mandelbrot",
            lua,
            "local c=0 for y=1,%d do for x=1,40 do local a,b=0,0 for i=1,40 do a,b=a*a-b*b+x/20-1.5,2*a*b+y/15-1 "
            "if a*a+b*b>4 then c=c+i break end end end end print(c)",
            30,
            1,
        ),
    ]


def model_cycles(workload: Workload, core: str) -> tuple[int, int]:
    """(cycles, instructions) in user mode of what `much` does more than `little`."""
    found = []
    for argv in (workload.much, workload.little):
        counted = perfemu.stat(
            perfemu.Guest(argv, core=core, environment=runs.ENVIRONMENT), ["cycles:u", "instructions:u"], capture=True
        )
        assert counted.exit_status == 0, f"{argv} ended with {counted.exit_status}"
        found.append((counted["cycles:u"], counted["instructions:u"]))
    much, little = found
    return much[0] - little[0], much[1] - little[1]


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's, without ties."""
    ranks = [[sorted(column).index(value) for value in column] for column in zip(*pairs, strict=True)]
    n = len(pairs)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n * n - 1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.silicon.programs", description=__doc__)
    parser.add_argument("--core", help="without: ours for this host")
    parser.add_argument("--only", help="programs, with commas between")
    parser.add_argument("--rounds", type=int, default=runs.ROUNDS, help="runs of each program")
    parser.add_argument("--host-times", type=Path, help="a file that keeps the host's cycles")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    host, core = measure.host_core()
    core = options.core or core
    if core is None:
        print(f"the host is {host}, which no core of ours models: name one", file=sys.stderr)
        return 1
    kept = options.host_times
    times: dict[str, float] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    print(f"The host is {host}; our core is {core}.\n")
    print("| program | instructions | host, cycles | model | difference |\n|---|---|---|---|---|")
    pairs: list[tuple[float, float]] = []
    per_instruction: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        program = runs.build(Path(name))
        for workload in workloads(Path(name)):
            if options.only and workload.name not in options.only.split(","):
                continue
            if workload.name not in times:
                times[workload.name] = runs.host_cycles(program, workload, options.rounds)
            measured = times[workload.name]
            modelled, instructions = model_cycles(workload, core)
            pairs.append((measured, modelled))
            per_instruction.append((measured / instructions, modelled / instructions))
            row = f"{workload.name} | {instructions:,} | {measured:,.0f} | {modelled:,}"
            print(f"| {row} | {modelled / measured - 1:+.1%} |", flush=True)
    if kept:
        kept.write_text(json.dumps(times, indent=1))
    if len(pairs) > 1:
        error = mean(abs(modelled / measured - 1) for measured, modelled in pairs)
        print(f"\nMean absolute difference of {len(pairs)}: {error:.1%}; rank correlation of cycles per instruction:")
        print(f"{rank_correlation(per_instruction):.2f}, of cycles: {rank_correlation(pairs):.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
