"""/proc/cpuinfo, from the identification that the machine's processors give themselves (MIDR_EL1, CPUID)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.arch import architecture
from emulator.arch.aarch64 import ID_REGISTERS
from emulator.arch.cpuid import BRAND, CACHES, FEATURE_NAMES, LINE_BYTES, SIGNATURE
from emulator.sysregs import SysReg

MIDR_EL1 = SysReg(3, 0, 0, 0, 0)


def aarch64_cpuinfo(cpus: int, frequency_hz: int) -> str:
    """arch/arm64/kernel/cpuinfo.c, c_show"""
    midr = ID_REGISTERS[MIDR_EL1]
    features = " ".join(architecture("aarch64").cpu_features)
    return "".join(
        f"processor\t: {number}\n"
        "BogoMIPS\t: 100.00\n"
        f"Features\t: {features}\n"
        f"CPU implementer\t: 0x{midr >> 24 & 0xFF:02x}\n"
        "CPU architecture: 8\n"
        f"CPU variant\t: 0x{midr >> 20 & 0xF:x}\n"
        f"CPU part\t: 0x{midr >> 4 & 0xFFF:03x}\n"
        f"CPU revision\t: {midr & 0xF}\n\n"
        for number in range(cpus)
    )


def x86_64_cpuinfo(cpus: int, frequency_hz: int) -> str:
    """arch/x86/kernel/cpu/proc.c, show_cpuinfo"""
    kilohertz = frequency_hz // 1000
    last_level = [ways * sets * LINE_BYTES for _, level, ways, sets, _ in CACHES][-1]
    family = SIGNATURE >> 8 & 0xF
    model = (SIGNATURE >> 16 & 0xF) << 4 | SIGNATURE >> 4 & 0xF
    return "".join(
        f"processor\t: {number}\n"
        "vendor_id\t: GenuineIntel\n"
        f"cpu family\t: {family}\n"
        f"model\t\t: {model}\n"
        f"model name\t: {BRAND}\n"
        f"stepping\t: {SIGNATURE & 0xF}\n"
        f"cpu MHz\t\t: {kilohertz // 1000}.{kilohertz % 1000:03}\n"
        f"cache size\t: {last_level >> 10} KB\n"
        "physical id\t: 0\n"
        f"siblings\t: {cpus}\n"
        f"core id\t\t: {number}\n"
        f"cpu cores\t: {cpus}\n"
        f"apicid\t\t: {number}\n"
        f"initial apicid\t: {number}\n"
        "fpu\t\t: yes\n"
        "fpu_exception\t: yes\n"
        "cpuid level\t: 13\n"
        "wp\t\t: yes\n"
        f"flags\t\t: {' '.join(FEATURE_NAMES)}\n"
        "bugs\t\t:\n"
        f"bogomips\t: {2 * kilohertz // 1000}.{2 * kilohertz // 10 % 100:02}\n"
        f"clflush size\t: {LINE_BYTES}\n"
        f"cache_alignment\t: {LINE_BYTES}\n"
        "address sizes\t: 39 bits physical, 48 bits virtual\n"
        "power management:\n\n"
        for number in range(cpus)
    )


CPUINFO: dict[str, Callable[[int, int], str]] = {"aarch64": aarch64_cpuinfo, "x86_64": x86_64_cpuinfo}
