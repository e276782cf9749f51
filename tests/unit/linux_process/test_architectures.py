"""What the two architectures tell programs: HWCAP, CPUID, ID registers, layouts of structures."""

from __future__ import annotations

import struct

import pytest

from emulator.aarch64_features import ID_AA64ISAR0_EL1, ID_AA64ISAR1_EL1, ID_AA64PFR0_EL1
from emulator.arch.cpuid import Cpuid, feature_names
from emulator.arch.processor import X86_64_CACHES, Processor
from emulator.core_file.core_file import load_core
from emulator.core_file.layers import names
from emulator.linux.arch import architecture
from emulator.linux.arch.aarch64 import ID_SPACE
from emulator.linux.arch.architecture import Stat
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig

IDEAL = Processor(caches=X86_64_CACHES)
cpuid = Cpuid(IDEAL, 0)
STAT = Stat(0x801, 42, 0o100644, 2, 1, 3, 0, 5000, 4096, 16, 1_000_000_002, 2_000_000_003, 3_000_000_004)


def test_an_isa_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="riscv64: no such ISA; there are aarch64, x86_64"):
        architecture("riscv64")


def test_hwcap_is_a_cortex_a72_with_cryptography() -> None:
    # FP ASIMD (bits 0, 1), AES PMULL SHA1 SHA2 CRC32 (3..7), CPUID (11); no ATOMICS (8)
    assert architecture("aarch64").hwcap(IDEAL) == 0x8FB
    assert architecture("aarch64").hwcap2 == 0


@pytest.mark.parametrize(
    ("core", "isar0", "isar1", "pfr0"),
    [  # AES, SHA1, SHA2, CRC32, Atomic, RDM, DP; DPB, LRCPC; FP, AdvSIMD: Arm ARM, ID_AA64ISAR0_EL1 and the like
        ("ideal", [2, 1, 1, 1, 0, 0, 0], [0, 0], [0, 0]),
        ("neoverse-n1", [2, 1, 1, 1, 2, 1, 1], [1, 1], [1, 1]),
    ],
)
def test_id_registers_say_what_hwcap_says(core: str, isar0: list[int], isar1: list[int], pfr0: list[int]) -> None:
    machine = LinuxMachine(MachineConfig("aarch64", core=load_core(core)))
    read = machine.cpus[0].system_registers.read
    shown = [read(register) for register in (ID_AA64ISAR0_EL1, ID_AA64ISAR1_EL1, ID_AA64PFR0_EL1)]
    assert [shown[0] >> shift & 15 for shift in (4, 8, 12, 16, 20, 28, 44)] == isar0
    assert [shown[1] >> shift & 15 for shift in (0, 20)] == isar1
    assert [shown[2] >> shift & 15 for shift in (16, 20)] == pfr0
    hwcap = machine.kernel.architecture.hwcap(machine.kernel.processor)
    assert bool(hwcap & 1 << 8) == bool(isar0[4])  # atomics
    assert bool(hwcap & 1 << 20) == bool(isar0[6])  # asimddp
    assert hwcap & 0xFF == 0xFB  # fp asimd aes pmull sha1 sha2 crc32; no evtstrm
    assert len(ID_SPACE) == 48  # CRm 2..7, op2 0..7


def test_cpuid_is_x86_64_v2_without_avx() -> None:
    _, _, ecx, edx = cpuid(1, 0)
    # psABI "x86-64-v2": CMPXCHG16B, POPCNT, SSE3, SSSE3, SSE4.1, SSE4.2 (and LAHF in 80000001H)
    assert ecx & (1 << 13 | 1 << 23 | 1 << 0 | 1 << 9 | 1 << 19 | 1 << 20) == 0x0098_2201
    assert cpuid(0x8000_0001, 0)[2] & 1
    absent = {"FMA": 12, "XSAVE": 26, "OSXSAVE": 27, "AVX": 28, "F16C": 29, "RDRAND": 30}
    assert not any(ecx >> bit & 1 for bit in absent.values())
    assert edx >> 25 & 3 == 3  # SSE, SSE2
    assert architecture("x86_64").hwcap(IDEAL) == edx
    _, features, _, more = cpuid(7, 0)
    assert features == 0x109  # FSGSBASE, BMI1, BMI2; neither AVX2 (5) nor ERMS (9)
    assert more == 0  # nor FSRM (4)
    assert "avx" not in feature_names(IDEAL)


