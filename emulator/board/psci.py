"""PSCI and what else firmware answers to HVC and SMC: Arm DEN 0022 (PSCI 1.1) and DEN 0028 (SMCCC 1.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.board.board_cpu import BoardCpu

Arguments = tuple[int, int, int]
Answer = Callable[[BoardCpu, Arguments], int]

SUCCESS, NOT_SUPPORTED, INVALID_PARAMETERS, ALREADY_ON = 0, -1, -2, -4
VERSION_1_1 = 1 << 16 | 1
NO_MIGRATION = 2  # MIGRATE_INFO_TYPE: there is no Trusted OS that would have to move
ON, OFF = 0, 1  # AFFINITY_INFO
NOT_NEEDED = 1
WORKAROUNDS = (0x8000_8000, 0x8000_7FFF, 0x8000_3FFF)  # SMCCC_ARCH_WORKAROUND_1..3: these CPUs need none
OF_64_BITS = 0x4000_0000  # the same function, with arguments of 64 bits, ...
WITH_64_BITS = (0x8400_0001, 0x8400_0003, 0x8400_0004)  # ... which these have
NOT_IN_POWER_STATE = 0xFFFE_0000  # CPU_SUSPEND: affinity levels above the CPU's, and reserved bits
WORD = 0xFFFF_FFFF


class Firmware:
    """Answers calls by their function identifier (W0)."""

    def __init__(
        self, find: Callable[[int], BoardCpu | None], power_off: Callable[[], None], reset: Callable[[], None]
    ) -> None:
        """`find`: the CPU of an affinity."""
        self._find = find
        self._power_off = power_off
        self._reset = reset
        self._answers: Mapping[int, Answer] = {
            0x8400_0000: lambda cpu, arguments: VERSION_1_1,
            0x8400_0001: self._suspend,
            0x8400_0002: self._turn_off,
            0x8400_0003: self._turn_on,
            0x8400_0004: self._affinity_info,
            0x8400_0006: lambda cpu, arguments: NO_MIGRATION,
            0x8400_0008: self._system_off,
            0x8400_0009: self._system_reset,
            0x8400_000A: self._features,
            0x8000_0000: lambda cpu, arguments: VERSION_1_1,  # SMCCC_VERSION
            0x8000_0001: self._architecture_features,
        }

    def __call__(self, cpu: BoardCpu, function: int, arguments: Arguments) -> int:
        """What X0 is then. A function that is not there is NOT_SUPPORTED, as callers expect of firmware."""
        answer = self._answer(function)
        if answer is None:
            return NOT_SUPPORTED
        if not function & OF_64_BITS:
            first, second, third = arguments
            arguments = first & WORD, second & WORD, third & WORD
        return answer(cpu, arguments)

    def _answer(self, function: int) -> Answer | None:
        if function & OF_64_BITS and function & ~OF_64_BITS not in WITH_64_BITS:
            return None
        return self._answers.get(function & ~OF_64_BITS)

    def _suspend(self, cpu: BoardCpu, arguments: Arguments) -> int:
        """Standby, which power-down states may be, too: as WFI, with an answer behind it."""
        if arguments[0] & NOT_IN_POWER_STATE:
            return INVALID_PARAMETERS
        cpu.suspend()
        return SUCCESS

    def _turn_on(self, cpu: BoardCpu, arguments: Arguments) -> int:
        affinity, entry, context = arguments
        target = self._find(affinity)
        if target is None:
            return INVALID_PARAMETERS
        if target.is_on:
            return ALREADY_ON
        target.cpu.idle(max(cpu.core.cycles - target.core.cycles, 0))
        target.start(entry, context)
        return SUCCESS

    def _turn_off(self, cpu: BoardCpu, arguments: Arguments) -> int:
        cpu.is_on = False
        return SUCCESS

    def _affinity_info(self, cpu: BoardCpu, arguments: Arguments) -> int:
        target = self._find(arguments[0])
        if target is None:
            return INVALID_PARAMETERS
        return ON if target.is_on else OFF

    def _system_off(self, cpu: BoardCpu, arguments: Arguments) -> int:
        self._power_off()
        return SUCCESS

    def _system_reset(self, cpu: BoardCpu, arguments: Arguments) -> int:
        self._reset()
        return SUCCESS

    def _features(self, cpu: BoardCpu, arguments: Arguments) -> int:
        return NOT_SUPPORTED if self._answer(arguments[0] & 0xFFFF_FFFF) is None else SUCCESS

    def _architecture_features(self, cpu: BoardCpu, arguments: Arguments) -> int:
        function = arguments[0] & 0xFFFF_FFFF
        return NOT_NEEDED if function in WORKAROUNDS else self._features(cpu, arguments)
