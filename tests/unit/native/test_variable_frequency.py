"""What a guest's own kernel reads of the time stamp counter is constant in time, whatever frequency its CPU has."""

from __future__ import annotations

from pathlib import Path

from emulator.frequency import FrequencyProfile, Step
from emulator.x86_64_system import SystemRegister
from tests.unit.native.bare import assemble
from tests.unit.native.own_x86 import LOADED_AT, PRESENT, WRITABLE, Pc

LOG, READS = 0x8000, 2000
PAGES = {page: page | PRESENT | WRITABLE for page in (*range(LOG, LOG + 16 * READS, 0x1000), LOADED_AT)}
# RDTSC, and RDMSR of the same
CODE = f"""
        .intel_syntax noprefix
        mov     edi, {LOG}
        mov     esi, {READS}
1:      rdtsc
        mov     [rdi], eax
        mov     [rdi + 4], edx
        mov     ecx, 0x10
        rdmsr
        mov     [rdi + 8], eax
        mov     [rdi + 12], edx
        add     rdi, 16
        dec     esi
        jnz     1b
        hlt
"""
# Of a core of 1 GHz: laps of 2,000 cycles in 1 us, 250 in 1 us and 3,333 in 3 us
PROFILE = FrequencyProfile((Step(2_000_000_000, 1), Step(250_000_000, 1), Step(1_111_000_000, 3)), repeats=True)


def reads(code: bytes, profile: FrequencyProfile | None) -> tuple[Pc, list[int]]:
    pc = Pc.load(code, frequencies=profile)
    pc.cpu.core.share_shown_cycles(pc.machine.clock.shown)
    pc.start_64(PAGES)
    pc.run()
    return pc, [pc.read(LOG + 8 * number) for number in range(2 * READS)]


def reference(cycles: int) -> int:
    """Of 1 GHz, so nanoseconds; written out, by hand."""
    laps, rest = divmod(cycles, 2000 + 250 + 3333)
    if rest < 2000:
        return 5000 * laps + rest // 2
    if rest < 2250:
        return 5000 * laps + 1000 + (rest - 2000) * 4
    return 5000 * laps + 2000 + (rest - 2250) * 1000 // 1111


def test_the_time_stamp_counter_is_constant_in_time(tmp_path: Path) -> None:
    """Without a profile it is the cycles, which a profile does not change."""
    code = assemble("x86_64", CODE, tmp_path)
    plain, cycles = reads(code, None)
    pc, found = reads(code, PROFILE)
    assert pc.cpu.core.cycles == plain.cpu.core.cycles > 3 * (2000 + 250 + 3333)
    assert cycles == sorted(set(cycles))
    assert found == [reference(each) for each in cycles]
    assert pc.get(SystemRegister.TSC) == reference(pc.cpu.core.cycles)


def test_what_is_written_goes_on_in_time(tmp_path: Path) -> None:
    pc, _ = reads(assemble("x86_64", CODE, tmp_path), PROFILE)
    pc.set({SystemRegister.TSC: 7})
    before = reference(pc.cpu.core.cycles)
    pc.cpu.idle(12_345)
    assert pc.get(SystemRegister.TSC) - 7 == reference(pc.cpu.core.cycles) - before
