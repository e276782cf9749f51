"""Permission: who may open which events, by perf_event_paranoid and capabilities. As kernel/events/core.c asks.

The tool, an owner that is None, may do everything.
"""

from __future__ import annotations

from emulator.linux.errors import EACCES, EPERM, LinuxError
from emulator.linux.process.credentials import CAP_KILL, CAP_PERFMON, CAP_SYS_ADMIN
from emulator.linux.process.task import Task
from emulator.linux.ptrace.permission import may_access
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import BranchSampleType, SampleType
from perfcore.events.settings import Settings


def perfmon_capable(owner: Task | None) -> bool:
    return owner is None or owner.credentials.has(CAP_PERFMON) or owner.credentials.has(CAP_SYS_ADMIN)


def may_watch_kernel(owner: Task | None, settings: Settings) -> bool:
    """perf_allow_kernel()."""
    return settings.paranoid <= 1 or perfmon_capable(owner)


def check_opening(attr: PerfEventAttr, owner: Task | None, settings: Settings) -> None:
    """An event of whatever task. EACCES. At 3 nobody may without the capability: Debian's kernel knows that level."""
    if perfmon_capable(owner):
        return
    paranoid = settings.paranoid
    if paranoid > 2:
        raise LinuxError(EACCES, f"perf_event_paranoid is {paranoid}: only with CAP_PERFMON")
    samples_branches = attr.sample_type & SampleType.BRANCH_STACK
    if paranoid > 1 and samples_branches and attr.branch_sample_type & (BranchSampleType.KERNEL | BranchSampleType.HV):
        raise LinuxError(EACCES, f"perf_event_paranoid is {paranoid}: only branches of user mode")
    if paranoid > 1 and not attr.exclude_kernel:
        raise LinuxError(EACCES, f"perf_event_paranoid is {paranoid}: only with exclude_kernel")
    if attr.namespaces:
        raise LinuxError(EACCES, "namespaces needs CAP_PERFMON")


def check_physical(attr: PerfEventAttr, owner: Task | None, settings: Settings) -> None:
    """... behind what is said of the rate: physical addresses are the kernel's. EACCES."""
    if attr.sample_type & SampleType.PHYS_ADDR and not may_watch_kernel(owner, settings):
        raise LinuxError(EACCES, f"perf_event_paranoid is {settings.paranoid}: no physical addresses")


def check_cpu(owner: Task | None, settings: Settings) -> None:
    """An event that is not of one task. EACCES."""
    if settings.paranoid > 0 and not perfmon_capable(owner):
        raise LinuxError(EACCES, f"perf_event_paranoid is {settings.paranoid}: only events of own tasks")


def check_target(attr: PerfEventAttr, owner: Task | None, target: Task) -> None:
    """perf_check_permission(): one of another's task, which may signal it. EACCES."""
    if owner is None or owner is target or may_access(owner, target):
        return
    if not perfmon_capable(owner) or (attr.sigtrap and not owner.credentials.has(CAP_KILL)):
        raise LinuxError(EACCES, f"task {target.tid} is another's")


def check_tracepoint(
    attr: PerfEventAttr, owner: Task | None, of_task: bool, anybodys: bool, settings: Settings
) -> None:
    """perf_trace_event_perm(): what a tracepoint tells, but for those that are `anybodys`. EPERM."""
    if not attr.sample_type & SampleType.RAW or (of_task and anybodys):
        return
    if settings.paranoid > -1 and not perfmon_capable(owner):
        raise LinuxError(EPERM, f"perf_event_paranoid is {settings.paranoid}: no raw data of tracepoints")
