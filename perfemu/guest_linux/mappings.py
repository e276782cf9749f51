"""Mappings: what a process has mapped where, as /proc/PID/maps says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfemu.guest_linux.kernel import KERNEL_HALF, GuestKernel
from perfemu.guest_linux.memory import Unreadable
from perfemu.guest_linux.paths import path_of

MOST_MAPPINGS = 65_530  # vm.max_map_count
_MOST_NODES = 1 << 14  # of the tree in which they are
_MOST_NAME_BYTES = 64
_READ, _WRITE, _EXECUTE, _MAY_SHARE = 1, 2, 4, 0x80  # VM_* of include/linux/mm.h
_PAGE_SHIFT = 12
# lib/maple_tree.c: what is in a node's address besides; a node is aligned to its size
_TYPE_SHIFT, _TYPE_MASK, _IS_NODE_MASK, _IS_NODE = 3, 0xF, 3, 2
_EVERYTHING = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class GuestFile:
    """What is mapped, if it is a file."""

    path: str
    major: int
    minor: int
    inode: int
    generation: int


@dataclass(frozen=True, slots=True)
class GuestMapping:
    start: int
    end: int
    protection: int  # PROT_*
    is_shared: bool
    offset: int  # in its file, in bytes
    file: GuestFile | None
    name: str  # of what is no file: [heap]; "" if it has none

    @property
    def is_executable(self) -> bool:
        return bool(self.protection & _EXECUTE)

    @property
    def path(self) -> str:
        return self.name if self.file is None else self.file.path


class Mappings:
    """Of processes, by the address of a struct mm_struct; `root`: of a struct path, from which their paths are."""

    def __init__(self, kernel: GuestKernel) -> None:
        self._kernel = kernel
        self._has_tree = kernel.btf.has_member("mm_struct", "mm_mt")
        if self._has_tree:
            self._node_bytes = kernel.btf.size("maple_node")
            self._inner, self._leaf = (
                kernel.btf.enumerator("maple_type", name) for name in ("maple_arange_64", "maple_leaf_64")
            )

    def executable_pages(self, mm: int) -> int:
        """How many: a number that changes with most changes."""
        return self._kernel.value(mm, "mm_struct", "exec_vm")

    def at(self, mm: int, address: int, root: int) -> GuestMapping | None:
        """The one that has an address."""
        for area in self._areas(mm, address, address):
            return self._mapping(mm, area, root)
        return None

    def all(self, mm: int, root: int) -> Iterator[GuestMapping]:
        """By their addresses. What cannot be read is left out."""
        for count, area in enumerate(self._areas(mm, 0, _EVERYTHING)):
            if count >= MOST_MAPPINGS:
                break
            mapping = self._mapping(mm, area, root)
            if mapping is not None:
                yield mapping

    def _areas(self, mm: int, first: int, last: int) -> Iterator[int]:
        """struct vm_area_struct of what lies in that range."""
        if self._has_tree:
            root = self._kernel.value(mm, "mm_struct", "mm_mt.ma_root")
            if root & _IS_NODE_MASK != _IS_NODE:
                return iter(())
            return self._below(root, range(_EVERYTHING + 1), first, last, iter(range(_MOST_NODES)))
        return self._listed(self._kernel.value(mm, "mm_struct", "mmap"), first, last)

    def _listed(self, area: int, first: int, last: int) -> Iterator[int]:
        """Kernels before 6.1 have a list of them."""
        for _ in range(MOST_MAPPINGS):
            if not area or self._kernel.value(area, "vm_area_struct", "vm_start") > last:
                return
            if self._kernel.value(area, "vm_area_struct", "vm_end") > first:
                yield area
            area = self._kernel.value(area, "vm_area_struct", "vm_next")

    def _below(self, entry: int, addresses: range, first: int, last: int, nodes: Iterator[int]) -> Iterator[int]:
        """Of a node for these addresses in the maple tree; `nodes` are as many as may be looked at."""
        if entry < KERNEL_HALF or next(nodes, None) is None:
            return
        kernel = self._kernel
        node, kind = entry & -self._node_bytes, entry >> _TYPE_SHIFT & _TYPE_MASK
        structure = "maple_arange_64" if kind == self._inner else "maple_range_64"
        try:
            pivots = kernel.raw(node, structure, "pivot")
            slots = kernel.raw(node, structure, "slot")
        except Unreadable:
            return
        low, high = addresses.start, addresses.stop - 1
        for at in range(0, len(slots), 8):
            pivot = int.from_bytes(pivots[at : at + 8], "little")
            end = pivot if at < len(pivots) and (pivot or not at) else high
            if end < low or end > high:
                return  # it is being changed
            if end >= first and low <= last:
                slot = int.from_bytes(slots[at : at + 8], "little")
                if kind != self._leaf:
                    yield from self._below(slot, range(low, end + 1), first, last, nodes)
                elif slot >= KERNEL_HALF:
                    yield slot
            if end == high or end >= last:
                return
            low = end + 1

    def _mapping(self, mm: int, area: int, root: int) -> GuestMapping | None:
        value = self._kernel.value
        try:
            start, end = (value(area, "vm_area_struct", name) for name in ("vm_start", "vm_end"))
            if value(area, "vm_area_struct", "vm_mm") != mm or start >= end:
                return None
            flags = value(area, "vm_area_struct", "vm_flags")
            file = value(area, "vm_area_struct", "vm_file")
            offset = value(area, "vm_area_struct", "vm_pgoff") << _PAGE_SHIFT if file else 0
            return GuestMapping(
                start,
                end,
                flags & (_READ | _WRITE | _EXECUTE),
                bool(flags & _MAY_SHARE),
                offset,
                self._file(file, root) if file else None,
                "" if file else self._name(mm, area, start, end),
            )
        except Unreadable:
            return None

    def _file(self, file: int, root: int) -> GuestFile:
        value = self._kernel.value
        inode = value(file, "file", "f_inode")
        device = value(value(inode, "inode", "i_sb"), "super_block", "s_dev")
        return GuestFile(
            path_of(self._kernel, file + self._kernel.member("file", "f_path").offset, root),
            device >> 20,
            device & 0xFFFFF,
            value(inode, "inode", "i_ino"),
            value(inode, "inode", "i_generation"),
        )

    def _name(self, mm: int, area: int, start: int, end: int) -> str:
        """Of memory that is no file's: get_vma_name of fs/proc/task_mmu.c."""
        value = self._kernel.value
        if value(area, "vm_area_struct", "vm_ops"):
            return self._special_name(area)
        if start <= value(mm, "mm_struct", "brk") and end >= value(mm, "mm_struct", "start_brk"):
            return "[heap]"
        return "[stack]" if start <= value(mm, "mm_struct", "start_stack") < end else ""

    def _special_name(self, area: int) -> str:
        """A struct vm_special_mapping of the kernel's image says what it is: [vdso]."""
        kernel = self._kernel
        special = kernel.value(area, "vm_area_struct", "vm_private_data")
        if special not in kernel.image:
            return ""
        name = kernel.value(special, "vm_special_mapping", "name")
        text = kernel.tables.string(name, _MOST_NAME_BYTES) if name in kernel.image else b""
        return text.decode("ascii", "replace") if text.startswith(b"[") and text.endswith(b"]") else ""
