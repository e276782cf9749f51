"""The few instructions that a random program needs, of both ISAs, as bytes. Jumps are relative to where they begin."""

from __future__ import annotations

import struct
from typing import Protocol


class Encoding(Protocol):
    """Registers are numbered as system calls use them: 0 is the call's number, 1 to 6 its arguments."""

    jump_bytes: int

    def load(self, register: int, value: int) -> bytes:
        """`value`, of 64 bits, into a register."""

    def load_from(self, register: int, address: int, size: int) -> bytes:
        """4 or 8 bytes of memory into a register, or of register 0 what is in it; changes register 0."""

    def syscall(self) -> bytes: ...

    def store_result(self, address: int) -> bytes:
        """The 8 bytes that the call has returned, which stay what they are."""

    def store(self, address: int, value: int) -> bytes:
        """8 bytes into memory."""

    def jump_if_no_result(self, distance: int) -> bytes:
        """... is 0: `jump_bytes` long."""

    def jump(self, distance: int) -> bytes: ...

    def handler(self, offset: int | None, value: int) -> bytes:
        """A signal handler, which returns; before, it writes `value` at `offset` of its ucontext."""

    def restorer(self) -> bytes:
        """rt_sigreturn(2)."""


class AArch64:
    """A64, Arm ARM C6. The result is in x0; x9 and x10 are for addresses and values."""

    jump_bytes = 8
    _REGISTERS = (8, 0, 1, 2, 3, 4, 5)

    def load(self, register: int, value: int) -> bytes:
        return self._move(self._REGISTERS[register], value)

    def _move(self, register: int, value: int) -> bytes:
        """movz, movk: as many as there are 16 bits that are not 0."""
        parts = [(part, value >> 16 * part & 0xFFFF) for part in range(4)]
        wanted = [(part, bits) for part, bits in parts if bits] or [(0, 0)]
        words = [
            (0xF2800000 if number else 0xD2800000) | part << 21 | bits << 5 | register
            for number, (part, bits) in enumerate(wanted)
        ]
        return struct.pack(f"<{len(words)}I", *words)

    def load_from(self, register: int, address: int, size: int) -> bytes:
        number = self._REGISTERS[register]
        return self._move(9, address) + struct.pack("<I", (0xF9400120 if size == 8 else 0xB9400120) | number)

    def syscall(self) -> bytes:
        return struct.pack("<I", 0xD4000001)

    def store_result(self, address: int) -> bytes:
        return self._move(9, address) + struct.pack("<I", 0xF9000120)

    def store(self, address: int, value: int) -> bytes:
        return self._move(9, address) + self._move(10, value) + struct.pack("<I", 0xF900012A)

    def jump_if_no_result(self, distance: int) -> bytes:
        return struct.pack("<II", 0xB5000040, self._branch(distance - 4))  # cbnz x0, over the next; b

    def jump(self, distance: int) -> bytes:
        return struct.pack("<I", self._branch(distance))

    @staticmethod
    def _branch(distance: int) -> int:
        return 0x14000000 | distance >> 2 & 0x3FFFFFF

    def handler(self, offset: int | None, value: int) -> bytes:
        code = b"" if offset is None else self._move(10, value) + struct.pack("<I", 0xF900004A | offset >> 3 << 10)
        return code + struct.pack("<I", 0xD65F03C0)  # str x10, [x2, #offset]; ret

    def restorer(self) -> bytes:
        return self._move(8, 139) + self.syscall()


class X86_64:
    """Intel SDM volume 2. The result is in rax."""

    jump_bytes = 9
    _REGISTERS = (0, 7, 6, 2, 10, 8, 9)  # rax, rdi, rsi, rdx, r10, r8, r9, as instructions number them

    def load(self, register: int, value: int) -> bytes:
        number = self._REGISTERS[register]
        return bytes([0x48 | number >> 3, 0xB8 | number & 7]) + struct.pack("<Q", value)

    def load_from(self, register: int, address: int, size: int) -> bytes:
        number = self._REGISTERS[register]
        load = (b"\x48\xa1" if size == 8 else b"\xa1") + struct.pack("<Q", address)  # mov rax, moffs64
        return load + bytes([0x48 | number >> 3, 0x89, 0xC0 | number & 7])

    def syscall(self) -> bytes:
        return b"\x0f\x05"

    def store_result(self, address: int) -> bytes:
        return b"\x48\xa3" + struct.pack("<Q", address)

    def store(self, address: int, value: int) -> bytes:
        return self.load(0, value) + self.store_result(address)

    def jump_if_no_result(self, distance: int) -> bytes:
        return b"\x48\x85\xc0\x0f\x84" + struct.pack("<i", distance - 9)  # test rax, rax; jz

    def jump(self, distance: int) -> bytes:
        return b"\xe9" + struct.pack("<i", distance - 5)

    def handler(self, offset: int | None, value: int) -> bytes:
        code = b"" if offset is None else self.load(0, value) + b"\x48\x89\x82" + struct.pack("<i", offset)
        return code + b"\xc3"  # mov [rdx + offset], rax; ret

    def restorer(self) -> bytes:
        return b"\xb8\x0f\x00\x00\x00" + self.syscall()


ENCODINGS: dict[str, Encoding] = {"aarch64": AArch64(), "x86_64": X86_64()}
