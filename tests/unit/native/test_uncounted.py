"""A core that counts nothing, the yardstick of the benchmarks: its engine answers for itself."""

from __future__ import annotations

from emulator._native import Core
from emulator.cpu import ExitReason
from tests.unit.native.bare import CODE, PC, Bare

CPUID_OF_LEAF_0 = bytes.fromhex("31c0 0fa2 0f05")  # xor eax, eax; cpuid; syscall
RBX, RDX = 1, 3


def test_cpuid_is_the_engines() -> None:
    bare = Bare.load("x86_64", CPUID_OF_LEAF_0)
    core = Core("x86_64", bare.memory, counting=False)
    core.set_address_space(bare.space)
    core.write_register(PC["x86_64"], CODE)
    assert ExitReason(core.run(1 << 62)) is ExitReason.SYSCALL
    vendor = b"".join(core.read_register(number).to_bytes(8, "little")[:4] for number in (RBX, RDX))
    assert vendor == b"GenuineI"  # the engine's own model of a Haswell; RCX is SYSCALL's
