"""Which instructions load and which store, form by form: what the core decodes against memory_classes.toml."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import perfemu
import require
from emulator import _native
from emulator.probes import Probe
from end_to_end.random_guests import write_program

CLASSES = {
    0: "NEITHER",
    1 << Probe.LOAD: "LOAD",
    1 << Probe.STORE: "STORE",
    1 << Probe.LOAD | 1 << Probe.STORE: "BOTH",
}
ACCESSES = 1 << Probe.LOAD | 1 << Probe.STORE
FORMS = tomllib.loads(Path(__file__).with_name("memory_classes.toml").read_text(encoding="utf-8"))
BINUTILS = {
    "aarch64": ("aarch64-linux-gnu", "binutils-aarch64-linux-gnu"),
    "x86_64": ("x86_64-linux-gnu", "binutils"),
}


@pytest.mark.parametrize("isa", FORMS)
def test_loads_and_stores_are_told_apart(isa: str, tmp_path: Path) -> None:
    forms = [(form, name) for name, text in FORMS[isa].items() for form in re.split(r"[;\n]\s*", text.strip())]
    code = _assemble(isa, [form for form, _ in forms], tmp_path)
    wrong = {}
    offset = 0
    for form, name in forms:
        _, length, probes, iteration_probes, _ = _native.decode(isa, 0x1000 + offset, code[offset:])[0]
        found = CLASSES[(probes | iteration_probes) & ACCESSES]
        if found != name:
            wrong[form] = f"{found}, should be {name}"
        offset += length
    assert offset == len(code)
    assert not wrong, wrong


def _assemble(isa: str, forms: list[str], directory: Path) -> bytes:
    prefix, package = BINUTILS[isa]
    assembler = require.command(f"{prefix}-as", package=package)
    source, module, code = (directory / f"forms.{suffix}" for suffix in ("s", "o", "bin"))
    source.write_text("\n".join(forms) + "\n", encoding="utf-8")
    subprocess.run([assembler, "-o", module, source], check=True)
    subprocess.run([f"{prefix}-objcopy", "-O", "binary", "-j", ".text", module, code], check=True)
    return code.read_bytes()


def test_software_prefetches_are_load_instructions_to_intels_counters(tmp_path: Path) -> None:
    """Of MEM_INST_RETIRED.ALL_LOADS Intel's list says so; they load nothing. ALL_STORES has none of them."""
    code = "0f180c24 0f0d0c24 488b0424"  # prefetcht0 (%rsp); prefetchw (%rsp); mov (%rsp), %rax
    leave = "b83c000000 31ff 0f05"  # mov $60, %eax; xor %edi, %edi; syscall
    write_program(tmp_path / "prefetches", "x86_64", bytes.fromhex(code + leave))
    events = [f"mem_inst_retired.{name}" for name in ("all_loads", "all_stores", "any")]
    result = perfemu.stat(perfemu.Guest([tmp_path / "prefetches"], core="ideal"), events)
    assert [result[name] for name in events] == [3, 0, 3]
