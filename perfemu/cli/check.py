"""perfemu check: hold the counts of benchmarks against a baseline that is kept with the sources."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from perfemu.checking.baseline import Baseline, Entry
from perfemu.checking.benchmarks import Benchmark, read_benchmarks
from perfemu.checking.printing import github_annotations, junit, markdown, text
from perfemu.checking.runs import Outcome, measure_all
from perfemu.checking.verdict import Verdict, judge
from perfemu.cli.options import positive_int
from perfemu.cli.streams import tell
from perfemu.errors import UsageError
from perfemu.output_file import OutputText

EXAMPLES = """\
  perfemu check --update                      run the benchmarks of perfemu.toml, and keep what they count
  perfemu check                               run them again: exit status 1 if one has grown beyond its tolerance
  perfemu check --only parse -j 4 bench.toml
  perfemu check --github --junit check.xml --markdown comment.md

  [benchmark.parse]                           # perfemu.toml
  command = "./parse input.json"
  events = ["instructions", "L1-dcache-load-misses"]
  core = "neoverse-n1"
  tolerance = "0.1%"                          # or { instructions = "0", cycles = "1%" }
"""

DEFAULT_FILE = "perfemu.toml"
FAILED = 1  # exit status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", default=DEFAULT_FILE, help=f"benchmarks [{DEFAULT_FILE}]")
    parser.add_argument("--baseline", metavar="FILE", help="what to hold them against [NAME-baseline.json]")
    parser.add_argument("--update", action="store_true", help="keep what is counted now as the baseline")
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="these benchmarks alone")
    parser.add_argument("-j", "--jobs", metavar="N", type=positive_int, default=1, help="so many at once [1]")
    output = parser.add_argument_group("output")
    output.add_argument("--github", action="store_true", help="GitHub annotations, too")
    output.add_argument("--markdown", metavar="FILE", help="tables for a pull request")
    output.add_argument("--junit", metavar="FILE", help="JUnit's XML")


def run(options: argparse.Namespace) -> int:
    benchmarks = _chosen(read_benchmarks(options.file), options.only, options.file)
    baseline = Baseline.read(options.baseline or _baseline_of(options.file))
    verdicts, measured = [], {}
    for done in measure_all(benchmarks, options.jobs):
        verdict = _verdict(done, baseline)
        verdicts.append(verdict)
        if done.measured is not None:
            measured[done.benchmark.name] = Entry.of(done.measured)
    if options.update:
        baseline.entries.update(measured)
        if not options.only:
            known = {benchmark.name for benchmark in benchmarks}
            baseline.entries = {name: entry for name, entry in baseline.entries.items() if name in known}
        baseline.write()
    sys.stdout.write(text(verdicts))
    if options.github:
        sys.stdout.write(github_annotations(verdicts, options.file))
    _write(options.markdown, markdown, verdicts)
    _write(options.junit, junit, verdicts)
    if options.update:
        tell(f"perfemu: check: {baseline.path} has the counts of {len(measured)} benchmarks now")
        return FAILED if any(verdict.broken for verdict in verdicts) else 0
    return FAILED if any(verdict.outcome.is_failure for verdict in verdicts) else 0


def _chosen(benchmarks: list[Benchmark], only: Sequence[str], path: str) -> list[Benchmark]:
    names = {benchmark.name for benchmark in benchmarks}
    for name in only:
        if name not in names:
            raise UsageError(f"check --only {name}: {path} has {', '.join(sorted(names))}")
    return [benchmark for benchmark in benchmarks if not only or benchmark.name in only]


def _baseline_of(path: str) -> str:
    return f"{path.removesuffix('.toml')}-baseline.json"


def _verdict(done: Outcome, baseline: Baseline) -> Verdict:
    name = done.benchmark.name
    if done.measured is None:
        return Verdict(name, (), done.problem, broken=True)
    return judge(name, done.measured, baseline.entries.get(name), done.benchmark.tolerance)


def _write(path: str | None, form: Callable[[Sequence[Verdict]], str], verdicts: Sequence[Verdict]) -> None:
    if path is not None:
        with OutputText(path) as output:
            output.stream.write(form(verdicts))
