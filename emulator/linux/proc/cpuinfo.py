"""/proc/cpuinfo, from the identification that the machine's processors give themselves (MIDR_EL1, CPUID)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from emulator.arch.cpuid import AMD, MAX_BASIC, PHYSICAL_BITS, VIRTUAL_BITS, Leaf
from emulator.arch.processor import Processor
from emulator.linux.arch.aarch64 import COUNTER_HZ
from emulator.linux.arch.architecture import Architecture

Line = tuple[str, str]  # name with its tabs, value
AskCpuid = Callable[[int, int], Leaf]  # (leaf, subleaf)
EAX, ECX = 0, 2
PMU_FLAGS = (  # that PMUs claim: as asm/cpufeatures.h has them, in its order; leaf, register, bit
    ("aperfmperf", 0x6, ECX, 0),
    ("perfctr_core", 0x8000_0001, ECX, 23),
    ("perfctr_nb", 0x8000_0001, ECX, 24),
    ("perfctr_llc", 0x8000_0001, ECX, 28),
    ("perfmon_v2", 0x8000_0022, EAX, 0),
)
PERFMON = 0xA


def aarch64_cpuinfo(architecture: Architecture, processor: Processor, current_hz: int, cpuid: AskCpuid) -> str:
    """arch/arm64/kernel/cpuinfo.c, c_show"""
    midr = processor.midr_el1
    features = " ".join(architecture.cpu_features(processor))
    return "".join(
        f"processor\t: {number}\n"
        f"BogoMIPS\t: {COUNTER_HZ // 500_000}.{COUNTER_HZ // 5_000 % 100:02}\n"
        f"Features\t: {features}\n"
        f"CPU implementer\t: 0x{midr >> 24 & 0xFF:02x}\n"
        "CPU architecture: 8\n"
        f"CPU variant\t: 0x{midr >> 20 & 0xF:x}\n"
        f"CPU part\t: 0x{midr >> 4 & 0xFFF:03x}\n"
        f"CPU revision\t: {midr & 0xF}\n\n"
        for number in range(processor.cpus)
    )


def x86_64_cpuinfo(architecture: Architecture, processor: Processor, current_hz: int, cpuid: AskCpuid) -> str:
    """arch/x86/kernel/cpu/proc.c, show_cpuinfo"""
    features = " ".join((*architecture.cpu_features(processor), *_pmu_flags(cpuid)))
    lines = partial(_x86_64_lines, processor, current_hz // 1000, features)
    return "".join(
        "".join(f"{name}:{value and ' '}{value}\n" for name, value in lines(number)) + "\n"
        for number in range(processor.cpus)
    )


def _pmu_flags(cpuid: AskCpuid) -> Iterator[str]:
    version, counters = (part & 0xFF for part in (cpuid(PERFMON, 0)[EAX], cpuid(PERFMON, 0)[EAX] >> 8))
    if version and counters > 1:  # init_intel
        yield "arch_perfmon"
    for name, leaf, register, bit in PMU_FLAGS:
        if cpuid(leaf, 0)[register] >> bit & 1:
            yield name


def _x86_64_lines(processor: Processor, current_khz: int, features: str, number: int) -> list[Line]:
    kilohertz = processor.frequency_hz // 1000
    amd = processor.vendor == AMD
    last = processor.cache(2) if amd else processor.cache(3) or processor.cache(2)  # cpu/cacheinfo.c, x86_cache_size
    lines: list[Line] = [
        ("processor\t", str(number)),
        ("vendor_id\t", processor.vendor),
        ("cpu family\t", str(processor.family)),
        ("model\t\t", str(processor.model)),
        ("model name\t", processor.brand),
        ("stepping\t", str(processor.stepping)),
        ("cpu MHz\t\t", f"{current_khz // 1000}.{current_khz % 1000:03}"),
    ]
    if last is not None:
        lines.append(("cache size\t", f"{last.size >> 10} KB"))
    lines += [
        ("physical id\t", str(0)),
        ("siblings\t", str(processor.cpus)),
        ("core id\t\t", str(number)),
        ("cpu cores\t", str(processor.cpus)),
        ("apicid\t\t", str(number)),
        ("initial apicid\t", str(number)),
        ("fpu\t\t", "yes"),
        ("fpu_exception\t", "yes"),
        ("cpuid level\t", str(MAX_BASIC)),
        ("wp\t\t", "yes"),
        ("flags\t\t", features),
        ("bugs\t\t", ""),
        ("bogomips\t", f"{2 * kilohertz // 1000}.{2 * kilohertz // 10 % 100:02}"),
    ]
    if amd and processor.l2tlb.entries:
        lines.append(("TLB size\t", f"{2 * processor.l2tlb.entries} 4K pages"))  # of data and of code
    return [
        *lines,
        ("clflush size\t", str(processor.line_bytes)),
        ("cache_alignment\t", str(processor.line_bytes)),
        ("address sizes\t", f"{PHYSICAL_BITS[processor.vendor]} bits physical, {VIRTUAL_BITS} bits virtual"),
        ("power management", ""),
    ]


CPUINFO: dict[str, Callable[[Architecture, Processor, int, AskCpuid], str]] = {
    "aarch64": aarch64_cpuinfo,
    "x86_64": x86_64_cpuinfo,
}
