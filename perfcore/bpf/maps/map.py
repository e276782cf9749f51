"""Map: what all kinds of maps share. kernel/bpf/syscall.c and the files beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from emulator.linux.errors import EINVAL, ENOMEM, ENOTSUPP, EPERM, LinuxError
from emulator.linux.fs.file import Caller
from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.sched.waiting import WaitQueue
from perfcore.abi.bpf import MapFlag, MapType
from perfcore.bpf.memory import KernelMemory, Region
from perfcore.bpf.objects import Shared

ELEMENT_HELPERS = frozenset({"map_lookup_elem", "map_update_elem", "map_delete_elem", "for_each_map_elem"})
OVERHEAD_BYTES = 160  # of an element of a hash table, besides its key and value: what we need for it


@dataclass(frozen=True, slots=True)
class MapRequest:
    """What BPF_MAP_CREATE says."""

    type: MapType
    key_size: int
    value_size: int
    max_entries: int
    flags: MapFlag
    name: bytes = b""


class Host(Protocol):
    """What maps need of the kernel around them."""

    @property
    def memory(self) -> KernelMemory: ...
    @property
    def cpu_count(self) -> int: ...

    @property
    def max_stack(self) -> int:
        """kernel.perf_event_max_stack."""

    @property
    def cpu_number(self) -> int:
        """Of the one that executes."""

    def irq_work(self, work: Callable[[], object]) -> None:
        """Do `work` in an interrupt of that one's."""


class Types(Protocol):
    """BTF."""

    id: int

    def retain(self) -> None: ...
    def release(self) -> None: ...


def round_up(size: int, to: int) -> int:
    return -(-size // to) * to


class Map(Shared):
    """One map. Programs reach an element by its address, processes by copies of its value."""

    permitted_flags: ClassVar[MapFlag] = MapFlag(0)
    has_lookup = True  # by programs: bpf_map_lookup_elem
    helpers: ClassVar[frozenset[str]] = frozenset()  # the functions to which a program may give it

    def __init__(self, request: MapRequest, host: Host) -> None:
        """After `check`. LinuxError with ENOMEM where there is no memory for it."""
        self.request = request
        self.host = host
        self.id = 0
        self.frozen = False
        self.files = 0  # through which processes have it
        self.writers = 0  # files that are mapped for writing
        self.btf_id = self.btf_key_type_id = self.btf_value_type_id = 0
        self.readers = WaitQueue()
        self.on_end: Callable[[Map], None] = lambda map: None
        self._regions: list[Region] = []
        self._types: Types | None = None

    def set_types(self, types: Types, key: int, value: int) -> None:
        """What keys and values are of: `types` stays as long as the map."""
        types.retain()
        self._types = types
        self.btf_id, self.btf_key_type_id, self.btf_value_type_id = types.id, key, value

    # ---- what is asked for

    @classmethod
    def check(cls, request: MapRequest) -> None:
        """map_alloc_check()."""
        if not request.max_entries or not request.key_size or not request.value_size:
            raise LinuxError(EINVAL, "a map has keys, values and entries")
        cls.check_flags(request)

    @classmethod
    def check_flags(cls, request: MapRequest) -> None:
        always = MapFlag.NUMA_NODE | MapFlag.RDONLY | MapFlag.WRONLY | MapFlag.RDONLY_PROG | MapFlag.WRONLY_PROG
        wrong = request.flags & ~(cls.permitted_flags | always)
        if wrong:
            raise LinuxError(EINVAL, f"map_flags {wrong:#x} are not for {request.type.name} maps")
        for both in (MapFlag.RDONLY | MapFlag.WRONLY, MapFlag.RDONLY_PROG | MapFlag.WRONLY_PROG):
            if request.flags & both == both:
                raise LinuxError(EINVAL, f"map_flags {both:#x}: neither read nor written")

    # ---- memory

    def allocate(self, size: int) -> Region:
        """Zeroed memory of this map, in the machine's RAM."""
        if size > 1 << 32:
            raise LinuxError(ENOMEM, f"a map of {size} bytes")
        region = self.host.memory.allocate(-(-size // PAGE_SIZE))
        self._regions.append(region)
        return region

    def end(self) -> None:
        self.on_end(self)
        self.free()

    def free(self) -> None:
        if self._types is not None:
            self._types.release()
            self._types = None
        for region in self._regions:
            self.host.memory.free(region)
        self._regions.clear()

    @property
    def memory_bytes(self) -> int:
        """fdinfo's memlock."""
        return sum(region.size for region in self._regions)

    # ---- by programs

    def lookup(self, key: bytes) -> int:
        """The address of the element's value; 0: there is none."""
        raise NotImplementedError

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        raise LinuxError(ENOTSUPP, f"{self.request.type.name} maps are not updated so")

    def delete(self, key: bytes) -> None:
        raise LinuxError(ENOTSUPP, f"elements of {self.request.type.name} maps are not deleted")

    @property
    def count(self) -> int:
        """How many `elements` there are."""
        raise NotImplementedError

    def elements(self) -> Iterable[tuple[bytes, int]]:
        """Key and address of each, for bpf_for_each_map_elem."""
        raise NotImplementedError

    # ---- by system calls

    @property
    def value_bytes(self) -> int:
        """Of what a process gives and gets as an element."""
        return self.request.value_size

    def read(self, key: bytes) -> bytes:
        """ENOENT if there is no such element."""
        raise LinuxError(ENOTSUPP, f"{self.request.type.name} maps are not looked up so")

    def write(self, task: Caller, key: bytes, value: bytes, flags: int) -> None:
        self.update(key, value, flags)

    def remove(self, key: bytes) -> None:
        self.delete(key)

    def next_key(self, key: bytes | None) -> bytes:
        """ENOENT at the end."""
        raise LinuxError(ENOTSUPP, f"{self.request.type.name} maps have no next key")

    def take(self, key: bytes) -> bytes:
        """BPF_MAP_LOOKUP_AND_DELETE_ELEM."""
        raise LinuxError(ENOTSUPP, f"{self.request.type.name} maps: nothing is taken out of them")

    has_batch = False

    def keys_from(self, first: int, most: int) -> list[bytes]:
        """Of a map that has batches: the keys behind so many others."""
        raise NotImplementedError

    def map_frames(self, task: Caller, length: int, offset: int, protection: int) -> int:
        raise LinuxError(ENOTSUPP, f"{self.request.type.name} maps are not mapped")

    def poll(self) -> int:
        raise NotImplementedError

    can_poll = False

    def released_by_processes(self) -> None:
        """No descriptor is left; programs may still have it."""

    # ---- rules

    def check_written_by_process(self) -> None:
        if self.frozen:
            raise LinuxError(EPERM, "the map is frozen")

    @property
    def constant_bytes(self) -> memoryview | None:
        """What can no longer change, so that the verifier may know it."""
        return None
