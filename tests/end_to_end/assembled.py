"""Small programs of a few instructions, as ELF files, without an assembler."""

from __future__ import annotations

from pathlib import Path

from end_to_end.random_guests import write_program

# exit(n) on AArch64: movz x0, #n; movz x8, #93; svc #0. On x86-64: mov edi, n; mov eax, 60; syscall.
CRASHES = {
    "x86_64": {
        "SIGSEGV": "31c08b00",  # xor eax, eax; mov eax, [rax]
        "SIGILL": "0f0b",  # ud2
        "SIGFPE": "31d231c9b801000000f7f1",  # edx = ecx = 0, eax = 1; div ecx
        "SIGTRAP": "cc",  # int3
    },
    "aarch64": {
        "SIGSEGV": "000080d2000040f9",  # mov x0, #0; ldr x0, [x0]
        "SIGILL": "00000000",  # udf #0
        "SIGTRAP": "000020d4",  # brk #0
    },
}
# A signal to itself: kill(getpid(), n). x86-64: getpid 39, kill 62. AArch64: getpid 172, kill 129.
KILLS = {
    "x86_64": "b8270000000f0589c7be{0:02x}000000b83e0000000f05ebfe",
    "aarch64": "881580d2010000d4{1}281080d2010000d400000014",
}
SPIN = {"x86_64": "ebfe", "aarch64": "00000014"}  # jump to itself
# rep stosb over 32 KiB, again and again: mov rdi, DATA; mov ecx, 0x8000; rep stosb; jmp
LONG_REP = "bf00304000b900800000f3aaebf2"


def move_x1(value: int) -> str:
    """movz x1, #value"""
    return (0xD2800001 | value << 5).to_bytes(4, "little").hex()


def exits(isa: str, status: int) -> str:
    if isa == "x86_64":
        return f"bf{status:02x}000000b83c0000000f05"
    return (0xD2800000 | status << 5).to_bytes(4, "little").hex() + "a80b80d2010000d4"


def kills_itself(isa: str, number: int) -> str:
    return KILLS[isa].format(number, move_x1(number))


def program(path: Path, isa: str, code: str) -> Path:
    write_program(path, isa, bytes.fromhex(code))
    return path
