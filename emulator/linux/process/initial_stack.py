"""InitialStack: what lies on the stack of a program that starts, as create_elf_tables() has it (fs/binfmt_elf.c)."""

from __future__ import annotations

import struct
from itertools import chain

from emulator.linux.errors import E2BIG, LinuxError
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.limits import MAX_ARG_STRLEN, argument_limit

# uapi/linux/auxvec.h
AT_NULL, AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_FLAGS, AT_ENTRY = 0, 3, 4, 5, 6, 7, 8, 9
AT_UID, AT_EUID, AT_GID, AT_EGID, AT_PLATFORM, AT_HWCAP, AT_CLKTCK = 11, 12, 13, 14, 15, 16, 17
AT_SECURE, AT_RANDOM, AT_HWCAP2, AT_EXECFN, AT_SYSINFO_EHDR, AT_MINSIGSTKSZ = 23, 25, 26, 31, 33, 51


class InitialStack:
    """From the top down: an empty word, the path, environment, arguments; what is pushed; the vectors."""

    def __init__(
        self, argv: tuple[bytes, ...], environment: tuple[bytes, ...], path: str, top: int, stack_limit: int
    ) -> None:
        encoded = path.encode("utf-8", "surrogateescape")
        limit = argument_limit(stack_limit)
        total = sum(len(string) + 9 for string in (*argv, *environment))
        if total > limit or any(len(string) >= MAX_ARG_STRLEN for string in (*argv, *environment)):
            raise LinuxError(E2BIG, f"{total} bytes of arguments and environment; {limit} may be")
        position = top - 8 - (len(encoded) + 1)
        self.exec_path = position
        self._environment_end = position
        self._environment = _addresses(environment, position)
        self._environment_start = self._argument_end = self._environment[0] if environment else position
        self._arguments = _addresses(argv, self._argument_end)
        self.bottom = self._arguments[0] if argv else self._argument_end  # of the strings
        self._strings = b"".join(string + b"\0" for string in (*argv, *environment, encoded))
        self._pushed: list[tuple[int, bytes]] = []  # address, data
        self._position = self.bottom & -16

    def push(self, data: bytes) -> int:
        """Put data that the auxiliary vector points to below what is there; its address."""
        self._position -= len(data)
        self._pushed.append((self._position, data))
        return self._position

    def write(self, mm: MemoryMap, auxiliary_vector: list[tuple[int, int]]) -> int:
        """All of it, with argc, argv, envp and the auxiliary vector; the stack pointer."""
        mm.write(self.bottom, self._strings)
        for address, data in self._pushed:
            mm.write(address, data)
        words = [len(self._arguments), *self._arguments, 0, *self._environment, 0, *chain(*auxiliary_vector)]
        pointer = (self._position - 8 * len(words)) & -16
        packed = struct.pack(f"<{len(words)}Q", *words)
        mm.write(pointer, packed)
        program = mm.program
        program.stack_start = pointer
        program.argument_start, program.argument_end = self.bottom, self._argument_end
        program.environment_start, program.environment_end = self._environment_start, self._environment_end
        program.auxiliary_vector = packed[-16 * len(auxiliary_vector) :]
        return pointer


def _addresses(strings: tuple[bytes, ...], end: int) -> list[int]:
    """Where each string begins if the last one's NUL is just below `end`."""
    addresses = []
    for string in reversed(strings):
        end -= len(string) + 1
        addresses.append(end)
    return addresses[::-1]
