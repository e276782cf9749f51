"""MemoryMap: one process's memory: its mappings, and the pages behind them, brought in on demand."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass

from emulator._native import AddressSpace, PhysicalMemory
from emulator.linux.arch.architecture import Layout
from emulator.linux.errors import EACCES, EEXIST, EFAULT, EINVAL, ENOMEM, EPERM, LinuxError
from emulator.linux.mm.breakpoints import Breakpoints
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_FIXED_NOREPLACE,
    MAP_GROWSDOWN,
    MAP_LOCKED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    PAGE_SHIFT,
    PAGE_SIZE,
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
from emulator.linux.proc.residency import Residency, measure
from emulator.linux.signals.signal import BUS_ADRERR, SEGV_ACCERR, SEGV_MAPERR, SIGBUS, SIGSEGV

POPULATED_PAGES = 2048  # at once
MAX_MAPPINGS = 65_530  # vm.max_map_count
KEPT_FLAGS = MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE  # of mmap


@dataclass(slots=True, eq=False)
class SharedMemory:
    """What stands behind MAP_SHARED | MAP_ANONYMOUS: pages that are zero at first and live in the page cache."""

    identity: MappedFile
    length: int
    is_kept: bool = False  # also when nobody has mapped it: its owner frees the pages

    def size(self) -> int:
        return self.length

    def read_at(self, offset: int, size: int) -> bytes:
        return b""  # frames start zeroed

    def write_at(self, offset: int, data: bytes) -> int:
        return len(data)


class MemoryMap:
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
        self._memory = memory
        self._page_cache = page_cache
        self._zero_frame = zero_frame
        self._users = 1  # tasks
        self._shared: dict[MappedFile, FileContent] = {}  # that this process has shared mappings of
        self.layout = layout
        self.space = space if space is not None else AddressSpace(memory)
        self.breakpoints = Breakpoints(self.space)
        self._pages = Pages(self.space, memory, page_cache, zero_frame)
        self.mappings = MappingList(layout.mmap_bottom, layout.mmap_top)
        self.on_map: Callable[[Mapping], None] | None = None
        self.on_fault: Callable[[int, bool | None, bool], None] | None = None  # as the tracepoint page_fault
        self.on_page: Callable[[bool], None] | None = None  # one has come; whether that was a major fault
        self.stack_limit = 8 << 20  # bytes, RLIMIT_STACK at exec
        self.brk_start = self.brk_end = 0
        self.stack_start = 0  # the stack pointer at the program's start
        self.argument_start = self.argument_end = 0
        self.environment_start = self.environment_end = 0
        self.code_start = self.code_end = self.data_start = self.data_end = 0
        self.auxiliary_vector = b""
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
                child._share(mapping)
                if mapping.shared:  # found again at a fault: vma_needs_copy(), mm/memory.c
                    child.space.unmap(mapping.start, mapping.length >> PAGE_SHIFT)
            else:  # a device's frames, as those of perf's buffers, are not inherited
                child.space.unmap(mapping.start, mapping.length >> PAGE_SHIFT)
        child.stack_limit = self.stack_limit
        child.brk_start, child.brk_end = self.brk_start, self.brk_end
        child.stack_start = self.stack_start
        child.argument_start, child.argument_end = self.argument_start, self.argument_end
        child.environment_start, child.environment_end = self.environment_start, self.environment_end
        child.code_start, child.code_end = self.code_start, self.code_end
        child.data_start, child.data_end = self.data_start, self.data_end
        child.auxiliary_vector = self.auxiliary_vector
        child.signal_trampoline = self.signal_trampoline
        child.barriers = self.barriers
        return child

    def _share(self, mapping: Mapping) -> None:
        """The page cache counts who may write a file's pages, and knows who shows them."""
        if mapping.content is not None:
            self._page_cache.file(mapping.content).maps.add(self)
        if mapping.shared and mapping.content is not None and mapping.file not in self._shared:
            assert mapping.file is not None, "what has content has a name"
            self._shared[mapping.file] = mapping.content
            self._page_cache.file(mapping.content).sharers += 1

    def _unshare(self, file: MappedFile) -> None:
        """The last mapping of `file` in this process has gone."""
        content = self._shared.pop(file, None)
        if content is None:
            return
        cached = self._page_cache.file(content)
        cached.sharers -= 1
        if cached.sharers:
            return
        if isinstance(content, SharedMemory):
            if not content.is_kept:
                self._page_cache.forget(content)
        else:
            cached.dirty.clear()

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
        start = self._place(address, length, flags)
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
    ) -> int:
        """mmap of a device: contiguous frames from `frame` on, kept by `holder` as long as a part stays mapped."""
        length = page_up(length)
        start = self._place(address, length, flags)
        mapping = Mapping(start, start + length, protection & 7, flags & 3, offset, file, "", None, holder)
        if not self.mappings.shows(file, holder):
            holder.mapped()
        self._install(mapping)
        self.space.map(start, frame, length >> PAGE_SHIFT, mapping.page_protection)
        return start

    def make_way(self, address: int, length: int, flags: int) -> None:
        """For MAP_FIXED of a device: what is there goes first, since it may be the device's own last mapping."""
        if flags & MAP_FIXED:
            self.unmap(self._place(address, length, flags), length)

    def _install(self, mapping: Mapping) -> None:
        if self.mappings.overlapping(mapping.start, mapping.end):
            self.unmap(mapping.start, mapping.length)
        merged = self.mappings.insert(mapping)
        self._share(mapping)
        if self.on_map is not None:
            self.on_map(merged)

    def _place(self, address: int, length: int, flags: int) -> int:
        limit = self.layout.task_size
        if length == 0 or length > limit:
            raise LinuxError(ENOMEM, f"a mapping of {length} bytes")
        self._check_room()
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE):
            if address & (PAGE_SIZE - 1):
                raise LinuxError(EINVAL, f"MAP_FIXED address {address:#x} is not a multiple of {PAGE_SIZE}")
            if address > limit - length:
                raise LinuxError(ENOMEM, f"MAP_FIXED beyond the address space: {address:#x}")
            if address < self.layout.mmap_bottom:
                raise LinuxError(EPERM, f"address {address:#x} is below mmap_min_addr {self.layout.mmap_bottom:#x}")
            if flags & MAP_FIXED_NOREPLACE and self.mappings.overlapping(address, address + length):
                raise LinuxError(EEXIST, f"something is mapped in {address:#x}..{address + length:#x}")
            return address
        return self.choose(address, length)

    def _check_room(self) -> None:
        if len(self.mappings) >= MAX_MAPPINGS:
            raise LinuxError(ENOMEM, f"{MAX_MAPPINGS} mappings: vm.max_map_count is reached")

    def choose(self, address: int, length: int) -> int:
        """A free range of `length` bytes: at the hint if that is free, else the highest that there is."""
        limit = self.layout.task_size
        address = page_up(address)
        if (
            address
            and self.layout.mmap_bottom <= address <= limit - length
            and self.mappings.is_free(address, address + length)
        ):
            return address
        gap = self.mappings.find_gap(length)
        if gap is None:
            raise LinuxError(ENOMEM, f"no free range of {length} bytes")
        return gap

    def _check_commit(self, length: int, protection: int, flags: int) -> None:
        """Heuristic overcommit: only what could never fit is refused."""
        if flags & (MAP_NORESERVE | MAP_SHARED) or not protection & PROT_WRITE:
            return
        if length > self._memory.size_bytes:
            raise LinuxError(ENOMEM, f"{length} bytes: the machine has {self._memory.size_bytes}")

    def unmap(self, address: int, length: int) -> None:
        end = address + page_up(length)
        if self.mappings.would_split(address, end) > 1:  # a hole in the middle of one
            self._check_room()
        pieces = self.mappings.carve(address, end)
        gone: dict[tuple[MappedFile, Holder | None], Mapping] = {}  # one piece of each file that is no longer mapped
        for piece in pieces:
            file, holder = piece.file, piece.holder
            if file is not None and not self.mappings.shows(file, holder):
                gone[file, holder] = piece
            with suppress(LinuxError):  # as Linux's write-back, which is nobody's call
                for _ in self._flushing(piece):
                    pass
            self.space.unmap(piece.start, piece.length >> PAGE_SHIFT)
        for piece in gone.values():
            if piece.holder is not None:
                piece.holder.unmapped()
            elif piece.file is not None:
                self._unshare(piece.file)

    def _flushing(self, piece: Mapping) -> Iterator[int]:
        """Bytes written through a shared mapping go to the file. Its pages may be written again, so they stay dirty."""
        if piece.content is not None and piece.shared:
            cached = self._page_cache.file(piece.content)
            if cached.dirty:
                yield from self._page_cache.flushing(cached, piece.offset >> PAGE_SHIFT, piece.length >> PAGE_SHIFT)

    def syncing(self, address: int, length: int) -> Iterator[int]:
        """msync: dirty pages of shared file mappings go to their files, in parts: after each, how many pages it had."""
        self.check_mapped(address, length)
        for piece in self.mappings.overlapping(address, address + length):
            yield from self._flushing(piece)

    def clear(self) -> None:
        """The process ends: everything is unmapped."""
        self.unmap(0, self.layout.task_size)

    def protect(self, address: int, length: int, protection: int) -> None:
        end = address + length
        self.check_mapped(address, length)
        if protection & PROT_WRITE and not all(piece.may_write for piece in self.mappings.overlapping(address, end)):
            raise LinuxError(EACCES, "a shared mapping of a file that is not open for writing")
        if self.mappings.would_split(address, end):
            self._check_room()
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
            self._check_room()
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
        self._check_room()
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
        """Bring in the page for an access (READ, WRITE, EXECUTE), counting a fault. None, or (signal, si_code).

        `user`: the program itself accessed it, rather than the kernel in its name (copy_from_user and the like).
        """
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

    # ---- the kernel's access to user memory (copy_from_user and the like): EFAULT where the process may not

    def read(self, address: int, size: int) -> bytes:
        if address < 0 or address + size > self.layout.task_size:
            raise LinuxError(EFAULT, f"read of {size} bytes at {address:#x}")
        read = self.space.read
        while True:
            data = read(address, size)
            if isinstance(data, bytes):
                return data
            self._fault_in(data)

    def read_some(self, address: int, size: int) -> bytes:
        """copy_from_user: what can be read before the first byte that cannot."""
        with suppress(LinuxError):
            return self.read(address, size)
        data = b""
        with suppress(LinuxError):
            while len(data) < size:
                at = address + len(data)
                data += self.read(at, min(size - len(data), PAGE_SIZE - at % PAGE_SIZE))
        return data

    def write(self, address: int, data: bytes) -> None:
        done = self.copy_out(address, data)
        if done < len(data):
            raise LinuxError(EFAULT, f"the process may not write {address + done:#x}, of {len(data)} bytes there")

    def copy_out(self, address: int, data: bytes) -> int:
        """copy_to_user: how many bytes arrive before the first that may not be written."""
        if address < 0 or address + len(data) > self.layout.task_size:
            return 0
        done = self.space.write_permitted(address, data)
        while done < len(data) and self._brings_in(address + done, WRITE):
            done += self.space.write_permitted(address + done, memoryview(data)[done:])
        return done

    def read_string(self, address: int, limit: int) -> bytes:
        """Bytes up to the first NUL, at most `limit`."""
        if address >= self.layout.task_size:
            raise LinuxError(EFAULT, f"string at {address:#x}")
        while True:
            data = self.space.read_string(address, limit)
            if isinstance(data, bytes):
                return data
            self._fault_in(data)

    def read_u64(self, address: int) -> int:
        value = self.space.read_u64(address)
        return int.from_bytes(self.read(address, 8), "little") if value is None else value

    def read_u32(self, address: int) -> int:
        return int.from_bytes(self.read(address, 4), "little")

    def peek(self, address: int, size: int) -> bytes | None:
        """What the process would read there; nothing is brought in and nobody hears of it. None where it may not."""
        if address + size > self.layout.task_size:
            return None
        pieces = []
        while size > 0:
            count = min(size, PAGE_SIZE - address % PAGE_SIZE)
            piece = self._peek_page(address, count)
            if piece is None:
                return None
            pieces.append(piece)
            address, size = address + count, size - count
        return b"".join(pieces)

    def _peek_page(self, address: int, count: int) -> bytes | None:
        mapping = self.mappings.find(address)
        if mapping is None or not mapping.page_protection & READ:
            return None
        if self.space.lookup(address) is not None:
            data = self.space.read(address, count)
            return data if isinstance(data, bytes) else None
        if mapping.content is None:
            return bytes(count) if mapping.holder is None else None
        return self._page_cache.peek(mapping.content, mapping.offset + address - mapping.start, count)

    def _fault_in(self, address: int) -> None:
        if not self._brings_in(address, READ):
            raise LinuxError(EFAULT, f"the process may not read {address:#x}")

    def _brings_in(self, address: int, access: int) -> bool:
        return address < self.layout.task_size and self.fault(address, access, user=False) is None

    def residency(self, mapping: Mapping) -> Residency:
        """What of one of its mappings is in memory."""
        return measure(self.space, self._memory, self._page_cache, self._zero_frame, mapping)

    def resident_pages(self) -> int:
        """RSS: pages are present only where something is mapped."""
        return self.space.present_pages()
