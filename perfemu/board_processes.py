"""BoardProcesses: the records that make a guest Linux's processes readable, when samples need them and as they change.

Nothing is told when it happens: at each sample it is seen what the kernel knows now.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.cpu import Cpu, Level
from emulator.linux.fs.binds import Bind
from perfcore.abi.constants import Misc
from perfcore.abi.records import Comm, Exit, Fork, Mmap, Mmap2, Record
from perfcore.events.event import PerfEvent
from perfemu.board_sideband import NO_PID, BoardSideband
from perfemu.guest_linux.mappings import GuestFile, GuestMapping
from perfemu.guest_linux.modules import GuestModule
from perfemu.guest_linux.system import GuestLinux
from perfemu.guest_linux.tasks import IDLE, GuestTask
from perfemu.namespace import Namespace, resolve
from perfemu.symbols.finder import VDSO, build_id_of

ANONYMOUS = "//anon"
_NOBODY = (NO_PID, NO_PID)  # who could not be read
_MAP_SHARED, _MAP_PRIVATE = 1, 2
_MOST_VDSO_BYTES = 1 << 16
_MOST_LOOKS = 100  # at a process for build ids that were not in memory before: its headers come there as it begins
_MOST_KNOWN = 1 << 16  # tasks, and processes: a guest may make any number


@dataclass(slots=True)
class _Space:
    """What has been told of a process's mappings."""

    mm: int
    pages: int | None = None
    mappings: dict[int, GuestMapping] = field(default_factory=dict)  # of code, by where they start
    unidentified: dict[str, GuestMapping] = field(default_factory=dict)  # where files begin, by their records' names
    looks: int = _MOST_LOOKS

    def has(self, mapping: GuestMapping) -> bool:
        return self.mappings.get(mapping.start) == mapping


