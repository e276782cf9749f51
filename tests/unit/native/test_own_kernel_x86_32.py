"""Code of 32 bits, as loaders enter kernels with it, and its way into 64-bit mode and back."""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment
from tests.unit.native.bare import assemble
from tests.unit.native.own_x86 import CODE_32, LOADED_AT, PE, RAX, RBX, RCX, RDX, RIP, RSI, RSP, Pc

STACK, ROOT, DATA = 0x8_0000, 0x2_0000, 0x7_0000
CODE_OF_32, CODE_OF_64, DATA_SELECTOR = 8, 16, 24

# Beside each line: how often it executes.
SOURCE = f"""
        .intel_syntax noprefix
        .code32
begin:  mov     esp, {STACK}            # 1
        mov     edi, {ROOT}             # 1
        mov     ecx, 0x3000 / 4         # 1
        xor     eax, eax                # 1
        rep stosd                       # 1    one instruction, 3072 stores
        mov     dword ptr [{ROOT}], {ROOT + 0x1003} # 1
        mov     dword ptr [{ROOT + 0x1000}], {ROOT + 0x2003} # 1
        xor     ecx, ecx                # 1
1:      mov     eax, ecx                # 8
        shl     eax, 21                 # 8
        or      eax, 0x83               # 8    a page of 2 MiB
        mov     [{ROOT + 0x2000} + ecx * 8], eax # 8
        inc     ecx                     # 8    an opcode that is a REX prefix elsewhere
        cmp     ecx, 8                  # 8
        jb      1b                      # 8
        call    function                # 1
        push    edx                     # 1
        pushfd                          # 1
        pop     ebx                     # 1
        pop     edx                     # 1
        lgdt    [gdt + {LOADED_AT} - begin] # 1
        push    ds                      # 1
        pop     es                      # 1
        mov     eax, cr4                # 1
        or      eax, 0x20               # 1
        mov     cr4, eax                # 1
        mov     eax, {ROOT}             # 1
        mov     cr3, eax                # 1
        mov     ecx, 0xc0000080         # 1
        rdmsr                           # 1
        or      eax, 0x100              # 1
        wrmsr                           # 1
        mov     eax, cr0                # 1
        or      eax, 0x80000000         # 1
        mov     cr0, eax                # 1    in a segment of 32 bits of long mode
        ljmp    {CODE_OF_64}, {LOADED_AT} + long_mode - begin # 1
function:
        lea     edx, [edi + eax * 2 + 5] # 1
        mov     si, 0x1234              # 1
        mov     word ptr [bx + {DATA & 0xFFFF} + 2], 7 # 1  an address of 16 bits
        ret                             # 1
        .code64
long_mode:
        mov     eax, {DATA_SELECTOR}    # 1
        mov     ss, eax                 # 1
        mov     r8, 0x123456789abcdef0  # 1
        mov     rsp, {STACK}            # 1
        push    {CODE_OF_32}            # 1
        lea     rax, [rip + compatible] # 1
        push    rax                     # 1
        lretq                           # 1
        .code32
compatible:
        mov     eax, 0x11223344         # 1
        dec     eax                     # 1
        ljmp    {CODE_OF_64}, {LOADED_AT} + again - begin # 1
        .code64
again:  mov     r9, r8                  # 1
        hlt                             # 1
        .balign 8
gdt:    .word   31
        .long   {LOADED_AT} + table - begin
        .balign 8
table:  .quad   0, 0x00cf9b000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
"""
STEPS = 8 + 7 * 8 + 7 + 14 + 4 + 8 + 3 + 2


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble("x86_64", SOURCE, tmp_path_factory.mktemp("own_32"))


@pytest.mark.parametrize("core", ["ideal", "zen5"])
@pytest.mark.parametrize("slice_cycles", [1 << 40, 1, 7])
def test_a_kernel_enters_64_bit_mode(core: str, slice_cycles: int, code: bytes) -> None:
    pc = Pc.load(code, core)
    pc.set({SystemRegister.CR0: PE})
    pc.set_segments(CODE_32)
    registers = pc.cpu.core
    registers.write_register(RIP, LOADED_AT)
    registers.write_register(RBX, 0xFFFF_0000)
    pc.monitor.slice_cycles = slice_cycles
    pc.run()
    assert pc.by_level(Probe.INST_RETIRED) == (0, STEPS)
    assert pc.by_level(Probe.STORE)[1] == 0x3000 // 4 + 2 + 8 + 4 + 1 + 2
    assert pc.by_level(Probe.BR_COND_TAKEN) == (0, 7)
    assert registers.read_register(9) == 0x123456789ABCDEF0
    assert registers.read_register(RAX) == 0x11223343
    assert registers.read_register(RSI) & 0xFFFF == 0x1234
    assert pc.read(DATA & 0xFFFF | 2, 2) == 7
    assert pc.get(SystemRegister.EFER) == 0x500  # LME, and LMA by itself
    assert pc.get(segment(SegmentRegister.CS, SegmentField.SELECTOR)) == CODE_OF_64
    assert registers.read_register(RSP) == STACK
    assert registers.read_register(RCX) == 0xC000_0080
    assert registers.read_register(RDX) == 0
