"""UserAccess: how the kernel reads and writes a process's memory (Linux's uaccess.h): as the process itself may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

from emulator._native import AddressSpace
from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.mm.mapping import PAGE_SIZE, READ, WRITE


class UserAccess(ABC):
    """Copies to and from a process. What is not there yet is brought in; EFAULT where the process may not."""

    def __init__(self, space: AddressSpace, task_size: int) -> None:
        self.space = space
        self._task_size = task_size  # the first address that is not the process's

    @abstractmethod
    def fault(self, address: int, access: int, user: bool = True) -> tuple[int, int] | None:
        """Bring in the page for an access (READ, WRITE, EXECUTE), counting a fault. None, or (signal, si_code).

        `user`: the program itself accessed it, rather than the kernel in its name.
        """

    @abstractmethod
    def peek_page(self, address: int, count: int) -> bytes | None:
        """What the process would read there, in one page; nothing is brought in. None where it may not."""

    def read(self, address: int, size: int) -> bytes:
        """copy_from_user: all of it, or EFAULT."""
        if address < 0 or address + size > self._task_size:
            raise LinuxError(EFAULT, f"read of {size} bytes at {address:#x}")
        read = self.space.read
        while True:
            data = read(address, size)
            if isinstance(data, bytes):
                return data
            self._fault_in(data)

    def read_some(self, address: int, size: int) -> bytes:
        """... what can be read before the first byte that cannot."""
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
        if address < 0 or address + len(data) > self._task_size:
            return 0
        done = self.space.write_permitted(address, data)
        while done < len(data) and self._brings_in(address + done, WRITE):
            done += self.space.write_permitted(address + done, memoryview(data)[done:])
        return done

    def read_string(self, address: int, limit: int) -> bytes:
        """Bytes up to the first NUL, at most `limit`."""
        if address >= self._task_size:
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
        if address + size > self._task_size:
            return None
        pieces = []
        while size > 0:
            count = min(size, PAGE_SIZE - address % PAGE_SIZE)
            piece = self.peek_page(address, count)
            if piece is None:
                return None
            pieces.append(piece)
            address, size = address + count, size - count
        return b"".join(pieces)

    def _fault_in(self, address: int) -> None:
        if not self._brings_in(address, READ):
            raise LinuxError(EFAULT, f"the process may not read {address:#x}")

    def _brings_in(self, address: int, access: int) -> bool:
        return address < self._task_size and self.fault(address, access, user=False) is None
