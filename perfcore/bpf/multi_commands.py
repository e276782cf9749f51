"""BPF_LINK_CREATE of programs that are for many functions. kernel/trace/bpf_trace.c

bpf_kprobe_multi_link_attach(), bpf_uprobe_multi_link_attach(). Errors come in their order; but where there are more
symbols than functions, no name is read.
"""

from __future__ import annotations

import os
import struct

from emulator.linux.errors import E2BIG, EBADF, EINVAL, EOPNOTSUPP, ESRCH, LinuxError
from emulator.linux.fs.nodes import Regular
from emulator.linux.fs.paths import PATH_MAX
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_FDCWD, find
from perfcore.abi.bpf import KPROBE_MULTI_LINK, UPROBE_MULTI_LINK, AttachType
from perfcore.bpf.links import Link
from perfcore.bpf.multi_links import KprobeMultiLink, ProbedFunction, ProbedOffset, UprobeMultiLink
from perfcore.bpf.program import Program
from perfcore.bpf.request import Request
from perfcore.bpf.subsystem import Bpf
from perfcore.events.probes.kernel_functions import KernelFunctions
from perfcore.events.probes.uprobe_definition import ProbedFile

_RETURN = 1  # BPF_F_KPROBE_MULTI_RETURN, BPF_F_UPROBE_MULTI_RETURN
_MOST = 1 << 20  # MAX_KPROBE_MULTI_CNT, MAX_UPROBE_MULTI_CNT
_WITH_FPROBES = ("x86_64",)
_LONGEST_SYMBOL = 512  # KSYM_NAME_LEN
_PLACE_BYTES, _PLACE_COST = 1024, 500  # of one; the cost in instructions of programs that could be run


def _check(program: Program, type: AttachType, flags: int) -> bool:
    """Whether it is for returns."""
    if program.loaded.expected_attach_type != type:
        raise LinuxError(EINVAL, f"the program has not been loaded for {type.name}")
    if flags & ~_RETURN:
        raise LinuxError(EINVAL, f"flags {flags:#x}: there is one, {_RETURN}")
    return bool(flags & _RETURN)


def _check_count(count: int) -> None:
    if count > _MOST:
        raise LinuxError(E2BIG, f"{count} places: there are at most {_MOST}")


def _words(request: Request, address: int, count: int) -> tuple[int, ...]:
    """As many as there are places; zeros at address 0."""
    if not address:
        return (0,) * count
    return struct.unpack(f"<{count}Q", request.task.mm.read(address, 8 * count))


# ---- functions of the kernel


def kprobe_multi_link(bpf: Bpf, request: Request, program: Program) -> Link:
    attr = KPROBE_MULTI_LINK.read(request.data)
    architecture = bpf.kernel.architecture
    if architecture.isa not in _WITH_FPROBES:
        raise LinuxError(EOPNOTSUPP, f"Linux 6.12 has no fprobes on {architecture.isa}")
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    returns = _check(program, AttachType.TRACE_KPROBE_MULTI, attr["multi_flags"])
    count, symbols, addresses = attr["cnt"], attr["syms"], attr["addrs"]
    if bool(symbols) == bool(addresses) or not count:
        raise LinuxError(EINVAL, "there are symbols or addresses, at least one")
    _check_count(count)
    discharge = bpf.charge_work("functions are probed", count * _PLACE_BYTES, count * _PLACE_COST)
    try:
        cookies = _words(request, attr["cookies"], count)
        functions = KernelFunctions(architecture.isa)
        if addresses:
            found = _words(request, addresses, count)
        else:
            found = _found_symbols(request, functions, symbols, count)
        probed = [_function(functions, *each, returns) for each in zip(found, cookies, strict=True)]
        if attr["cookies"]:
            probed.sort(key=lambda each: each.address)
        return KprobeMultiLink(program, bpf.links.remove, bpf.kprobes, probed, returns=returns, discharge=discharge)
    except LinuxError:
        discharge()
        raise


def _found_symbols(request: Request, functions: KernelFunctions, address: int, count: int) -> tuple[int, ...]:
    """ftrace_lookup_symbols(): each is one of what can be probed, and none comes twice. ESRCH"""
    if count > len(functions.by_name):
        raise LinuxError(ESRCH, f"{count} symbols: there are {len(functions.by_name)} functions")
    names = [
        request.task.mm.read_string(at, _LONGEST_SYMBOL).decode("utf-8", "replace")
        for at in _words(request, address, count)
    ]
    unknown = [name for name in names if name not in functions.by_name]
    if unknown or len(set(names)) < count:
        raise LinuxError(ESRCH, f"{' '.join(unknown[:3])}: not in available_filter_functions, or named twice")
    return tuple(functions.addresses[name] for name in names)


def _function(functions: KernelFunctions, address: int, cookie: int, returns: bool) -> ProbedFunction:
    """EINVAL where none begins."""
    found = functions.find(address)
    if found is None or found[1]:
        raise LinuxError(EINVAL, f"{address:#x} is no function's beginning")
    if returns and not found[0].returns:
        raise LinuxError(EOPNOTSUPP, f"{found[0].name}: when it returns the modelled kernel does not know")
    return ProbedFunction(found[0], address, cookie)


# ---- instructions of a file


def uprobe_multi_link(bpf: Bpf, request: Request, program: Program) -> Link:
    attr = UPROBE_MULTI_LINK.read(request.data)
    returns = _check(program, AttachType.TRACE_UPROBE_MULTI, attr["multi_flags"])
    count, pid = attr["cnt"], attr["pid"]
    if not attr["path"] or not attr["offsets"] or not count or pid >> 31:
        raise LinuxError(EINVAL, "there are a path, offsets, at least one, and a pid that is none or a process's")
    _check_count(count)
    path, file = _probed_file(request, attr["path"])
    task = _process(request, pid) if pid else None
    discharge = bpf.charge_work("uprobes are attached", count * _PLACE_BYTES, count * _PLACE_COST)
    try:
        columns = (_words(request, attr[name], count) for name in ("offsets", "ref_ctr_offsets", "cookies"))
        places = [ProbedOffset(*row) for row in zip(*columns, strict=True)]
        if any(place.offset >> 63 for place in places):
            raise LinuxError(EINVAL, "an offset is negative")
        return UprobeMultiLink(
            program, bpf.links.remove, bpf.uprobes, path, file, places, task=task, returns=returns, discharge=discharge
        )
    except LinuxError:
        discharge()
        raise


def _probed_file(request: Request, address: int) -> tuple[str, ProbedFile]:
    text = request.task.mm.read_string(address, PATH_MAX)
    if len(text) >= PATH_MAX:
        raise LinuxError(EINVAL, "the path is longer than a page")
    path = os.fsdecode(text or b".")  # kern_path(): here
    dentry = find(request.task, AT_FDCWD, path)
    if not isinstance(dentry.node, Regular):
        raise LinuxError(EBADF, f"{path} is no regular file")
    attributes = dentry.node.attributes()
    return dentry.path, ProbedFile(attributes.inode, attributes.size)


def _process(request: Request, pid: int) -> Task:
    """get_pid_task(PIDTYPE_TGID)"""
    task = request.task.kernel.tasks.get(pid)
    if task is None or task.pid != pid or task.process.exit_status is not None:
        raise LinuxError(ESRCH, f"there is no process {pid}")
    return task
