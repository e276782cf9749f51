"""sysfs: what /sys shows of the machine's CPUs and memory nodes. PMUs are added by who has them (``register_files``).

Anything that is not a row does not exist: the host's /sys never shows through.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.arch.aarch64 import ID_REGISTERS
from emulator.arch.cpuid import CACHES, LINE_BYTES
from emulator.linux.cpuinfo import MIDR_EL1
from emulator.linux.process_texts import cpu_list
from emulator.linux.procfs import Kernel
from emulator.linux.virtual_files import VirtualDirectory

Text = Callable[[Kernel, int], str]  # of a CPU by number; rows of the machine ignore the number

MACHINE_ROWS: dict[str, Text] = {
    "devices/system/cpu/online": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/possible": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/present": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/offline": lambda kernel, _: "",
    "devices/system/cpu/isolated": lambda kernel, _: "",
    "devices/system/cpu/kernel_max": lambda kernel, _: "511",
    "devices/system/node/online": lambda kernel, _: "0",
    "devices/system/node/possible": lambda kernel, _: "0",
    "devices/system/node/has_cpu": lambda kernel, _: "0",
    "devices/system/node/has_memory": lambda kernel, _: "0",
    "devices/system/node/node0/cpulist": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/node/node0/cpumap": lambda kernel, _: cpu_mask(len(kernel.cpus)),
    "devices/system/node/node0/distance": lambda kernel, _: "10",
    "kernel/mm/transparent_hugepage/enabled": lambda kernel, _: "always madvise [never]",
    "kernel/mm/transparent_hugepage/hpage_pmd_size": lambda kernel, _: "2097152",
}

CPU_ROWS: dict[str, Text] = {  # below devices/system/cpu/cpuN
    "topology/core_id": lambda kernel, number: str(number),
    "topology/physical_package_id": lambda kernel, number: "0",
    "topology/core_cpus": lambda kernel, number: f"{1 << number:x}",
    "topology/core_cpus_list": lambda kernel, number: str(number),
    "topology/thread_siblings": lambda kernel, number: f"{1 << number:x}",
    "topology/thread_siblings_list": lambda kernel, number: str(number),
    "topology/core_siblings": lambda kernel, number: cpu_mask(len(kernel.cpus)),
    "topology/core_siblings_list": lambda kernel, number: cpu_list(len(kernel.cpus)),
    "topology/package_cpus": lambda kernel, number: cpu_mask(len(kernel.cpus)),
    "topology/package_cpus_list": lambda kernel, number: cpu_list(len(kernel.cpus)),
}

AARCH64_CPU_ROWS: dict[str, Text] = {
    "regs/identification/midr_el1": lambda kernel, number: f"0x{ID_REGISTERS[MIDR_EL1]:016x}",
    "regs/identification/revidr_el1": lambda kernel, number: f"0x{0:016x}",
}

CACHE_TYPES = {1: "Data", 2: "Instruction", 3: "Unified"}  # CPUID leaf 4


def cpu_mask(count: int) -> str:
    return f"{(1 << count) - 1:x}"


def _cache_rows() -> dict[str, Text]:
    """The x86-64 machine's caches as CPUID leaf 4 tells them."""
    rows: dict[str, Text] = {}
    for index, (kind, level, ways, sets, _) in enumerate(CACHES):
        values = {
            "type": CACHE_TYPES[kind],
            "level": str(level),
            "ways_of_associativity": str(ways),
            "number_of_sets": str(sets),
            "coherency_line_size": str(LINE_BYTES),
            "size": f"{ways * sets * LINE_BYTES >> 10}K",
        }
        for name, value in values.items():
            rows[f"cache/index{index}/{name}"] = _fixed(value)
    return rows


def _fixed(value: str) -> Text:
    return lambda kernel, number: value


ISA_CPU_ROWS: dict[str, dict[str, Text]] = {"aarch64": AARCH64_CPU_ROWS, "x86_64": _cache_rows()}


def install(kernel: Kernel) -> None:
    """Give the machine its /sys."""
    root = kernel.file_tree.sys
    for path, text in MACHINE_ROWS.items():
        _add(root, path, text, kernel, 0)
    rows = {**CPU_ROWS, **ISA_CPU_ROWS[kernel.architecture.isa]}
    for cpu in kernel.cpus:
        for path, text in rows.items():
            _add(root, f"devices/system/cpu/cpu{cpu.number}/{path}", text, kernel, cpu.number)


def _add(root: VirtualDirectory, path: str, text: Text, kernel: Kernel, number: int) -> None:
    root.add_text(path, lambda: text(kernel, number) + "\n")
