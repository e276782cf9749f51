"""prctl and its relatives: what a process sets and asks of itself, by number of an option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from emulator.cpu import TrapKind
from emulator.linux.arch.x86_64 import FS, FS_BASE, GS, GS_BASE
from emulator.linux.errors import EINVAL, ENODEV, EPERM, LinuxError
from emulator.linux.process.credentials import CAP_SETPCAP, LAST_CAPABILITY
from emulator.linux.process.task import COMM_LENGTH, Task
from emulator.linux.seccomp.filters import MODE_DISABLED
from emulator.linux.signals.signal import NSIG
from emulator.linux.structures import U32
from emulator.linux.syscalls.seccomp import set_mode
from emulator.linux.syscalls.table import Address, Support, UInt, ULong, syscall

# ---- arch_prctl (x86)

ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004
ARCH_GET_CPUID, ARCH_SET_CPUID = 0x1011, 0x1012
_SET_BASE = {ARCH_SET_FS: (FS, FS_BASE), ARCH_SET_GS: (GS, GS_BASE)}
_GET_BASE = {ARCH_GET_FS: FS_BASE, ARCH_GET_GS: GS_BASE}


@syscall(x86_64=158, support=Support.PARTIAL, note="FS and GS base; no CPUID faulting, no shadow stacks")
def arch_prctl(task: Task, option: int, arg2: Address) -> int:
    core = task.cpu.core
    if option in _SET_BASE:
        if arg2 >= task.mm.layout.task_size:
            raise LinuxError(EPERM, f"a base of {arg2:#x} is not the user's")
        selector, base = _SET_BASE[option]
        core.write_register(selector, 0)
        core.write_register(base, arg2)
        return 0
    if option in _GET_BASE:
        task.mm.write(arg2, core.read_register(_GET_BASE[option]).to_bytes(8, "little"))
        return 0
    if option == ARCH_GET_CPUID:
        return 1
    if option == ARCH_SET_CPUID:
        raise LinuxError(ENODEV, "CPUID faulting")
    raise LinuxError(EINVAL, f"arch_prctl {option:#x}")


# ---- prctl

PrctlHandler = Callable[[Task, int, int], int]  # with the second and the third argument
# uapi/linux/prctl.h
PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_GET_KEEPCAPS = 1, 2, 3, 4, 7
PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_GET_SECUREBITS = 15, 16, 21, 22, 23, 27
PR_GET_TSC, PR_SET_TSC, PR_TSC_ENABLE, PR_TSC_SIGSEGV = 25, 26, 1, 2
RDTSC = frozenset((TrapKind.RDTSC, TrapKind.RDTSCP))
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 29, 30, 36, 37
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_SET_THP_DISABLE, PR_GET_THP_DISABLE = range(38, 43)
PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 8, 24, 47
PR_SET_PTRACER, ANY_TRACER = 0x59616D61, (1 << 64) - 1
PR_CAP_AMBIENT_IS_SET, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_LOWER, PR_CAP_AMBIENT_CLEAR_ALL = range(1, 5)


def _set_death_signal(task: Task, signal: int, _: int) -> int:
    if not 0 <= signal <= NSIG:
        raise LinuxError(EINVAL, f"signal {signal}")
    task.parent_death_signal = signal
    return 0


def _set_dumpable(task: Task, value: int, _: int) -> int:
    if value not in (0, 1):
        raise LinuxError(EINVAL, f"dumpable {value}")
    task.dumpable = value
    return 0


def _set_name(task: Task, address: int, _: int) -> int:
    task.kernel.rename(task, task.mm.read_string(address, COMM_LENGTH).decode("utf-8", "surrogateescape"))
    return 0


def _get_name(task: Task, address: int, _: int) -> int:
    task.mm.write(address, task.comm.encode("utf-8", "surrogateescape").ljust(16, b"\0"))
    return 0


def _check_capability(capability: int) -> None:
    if not 0 <= capability <= LAST_CAPABILITY:
        raise LinuxError(EINVAL, f"capability {capability}")


def _has_capability(task: Task, capability: int, _: int) -> int:
    _check_capability(capability)
    return task.credentials.capabilities.bounding >> capability & 1


def _drop_capability(task: Task, capability: int, _: int) -> int:
    if not task.credentials.has(CAP_SETPCAP):
        raise LinuxError(EPERM, "PR_CAPBSET_DROP needs CAP_SETPCAP")
    _check_capability(capability)
    own = task.credentials.capabilities
    task.credentials = task.credentials.with_capabilities(replace(own, bounding=own.bounding & ~(1 << capability)))
    return 0


def _set_keeps_capabilities(task: Task, value: int, _: int) -> int:
    if value not in (0, 1):
        raise LinuxError(EINVAL, f"PR_SET_KEEPCAPS {value}")
    task.credentials = replace(task.credentials, keeps_capabilities=bool(value))
    return 0


def _ambient(task: Task, what: int, capability: int) -> int:
    own = task.credentials.capabilities
    if what == PR_CAP_AMBIENT_CLEAR_ALL:
        if capability:
            raise LinuxError(EINVAL, f"PR_CAP_AMBIENT_CLEAR_ALL of {capability}")
        task.credentials = task.credentials.with_capabilities(replace(own, ambient=0))
        return 0
    _check_capability(capability)
    bit = 1 << capability
    if what == PR_CAP_AMBIENT_IS_SET:
        return int(bool(own.ambient & bit))
    if what not in (PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_LOWER):
        raise LinuxError(EINVAL, f"PR_CAP_AMBIENT {what}")
    raises = what == PR_CAP_AMBIENT_RAISE
    if raises and not own.permitted & own.inheritable & bit:
        raise LinuxError(EPERM, f"capability {capability} is not both permitted and inheritable")
    ambient = own.ambient | bit if raises else own.ambient & ~bit
    task.credentials = task.credentials.with_capabilities(replace(own, ambient=ambient))
    return 0


def _set_tracer(task: Task, pid: int, _: int) -> int:
    """PR_SET_PTRACER: it matters where kernel.yama.ptrace_scope is not 0."""
    if pid not in (0, ANY_TRACER) and pid not in task.kernel.tasks:
        raise LinuxError(EINVAL, f"process {pid} does not exist")
    task.allowed_tracer = pid
    return 0


def _set_subreaper(task: Task, value: int, _: int) -> int:
    task.process.is_subreaper = value != 0
    return 0


def _set_tsc(task: Task, value: int, _: int) -> int:
    """Whether it may read the time-stamp counter; where it may not, that is SIGSEGV."""
    if task.architecture.isa != "x86_64":
        task.kernel.name_once("prctl option 26 (PR_SET_TSC) is modelled on x86-64 alone: EINVAL")
        raise LinuxError(EINVAL, "PR_SET_TSC of CNTVCT_EL0")
    if value not in (PR_TSC_ENABLE, PR_TSC_SIGSEGV):
        raise LinuxError(EINVAL, f"PR_SET_TSC {value}")
    own = task.trapped_instructions - RDTSC
    task.trapped_instructions = own | RDTSC if value == PR_TSC_SIGSEGV else own
    return 0


def _set_timer_slack(task: Task, ns: int, _: int) -> int:
    task.timer_slack_ns = ns or 50_000
    return 0


def _set_no_new_privileges(task: Task, value: int, other: int) -> int:
    if value != 1 or other:
        raise LinuxError(EINVAL, f"no_new_privs {value}")
    task.no_new_privileges = True
    return 0


def _write_u32(value: Callable[[Task], int]) -> PrctlHandler:
    def write(task: Task, address: int, _: int) -> int:
        task.mm.write(address, U32(value(task)).pack())
        return 0

    return write


def _get_tid_address(task: Task, address: int, _: int) -> int:
    task.mm.write(address, task.clear_child_tid.to_bytes(8, "little"))
    return 0


def _zero(task: Task, _: int, __: int) -> int:
    """A state that this machine has and cannot leave: asked for or set, it is 0."""
    return 0


PRCTL: dict[int, PrctlHandler] = {
    PR_SET_PDEATHSIG: _set_death_signal,
    PR_GET_PDEATHSIG: _write_u32(lambda task: task.parent_death_signal),
    PR_GET_DUMPABLE: lambda task, _, __: task.dumpable,
    PR_SET_DUMPABLE: _set_dumpable,
    PR_GET_KEEPCAPS: lambda task, _, __: int(task.credentials.keeps_capabilities),
    PR_SET_KEEPCAPS: _set_keeps_capabilities,
    PR_CAPBSET_DROP: _drop_capability,
    PR_CAP_AMBIENT: _ambient,
    PR_SET_NAME: _set_name,
    PR_GET_NAME: _get_name,
    PR_GET_SECCOMP: lambda task, _, __: MODE_DISABLED if task.seccomp is None else task.seccomp.mode,
    PR_SET_SECCOMP: set_mode,
    PR_CAPBSET_READ: _has_capability,
    PR_GET_TSC: _write_u32(lambda task: PR_TSC_SIGSEGV if RDTSC & task.trapped_instructions else PR_TSC_ENABLE),
    PR_SET_TSC: _set_tsc,
    PR_GET_SECUREBITS: _zero,
    PR_SET_TIMERSLACK: _set_timer_slack,
    PR_SET_PTRACER: _set_tracer,
    PR_GET_TIMERSLACK: lambda task, _, __: task.timer_slack_ns,
    PR_SET_CHILD_SUBREAPER: _set_subreaper,
    PR_GET_CHILD_SUBREAPER: _write_u32(lambda task: int(task.process.is_subreaper)),
    PR_SET_NO_NEW_PRIVS: _set_no_new_privileges,
    PR_GET_NO_NEW_PRIVS: lambda task, _, __: int(task.no_new_privileges),
    PR_GET_TID_ADDRESS: _get_tid_address,
    PR_SET_THP_DISABLE: _zero,  # there are no huge pages
    PR_GET_THP_DISABLE: _zero,
}


@syscall(aarch64=167, x86_64=157, support=Support.PARTIAL, note="an option that is not modelled is EINVAL, and named")
def prctl(task: Task, option: int, arg2: ULong, arg3: ULong, arg4: ULong, arg5: ULong) -> int:
    handler = PRCTL.get(option)
    if handler is None:
        if option:  # 0 is no option of Linux's; perf bench numa asks for it all the same
            task.kernel.name_once(f"prctl option {option} is not modelled: EINVAL")
        raise LinuxError(EINVAL, f"prctl option {option}")
    return handler(task, arg2, arg3)


@syscall(aarch64=92, x86_64=135, support=Support.PARTIAL, note="PER_LINUX only; flags are kept, without effect")
def personality(task: Task, personality: UInt) -> int:
    before = task.personality
    if personality != 0xFFFF_FFFF:
        if personality & 0xFF:
            raise LinuxError(EINVAL, f"personality {personality:#x}: only Linux' own is modelled")
        task.personality = personality
    return before