def vendor_and_model(answer: Cpuid) -> tuple[str, int, int, int, str]:
    """As the manuals say how to put them together: vendor, family, model, stepping, brand."""
    _, ebx, ecx, edx = answer(0, 0)
    eax = answer(1, 0)[0]
    family = eax >> 8 & 15
    model = eax >> 4 & 15 | (eax >> 12 & 0xF0 if family in (6, 15) else 0)
    family += eax >> 20 & 255 if family == 15 else 0
    brand = b"".join(struct.pack("<4I", *answer(0x8000_0002 + part, 0)) for part in range(3))
    assert answer(0x8000_0000, 0)[0] >= 0x8000_0008
    return struct.pack("<3I", ebx, edx, ecx).decode(), family, model, eax & 15, brand.rstrip(b"\0").decode()


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        ("ideal", ("GenuineIntel", 6, 0x5E, 3, "perfemu x86-64-v2 processor")),
        ("skylake", ("GenuineIntel", 6, 0x5E, 3, "Intel Skylake client core, by perfemu")),
        ("skylake-fused", ("GenuineIntel", 6, 0x5E, 3, "Intel Skylake client core, by perfemu")),
        ("redwood-cove", ("GenuineIntel", 6, 0xAD, 1, "Intel Redwood Cove core, by perfemu")),
        ("zen4", ("AuthenticAMD", 25, 0x11, 1, "AMD Zen 4 core, by perfemu")),
        ("zen5", ("AuthenticAMD", 26, 0x02, 1, "AMD Zen 5 core, by perfemu")),
    ],
)
def test_cpuid_vendor_and_model(core: str, expected: tuple[str, int, int, int, str]) -> None:
    assert vendor_and_model(Cpuid(Processor.of(load_core(core), "x86_64", 1), 0)) == expected


def test_midr_of_each_arm_core() -> None:
    """Implementer 41H, variant, architecture FH, part, revision: the TRMs' MIDR_EL1."""
    midrs = {name: Processor.of(load_core(name), "aarch64", 1).midr_el1 for name in names()}
    parts = {name: (midr >> 24, midr >> 20 & 15, midr >> 16 & 15, midr >> 4 & 0xFFF) for name, midr in midrs.items()}
    assert parts["cortex-a55"] == (0x41, 2, 15, 0xD05)
    assert parts["cortex-a72"] == parts["ideal"] == (0x41, 0, 15, 0xD08)
    assert parts["neoverse-n1"] == (0x41, 3, 15, 0xD0C)


def caches(answer: Cpuid, leaf: int) -> list[tuple[int, int, int, int]]:
    """(type, level, KiB, how many CPUs share it) of leaf 4 and AMD's 8000001DH."""
    found = []
    for index in range(8):
        eax, ebx, ecx, _ = answer(leaf, index)
        if eax & 31 == 0:
            return found
        size = ((ebx >> 22) + 1) * ((ebx & 0xFFF) + 1) * (ecx + 1) >> 10
        found.append((eax & 31, eax >> 5 & 7, size, (eax >> 14 & 0xFFF) + 1))
    raise AssertionError("the list of caches has no end")


def test_cpuid_caches() -> None:
    assert caches(cpuid, 4) == [(1, 1, 32, 1), (2, 1, 32, 1), (3, 2, 256, 1), (3, 3, 8192, 1)]
    three = Cpuid(Processor.of(load_core("skylake"), "x86_64", 3), 1)
    # APIC ids 0 to 3 are set aside for three CPUs
    assert caches(three, 4) == [(1, 1, 32, 1), (2, 1, 32, 1), (3, 2, 256, 1), (3, 3, 8192, 4)]
    assert three(4, 0)[0] >> 26 == 3
    assert caches(three, 0x8000_001D) == []
    assert three(0x8000_0006, 0)[2] == 256 << 16 | 4 << 12 | 64  # 4 ways


def test_cpuid_caches_of_amd() -> None:
    zen = Cpuid(Processor.of(load_core("zen5"), "x86_64", 3), 1)
    assert zen(0x8000_0001, 0)[2] >> 22 & 1  # TopologyExtensions
    assert caches(zen, 0x8000_001D) == [(1, 1, 48, 1), (2, 1, 32, 1), (3, 2, 1024, 1), (3, 3, 32768, 3)]
    assert caches(zen, 4) == []
    # KiB, ways, lines of a tag, bytes of a line
    assert zen(0x8000_0005, 0)[2:] == (48 << 24 | 12 << 16 | 1 << 8 | 64, 32 << 24 | 8 << 16 | 1 << 8 | 64)
    # L2: 16 ways are code 8; L3 in units of 512 KiB
    assert zen(0x8000_0006, 0)[2:] == (1024 << 16 | 8 << 12 | 1 << 8 | 64, 64 << 18 | 8 << 12 | 1 << 8 | 64)
    assert zen(0x8000_0008, 0)[2] == 2 << 12 | 2  # three CPUs, whose ids take two bits
    assert zen(0x8000_001E, 0)[:2] == (1, 1)


def test_each_cpu_has_its_apic_id() -> None:
    for core in ("skylake", "zen5"):
        processor = Processor.of(load_core(core), "x86_64", 5)
        for number in range(5):
            answer = Cpuid(processor, number)
            _, ebx, _, edx = answer(1, 0)
            assert (ebx >> 24, edx >> 28 & 1) == (number, 1)
            assert answer(0xB, 0) == (0, 1, 1 << 8, number)
            assert answer(0xB, 1) == (3, 5, 2 << 8 | 1, number)
    assert cpuid(1, 0)[3] >> 28 & 1 == 0, "HTT: one CPU alone"


def test_a_core_without_caches_has_those_that_libraries_expect() -> None:
    ideal = load_core("ideal")
    assert Processor.of(ideal, "x86_64", 1).caches == X86_64_CACHES
    assert Processor.of(ideal, "aarch64", 1).caches == ()


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
