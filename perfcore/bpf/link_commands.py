"""bpf(2)'s commands that attach programs. kernel/bpf/syscall.c"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.linux.errors import E2BIG, EBADF, EINVAL, ENOENT, ENOSPC, ENOTSUPP, EOPNOTSUPP, EPERM, LinuxError
from perfcore.abi.bpf import (
    F_REPLACE,
    LAYOUTS,
    PERF_EVENT_ATTACH,
    TRACING_LINK,
    UPROBE_MULTI_LINK,
    AttachType,
    Cmd,
    ProgType,
)
from perfcore.abi.constants import PerfType
from perfcore.abi.syscall_tracepoints import tracepoints_by_id
from perfcore.bpf.files import LinkFile, link_of, program_of
from perfcore.bpf.links import Link, PerfEventLink, RawTracepointLink, raw_source
from perfcore.bpf.multi_commands import kprobe_multi_link, uprobe_multi_link
from perfcore.bpf.program import Program
from perfcore.bpf.request import CAP_SYS_ADMIN, Request
from perfcore.bpf.subsystem import Bpf
from perfcore.bpf.trampolines import TracingLink
from perfcore.events.event_file import PerfEventFile
from perfcore.events.programs import MOST_PROGRAMS

_LONGEST_NAME = 127
_FD_TYPE_RAW_TRACEPOINT, _FD_TYPE_TRACEPOINT = 0, 1  # enum bpf_task_fd_type
_OBSERVING = (ProgType.PERF_EVENT, ProgType.KPROBE, ProgType.TRACEPOINT)


def _install(bpf: Bpf, request: Request, link: Link) -> int:
    try:
        bpf.links.add(link)
    except LinuxError:
        link.drop_unused()
        raise
    return request.task.files.install(LinkFile(link), cloexec=True)


def raw_tracepoint_open(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.RAW_TRACEPOINT_OPEN])
    program = program_of(request.task, attr["prog_fd"])
    if program.type == ProgType.TRACING:
        if attr["name"]:
            raise LinuxError(EINVAL, "a program of type TRACING knows what it is for: there is no name")
        return _install(bpf, request, _tracing_link(bpf, program, attr["cookie"]))
    if program.type != ProgType.RAW_TRACEPOINT:
        raise LinuxError(EINVAL, f"a program of type {program.type.name} is not for raw tracepoints")
    name = request.task.mm.read_string(attr["name"], _LONGEST_NAME).decode("utf-8", "replace")
    return _install(bpf, request, _raw_tracepoint_link(bpf, program, name, attr["cookie"]))


def _raw_tracepoint_link(bpf: Bpf, program: Program, name: str, cookie: int) -> Link:
    told = raw_source(bpf.raw_tracepoints, name)
    if sum(isinstance(link, RawTracepointLink) and link.name == name for link in bpf.links) >= MOST_PROGRAMS:
        raise LinuxError(E2BIG, f"the tracepoint has {MOST_PROGRAMS} programs; Linux has no such limit of raw ones")
    return RawTracepointLink(program, bpf.links.remove, name, bpf.kernel.tracepoints, told, cookie)


def _tracing_link(bpf: Bpf, program: Program, cookie: int) -> Link:
    attachment = program.attachment
    assert attachment is not None, "programs of type TRACING have one"
    if attachment.type == AttachType.TRACE_RAW_TP:
        return _raw_tracepoint_link(bpf, program, attachment.target.name, cookie)
    return TracingLink(program, bpf.links.remove, bpf.trampolines.find(attachment), cookie)


def _create_tracing_link(bpf: Bpf, request: Request, program: Program) -> int:
    """bpf_tracing_prog_attach()"""
    attr = request.fields(TRACING_LINK)
    assert program.attachment is not None, "programs of type TRACING have one"
    if attr["attach_type"] != program.attachment.type:
        raise LinuxError(EINVAL, f"attach_type {attr['attach_type']}: it was loaded for {program.attachment.type.name}")
    if attr["target_fd"] or attr["target_btf_id"]:
        raise LinuxError(EINVAL, "target_fd, target_btf_id: only extensions, which are not modelled, find others")
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    return _install(bpf, request, _tracing_link(bpf, program, attr["cookie"]))


def link_create(bpf: Bpf, request: Request) -> int:
    attr = LAYOUTS[Cmd.LINK_CREATE].read(request.data)
    request.fields(UPROBE_MULTI_LINK)  # the longest: its end is the command's
    program, wanted = program_of(request.task, attr["prog_fd"]), attr["attach_type"]
    if program.type == ProgType.TRACING:
        return _create_tracing_link(bpf, request, program)
    _check_attach_type(program, wanted)
    link = _ATTACH.get(wanted, _perf_event_link)(bpf, request, program)
    return _install(bpf, request, link)


def _check_attach_type(program: Program, wanted: int) -> None:
    """bpf_prog_attach_check_attach_type()"""
    loaded_for = program.loaded.expected_attach_type
    multi = program.type == ProgType.KPROBE and wanted in _ATTACH
    if (wanted != PERF_EVENT_ATTACH and not multi) or program.type not in _OBSERVING:
        what = f"attach_type {wanted}, a program of type {program.type.name}"
        raise LinuxError(EINVAL, f"{what}: programs are linked to perf events here (BPF_PERF_EVENT), or to many probes")
    if program.type == ProgType.KPROBE and loaded_for in _ATTACH and wanted != loaded_for:
        raise LinuxError(EINVAL, f"attach_type {wanted}: it was loaded for {AttachType(loaded_for).name}")


def _perf_event_link(bpf: Bpf, request: Request, program: Program) -> Link:
    attr = LAYOUTS[Cmd.LINK_CREATE].read(request.data)
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    file = request.task.files.get(attr["target_fd"])
    if not isinstance(file, PerfEventFile):
        raise LinuxError(EBADF, f"descriptor {attr['target_fd']} is no perf event's")
    return PerfEventLink(program, bpf.links.remove, file, attr["bpf_cookie"])


_ATTACH: Mapping[int, Callable[[Bpf, Request, Program], Link]] = {
    AttachType.TRACE_KPROBE_MULTI: kprobe_multi_link,
    AttachType.TRACE_UPROBE_MULTI: uprobe_multi_link,
}


def link_update(bpf: Bpf, request: Request) -> int:
    """Of no kind of link here the program can be another one's (bpf_link_ops.update_prog)."""
    attr = request.fields(LAYOUTS[Cmd.LINK_UPDATE])
    if attr["flags"] & ~F_REPLACE:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    link = link_of(request.task, attr["link_fd"])
    program_of(request.task, attr["new_prog_fd"])
    if attr["flags"]:
        program_of(request.task, attr["old_prog_fd"])
    raise LinuxError(EINVAL, f"link {link.id}: links of events, tracepoints and functions keep their program")


