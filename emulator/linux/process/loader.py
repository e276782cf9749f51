"""The loader: execve's work: what a file is, and what goes where in a new process."""

from __future__ import annotations

from dataclasses import dataclass

from emulator._native import PhysicalMemory
from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import (
    EACCES,
    ELIBBAD,
    ELOOP,
    ENOENT,
    ENOEXEC,
    ENOMEM,
    ENOTDIR,
    LinuxError,
)
from emulator.linux.fs.file import Caller
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.paths import PATH_MAX
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_GROWSDOWN,
    MAP_PRIVATE,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    FileContent,
    page_down,
    page_up,
)
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.mm.vdso import Vdso
from emulator.linux.process.elf import (
    ET_EXEC,
    HEADER,
    PF_R,
    PF_W,
    PF_X,
    PT_GNU_STACK,
    PT_INTERP,
    PT_PHDR,
    Elf,
    ElfError,
    Segment,
    parse,
    program_header_range,
)
from emulator.linux.process.initial_stack import (
    AT_BASE,
    AT_CLKTCK,
    AT_EGID,
    AT_ENTRY,
    AT_EUID,
    AT_EXECFN,
    AT_FLAGS,
    AT_GID,
    AT_HWCAP,
    AT_HWCAP2,
    AT_MINSIGSTKSZ,
    AT_NULL,
    AT_PAGESZ,
    AT_PHDR,
    AT_PHENT,
    AT_PHNUM,
    AT_PLATFORM,
    AT_RANDOM,
    AT_SECURE,
    AT_SYSINFO_EHDR,
    AT_UID,
    InitialStack,
)
from emulator.linux.process.program import MAX_SCRIPT_DEPTH, script_interpreter
from emulator.linux.random import Random
from emulator.linux.structures import TICKS_PER_SECOND

STACK_EXPANSION = 131_072  # bytes of stack mapped below the strings at the start (setup_arg_pages)

ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS


@dataclass(frozen=True, slots=True)
class Executable:
    """A file that execve has found fit to run, and its interpreter."""

    path: str  # of the ELF file; for a script, of the program that reads it
    content: FileContent
    elf: Elf
    interpreter: Executable | None
    argv: tuple[bytes, ...]  # with a script's interpreter and path put before


@dataclass(frozen=True, slots=True)
class Loaded:
    """Where a loaded program starts."""

    entry: int
    stack_pointer: int


