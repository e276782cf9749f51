"""Restartable sequences: code that begins again if its thread was driven from its CPU in the midst of it (rseq(2)).

A thread shows the kernel a structure in its memory. The kernel keeps the number of the thread's CPU there, and looks
into it when the thread comes back to a CPU or gets a signal. kernel/rseq.c
"""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.process.task import Registration, Task

# struct rseq: cpu_id_start 0, cpu_id 4, rseq_cs 8, flags 16, node_id 20, mm_cid 24
CURRENT = 8
NODE = 20
UNREGISTERED = 0xFFFF_FFFF  # RSEQ_CPU_ID_UNINITIALIZED
SECTION = struct.Struct("<IIQQQ")  # struct rseq_cs: version, flags, start, length, where to go on


def write_cpu(task: Task, registration: Registration) -> None:
    """Its numbers become those of the CPU on which it runs. One thread runs on a CPU, so its number is an mm_cid."""
    cpu = task.cpu.number
    task.mm.write(registration.address, struct.pack("<II", cpu, cpu))
    task.mm.write(registration.address + NODE, struct.pack("<II", 0, cpu))
    registration.cpu = cpu


def erase(task: Task, registration: Registration) -> None:
    task.mm.write(registration.address, struct.pack("<II", 0, UNREGISTERED))
    task.mm.write(registration.address + NODE, bytes(8))


def came_back(task: Task, registration: Registration) -> None:
    """The thread has been away from its CPU: where it was in a sequence it begins again. LinuxError if that is none."""
    leave_sequence(task, registration)
    if registration.cpu != task.cpu.number:
        write_cpu(task, registration)


def leave_sequence(task: Task, registration: Registration) -> None:
    """To the sequence's way out, if the thread is in one. LinuxError for what is not as it should be."""
    mm, core = task.mm, task.cpu.core
    section = mm.read_u64(registration.address + CURRENT)
    if not section:
        return
    version, flags, start, length, way_out = SECTION.unpack(mm.read(section, SECTION.size))
    limit = mm.layout.task_size
    if start >= limit or start + length >= limit or way_out >= limit or version:
        raise LinuxError(EINVAL, f"a sequence at {start:#x} of {length} bytes, version {version}")
    if start <= way_out < start + length or mm.read_u32(way_out - 4) != registration.signature:
        raise LinuxError(EINVAL, f"{way_out:#x} is no way out of a sequence")
    inside = start <= core.pc < start + length
    if inside and flags:
        raise LinuxError(EINVAL, f"a sequence with flags {flags:#x}")
    mm.write(registration.address + CURRENT, bytes(8))
    if inside:
        core.write_register(task.architecture.pc, way_out)
