"""RegisterDevice: the register half of a device: storage, and dispatch of reads and writes by declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pmu.register import ALL_BITS, Register


class RegisterDevice:
    """What every PMU has in common. A subclass says in its constructor which registers it has, and what they do.

    Accesses come from the kernel at its own privilege, so a register or number that is not there is a bug in a driver
    and raises ValueError; nothing is ignored silently.
    """

    def __init__(self) -> None:
        self.storage: dict[str, int] = {}
        self._readers: dict[type[Register], Callable[[int], int]] = {}
        self._writers: dict[type[Register], Callable[[int, int], None]] = {}

    def read(self, register: type[Register], index: int = 0) -> int:
        """The register's value; `index` is its number in a bank."""
        try:
            reader = self._readers[register]
        except KeyError:
            raise ValueError(f"{type(self).__name__} has no register {register.__name__} to read") from None
        return reader(index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        """Write the register; `index` is its number in a bank."""
        self._writer_of(register)(value, index)

    def _writer_of(self, register: type[Register]) -> Callable[[int, int], None]:
        try:
            return self._writers[register]
        except KeyError:
            raise ValueError(f"{type(self).__name__} has no register {register.__name__} to write") from None

    def reader(self, register: type[Register], index: int = 0) -> Callable[[], int]:
        """What reads it, for who does so often: as `read`, found once."""
        self.read(register, index)  # or it says why not
        return partial(self._readers[register], index)

    def writer(self, register: type[Register], index: int = 0) -> Callable[[int], None]:
        """What writes it, likewise."""
        write = self._writer_of(register)
        return lambda value: write(value, index)

    def reader_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[], Sequence[int]]:
        """What reads these, each with its number in a bank, in that order: for who wants all of them at once."""
        readers = [self.reader(register, index) for register, index in registers]
        return lambda: [read() for read in readers]

    def writer_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[Sequence[int]], None]:
        """What writes them, likewise."""
        writers = [self.writer(register, index) for register, index in registers]

        def write_all(values: Sequence[int]) -> None:
            for write, value in zip(writers, values, strict=True):
                write(value)

        return write_all

    def can_read(self, register: type[Register]) -> bool:
        return register in self._readers

    def can_write(self, register: type[Register]) -> bool:
        return register in self._writers

    def registers(self) -> list[type[Register]]:
        """Every register that can be read or written, in the order of declaration."""
        return list(dict.fromkeys([*self._readers, *self._writers]))

    def _store(
        self,
        register: type[Register],
        effect: Callable[[], None] | None = None,
        initial: int = 0,
        implemented: int = ALL_BITS,
    ) -> None:
        """A register that is its stored bits. `effect` runs after each write; bits not `implemented` ignore writes."""
        storage = self.storage
        name = register.stored_in
        storage.setdefault(name, initial)
        readable = register.readable

        def read(index: int) -> int:
            return storage[name] & readable

        def write(value: int, index: int) -> None:
            storage[name] = register.write(storage[name], value & implemented)

        def write_with_effect(value: int, index: int) -> None:
            storage[name] = register.write(storage[name], value & implemented)
            assert effect is not None
            effect()

        self._readers[register] = read
        self._writers[register] = write if effect is None else write_with_effect

    def _compute(
        self,
        register: type[Register],
        read: Callable[[int], int] | None = None,
        write: Callable[[int, int], None] | None = None,
    ) -> None:
        """A register with a life of its own: `read(index)`, `write(value, index)`; without one, no such access."""
        if read is not None:
            self._readers[register] = read
        if write is not None:
            self._writers[register] = write