class Loader:
    """Loads programs for one machine."""

    def __init__(
        self,
        architecture: Architecture,
        memory: PhysicalMemory,
        page_cache: PageCache,
        random: Random,
        zero_frame: int,
        hwcap: int,
        vdso: Vdso | None,
    ) -> None:
        """`vdso`: None for a Linux without one."""
        self._architecture = architecture
        self._memory = memory
        self._page_cache = page_cache
        self._random = random
        self._zero_frame = zero_frame
        self._hwcap = hwcap  # AT_HWCAP
        self._vdso = vdso
        self._trampoline_frame: int | None = None  # one for all: code that every process has

    def new_memory_map(self) -> MemoryMap:
        return MemoryMap(self._memory, self._architecture.layout, self._page_cache, self._zero_frame)

    # ---- what is to be run

    def prepare(self, task: Caller, files: FileTree, path: str, directory: str, argv: tuple[bytes, ...]) -> Executable:
        """Open and check everything that can be checked before the old program must go. Raises LinuxError."""
        asked_by = ""
        for _ in range(MAX_SCRIPT_DEPTH):
            try:
                content = self._open(task, files, path, directory)
                start = self._page_cache.read(content, 0, 256)
                if not start.startswith(b"#!"):
                    elf = self._parse(path, content)
                    return Executable(path, content, elf, self._interpreter(task, files, path, content, elf), argv)
            except LinuxError as error:
                raise LinuxError(error.code, asked_by + error.why) from None
            interpreter, argument = script_interpreter(start)
            if not interpreter:
                raise LinuxError(ENOEXEC, f"{path}: a script whose first line names no interpreter")
            script = path.encode("utf-8", "surrogateescape")
            argv = (interpreter, *((argument,) if argument else ()), script, *argv[1:])
            asked_by += f"{path}: its interpreter "
            path = interpreter.decode("utf-8", "surrogateescape")
        raise LinuxError(ELOOP, f"{path}: more than {MAX_SCRIPT_DEPTH} scripts interpret each other")

    def _open(self, task: Caller, files: FileTree, path: str, directory: str) -> FileContent:
        try:
            file = files.executable(task, path, directory)
        except LinuxError as error:
            raise LinuxError(error.code, _why(path, error)) from None
        file.retain()
        content = file.content()
        file.release()
        if content is None:
            raise LinuxError(EACCES, f"{path}: not a regular file")
        return content

    def _parse(self, path: str, content: FileContent) -> Elf:
        size = content.size()
        try:
            header = self._page_cache.read(content, 0, PAGE_SIZE)
            if len(header) < HEADER.size:
                parse(header, size)
            offset, length = program_header_range(header)
            outside = (
                None if offset + length <= len(header) else self._page_cache.read(content, offset, min(length, 65536))
            )
            elf = parse(header, size, outside)
            check_segments(elf, size, self._architecture.layout.task_size)
        except ElfError as error:
            raise LinuxError(ENOEXEC, f"{path}: {error}") from None
        if elf.isa != self._architecture.isa:
            raise LinuxError(
                ENOEXEC, f"{path}: an ELF file for {elf.isa}, in a machine that is {self._architecture.isa}"
            )
        return elf

    def _interpreter(
        self, task: Caller, files: FileTree, program: str, content: FileContent, elf: Elf
    ) -> Executable | None:
        segment = elf.first(PT_INTERP)
        if segment is None:
            return None
        name = self._page_cache.read(content, segment.offset, min(segment.file_size, PATH_MAX))
        if not 2 <= segment.file_size <= PATH_MAX or not name.endswith(b"\0"):
            raise LinuxError(ENOEXEC, f"{program}: a broken ELF file: the name of its dynamic loader is not a string")
        path = name.split(b"\0")[0].decode("utf-8", "surrogateescape")
        try:
            loader = self._open(task, files, path, "/")
        except LinuxError as error:
            hint = f"; --sysroot DIR says where {elf.isa} libraries are" if error.code == ENOENT else ""
            raise LinuxError(error.code, f"{program}: its dynamic loader cannot be opened: {error.why}{hint}") from None
        try:
            return Executable(path, loader, self._parse(path, loader), None, ())
        except LinuxError as error:
            raise LinuxError(ELIBBAD, error.why) from None

    # ---- the new process

    def load(
        self,
        executable: Executable,
        mm: MemoryMap,
        environment: tuple[bytes, ...],
        exec_path: str,
        ids: tuple[int, int],
    ) -> Loaded:
        """Fill the empty `mm`. `ids` are uid and gid. From here on a failure is the new program's."""
        layout = self._architecture.layout
        stack = InitialStack(executable.argv, environment, exec_path, layout.stack_top, mm.stack_limit)
        stack_segment = executable.elf.first(PT_GNU_STACK)
        executable_stack = PROT_EXEC if stack_segment is not None and stack_segment.flags & PF_X else 0
        bottom = page_down(stack.bottom) - STACK_EXPANSION
        mm.map(
            bottom,
            layout.stack_top - bottom,
            PROT_READ | PROT_WRITE | executable_stack,
            ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE,
            name="[stack]",
        )
        bias = 0
        if executable.elf.type != ET_EXEC:
            largest = max(segment.alignment for segment in executable.elf.loads)
            alignment = largest if largest & (largest - 1) == 0 and largest <= 1 << 30 else PAGE_SIZE
            lowest = page_down(min(segment.address for segment in executable.elf.loads))
            bias = (layout.pie_base & -max(alignment, PAGE_SIZE)) - lowest
        program_end = self._map_segments(mm, executable, bias)
        mm.brk_start = mm.brk_end = page_up(program_end)
        _note_sections(mm, executable.elf, bias)
        entry = program_entry = executable.elf.entry + bias
        base = 0
        if executable.interpreter is not None:
            base = self._place_interpreter(mm, executable.interpreter.elf)
            self._map_segments(mm, executable.interpreter, base)
            entry = executable.interpreter.elf.entry + base
        if self._vdso is None:
            mm.signal_trampoline = self._map_trampoline(mm)
        else:
            self._vdso.map(mm)
        vector = self._auxiliary_vector(stack, executable.elf, bias, base, program_entry, ids)
        return Loaded(entry, stack.write(mm, vector))

    def _place_interpreter(self, mm: MemoryMap, elf: Elf) -> int:
        low = page_down(min(segment.address for segment in elf.loads))
        high = page_up(max(segment.end for segment in elf.loads))
        gap = mm.mappings.find_gap(high - low)
        if gap is None:
            raise LinuxError(ENOMEM, f"no room for a dynamic loader of {high - low} bytes")
        return gap - low

    def _map_segments(self, mm: MemoryMap, executable: Executable, bias: int) -> int:
        """Map every PT_LOAD of a file; the end of the last one's memory."""
        end = 0
        for segment in executable.elf.loads:
            self._map_segment(mm, executable, segment, bias)
            end = max(end, segment.end + bias)
        return end

    def _map_segment(self, mm: MemoryMap, executable: Executable, segment: Segment, bias: int) -> None:
        address = segment.address + bias
        start = page_down(address)
        protection = (
            (PROT_READ if segment.flags & PF_R else 0)
            | (PROT_WRITE if segment.flags & PF_W else 0)
            | (PROT_EXEC if segment.flags & PF_X else 0)
        )
        file_end = address + segment.file_size
        try:
            if segment.file_size:
                flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE
                mm.map(start, file_end - start, protection, flags, executable.content, page_down(segment.offset))
            if segment.memory_size > segment.file_size:
                zero_start = page_up(file_end) if segment.file_size else start
                if segment.file_size and protection & PROT_WRITE and file_end & (PAGE_SIZE - 1):
                    mm.write(file_end, bytes(zero_start - file_end))  # the whole page: ld.so allocates there
                zero_end = page_up(address + segment.memory_size)
                if zero_end > zero_start:
                    mm.map(zero_start, zero_end - zero_start, protection, ANONYMOUS | MAP_FIXED_NOREPLACE)
        except LinuxError as error:
            raise LinuxError(
                error.code, f"{executable.path}: its segment at {segment.address:#x} cannot be mapped: {error.why}"
            ) from None

    def _map_trampoline(self, mm: MemoryMap) -> int:
        code = self._architecture.signal_trampoline
        if not code:
            return 0
        address = mm.map(0, PAGE_SIZE, PROT_READ | PROT_EXEC, ANONYMOUS, name="[sigpage]")
        if self._trampoline_frame is None:
            self._trampoline_frame = self._memory.allocate()
            self._memory.view(self._trampoline_frame)[: len(code)] = code
        mm.space.map(address, self._trampoline_frame, 1, PROT_READ | PROT_EXEC)
        return address

    def _auxiliary_vector(
        self, stack: InitialStack, elf: Elf, bias: int, base: int, entry: int, ids: tuple[int, int]
    ) -> list[tuple[int, int]]:
        """In the order of create_elf_tables()."""
        architecture = self._architecture
        platform = stack.push(architecture.platform.encode() + b"\0")
        random = stack.push(self._random.bytes(16))
        uid, gid = ids
        return [
            *([] if self._vdso is None else [(AT_SYSINFO_EHDR, self._vdso.address)]),
            (AT_MINSIGSTKSZ, architecture.minimum_signal_stack),
            (AT_HWCAP, self._hwcap),
            (AT_PAGESZ, PAGE_SIZE),
            (AT_CLKTCK, TICKS_PER_SECOND),
            (AT_PHDR, _headers_address(elf, bias)),
            (AT_PHENT, 56),
            (AT_PHNUM, len(elf.segments)),
            (AT_BASE, base),
            (AT_FLAGS, 0),
            (AT_ENTRY, entry),
            (AT_UID, uid),
            (AT_EUID, uid),
            (AT_GID, gid),
            (AT_EGID, gid),
            (AT_SECURE, 0),
            (AT_RANDOM, random),
            (AT_HWCAP2, architecture.hwcap2),
            (AT_EXECFN, stack.exec_path),
            (AT_PLATFORM, platform),
            (AT_NULL, 0),
        ]


