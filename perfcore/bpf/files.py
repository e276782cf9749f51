"""Maps, BTF and links behind descriptors."""

from __future__ import annotations

from typing import Generic, TypeVar

from emulator.linux.errors import EACCES, EINVAL, EPERM, LinuxError
from emulator.linux.fs.file import O_RDONLY, O_RDWR, O_WRONLY, Caller, File
from emulator.linux.mm.mapping import PROT_WRITE, Holder
from emulator.linux.sched.waiting import WaitQueue
from perfcore.abi.bpf import (
    LINK_TYPE_KPROBE_MULTI,
    LINK_TYPE_PERF_EVENT,
    LINK_TYPE_RAW_TRACEPOINT,
    LINK_TYPE_TRACING,
    LINK_TYPE_UPROBE_MULTI,
    OBJ_FLAGS,
    MapFlag,
)
from perfcore.bpf.btf import Btf
from perfcore.bpf.links import Link
from perfcore.bpf.maps.map import Map
from perfcore.bpf.objects import Shared
from perfcore.bpf.program import Program
from perfcore.events.programs import ProgramFile

T = TypeVar("T", bound=Shared)
_LINK_TYPES = {
    LINK_TYPE_RAW_TRACEPOINT: "raw_tracepoint",
    LINK_TYPE_TRACING: "tracing",
    LINK_TYPE_PERF_EVENT: "perf",
    LINK_TYPE_KPROBE_MULTI: "kprobe_multi",
    LINK_TYPE_UPROBE_MULTI: "uprobe_multi",
}


class ObjectFile(File, Generic[T]):
    """One that keeps an object."""

    path_name = ""

    def __init__(self, thing: T, flags: int = O_RDWR) -> None:
        super().__init__(flags, self.path_name)
        self.thing = thing
        thing.retain()

    def close(self) -> None:
        self.thing.release()


class BtfFile(ObjectFile[Btf]):
    path_name = "anon_inode:btf"


class LinkFile(ObjectFile[Link]):
    path_name = "anon_inode:bpf_link"

    def details(self) -> str:
        link = self.thing
        of_program = f"prog_tag:\t{link.program.tag.hex()}\nprog_id:\t{link.program.id}\n"
        return f"link_type:\t{_LINK_TYPES[link.type]}\nlink_id:\t{link.id}\n{of_program}"


class MapFile(ObjectFile[Map]):
    """A map; `flags` say whether it may be read and written through this descriptor."""

    path_name = "anon_inode:bpf-map"
    protection_is_final = True  # bpf_map_mmap(): what is only read can be frozen, and a ring buffer's data

    def __init__(self, map: Map, flags: int) -> None:
        super().__init__(map, flags)
        map.files += 1
        self._mappings = 0
        self._writes = False

    def close(self) -> None:
        map = self.thing
        map.files -= 1
        if not map.files:
            map.released_by_processes()
        super().close()

    def details(self) -> str:
        request = self.thing.request
        rows = (
            ("map_type", int(request.type)),
            ("key_size", request.key_size),
            ("value_size", request.value_size),
            ("max_entries", request.max_entries),
            ("map_flags", f"{request.flags:#x}"),
            ("map_extra", "0x0"),
            ("memlock", self.thing.memory_bytes),
            ("map_id", self.thing.id),
            ("frozen", int(self.thing.frozen)),
        )
        return "".join(f"{name}:\t{value}\n" for name, value in rows)

    def poll(self) -> int:
        return self.thing.poll() if self.thing.can_poll else super().poll()

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed, self.thing.readers)

    def map_frames(self, task: Caller, length: int, offset: int, protection: int, shared: bool) -> tuple[int, Holder]:
        if not shared:
            raise LinuxError(EINVAL, "a map is mapped with MAP_SHARED")
        frame = self.thing.map_frames(task, length, offset, protection)
        if protection & PROT_WRITE and not self._writes:
            self._writes = True
            self.thing.writers += 1
        return frame, self

    def mapped(self) -> None:
        super().mapped()
        self._mappings += 1

    def unmapped(self) -> None:
        self._mappings -= 1
        if not self._mappings and self._writes:
            self._writes = False
            self.thing.writers -= 1
        super().unmapped()


def file_flags(flags: int) -> int:
    """bpf_get_file_flag()"""
    if flags & OBJ_FLAGS == OBJ_FLAGS:
        raise LinuxError(EINVAL, "BPF_F_RDONLY and BPF_F_WRONLY: neither read nor written")
    return O_RDONLY if flags & MapFlag.RDONLY else O_WRONLY if flags & MapFlag.WRONLY else O_RDWR


def map_file(task: Caller, descriptor: int) -> MapFile:
    file = task.files.get(descriptor)
    if not isinstance(file, MapFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no BPF map's")
    return file


def readable_map(task: Caller, descriptor: int) -> Map:
    file = map_file(task, descriptor)
    if not file.readable:
        raise LinuxError(EPERM, f"the map is not read through descriptor {descriptor}")
    return file.thing


def writable_map(task: Caller, descriptor: int) -> Map:
    file = map_file(task, descriptor)
    if not file.writable:
        raise LinuxError(EPERM, f"the map is not written through descriptor {descriptor}")
    file.thing.check_written_by_process()
    return file.thing


def program_of(task: Caller, descriptor: int) -> Program:
    file = task.files.get(descriptor)
    if not isinstance(file, ProgramFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no BPF program's")
    assert isinstance(file.program, Program), "there is one kind of program"
    return file.program


def btf_of(task: Caller, descriptor: int) -> Btf:
    """What programs and maps may have: not the kernel's."""
    file = task.files.get(descriptor)
    if not isinstance(file, BtfFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no BTF's")
    if file.thing.is_kernels:
        raise LinuxError(EACCES, f"descriptor {descriptor} is of the kernel's own types")
    return file.thing


def link_of(task: Caller, descriptor: int) -> Link:
    file = task.files.get(descriptor)
    if not isinstance(file, LinkFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no BPF link's")
    return file.thing
