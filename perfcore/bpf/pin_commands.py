"""bpf(2)'s commands that give objects names, and find them by those. kernel/bpf/inode.c"""

from __future__ import annotations

import os

from emulator.linux.errors import EACCES, EINVAL, LinuxError
from emulator.linux.fs.file import O_RDONLY, O_RDWR, O_WRONLY, File
from emulator.linux.fs.paths import PATH_MAX
from emulator.linux.fs.permissions import READ, WRITE
from emulator.linux.fs.pinned_objects import Kept, PinnedObject
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_FDCWD, find, new_mode, start, tree
from perfcore.abi.bpf import LAYOUTS, OBJ_FLAGS, PATH_FD, Attr, Cmd
from perfcore.bpf.files import LinkFile, MapFile, file_flags
from perfcore.bpf.links import Link
from perfcore.bpf.loading import install_program
from perfcore.bpf.maps.map import Map
from perfcore.bpf.program import Program
from perfcore.bpf.request import Request
from perfcore.bpf.subsystem import Bpf
from perfcore.events.programs import ProgramFile

_PERMISSIONS = {O_RDONLY: READ, O_WRONLY: WRITE, O_RDWR: READ | WRITE}


def _path(request: Request, attr: Attr, flags: int) -> tuple[int, str]:
    """Where it begins, and the path."""
    if attr["file_flags"] & ~(flags | PATH_FD) or (attr["path_fd"] and not attr["file_flags"] & PATH_FD):
        raise LinuxError(EINVAL, f"file_flags {attr['file_flags']:#x}, path_fd {attr['path_fd']}")
    path = os.fsdecode(request.task.mm.read_string(attr["pathname"], PATH_MAX))
    return (attr["path_fd"] if attr["file_flags"] & PATH_FD else AT_FDCWD), path


def _object_behind(task: Task, descriptor: int) -> Kept:
    """bpf_fd_probe_obj()"""
    try:
        file: File | None = task.files.get(descriptor)
    except LinuxError:
        file = None
    if isinstance(file, MapFile | LinkFile):
        return file.thing
    if isinstance(file, ProgramFile):
        return file.program
    raise LinuxError(EINVAL, f"descriptor {descriptor} is of no BPF object that can be pinned")


def obj_pin(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.OBJ_PIN])
    beginning, path = _path(request, attr, 0)
    task, descriptor = request.task, attr["bpf_fd"]
    pinned = _object_behind(task, descriptor)
    tree(task).pin(start(task, beginning, path), path, new_mode(task, 0o600), pinned)
    return 0


def obj_get(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.OBJ_GET])
    if attr["bpf_fd"]:
        raise LinuxError(EINVAL, f"bpf_fd {attr['bpf_fd']}: an object is asked for by its name alone")
    beginning, path = _path(request, attr, OBJ_FLAGS)
    flags = file_flags(attr["file_flags"])
    dentry = find(request.task, beginning, path)
    tree(request.task).check(dentry, _PERMISSIONS[flags])
    if not isinstance(dentry.node, PinnedObject):
        raise LinuxError(EACCES, f"{path} is no object of BPF's")
    pinned = dentry.node.pinned
    if isinstance(pinned, Map):
        return request.task.files.install(MapFile(pinned, flags), cloexec=True)
    if isinstance(pinned, Program):
        return install_program(request, pinned)
    assert isinstance(pinned, Link), "nothing else is pinned"
    if flags != O_RDWR:
        raise LinuxError(EINVAL, "a link is opened to be read and written")
    return request.task.files.install(LinkFile(pinned), cloexec=True)
