"""What programs find of the Activity Monitors. Boards have them: perfemu.board_activity_monitors."""

from __future__ import annotations

from emulator.core_file.core_file import CoreFile
from emulator.cpu import Cpu
from emulator.sysregs import Access
from pmu.arm.amu_registers import AMUSERENR_EL0


def announce_to_programs(core: CoreFile, cpu: Cpu) -> None:
    """Linux gives programs none: AMUSERENR_EL0, which they always read, says so, and the rest is undefined."""
    if core.activity_monitors is not None:
        cpu.system_registers.claim(AMUSERENR_EL0.encoding_of(), Access(lambda: 0))
