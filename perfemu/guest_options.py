"""OPTIONS: what a user may say of a guest and its machine: how the command line says it, and what becomes of it.

Each stands here once. The command line, the Python API, benchmark files and the machine's configurations follow;
docs/commands.md and docs/api.md explain them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.core_file.units import UNITS
from emulator.frequency import read_profile
from emulator.linux.configuration import MOST_OUTPUT_BYTES, MOST_TASKS, LinuxConfig
from emulator.linux.fast_forward import Skipped, Until
from emulator.machine import MOST_CPUS, QUANTUM_CYCLES, MachineConfig
from perfemu.cores import default_cores
from perfemu.quantities import date_ns, memory_bytes, size_bytes, time_ns, user_ids

MACHINE, LIMITS, MEASURING = "machine and guest", "CPUs and limits", "measuring"  # groups of options


@dataclass(frozen=True, slots=True)
class Number:
    """Reads a whole number from `least` to `most`."""

    least: int = 1
    most: int = (1 << 63) - 1

    def __call__(self, text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            raise ValueError(f"'{text}' is not a number") from None
        if not self.least <= value <= self.most:
            raise ValueError(f"{text} is not within {self.least}..{self.most}")
        return value


@dataclass(frozen=True, slots=True)
class GuestOption:
    """A field of ``Guest``. Where None is the field's default, it stands for the configuration's own."""

    flag: str
    metavar: str | None  # None: a switch, for the opposite of the default
    group: str  # in help texts
    help: str
    read: Callable[[str], object] | None = None  # text -> the configuration's value; ValueError: what would be right
    becomes: tuple[type, str] | None = None  # the configuration and its field; None: Guest says what it means

    def value(self, name: str, given: object) -> object:
        """Of the configuration. ValueError names the option as Python does."""
        if self.read is None:
            return given
        try:
            return self.read(str(given))
        except ValueError as problem:
            raise ValueError(f"{name}={given!r}: {problem}") from None


def _instructions(text: str) -> int | Until:
    return Until.REGION if text == Until.REGION.value else Number(0)(text)


OPTIONS = {  # in the order of help texts
    "core": GuestOption(
        "--core", "NAME | FILE", MACHINE,
        f"core to run on: one of 'perfemu list cores', or a core file, see docs/cores.md [{default_cores()}]",
    ),
    "core_changes": GuestOption(
        "--set", "KEY=VALUE", MACHINE,
        "change the core: l1d.size=64KiB, pipeline.dispatch_width=6, l2.prefetchers= (none), without=llc",
    ),
    "pmu": GuestOption(
        "--pmu", "NAME", MACHINE,
        "instead of the core's PMU: a model in pmu/models/, such as pmuv3p9 or loongarch, see docs/cores.md",
    ),
    "units": GuestOption(
        "--unit", "NAME", MACHINE,
        f"lend the core a unit that its silicon has not, see docs/units.md: {', '.join(UNITS)}",
    ),
    "untimed": GuestOption(
        "--untimed", None, MACHINE,
        "each instruction takes one cycle: the core's CPUID, HWCAP and PMU, as fast as on ideal",
    ),
    "fast_forward": GuestOption(
        "--fast-forward", "N | region", MACHINE,
        "execute the first N instructions, or all before --from-symbol's region, without models and so faster: "
        "cycles and misses count from there",
        _instructions, (Skipped, "functional"),
    ),
    "warmup": GuestOption(
        "--warmup", "N | region", MACHINE,
        "... and the next N, or all before the region, to fill caches and predictors: they count from there",
        _instructions, (Skipped, "warming"),
    ),
    "sysroot": GuestOption("--sysroot", "DIR", MACHINE, "look paths up below DIR first, then as they are"),
    "binds": GuestOption(
        "--bind", "HOST[:GUEST][:rw]", MACHINE,
        "show a file or directory of the host at the guest's path, to read; with :rw to write, too; "
        "on a board GUEST is the tag by which it mounts a directory",
    ),
    "isolate": GuestOption(
        "--isolate", None, MACHINE,
        "show nothing of the host but what is bound; so does a bind at /",
    ),
    "writable_paths": GuestOption("--rw", "PATH", MACHINE, "let the guest write below PATH, too"),
    "cpus": GuestOption(
        "--cpus", "N", LIMITS,
        f"simulated CPUs, each with its core and PMU: 1 to {MOST_CPUS} [1]",
        Number(1, MOST_CPUS), (MachineConfig, "cpus"),
    ),
    "quantum": GuestOption(
        "--quantum", "CYCLES", LIMITS,
        f"by which busy CPUs may be apart: less is finer, and slower [{QUANTUM_CYCLES}]",
        Number(), (MachineConfig, "quantum"),
    ),
    "seed": GuestOption(
        "--seed", "N", LIMITS,
        "schedule otherwise: another N, another interleaving, the same each time",
        Number(-1 << 63), (MachineConfig, "schedule_seed"),
    ),
    "date": GuestOption(
        "--date", "WHEN", LIMITS,
        "of the guest's clock at its start, UTC: 2026-11-20T09:30, @SECONDS, now [2023-11-14T22:13:20]",
        date_ns, (MachineConfig, "realtime_at_boot_ns"),
    ),
    "dvfs": GuestOption(
        "--dvfs", "FILE", MACHINE,
        "the CPUs' frequency changes as this file says (TOML, see docs/frequency.md) [it is the core's, always]",
        read_profile, (MachineConfig, "frequencies"),
    ),
    "vdso": GuestOption(
        "--no-vdso", None, LIMITS,
        "each question for the time is a system call, as where Linux has no vDSO",
        None, (LinuxConfig, "vdso"),
    ),
    "timeout": GuestOption(
        "--timeout", "TIME", LIMITS,
        "stop after so much simulated time: 2s, 100ms, or a number of {unit}",
        time_ns, (MachineConfig, "most_ns"),
    ),
    "max_instructions": GuestOption(
        "--max-instructions", "N", LIMITS,
        "stop after N instructions",
        Number(), (MachineConfig, "most_instructions"),
    ),
    "max_tasks": GuestOption(
        "--max-tasks", "N", LIMITS,
        f"processes and threads at once [{MOST_TASKS}]",
        Number(), (LinuxConfig, "most_tasks"),
    ),
    "max_output": GuestOption(
        "--max-output", "SIZE", LIMITS,
        f"that the guest may write to files and streams of the host [{MOST_OUTPUT_BYTES >> 30}G]",
        size_bytes, (LinuxConfig, "most_output_bytes"),
    ),
    "user": GuestOption(
        "--user", "UID[:GID]", LIMITS,
        "whose the program is, and your files where it may write [0:0, root]",
        user_ids, (LinuxConfig, "user"),
    ),
    "memory": GuestOption(
        "--memory", "SIZE", LIMITS,
        "of the machine: 512M, 8G [4G]",
        memory_bytes, (MachineConfig, "memory_bytes"),
    ),
    "counters": GuestOption(
        "--counters", "N", MEASURING,
        "measure with N event counters, as a real PMU has: events that do not fit take turns, and are scaled",
        Number(),
    ),
}  # fmt: skip