def iter_create(bpf: Bpf, request: Request) -> int:
    """There are no iterators (programs of TRACE_ITER), and so no links of any."""
    attr = request.fields(LAYOUTS[Cmd.ITER_CREATE])
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    raise LinuxError(EINVAL, f"link {link_of(request.task, attr['link_fd']).id} is no iterator's")


def link_detach(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.LINK_DETACH])
    link = link_of(request.task, attr["link_fd"])
    raise LinuxError(EOPNOTSUPP, f"link {link.id}: links of events and tracepoints end when they are closed")


def task_fd_query(bpf: Bpf, request: Request) -> int:
    """What program a descriptor of a process is attached by."""
    attr = request.fields(LAYOUTS[Cmd.TASK_FD_QUERY])
    if not request.task.credentials.has(CAP_SYS_ADMIN):
        raise LinuxError(EPERM, "other processes' descriptors are asked for with CAP_SYS_ADMIN")
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    task = request.task.kernel.tasks.get(attr["pid"])
    if task is None:
        raise LinuxError(ENOENT, f"there is no task {attr['pid']}")
    file = task.files.get(attr["fd"])
    if isinstance(file, LinkFile) and isinstance(file.thing, RawTracepointLink):
        return _answer_query(request, file.thing.program.id, _FD_TYPE_RAW_TRACEPOINT, file.thing.name)
    if isinstance(file, PerfEventFile):
        described = tracepoints_by_id(bpf.kernel.architecture.isa).get(file.event.attr.config)
        if file.event.attr.type != PerfType.TRACEPOINT or described is None:
            raise LinuxError(EOPNOTSUPP, "the event is no tracepoint")
        if file.event.attached is None:
            raise LinuxError(ENOENT, "the event has no program")
        return _answer_query(request, file.event.attached.program.id, _FD_TYPE_TRACEPOINT, described.name)
    raise LinuxError(ENOTSUPP, "the descriptor has nothing to do with programs")


def _answer_query(request: Request, program: int, kind: int, name: str) -> int:
    attr = request.fields(LAYOUTS[Cmd.TASK_FD_QUERY])
    text, room = name.encode(), attr["buf_len"]
    request.write_back(attr, "buf_len", len(text))
    if attr["buf"] and room:
        whole = room > len(text)
        request.task.mm.write(attr["buf"], (text if whole else text[: room - 1]) + b"\0")
        if not whole:
            raise LinuxError(ENOSPC, f"the name has {len(text)} characters")
    request.write_back(attr, "prog_id", program)
    request.write_back(attr, "fd_type", kind)
    request.write_back(attr, "probe_offset", 0, "Q")
    request.write_back(attr, "probe_addr", 0, "Q")
    return 0
