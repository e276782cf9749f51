"""What a debugger sees of an AArch64 CPU's registers: names, sizes, and how each is read and written.

Names and order of the first two groups: GDB's manual, "AArch64 Features". System registers have the Arm ARM's names.
"""

from __future__ import annotations

from functools import partial

from emulator.board.board_cpu import BoardCpu
from emulator.board.visible_register import VisibleRegister
from emulator.sysregs import SysReg

STACK_POINTER, PC, FPCR, FPSR = 31, 32, 35, 36  # Core.read_register
VECTORS, VECTOR_BYTES = 32, 16
OWN_STACK = 0b101  # PSTATE.EL and SP: at EL1, with SP_EL1
SP_EL0 = SysReg(3, 0, 4, 1, 0)

Register = VisibleRegister[BoardCpu]


def _general(number: int, name: str, bits: int = 64) -> Register:
    def write(cpu: BoardCpu, value: int) -> None:
        cpu.core.write_register(number, value)

    return Register(name, bits, lambda cpu: cpu.core.read_register(number) & ((1 << bits) - 1), write)


def _vector(number: int) -> Register:
    def write(cpu: BoardCpu, value: int) -> None:
        cpu.core.write_vector(number, value.to_bytes(VECTOR_BYTES, "little"))

    return Register(
        f"v{number}", 8 * VECTOR_BYTES, lambda cpu: int.from_bytes(cpu.core.read_vector(number), "little"), write
    )


def _read_in_core(register: SysReg, cpu: BoardCpu) -> int:
    return cpu.core.read_kernel_register(register.encoding)


def _write_in_core(register: SysReg, cpu: BoardCpu, value: int) -> None:
    cpu.core.write_kernel_register(register.encoding, value)


def _write_state(cpu: BoardCpu, value: int) -> None:
    """Flags and masks: the level, and whose stack it is, go with exceptions alone."""
    cpu.core.processor_state = value


def _user_stack(cpu: BoardCpu) -> int:
    """Where SP is the same, the core has it there."""
    own = cpu.core.processor_state & OWN_STACK == OWN_STACK
    return _read_in_core(SP_EL0, cpu) if own else cpu.core.read_register(STACK_POINTER)


def _answered(register: SysReg, cpu: BoardCpu) -> int:
    """One that the board answers, and for which being read is nothing."""
    return cpu.cpu.system_registers.read(register)


# In the core, to be read and written: name -> (op1, CRn, CRm, op2) of op0 3
_IN_CORE = {
    "SCTLR_EL1": (0, 1, 0, 0),
    "CPACR_EL1": (0, 1, 0, 2),
    "TTBR0_EL1": (0, 2, 0, 0),
    "TTBR1_EL1": (0, 2, 0, 1),
    "TCR_EL1": (0, 2, 0, 2),
    "SPSR_EL1": (0, 4, 0, 0),
    "ELR_EL1": (0, 4, 0, 1),
    "AFSR0_EL1": (0, 5, 1, 0),
    "AFSR1_EL1": (0, 5, 1, 1),
    "ESR_EL1": (0, 5, 2, 0),
    "FAR_EL1": (0, 6, 0, 0),
    "PAR_EL1": (0, 7, 4, 0),
    "MAIR_EL1": (0, 10, 2, 0),
    "VBAR_EL1": (0, 12, 0, 0),
    "CONTEXTIDR_EL1": (0, 13, 0, 1),
    "TPIDR_EL1": (0, 13, 0, 4),
    "TPIDR_EL0": (3, 13, 0, 2),
    "TPIDRRO_EL0": (3, 13, 0, 3),
}
# Answered by the board, to be read
_ANSWERED = {
    "MIDR_EL1": SysReg(3, 0, 0, 0, 0),
    "MPIDR_EL1": SysReg(3, 0, 0, 0, 5),
    "ID_AA64PFR0_EL1": SysReg(3, 0, 0, 4, 0),
    "ID_AA64DFR0_EL1": SysReg(3, 0, 0, 5, 0),
    "ID_AA64ISAR0_EL1": SysReg(3, 0, 0, 6, 0),
    "ID_AA64MMFR0_EL1": SysReg(3, 0, 0, 7, 0),
    "MDSCR_EL1": SysReg(2, 0, 0, 2, 2),
    "CNTKCTL_EL1": SysReg(3, 0, 14, 1, 0),
    "CNTFRQ_EL0": SysReg(3, 3, 14, 0, 0),
    "CNTP_CTL_EL0": SysReg(3, 3, 14, 2, 1),
    "CNTP_CVAL_EL0": SysReg(3, 3, 14, 2, 2),
    "CNTV_CTL_EL0": SysReg(3, 3, 14, 3, 1),
    "CNTV_CVAL_EL0": SysReg(3, 3, 14, 3, 2),
}

CORE = [
    *(_general(number, f"x{number}") for number in range(31)),
    _general(STACK_POINTER, "sp"),
    _general(PC, "pc"),
    Register("cpsr", 32, lambda cpu: cpu.core.processor_state, _write_state),
]
FLOATING_POINT = [*map(_vector, range(VECTORS)), _general(FPSR, "fpsr", 32), _general(FPCR, "fpcr", 32)]
SYSTEM = [
    Register("CurrentEL", 64, lambda cpu: cpu.core.level << 2, None),
    Register("SP_EL0", 64, _user_stack, None),
    *(
        Register(name, 64, partial(_read_in_core, SysReg(3, *rest)), partial(_write_in_core, SysReg(3, *rest)))
        for name, rest in _IN_CORE.items()
    ),
    *(Register(name, 64, partial(_answered, which), None) for name, which in _ANSWERED.items()),
]
