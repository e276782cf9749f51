"""A small core that is in order, as a text to be damaged."""

from __future__ import annotations

from pathlib import Path

from emulator.core_file.checks import classes_of

PORTS = ("P0", "P1", "LS")


def core_text() -> str:
    """An in-order core with everything that a core file can have, but its second ISA."""
    rows = "\n".join(f'{name} = {{ latency = 1, ports = ["P0", "P1"] }}' for name in classes_of("x86_64"))
    return f"""
name = "small"
summary = "for tests"
isas = ["x86_64"]
frequency_hz = 2_600_000_000
sources = ["made up"]
validated = "made up"
[pmu]
x86_64 = "intel_arch_perfmon"
[kernel]
syscall_cycles = 600
[pipeline]
model = "in_order"
issue_width = 2
ports = ["P0", "P1", "LS"]
load_ports = ["LS"]
store_address_ports = ["LS"]
mispredict_cycles = 8
store_buffer = 4
[l1i]
size = "16KiB"
ways = 2
latency = 1
[l1d]
size = "32KiB"
ways = 4
latency = 3
[l2]
size = "256KiB"
ways = 8
latency = 12
inclusion = "inclusive"
[memory]
latency = 150
[dtlb]
entries = 48
ways = 3
[l2tlb]
entries = 1024
ways = 4
latency = 6
[page_walk]
latency = 30
[ops]
{rows}
"""


def write_core(directory: Path, *changes: tuple[str, str], name: str = "small.toml") -> str:
    """The path of the core as a file, with each (old, new) replaced once."""
    text = core_text()
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return str(path)
