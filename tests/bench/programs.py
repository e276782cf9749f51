"""What the models cost on twelve of Debian's programs, as multiples of cachegrind's time on the same work.

For every program and ISA, by turns, CPU seconds of each:
  cg        valgrind --tool=cachegrind, which counts instructions alone; only that of ideal is compared with it
  cg-sim    the same with caches and branches
  ideal     --core ideal
  caches    L1I, L1D, L2, two-level TLBs, gshare, no pipeline (tests/bench/cores/caches.toml)
  in-order  the same and an in-order pipeline (tests/bench/cores/in_order.toml)
  default   the ISA's default core: out of order, in its full configuration

Cachegrind runs Debian's amd64 program on the host, also where the row is of the arm64 one: what its user has instead.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median

from models import CORES, modelled
from workloads import ISAS, LUA, SQL, Workload, child_seconds, cpu_seconds

import debian
from perfemu.cores import DEFAULT_CORES

PACKAGES = (
    "bzip2", "coreutils", "cpp", "gzip", "lua5.4", "mawk", "openssl", "perl", "python3", "sqlite3", "xz-utils", "zstd",
)  # fmt: skip
CACHEGRIND = ("valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null")
GOALS = "goals, of cg-sim: caches 0.8 in the mean and 1.2 at most; default 5 in the mean. ideal: of cg"

PYTHON = """
words = {}
for i in range(150000):
    word = str(i * 7919 % 4093)
    words[word] = words.get(word, 0) + i
print(len(words), max(words.values()), sum(len(word) for word in sorted(words)))
"""
PERL = """
my (%count, $text);
$text .= ($_ * 7919 % 4093) . " of " . ($_ % 977) . "\\n" for 1 .. 120000;
$count{$1}++ while $text =~ /(\\d+) of/g;
print scalar(keys %count), " ", join(",", (sort { $count{$b} <=> $count{$a} || $a <=> $b } keys %count)[0 .. 3]), "\\n";
"""
AWK = "{ for (i = 1; i <= NF; i++) { sum[$i] += i; n += length($i) } } END { for (w in sum) m += sum[w]; print n, m }"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files that are the same on any host."""

    text: Path  # 1.9 MB of words
    long_text: Path  # 3.8 MB of them
    lines: Path  # 100,000 lines to be sorted
    source: Path  # C of twelve functions

    @classmethod
    def written(cls, directory: Path) -> Inputs:
        made = cls(*(directory / name for name in ("text", "long-text", "lines", "source.i")))
        made.text.write_text(_words(100_000), encoding="ascii")
        made.long_text.write_text(_words(220_000), encoding="ascii")
        made.lines.write_text("".join(f"{i * 2654435761 % 1000003} {i}\n" for i in range(100_000)), encoding="ascii")
        made.source.write_text("".join(map(_function, range(12))), encoding="ascii")
        return made


def _words(count: int) -> str:
    return "".join(
        f"{i * 2654435761 % 4093:x} of {i % 977} and the{chr(10) if i % 9 == 0 else ' '}" for i in range(count)
    )


def _function(number: int) -> str:
    return f"""
    int f{number}(int *a, int n) {{
      int sum = {number};
      for (int i = 0; i < n; i++) {{
        switch (a[i] & 7) {{
          case 0: sum += a[i] * {number + 3}; break;
          case 1: sum ^= a[i] >> {number % 31}; break;
          case 2: a[i] = sum / (n + 1); break;
          default: sum -= a[i]; }}
      }}
      return sum;
    }}
    """


