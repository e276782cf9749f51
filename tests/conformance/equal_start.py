"""A machine of ours that starts a program in the surroundings that qemu-user gives it, so that only execution is left
to differ: addresses of program and stack, auxiliary vector, process numbers, user, host, time, and CPUID's caches.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from pathlib import Path

import pytest

from emulator.arch.cpuid import Cpuid, Leaf
from emulator.arch.processor import Processor
from emulator.linux.configuration import LinuxConfig
from emulator.linux.machine import LinuxMachine
from emulator.linux.process import lifecycle
from emulator.linux.process.credentials import Credentials
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.linux.syscalls import identity
from emulator.linux.syscalls.at import tree
from emulator.machine import MachineConfig
from reference import QemuRun

# qemu-user 7.2, linux-user/elfload.c, create_elf_tables: which entries there are, and in which order.
AT_NULL, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_PLATFORM, AT_RANDOM, AT_HWCAP2 = 0, 11, 12, 13, 14, 15, 25, 26
AT_PHDR_TO_ENTRY, AT_HWCAP, AT_CLKTCK, AT_SECURE, AT_EXECFN = range(3, 10), 16, 17, 23, 31
_FIRST = (*AT_PHDR_TO_ENTRY, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_HWCAP, AT_CLKTCK, AT_RANDOM, AT_SECURE, AT_EXECFN)
ORDER = {"aarch64": (*_FIRST, AT_HWCAP2, AT_PLATFORM, AT_NULL), "x86_64": (*_FIRST, AT_PLATFORM, AT_NULL)}
PIE_BASE = {"aarch64": 0x55_0000_0000, "x86_64": 0x40_0000_0000}

# target/i386/cpu.c: its caches, which no option changes. Only glibc's handle_intel and intel_check_word read them, when
# a program starts: with our own leaves they count 420 and 2,152 instructions instead of 654 and 3,269.
CACHE_DESCRIPTORS: Leaf = (0x0000_0001, 0, 0x4D, 0x002C_307D)  # leaf 2
CACHES: tuple[Leaf, ...] = (  # leaf 4
    (0x121, 0x01C0_003F, 0x3F, 1),  # L1D 32 KiB
    (0x122, 0x01C0_003F, 0x3F, 1),  # L1I 32 KiB
    (0x143, 0x03C0_003F, 0xFFF, 1),  # L2 4 MiB
    (0x163, 0x03C0_003F, 0x3FFF, 6),  # L3 16 MiB
)
# XSAVE's leaf, which qemu has though its processor lacks XSAVE: of zeros, and glibc reads it.
MAX_BASIC = 0xD
# What a program sees of the host under qemu-user, and would see of our machine here.
FILES = {
    "proc/filesystems": b"".join(
        b"nodev\t%s\n" % name for name in (b"sysfs", b"tmpfs", b"proc", b"cgroup2", b"bpf", b"devtmpfs")
    )
    + b"\text4\n",
    "dev/urandom": bytes(range(1, 256)) * 16,
}


def surroundings(sysroot: Path, directory: Path) -> Path:
    """In `directory`, a root for qemu: `sysroot` and FILES."""
    directory.mkdir()
    for entry in sysroot.iterdir():
        (directory / entry.name).symlink_to(entry)
    for name, content in FILES.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


def make_machine(
    config: MachineConfig, run: QemuRun, monkeypatch: pytest.MonkeyPatch, linux: LinuxConfig | None = None
) -> LinuxMachine:
    """A machine that places programs where `run` had them, at that time."""
    if run.time_s:
        config = dataclasses.replace(config, realtime_at_boot_ns=run.time_s * 1_000_000_000)
    monkeypatch.setattr(lifecycle, "FIRST_PID", run.pid)
    monkeypatch.setattr(identity, "HOST_NAME", os.uname().nodename)
    monkeypatch.setattr(identity, "free_bytes", _as_free_as_the_host)
    machine = LinuxMachine(config, linux)
    architecture = machine.kernel.architecture
    layout = dataclasses.replace(architecture.layout, stack_top=run.stack_top, pie_base=PIE_BASE[config.isa])
    monkeypatch.setattr(architecture, "layout", layout)
    if config.isa == "x86_64":
        machine.cpus[0].system_registers.claim_cpuid(_cpuid_of_qemu)
    return machine


def _as_free_as_the_host(size_bytes: int) -> int:
    """sort asks whether more than three quarters of the memory are free."""
    return size_bytes * os.sysconf("SC_AVPHYS_PAGES") // os.sysconf("SC_PHYS_PAGES")


_CPUID = Cpuid(Processor(), 0)


def _cpuid_of_qemu(leaf: int, subleaf: int) -> Leaf:
    if leaf == 0:
        return MAX_BASIC, *_CPUID(0, 0)[1:]
    if leaf == 2:
        return CACHE_DESCRIPTORS
    return CACHES[subleaf] if leaf == 4 and subleaf < len(CACHES) else _CPUID(leaf, subleaf)


def start(machine: LinuxMachine, program: Program) -> None:
    """Start `program` as qemu does."""
    machine.start(program)
    task = machine.kernel.tasks[lifecycle.FIRST_PID]
    task.process.orphan_ppid = os.getpid()
    task.credentials = Credentials(os.getuid(), os.getgid(), ())
    superblock = tree(task).superblock
    superblock.host_uid = superblock.host_gid = -1  # owners are shown as they are
    _lay_out_vector(machine, task)


def _lay_out_vector(machine: LinuxMachine, task: Task) -> None:
    """Write the start of the stack anew: strings stay, what lies below them comes in qemu's order."""
    architecture = machine.kernel.architecture
    core, mm = machine.cpus[0].core, task.mm
    old = core.read_register(architecture.sp)
    size = (mm.program.argument_start - old) // 8 * 8
    words = struct.unpack(f"<{size // 8}Q", mm.read(old, size))
    pointers = words[: words.index(0, words[0] + 2) + 1]  # argc, arguments, 0, environment, 0
    entries = dict(zip(words[len(pointers) :: 2], words[len(pointers) + 1 :: 2], strict=False))
    random = mm.read(entries[AT_RANDOM], 16)
    platform = architecture.platform.encode() + b"\0"
    entries |= {AT_UID: os.getuid(), AT_EUID: os.geteuid(), AT_GID: os.getgid(), AT_EGID: os.getegid()}
    entries[AT_PLATFORM] = mm.program.argument_start - (len(platform) + 7 & -8)
    entries[AT_RANDOM] = (entries[AT_PLATFORM] & -16) - 16
    vector = [word for key in ORDER[architecture.isa] for word in (key, entries[key])]
    content = struct.pack(f"<{len(pointers) + len(vector)}Q", *pointers, *vector)
    new = (entries[AT_RANDOM] - len(content)) & -16
    mm.write(entries[AT_PLATFORM], platform)
    mm.write(entries[AT_RANDOM], random)
    mm.write(new, content)
    mm.program.stack_start = new
    core.write_register(architecture.sp, new)
