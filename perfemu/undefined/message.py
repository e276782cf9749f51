"""The line that is said when a guest dies of an instruction that its machine does not have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from emulator.linux.process.task import Task
from perfemu.namespace import Namespace
from perfemu.undefined import aarch64, x86_64

LONGEST_INSTRUCTION = 15
UNDEFINED_FOR_EVER = ("ud0", "ud1", "ud2", "udf")
MOST_LINES = 20  # symbols take long; a guest may die of the same ever again


# What reads code and symbols is imported when a guest dies: it takes an eighth of the time of start-up.


def _a64(code: bytes) -> tuple[str, str]:
    import capstone

    word = int.from_bytes(code[:4], "little")
    row = aarch64.PERMANENTLY_UNDEFINED
    if word & row.mask == row.value:
        return f"udf #{word:#x}", ""
    found = next(capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM).disasm(code[:4], 0, 1), None)
    text = f"{found.mnemonic} {found.op_str}".strip() if found else f".inst {word:#010x}"
    return text, aarch64.extension_of(word)


def _x86(code: bytes) -> tuple[str, str]:
    import capstone

    found = next(capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(code, 0, 1), None)
    text = f"{found.mnemonic} {found.op_str}".strip() if found else ""
    return text or f"bytes {code[:8].hex(' ')}", x86_64.extension_of(code, text)


# By ISA: what the bytes of an instruction are, and the extension that it belongs to, empty if it is none's.
_IDENTIFY: Mapping[str, Callable[[bytes], tuple[str, str]]] = {"aarch64": _a64, "x86_64": _x86}


class UndefinedInstructions:
    """Says it, for a machine whose cores are called `core`."""

    def __init__(self, core: str, offers: str, space: Namespace) -> None:
        """`offers`: which of the ISA's extensions."""
        self._core = core
        self._offers = offers
        self._space = space
        self._said: set[tuple[str, int]] = set()

    def __call__(self, task: Task, pc: int) -> str | None:
        """What `task` dies of at `pc`; None if that has been said."""
        if (task.comm, pc) in self._said or len(self._said) == MOST_LINES:
            return None
        self._said.add((task.comm, pc))
        architecture = task.architecture
        text, extension = _IDENTIFY[architecture.isa](_code(task, pc))
        said = f"{task.comm}: illegal instruction at {pc:#x}{self._place(task, pc)}: {text}"
        if extension:
            return f"{said} needs {extension}; {self._core} offers {self._offers}"
        if text.startswith(UNDEFINED_FOR_EVER):
            return f"{said} is undefined on every machine"
        return f"{said} is nothing that {self._core} offers: {self._offers}"

    def _place(self, task: Task, pc: int) -> str:
        from perfemu.symbols.finder import SymbolFinder

        mapping = task.mm.mappings.find(pc)
        if mapping is None or mapping.file is None:
            return ""
        path, offset = mapping.file.path, pc - mapping.start + mapping.offset
        host = self._space.on_host(path)
        symbol = SymbolFinder().symbol(host, offset) if host and os.path.isfile(host) else None
        function = f"{symbol.shown}+{offset - symbol.start:#x} " if symbol else ""
        return f" ({function}in {path})"


def _code(task: Task, pc: int) -> bytes:
    """What is there of the instruction."""
    code = task.mm.space.read(pc, LONGEST_INSTRUCTION)
    if isinstance(code, int):  # the first byte that is missing
        code = task.mm.space.read(pc, code - pc)
    return code if isinstance(code, bytes) else b""
