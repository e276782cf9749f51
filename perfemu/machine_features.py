"""What perf.data says about the machine, a modelled Linux or a board: all the emulated one's, nothing the host's."""

from __future__ import annotations

from collections.abc import Callable

from emulator.arch.processor import Processor
from emulator.cpu import Cpu
from emulator.linux.arch.aarch64 import MIDR_EL1
from emulator.linux.machine import LinuxMachine
from emulator.linux.release import HOST_NAME, RELEASE
from emulator.machine import Hardware
from perfcore.perfdata.features import CpuCount, Features
from perfemu.version import VERSION


def machine_features(
    machine: LinuxMachine, command_line: tuple[str, ...], pmu_types: tuple[tuple[int, str], ...]
) -> Features:
    """The features that are known before the run."""
    cpus = len(machine.cpus)
    return Features(
        hostname=HOST_NAME,
        os_release=RELEASE,
        version=f"perfemu {VERSION}",
        architecture=machine.kernel.architecture.uname_machine,
        cpus=CpuCount(cpus, cpus),
        cpu_description=f"perfemu core {machine.config.core.title}",
        cpuid=_CPUID[machine.config.isa](machine.cpus[0]),
        total_memory_kb=machine.memory.size_bytes // 1024,
        command_line=command_line,
        pmu_mappings=pmu_types,
    )


def board_features(
    hardware: Hardware, board: str, command_line: tuple[str, ...], pmu_types: tuple[tuple[int, str], ...]
) -> Features:
    """The same for a board. Which kernel it runs is for its guest to say."""
    config, cpus = hardware.config, len(hardware.cpus)
    return Features(
        hostname=board,
        version=f"perfemu {VERSION}",
        architecture=config.isa,
        cpus=CpuCount(cpus, cpus),
        cpu_description=f"perfemu core {config.core.title}",
        cpuid=_BOARD_CPUID[config.isa](Processor.of(config.core, config.isa, cpus)),
        total_memory_kb=hardware.memory.size_bytes // 1024,
        command_line=command_line,
        pmu_mappings=pmu_types,
    )


def _midr(cpu: Cpu) -> str:
    """As tools/perf/arch/arm64/util/header.c."""
    return f"0x{cpu.system_registers.read(MIDR_EL1):016x}"


def _family_model_stepping(cpu: Cpu) -> str:
    """As tools/perf/arch/x86/util/header.c: vendor,family,model,stepping from CPUID leaves 0 and 1."""
    _, ebx, ecx, edx = cpu.system_registers.cpuid(0, 0)
    vendor = b"".join(word.to_bytes(4, "little") for word in (ebx, edx, ecx)).decode("ascii")
    signature = cpu.system_registers.cpuid(1, 0)[0]
    family, model, stepping = signature >> 8 & 15, signature >> 4 & 15, signature & 15
    if family >= 6:
        model |= (signature >> 16 & 15) << 4
    if family == 15:
        family += signature >> 20 & 255
    return f"{vendor},{family},{model},{stepping}"


_CPUID: dict[str, Callable[[Cpu], str]] = {"aarch64": _midr, "x86_64": _family_model_stepping}
_BOARD_CPUID: dict[str, Callable[[Processor], str]] = {
    "aarch64": lambda processor: f"0x{processor.midr_el1:016x}",
    "x86_64": lambda processor: f"{processor.vendor},{processor.family},{processor.model},{processor.stepping}",
}