# By the name of the program: where it is in its package, and its arguments.
PROGRAMS: dict[str, tuple[str, Callable[[Inputs], tuple[object, ...]]]] = {
    "bzip2": ("bin/bzip2", lambda inputs: ("-9c", inputs.text)),
    "cc1": ("usr/lib/gcc/*/*/cc1", lambda inputs: ("-quiet", "-O2", "-fpreprocessed", inputs.source, "-o", "-")),
    "gzip": ("bin/gzip", lambda inputs: ("-c", inputs.long_text)),
    "lua5.4": ("usr/bin/lua5.4", lambda inputs: ("-e", LUA) * 3),
    "mawk": ("usr/bin/mawk", lambda inputs: (AWK, inputs.long_text)),
    "openssl": ("usr/bin/openssl", lambda inputs: ("dgst", "-sha3-512", *[inputs.long_text] * 4)),
    "perl": ("usr/bin/perl", lambda inputs: ("-e", PERL)),
    "python3": ("usr/bin/python3", lambda inputs: ("-I", "-S", "-c", PYTHON)),
    "sort": ("usr/bin/sort", lambda inputs: ("-n", "--parallel=1", inputs.lines)),
    "sqlite3": ("usr/bin/sqlite3", lambda inputs: (":memory:", SQL)),
    "xz": ("usr/bin/xz", lambda inputs: ("-2", "-c", "--threads=1", inputs.lines)),
    "zstd": ("usr/bin/zstd", lambda inputs: ("-9", "-q", "-c", "--single-thread", inputs.long_text)),
}


def workload(name: str, isa: str, inputs: Inputs) -> Workload:
    root = debian.unpacked(debian.ARCHITECTURES[isa], *PACKAGES)
    pattern, arguments = PROGRAMS[name]
    (program,) = {path.resolve() for path in root.glob(pattern)}
    return Workload(name, isa, (str(program), *map(str, arguments(inputs))), str(root))


def cachegrind(work: Workload, simulates: bool) -> float:
    simulation = "yes" if simulates else "no"
    return child_seconds([*CACHEGRIND, f"--cache-sim={simulation}", f"--branch-sim={simulation}", *work.argv])


def modes(isa: str, native: Workload) -> dict[str, Callable[[Workload], float]]:
    """Seconds that each takes."""
    cores = {
        "ideal": "ideal",
        "caches": str(CORES / "caches.toml"),
        "in-order": str(CORES / "in_order.toml"),
        "default": DEFAULT_CORES[isa],
    }
    runs: dict[str, Callable[[Workload], float]] = {
        "cg": lambda _: cachegrind(native, simulates=False),
        "cg-sim": lambda _: cachegrind(native, simulates=True),
    }
    for name, core in cores.items():
        runs[name] = partial(_modelled_seconds, modelled(core))
    return runs


def _modelled_seconds(run: Callable[[Workload], None], work: Workload) -> float:
    return cpu_seconds(partial(run, work))


def run(repeats: int, only: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="perfemu-bench-") as directory:
        inputs = Inputs.written(Path(directory))
        for isa in ISAS:
            print(f"{isa:14}{'cg s':>8}{'cg-sim s':>10}{'ideal':>8}{'caches':>8}{'in-order':>10}{'default':>9}")
            rows: list[dict[str, float]] = []
            for name in PROGRAMS:
                if not only or name in only:
                    seconds = _medians(workload(name, isa, inputs), workload(name, "x86_64", inputs), repeats)
                    rows.append({mode: taken / seconds[_beside(mode)] for mode, taken in seconds.items()})
                    _print(name, rows[-1], f"{seconds['cg']:8.2f}{seconds['cg-sim']:10.2f}")
            if rows:
                means = {mode: geometric_mean(row[mode] for row in rows) for mode in rows[0]}
                _print("geom. mean", means, " " * 18)
    print(GOALS)


def _medians(work: Workload, native: Workload, repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        for mode, each in modes(work.isa, native).items():
            times.setdefault(mode, []).append(each(work))
    return {mode: median(values) for mode, values in times.items()}


def _beside(mode: str) -> str:
    """What it is compared with."""
    return "cg" if mode in ("cg", "ideal") else "cg-sim"


def _print(name: str, row: dict[str, float], first: str) -> None:
    print(
        f"{name:14}{first}{row['ideal']:8.2f}{row['caches']:8.2f}{row['in-order']:10.2f}{row['default']:9.2f}",
        flush=True,
    )