class BoardProcesses:
    """`root`: a directory that has the guest's files, by their paths in it."""

    def __init__(self, linux: GuestLinux, sideband: BoardSideband, root: str | None) -> None:
        self._linux = linux
        self._sideband = sideband
        self._files = None if root is None else Namespace(binds=(Bind(root, "/"),), isolated=True)
        self._tasks: dict[int, GuestTask] = {}  # by tid
        self._spaces: dict[int, _Space] = {}  # by pid
        self._names: dict[GuestFile, str] = {}  # what records call it
        self._on_host: set[str] = set()  # of these names
        self._build_ids: dict[str, bytes] = {}  # by the records' names: those that were read in memory
        self._modules: dict[int, GuestModule] = {}  # by where their code starts
        self._vdso = b""
        self._telling: tuple[int, int] | None = None  # of whom records are being written

    @property
    def vdso(self) -> bytes:
        """The ELF file that the kernel maps into each process; empty if none was seen."""
        return self._vdso

    def build_id(self, path: str) -> bytes | None:
        """Of a file that records name so: as memory says it. None: it is the host's to say."""
        of_host = path in self._on_host
        return self._build_ids.get(path, None if of_host else b"")

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        if self._telling is not None:
            return self._telling
        task = self._linux.task(cpu)
        ids = _NOBODY if task is None else (task.pid, task.tid)
        event = self._sideband.event(cpu)
        if event is not None:
            self._telling = ids
            try:
                self._tell(event, task, cpu)
            finally:
                self._telling = None
        return ids

    def _tell(self, event: PerfEvent, task: GuestTask | None, cpu: Cpu) -> None:
        self._sideband.tell_of_kernel(event, cpu)
        if cpu.level == Level.KERNEL:
            self._tell_of_module(event, cpu)
        if task is None or task is IDLE:
            return
        if self._tasks.get(task.tid) != task:
            self._tell_of_task(event, task, cpu)
        if task.mm and cpu.level == Level.USER:
            self._tell_of_mappings(event, task, cpu)

    def _write(self, event: PerfEvent, record: Record, cpu: Cpu, misc: int = 0) -> None:
        self._sideband.write(event, record, misc, cpu)

    def _tell_of_module(self, event: PerfEvent, cpu: Cpu) -> None:
        """That of the code that executes, if it is new or has other symbols now."""
        module = self._linux.module(cpu.core.pc)
        if module is None or self._modules.get(module.start) == module:
            return
        self._modules[module.start] = module
        self._sideband.symbols_of_modules[module.start] = self._linux.symbols_of(module)
        start, size = module.start, module.end - module.start
        self._write(event, Mmap(NO_PID, 0, start, size, start, module.label), cpu, Misc.KERNEL)

    def _tell_of_task(self, event: PerfEvent, task: GuestTask, cpu: Cpu) -> None:
        known = self._tasks.get(task.tid)
        now = event.kernel.clock.monotonic_ns()
        is_same = known is not None and (known.pid, known.start_ns) == (task.pid, task.start_ns)
        if known is not None and not is_same:
            self._write(event, Exit(known.pid, known.parent, known.tid, known.parent, now), cpu)
        if len(self._tasks) >= _MOST_KNOWN:
            self._tasks.clear()
        self._tasks[task.tid] = task
        if not is_same:
            parent = task.parent if task.tid == task.pid else task.pid
            self._write(event, Fork(task.pid, parent, task.tid, parent, now), cpu)
            if task.tid == task.pid:
                self._spaces.pop(task.pid, None)
        executes = is_same and known is not None and known.mm != task.mm and task.mm != 0
        if executes:
            self._spaces.pop(task.pid, None)  # readers forget it
        if known is None or not is_same or executes or known.comm != task.comm:
            self._write(event, Comm(task.pid, task.tid, task.comm), cpu, Misc.COMM_EXEC if executes else 0)

    def _tell_of_mappings(self, event: PerfEvent, task: GuestTask, cpu: Cpu) -> None:
        space = self._spaces.get(task.pid)
        here = self._linux.mapping(task, cpu.core.pc)
        pages = self._linux.executable_pages(task)
        if space is not None and space.mm == task.mm and space.pages == pages and (here is None or space.has(here)):
            self._identify(task, space)
            return
        if space is None or space.mm != task.mm:
            if len(self._spaces) >= _MOST_KNOWN:
                self._spaces.clear()
            space = self._spaces[task.pid] = _Space(task.mm)
        space.pages = pages
        all_mappings = self._linux.mappings(task)
        code = {mapping.start: mapping for mapping in all_mappings if mapping.is_executable}
        if here is not None and here.is_executable:
            code.setdefault(here.start, here)
        for mapping in code.values():
            if not space.has(mapping):
                self._tell_of_mapping(event, task, mapping, all_mappings, cpu)
        space.mappings = code

    def _identify(self, task: GuestTask, space: _Space) -> None:
        if not space.unidentified or not space.looks:
            return
        space.looks -= 1
        for name, mapping in list(space.unidentified.items()):
            build_id = self._linux.build_id(task, mapping)
            if build_id is not None:
                self._build_ids.setdefault(name, build_id)
                del space.unidentified[name]

    def _tell_of_mapping(
        self, event: PerfEvent, task: GuestTask, mapping: GuestMapping, others: list[GuestMapping], cpu: Cpu
    ) -> None:
        file, size = mapping.file, mapping.end - mapping.start
        if file is not None:
            name = self._named(task, mapping, others)
        else:
            name = mapping.name or ANONYMOUS
            if name == VDSO and not self._vdso:
                self._keep_vdso(task, mapping)
        offset = mapping.offset if file is not None or name == VDSO else mapping.start
        if not event.attr.mmap2:
            self._write(event, Mmap(task.pid, task.pid, mapping.start, size, offset, name), cpu, Misc.USER)
            return
        identity = (0, 0, 0, 0) if file is None else (file.major, file.minor, file.inode, file.generation)
        flags = _MAP_SHARED if mapping.is_shared else _MAP_PRIVATE
        record = Mmap2(
            task.pid, task.pid, mapping.start, size, offset, *identity, mapping.protection, flags, name
        )  # fmt: skip
        self._write(event, record, cpu, Misc.USER)

    def _keep_vdso(self, task: GuestTask, mapping: GuestMapping) -> None:
        size = mapping.end - mapping.start
        if size <= _MOST_VDSO_BYTES:
            self._vdso = self._linux.contents(task, mapping.start, size) or b""

    def _named(self, task: GuestTask, mapping: GuestMapping, others: list[GuestMapping]) -> str:
        """By its path in `root`, if that has the very file; by the guest's otherwise."""
        assert mapping.file is not None, "it has a name"
        file, path = mapping.file, mapping.file.path
        name = self._names.get(file)
        if name is not None and self._build_ids.get(name) is not None:
            return name
        first = next((each for each in others if each.file == file and not each.offset), None)
        build_id = None if first is None else self._linux.build_id(task, first)
        if name is None:
            found = None if self._files is None else resolve(path, self._files)
            if found is not None and build_id and build_id_of(found) not in (b"", build_id):
                self._linux.tell(f"--guest-root: {found} is another build of what the guest has at {path}")
                found = None
            name = self._names[file] = found or path
            if found is not None:
                self._on_host.add(found)
        if build_id is not None:
            self._build_ids[name] = build_id
        elif first is not None:
            self._spaces[task.pid].unidentified[name] = first
        return name