REASONS = {
    ENOENT: "no such file",
    ENOTDIR: "no such file: a part of the path is not a directory",
    ELOOP: "too many symbolic links",
}


def _why(path: str, error: LinuxError) -> str:
    """A line for the user about a file that execve could not open."""
    if error.code == EACCES:
        return error.why or f"{path}: permission denied"
    return f"{path}: {REASONS.get(error.code, error.name)}"


def check_segments(elf: Elf, file_size: int, task_size: int) -> None:
    """Refuse what cannot be mapped, before anything is: nothing in the file is believed."""
    if not elf.loads:
        raise ElfError("an ELF file without a segment to load")
    for segment in elf.loads:
        if segment.file_size > segment.memory_size:
            raise ElfError(
                f"a broken ELF file: the segment at {segment.address:#x} has more bytes in the file than in memory"
            )
        if (segment.address - segment.offset) % PAGE_SIZE:
            raise ElfError(
                f"a broken ELF file: the segment at {segment.address:#x} is not aligned with its file offset"
            )
        if segment.file_size and segment.offset + segment.file_size > file_size:
            end = segment.offset + segment.file_size
            raise ElfError(f"a truncated ELF file: a segment ends at offset {end:#x}, the file at {file_size:#x}")
        if segment.memory_size > task_size or segment.address > task_size - segment.memory_size:
            raise ElfError(f"a broken ELF file: the segment at {segment.address:#x} does not fit the address space")


def _headers_address(elf: Elf, bias: int) -> int:
    own = elf.first(PT_PHDR)
    if own is not None:
        return own.address + bias
    for segment in elf.loads:
        if segment.offset <= elf.header_offset < segment.offset + segment.file_size:
            return elf.header_offset - segment.offset + segment.address + bias
    return 0


def _note_sections(mm: MemoryMap, elf: Elf, bias: int) -> None:
    """mm_struct's start_code..end_data, for /proc/PID/stat."""
    code = [segment for segment in elf.loads if segment.flags & PF_X]
    data = elf.loads[-1]
    if code:
        mm.program.code_start = code[0].address + bias
        mm.program.code_end = code[-1].address + code[-1].file_size + bias
    mm.program.data_start = data.address + bias
    mm.program.data_end = data.address + data.file_size + bias
