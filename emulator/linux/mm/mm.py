"""MemoryMap: one process's memory: its mappings, and the pages behind them, brought in on demand."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace

from emulator._native import AddressSpace, PhysicalMemory
from emulator.linux.arch.architecture import Layout
from emulator.linux.errors import EACCES, EINVAL, ENOMEM, LinuxError
from emulator.linux.mm.breakpoints import Breakpoints
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_GROWSDOWN,
    MAP_LOCKED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    PAGE_SHIFT,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    READ,
    WRITE,
    FileContent,
    Holder,
    MappedFile,
    Mapping,
    page_down,
    page_up,
)
from emulator.linux.mm.mapping_list import STACK_GUARD_GAP, MappingList
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.mm.pages import Pages
from emulator.linux.mm.program_bounds import ProgramBounds
from emulator.linux.mm.shared_files import SharedFiles
from emulator.linux.mm.shared_memory import SharedMemory
from emulator.linux.mm.user_access import UserAccess
from emulator.linux.proc.residency import Residency, measure
from emulator.linux.signals.signal import BUS_ADRERR, SEGV_ACCERR, SEGV_MAPERR, SIGBUS, SIGSEGV

POPULATED_PAGES = 2048  # at once
KEPT_FLAGS = MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE  # of mmap


class MemoryMap(UserAccess):
    """A process's address space (mm_struct). Faults are counted, and told to `on_fault`; new mappings to `on_map`."""

    def __init__(
        self,
        memory: PhysicalMemory,
        layout: Layout,
        page_cache: PageCache,
        zero_frame: int,
        space: AddressSpace | None = None,
    ) -> None:
        """`space`: page tables that are there already, as fork makes them."""
        super().__init__(space if space is not None else AddressSpace(memory), layout.task_size)
        self._memory = memory
        self._page_cache = page_cache
        self._zero_frame = zero_frame
        self._users = 1  # tasks
        self._files = SharedFiles(page_cache)
        self.layout = layout
        self.breakpoints = Breakpoints(self.space)
        self._pages = Pages(self.space, memory, page_cache, zero_frame)
        self.mappings = MappingList(layout.mmap_bottom, layout.mmap_top, layout.task_size)
        self.on_map: Callable[[Mapping], None] | None = None
        self.on_access: Callable[[int, int, bool], None] | None = None  # address, PROT_*, by user mode: it has faulted
        self.on_fault: Callable[[int, bool | None, bool], None] | None = None  # as the tracepoint page_fault
        self.on_page: Callable[[bool], None] | None = None  # one has come; whether that was a major fault
        self.stack_limit = 8 << 20  # bytes, RLIMIT_STACK at exec
        self.brk_start = self.brk_end = 0
        self.program = ProgramBounds()
        self.locks_new = False  # mlockall(MCL_FUTURE)
        self.barriers = 0  # MEMBARRIER_CMD_REGISTER_* that have been called
        self.signal_trampoline = 0  # the kernel's own code that calls rt_sigreturn

    # ---- processes

    def retain(self) -> None:
        """One more task executes in it."""
        self._users += 1

    def release(self) -> None:
        """One task less; with the last one everything is unmapped."""
        self._users -= 1
        if self._users == 0:
            self.clear()

    def fork(self) -> MemoryMap:
        """A copy: shared mappings show the same memory, private ones are copied when either side writes."""
        child = MemoryMap(self._memory, self.layout, self._page_cache, self._zero_frame, self.space.fork())
        for mapping in self.mappings:
            if mapping.holder is None:
                child.mappings.insert(mapping.with_flags(mapping.flags & ~MAP_LOCKED))  # mlock(2)
                child._files.share(mapping, child)
                if mapping.shared:  # found again at a fault: vma_needs_copy(), mm/memory.c
                    child.space.unmap(mapping.start, mapping.length >> PAGE_SHIFT)
            else:  # a device's frames, as those of perf's buffers, are not inherited
                child.space.unmap(mapping.start, mapping.length >> PAGE_SHIFT)
        child.stack_limit = self.stack_limit
        child.brk_start, child.brk_end = self.brk_start, self.brk_end
        child.program = replace(self.program)
        child.signal_trampoline = self.signal_trampoline
        child.barriers = self.barriers
        return child

    # ---- ranges

    def find(self, address: int) -> Mapping | None:
        return self.mappings.find(address)

    def map(
        self,
        address: int,
        length: int,
        protection: int,
        flags: int,
        content: FileContent | None = None,
        offset: int = 0,
        name: str = "",
        may_write: bool = True,
    ) -> int:
        """mmap of anonymous memory or a file's content, its arguments checked by the syscall. The start address."""
        length = page_up(length)
        start = self.mappings.place(address, length, flags)
        self._check_commit(length, protection, flags)
        if content is None and flags & MAP_SHARED:
            content = SharedMemory(MappedFile("/dev/zero (deleted)", 0, 1, self._page_cache.new_inode()), length)
        kept = flags & KEPT_FLAGS | (MAP_LOCKED if self.locks_new else 0)
        file = content.identity if content is not None else None
        end = start + length
        self._install(Mapping(start, end, protection & 7, kept, offset, file, name, content, may_write=may_write))
        return start

    def map_device(
        self,
        address: int,
        length: int,
        protection: int,
        flags: int,
        frame: int,
        file: MappedFile,
        offset: int,
        holder: Holder,
        *,
        may_write: bool = True,
        may_execute: bool = True,
    ) -> int:
        """mmap of a device: contiguous frames from `frame` on, kept by `holder` as long as a part stays mapped."""
        length = page_up(length)
        start = self.mappings.place(address, length, flags)
        end = start + length
        mapping = Mapping(
            start, end, protection & 7, flags & 3, offset, file, "", None, holder, may_write, may_execute
        )  # fmt: skip
        if not self.mappings.shows(file, holder):
            holder.mapped()
        self._install(mapping)
        self.space.map(start, frame, length >> PAGE_SHIFT, mapping.page_protection)
        return start

    def make_way(self, address: int, length: int, flags: int) -> None:
        """For MAP_FIXED of a device: what is there goes first, since it may be the device's own last mapping."""
        if flags & MAP_FIXED:
            self.unmap(self.mappings.place(address, length, flags), length)

    def _install(self, mapping: Mapping) -> None:
        if self.mappings.overlapping(mapping.start, mapping.end):
            self.unmap(mapping.start, mapping.length)
        merged = self.mappings.insert(mapping)
        self._files.share(mapping, self)
        if self.on_map is not None:
            self.on_map(merged)

    def _check_commit(self, length: int, protection: int, flags: int) -> None:
        """Heuristic overcommit: only what could never fit is refused."""
        if flags & (MAP_NORESERVE | MAP_SHARED) or not protection & PROT_WRITE:
            return
        if length > self._memory.size_bytes:
            raise LinuxError(ENOMEM, f"{length} bytes: the machine has {self._memory.size_bytes}")

    def unmap(self, address: int, length: int) -> None:
        end = address + page_up(length)
        if self.mappings.would_split(address, end) > 1:  # a hole in the middle of one
            self.mappings.check_room()
        pieces = self.mappings.carve(address, end)
        gone: dict[tuple[MappedFile, Holder | None], Mapping] = {}  # one piece of each file that is no longer mapped
        for piece in pieces:
            file, holder = piece.file, piece.holder
            if file is not None and not self.mappings.shows(file, holder):
                gone[file, holder] = piece
            with suppress(LinuxError):  # as Linux's write-back, which is nobody's call
                for _ in self._files.flushing(piece):
                    pass
            self.space.unmap(piece.start, piece.length >> PAGE_SHIFT)
        for piece in gone.values():
            if piece.holder is not None:
                piece.holder.unmapped()
            elif piece.file is not None:
                self._files.unshare(piece.file)

    def syncing(self, address: int, length: int) -> Iterator[int]:
        """msync: dirty pages of shared file mappings go to their files, in parts: after each, how many pages it had."""
        self.check_mapped(address, length)
        for piece in self.mappings.overlapping(address, address + length):
            yield from self._files.flushing(piece)

    def clear(self) -> None:
        """The process ends: everything is unmapped."""
        self.unmap(0, self.layout.task_size)

    def protect(self, address: int, length: int, protection: int) -> None:
        end = address + length
        self.check_mapped(address, length)
        for piece in self.mappings.overlapping(address, end):
            if (protection & PROT_WRITE and not piece.may_write) or (protection & PROT_EXEC and not piece.may_execute):
                raise LinuxError(
                    EACCES, f"what is mapped of {piece.path} at {piece.start:#x} may not become {protection}"
                )
        if self.mappings.would_split(address, end):
            self.mappings.check_room()
        for piece in self.mappings.carve(address, end):
            changed = piece.with_protection(protection & 7)
            self._pages.protect(changed)
            merged = self.mappings.insert(changed)
            if self.on_map is not None:
                self.on_map(merged)

    def check_mapped(self, address: int, length: int) -> None:
        """ENOMEM where a part of the range is not mapped."""
        position, end = address, address + length
        for piece in self.mappings.overlapping(address, end):
            if piece.start > position:
                break
            position = piece.end
        if position < end:
            raise LinuxError(ENOMEM, f"nothing is mapped at {position:#x}")

    def discard(self, address: int, length: int) -> None:
        """MADV_DONTNEED: pages go; the next touch brings zeroes or the file's bytes."""
        for piece in self.mappings.overlapping(address, address + length):
            if piece.flags & MAP_LOCKED:
                raise LinuxError(EINVAL, f"pages at {piece.start:#x} are locked and stay")
            if piece.holder is None:
                start, end = max(piece.start, address), min(piece.end, address + length)
                self.space.unmap(start, (end - start) >> PAGE_SHIFT)

    def cut(self, file: MappedFile, offset: int) -> None:
        """A file was truncated: what shows it from `offset` on is gone. unmap_mapping_pages(), mm/memory.c"""
        for piece in self.mappings:
            if piece.file == file:
                start = piece.start + max(0, offset - piece.offset)
                if start < piece.end:
                    self.space.unmap(start, (piece.end - start) >> PAGE_SHIFT)

    def remove(self, address: int, length: int) -> None:
        """MADV_REMOVE: a hole in the file. Shared mappings that may be written, files in memory or not."""
        for piece in self.mappings.overlapping(address, address + length):
            if piece.flags & MAP_LOCKED or piece.content is None:
                raise LinuxError(EINVAL, f"pages at {piece.start:#x} are locked, or of no file")
            if not piece.shared or not piece.may_write:
                raise LinuxError(EACCES, f"pages at {piece.start:#x} are not shared, or of a file that is only read")
            start, end = max(piece.start, address), min(piece.end, address + length)
            self._page_cache.punch(piece.content, piece.offset + start - piece.start, end - start)

    def grow(self, mapping: Mapping, extra: int) -> bool:
        """mremap: make `mapping` longer where it is, if the range behind it is free."""
        end = mapping.end + extra
        if mapping.holder is not None or end > self.layout.task_size or not self.mappings.is_free(mapping.end, end):
            return False
        self._check_commit(extra, mapping.protection, mapping.flags)
        self._install(mapping.part(mapping.end, end))
        return True

    def lock(self, address: int, length: int, *, locked: bool) -> None:
        """mlock and munlock: pages never leave the machine's memory, so only the note counts."""
        self.check_mapped(address, length)
        end = address + length
        if self.mappings.would_split(address, end):
            self.mappings.check_room()
        for piece in self.mappings.carve(address, end):
            self.mappings.insert(piece.with_flags(piece.flags & ~MAP_LOCKED | (MAP_LOCKED if locked else 0)))

    def lock_all(self, *, locked: bool) -> None:
        """mlockall and munlockall"""
        for mapping in list(self.mappings):
            self.lock(mapping.start, mapping.length, locked=locked)

    def populate(self, address: int, length: int, *, write: bool = False) -> bool:
        """Bring in what a process may touch in the range (MAP_POPULATE, mlock): no more pages than the machine has.

        Pages of zeros that are only read take no memory of the machine, but of the host's. Whether it may touch all.
        """
        parts = self.populating(address, length, write=write)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                return bool(end.value)

    def populating(self, address: int, length: int, *, write: bool = False) -> Generator[None, None, bool]:
        """The same in parts of POPULATED_PAGES: whoever asks may look between them for what is due."""
        complete = True
        looked_at = 0
        left = self._memory.size_bytes >> PAGE_SHIFT
        for piece in self.mappings.overlapping(address, address + length):
            access = piece.page_protection & (READ | WRITE)
            if not access or (write and not access & WRITE):
                complete = False
                continue
            kind = WRITE if access & WRITE and (write or not piece.shared) else READ
            start, end = max(piece.start, address), min(piece.end, address + length)
            end = min(end, start + (left << PAGE_SHIFT))
            left -= (end - start) >> PAGE_SHIFT
            for page in range(start, end, PAGE_SIZE):
                entry = self.space.lookup(page)
                there = entry is not None and (kind != WRITE or entry[1] & WRITE)
                # As in Linux nobody faulted: the process counts these, and events do not.
                if not there and not isinstance(self._bring_in(page, kind), bool):
                    complete = False
                    break  # behind the end of its file nothing more can come
                looked_at += 1
                if not looked_at % POPULATED_PAGES:
                    yield
        return complete

    def move(self, mapping: Mapping, old: int, old_length: int, new: int, new_length: int, keep_old: bool) -> None:
        """mremap: [old, +old_length) of `mapping`, with its pages, goes to [new, +new_length)."""
        self.mappings.check_room()
        if self.mappings.overlapping(new, new + new_length):
            self.unmap(new, new_length)
        space = self.space
        frames = []
        for page in space.present(old, min(old_length, new_length) >> PAGE_SHIFT):
            entry = space.lookup(page)
            assert entry is not None
            frames.append((page - old + new, *entry))
        for page, frame, protection in frames:
            space.map(page, frame, 1, protection)
        space.unmap(old, old_length >> PAGE_SHIFT)
        if not keep_old:
            self.mappings.carve(old, old + old_length)
        moved = mapping.part(old, old + new_length).moved(new, new + new_length)
        merged = self.mappings.insert(moved)
        if self.on_map is not None:
            self.on_map(merged)

    def set_brk(self, address: int) -> int:
        """brk(2): the new end of the heap, or the old one where that cannot be."""
        if address < self.brk_start:
            return self.brk_end
        old, new = page_up(self.brk_end), page_up(address)
        if new < old:
            self.unmap(new, old - new)
        elif new > old:
            if (
                new > self.layout.task_size
                or not self.mappings.is_free(old, new)
                or new - old > self._memory.size_bytes
            ):
                return self.brk_end
            flags = MAP_PRIVATE | MAP_ANONYMOUS | (MAP_LOCKED if self.locks_new else 0)
            self._install(Mapping(old, new, PROT_READ | PROT_WRITE, flags, name="[heap]"))
        self.brk_end = address
        return address

    # ---- faults

    def hear_written_pages(self, hear: Callable[[int], None]) -> None:
        """Call `hear` with the address of each page that has just been cleared or copied for this process."""
        self._pages.on_written = hear

    def fault(self, address: int, access: int, user: bool = True) -> tuple[int, int] | None:
        if self.on_access is not None:
            self.on_access(address, access, user)
        outcome = self._bring_in(address, access)
        major = outcome if isinstance(outcome, bool) else None
        if self.on_fault is not None:
            self.on_fault(address, major, user)
        return None if isinstance(outcome, bool) else outcome

    def _bring_in(self, address: int, access: int) -> bool | tuple[int, int]:
        """Whether it was a major fault; or (signal, si_code)."""
        mapping = self.mappings.find(address) or self._grow_stack(address)
        if mapping is None:
            return SIGSEGV, SEGV_MAPERR
        if not mapping.page_protection & access:
            return SIGSEGV, SEGV_ACCERR
        major = self._pages.bring_in(mapping, address & -PAGE_SIZE, access)
        if major is None:
            return SIGBUS, BUS_ADRERR
        if self.on_page is not None:
            self.on_page(major)
        return major

    def force(self, address: int, *, write: bool) -> bool:
        """Bring in a page that somebody else accesses, also where the process may not. False where nobody may.

        What is written becomes the process's own, unless it is a shared mapping that the process may write.
        """
        if not 0 <= address < self.layout.task_size:
            return False
        mapping = self.mappings.find(address)
        if mapping is None or mapping.holder is not None:
            return False
        if write and mapping.shared and not mapping.page_protection & WRITE:
            return False
        page = address & -PAGE_SIZE
        entry = self.space.lookup(page)
        if not write and entry is not None:
            return True
        if write and entry is not None and entry[1] & WRITE:
            return True
        major = self._pages.bring_in(mapping, page, WRITE if write else READ)
        if major is not None and self.on_page is not None:
            self.on_page(major)
        return major is not None

    def reach(self, address: int) -> None:
        """Where somebody else's access begins: a stack grows down to there, as at the process's own."""
        if 0 <= address < self.layout.task_size and self.mappings.find(address) is None:
            self._grow_stack(address)

    def _grow_stack(self, address: int) -> Mapping | None:
        above = self.mappings.above(address)
        if above is None or not above.grows_down or above.start <= address:
            return None
        start = page_down(address)
        if above.end - start > self.stack_limit:
            return None
        below = self.mappings.below(address)
        if below is not None and start - below.end < STACK_GUARD_GAP and not below.grows_down:
            return None
        grown = Mapping(start, above.start, above.protection, above.flags, name=above.name)
        return self.mappings.insert(grown)

    def peek_page(self, address: int, count: int) -> bytes | None:
        mapping = self.mappings.find(address)
        if mapping is None or not mapping.page_protection & READ:
            return None
        if self.space.lookup(address) is not None:
            data = self.space.read(address, count)
            return data if isinstance(data, bytes) else None
        if mapping.content is None:
            return bytes(count) if mapping.holder is None else None
        return self._page_cache.peek(mapping.content, mapping.offset + address - mapping.start, count)

    def residency(self, mapping: Mapping) -> Residency:
        """What of one of its mappings is in memory."""
        return measure(self.space, self._memory, self._page_cache, self._zero_frame, mapping)

    def resident_pages(self) -> int:
        """RSS: pages are present only where something is mapped."""
        return self.space.present_pages()
