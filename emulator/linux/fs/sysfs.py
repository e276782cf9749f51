"""sysfs: what /sys shows of the machine's CPUs and memory nodes. PMUs are added by who has them (``register_files``).

Anything that is not a row does not exist: the host's /sys never shows through.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.arch.processor import CacheDescription
from emulator.linux.fs.virtual_files import TextLink, VirtualDirectory
from emulator.linux.proc.process_texts import allowed_list, cpu_list
from emulator.linux.proc.procfs import Kernel, free_bytes

Text = Callable[[Kernel, int], str]  # of a CPU by number; rows of the machine ignore the number


def cpu_mask(kernel: Kernel, mask: int) -> str:
    """As %*pb prints it: words of 32 bits, for as many CPUs as there are."""
    words = range((len(kernel.cpus) - 1) // 32, -1, -1)
    digits = [8] * len(words)
    digits[0] = ((len(kernel.cpus) - 1) % 32) // 4 + 1
    return ",".join(f"{mask >> 32 * word & 0xFFFF_FFFF:0{width}x}" for word, width in zip(words, digits, strict=True))


def _alone(kernel: Kernel, number: int) -> int:
    return 1 << number


def _all(kernel: Kernel, number: int) -> int:
    return (1 << len(kernel.cpus)) - 1


def _cpus_rows(name: str, mask: Callable[[Kernel, int], int]) -> dict[str, Text]:
    return {
        name: lambda kernel, number: cpu_mask(kernel, mask(kernel, number)),
        f"{name}_list": lambda kernel, number: allowed_list(mask(kernel, number)),
    }


def _node_meminfo(kernel: Kernel, _: int) -> str:
    total, free = kernel.memory.size_bytes // 1024, free_bytes(kernel.memory.size_bytes) // 1024
    rows = (("MemTotal", total), ("MemFree", free), ("MemUsed", total - free))
    return "\n".join(f"Node 0 {name + ':':<15} {value:8} kB" for name, value in rows)


MACHINE_ROWS: dict[str, Text] = {
    "devices/system/cpu/online": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/possible": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/present": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/cpu/offline": lambda kernel, _: "",
    "devices/system/cpu/isolated": lambda kernel, _: "",
    "devices/system/cpu/kernel_max": lambda kernel, _: "511",
    "devices/system/cpu/smt/active": lambda kernel, _: "0",
    "devices/system/cpu/smt/control": lambda kernel, _: "notsupported",
    "devices/system/node/online": lambda kernel, _: "0",
    "devices/system/node/possible": lambda kernel, _: "0",
    "devices/system/node/has_cpu": lambda kernel, _: "0",
    "devices/system/node/has_memory": lambda kernel, _: "0",
    "devices/system/node/node0/cpulist": lambda kernel, _: cpu_list(len(kernel.cpus)),
    "devices/system/node/node0/cpumap": lambda kernel, _: cpu_mask(kernel, _all(kernel, 0)),
    "devices/system/node/node0/meminfo": _node_meminfo,
    "devices/system/node/node0/distance": lambda kernel, _: "10",
    "kernel/mm/transparent_hugepage/enabled": lambda kernel, _: "always madvise [never]",
    "kernel/mm/transparent_hugepage/hpage_pmd_size": lambda kernel, _: "2097152",
}

CPU_ROWS: dict[str, Text] = {  # below devices/system/cpu/cpuN
    "topology/core_id": lambda kernel, number: str(number),
    "topology/die_id": lambda kernel, number: "0",
    "topology/physical_package_id": lambda kernel, number: "0",
    **_cpus_rows("topology/core_cpus", _alone),
    **_cpus_rows("topology/thread_siblings", _alone),
    **_cpus_rows("topology/die_cpus", _all),
    **_cpus_rows("topology/core_siblings", _all),
    **_cpus_rows("topology/package_cpus", _all),
}

ISA_CPU_ROWS: dict[str, dict[str, Text]] = {
    "aarch64": {
        "regs/identification/midr_el1": lambda kernel, number: f"0x{kernel.processor.midr_el1:016x}",
        "regs/identification/revidr_el1": lambda kernel, number: f"0x{0:016x}",
    },
    "x86_64": {},
}


def _frequency_rows(lowest_hz: int, highest_hz: int) -> dict[str, Text]:
    """drivers/cpufreq/cpufreq.c, in kHz. No governor decides anything: a profile does, for all CPUs together."""
    lowest, highest = str(lowest_hz // 1000), str(highest_hz // 1000)
    return {
        "affected_cpus": lambda kernel, number: " ".join(str(cpu.number) for cpu in kernel.cpus),
        "related_cpus": lambda kernel, number: " ".join(str(cpu.number) for cpu in kernel.cpus),
        "cpuinfo_min_freq": lambda kernel, number: lowest,
        "cpuinfo_max_freq": lambda kernel, number: highest,
        "scaling_min_freq": lambda kernel, number: lowest,
        "scaling_max_freq": lambda kernel, number: highest,
        "scaling_cur_freq": lambda kernel, number: str(kernel.clock.frequency_at(kernel.clock.cycles()) // 1000),
    }


def _cache_rows(cache: CacheDescription) -> dict[str, Text]:
    """drivers/base/cacheinfo.c"""
    return {
        "type": lambda kernel, number: cache.kind.name,
        "level": lambda kernel, number: str(cache.level),
        "id": lambda kernel, number: "0" if cache.shared else str(number),
        "size": lambda kernel, number: f"{cache.size >> 10}K",
        "ways_of_associativity": lambda kernel, number: str(cache.ways),
        "number_of_sets": lambda kernel, number: str(cache.sets),
        "coherency_line_size": lambda kernel, number: str(cache.line),
        "physical_line_partition": lambda kernel, number: "1",
        "shared_cpu_map": lambda kernel, number: cpu_mask(kernel, kernel.processor.sharers(cache, number)),
        "shared_cpu_list": lambda kernel, number: allowed_list(kernel.processor.sharers(cache, number)),
    }


def install(kernel: Kernel) -> None:
    """Give the machine its /sys."""
    root = kernel.file_tree.sys
    for path, text in MACHINE_ROWS.items():
        _add(root, path, text, kernel, 0)
    rows = {**CPU_ROWS, **ISA_CPU_ROWS[kernel.architecture.isa]}
    if kernel.clock.frequencies_hz is not None:
        frequencies = _frequency_rows(*kernel.clock.frequencies_hz)
        rows |= {f"cpufreq/{name}": text for name, text in frequencies.items()}
    for cpu in kernel.cpus:
        for path, text in rows.items():
            _add(root, f"devices/system/cpu/cpu{cpu.number}/{path}", text, kernel, cpu.number)
        _link(root, f"devices/system/node/node0/cpu{cpu.number}", f"../../cpu/cpu{cpu.number}")
        _link(root, f"devices/system/cpu/cpu{cpu.number}/node0", "../../node/node0")
        for index, cache in enumerate(kernel.processor.caches):
            for name, text in _cache_rows(cache).items():
                path = f"devices/system/cpu/cpu{cpu.number}/cache/index{index}/{name}"
                _add(root, path, text, kernel, cpu.number)


def _add(root: VirtualDirectory, path: str, text: Text, kernel: Kernel, number: int) -> None:
    root.add_text(path, lambda: text(kernel, number) + "\n")


def _link(root: VirtualDirectory, path: str, target: str) -> None:
    root.add(path, TextLink(root.volume, lambda: target))
