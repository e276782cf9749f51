"""What the two architectures tell programs: HWCAP, CPUID, ID registers, layouts of structures."""

from __future__ import annotations

import struct

import pytest

from emulator.arch import architecture
from emulator.arch.aarch64 import ID_REGISTERS, ID_SPACE
from emulator.arch.architecture import Stat
from emulator.arch.cpuid import FEATURE_NAMES, cpuid
from emulator.sysregs import SysReg

STAT = Stat(0x801, 42, 0o100644, 2, 1, 3, 0, 5000, 4096, 16, 1_000_000_002, 2_000_000_003, 3_000_000_004)


def test_an_isa_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="riscv64: no such ISA; there are aarch64, x86_64"):
        architecture("riscv64")


def test_hwcap_is_a_cortex_a72_with_cryptography() -> None:
    # FP ASIMD (bits 0, 1), AES PMULL SHA1 SHA2 CRC32 (3..7), CPUID (11); no ATOMICS (8)
    assert architecture("aarch64").hwcap == 0x8FB
    assert architecture("aarch64").hwcap2 == 0


def test_hwcap_agrees_with_the_id_registers() -> None:
    isar0 = ID_REGISTERS[SysReg(3, 0, 0, 6, 0)]
    fields = [isar0 >> shift & 15 for shift in (4, 8, 12, 16, 20)]  # AES, SHA1, SHA2, CRC32, Atomic
    assert fields == [2, 1, 1, 1, 0]
    assert len(ID_SPACE) == 48  # CRm 2..7, op2 0..7


def test_cpuid_is_x86_64_v2_without_avx() -> None:
    _, _, ecx, edx = cpuid(1, 0)
    # psABI "x86-64-v2": CMPXCHG16B, POPCNT, SSE3, SSSE3, SSE4.1, SSE4.2 (and LAHF in 80000001H)
    assert ecx & (1 << 13 | 1 << 23 | 1 << 0 | 1 << 9 | 1 << 19 | 1 << 20) == 0x0098_2201
    assert cpuid(0x8000_0001, 0)[2] & 1
    absent = {"FMA": 12, "XSAVE": 26, "OSXSAVE": 27, "AVX": 28, "F16C": 29, "RDRAND": 30}
    assert not any(ecx >> bit & 1 for bit in absent.values())
    assert edx >> 25 & 3 == 3  # SSE, SSE2
    assert architecture("x86_64").hwcap == edx
    _, features, _, more = cpuid(7, 0)
    assert features == 0x109  # FSGSBASE, BMI1, BMI2; neither AVX2 (5) nor ERMS (9)
    assert more == 0  # nor FSRM (4)
    assert "avx" not in FEATURE_NAMES


def test_cpuid_vendor_and_model() -> None:
    _, ebx, ecx, edx = cpuid(0, 0)
    assert struct.pack("<3I", ebx, edx, ecx) == b"GenuineIntel"
    eax = cpuid(1, 0)[0]
    assert (eax >> 8 & 15, (eax >> 12 & 0xF0) | (eax >> 4 & 15)) == (6, 0x5E)


def test_cpuid_caches() -> None:
    sizes = []
    for index in range(4):
        _, ebx, ecx, _ = cpuid(4, index)
        sizes.append(((ebx >> 22) + 1) * ((ebx & 0xFFF) + 1) * (ecx + 1) >> 10)
    assert sizes == [32, 32, 256, 8192]  # KiB: L1D, L1I, L2, L3
    assert cpuid(4, 4) == (0, 0, 0, 0)


def test_leaves_that_are_not_there_are_zero() -> None:
    assert cpuid(0x4000_0000, 0) == cpuid(0xFFFF_FFFF, 3) == cpuid(0xD, 0) == (0, 0, 0, 0)
    assert cpuid(0xB, 5) == (0, 0, 5, 0)


def test_struct_stat_of_aarch64() -> None:
    # uapi/asm-generic/stat.h: dev, ino, mode, nlink, uid, gid, rdev, pad, size, blksize, pad, blocks, three times
    data = architecture("aarch64").pack_stat(STAT)
    assert len(data) == 128
    assert struct.unpack_from("<QQIIII", data) == (0x801, 42, 0o100644, 2, 1, 3)
    assert struct.unpack_from("<qi4xq", data, 48) == (5000, 4096, 16)
    assert struct.unpack_from("<6q", data, 72) == (1, 2, 2, 3, 3, 4)


def test_struct_stat_of_x86_64() -> None:
    # arch/x86/include/uapi/asm/stat.h: dev, ino, nlink, mode, uid, gid, pad, rdev, size, blksize, blocks, three times
    data = architecture("x86_64").pack_stat(STAT)
    assert len(data) == 144
    assert struct.unpack_from("<QQQIII", data) == (0x801, 42, 2, 0o100644, 1, 3)
    assert struct.unpack_from("<3q6q", data, 48) == (5000, 4096, 16, 1, 2, 2, 3, 3, 4)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_register_lists_name_native_registers(isa: str) -> None:
    arch = architecture(isa)
    names = arch.register_names
    assert names[arch.pc] in ("pc", "rip")
    assert names[arch.sp] in ("sp", "rsp")
    assert all(-1 <= number < len(names) for number in (*arch.perf_registers, *arch.dwarf_registers))
    if isa == "x86_64":
        # System V psABI figure 3.36: 0 RAX, 1 RDX, 2 RCX, 3 RBX; uapi/asm/perf_regs.h: AX BX CX DX SI DI BP SP IP
        assert [names[n] for n in arch.dwarf_registers[:4]] == ["rax", "rdx", "rcx", "rbx"]
        assert [names[n] for n in arch.perf_registers[:9]] == [
            "rax",
            "rbx",
            "rcx",
            "rdx",
            "rsi",
            "rdi",
            "rbp",
            "rsp",
            "rip",
        ]
        assert [names[n] for n in arch.perf_registers[16:]] == [f"r{n}" for n in range(8, 16)]
