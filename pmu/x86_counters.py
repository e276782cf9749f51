"""X86Counters: what Intel's and AMD's counters have in common, whatever their registers are called."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from emulator.cpu import Level
from emulator.sysregs import SystemRegisters, UndefinedRegister
from pmu.branch_records import BranchUnit, Leaf
from pmu.counter_bank import CounterBank
from pmu.model import PmuModel
from pmu.register import Register
from pmu.shown_counters import ShownCounters
from pmu.x86_msrs import claim_msrs


def levels_of(*, user: bool, kernel: bool) -> int:
    """As ``CounterBank.filter`` takes it."""
    return user << Level.USER | kernel << Level.KERNEL


BTS_UNAVAILABLE, PEBS_UNAVAILABLE = 1 << 11, 1 << 12  # IA32_MISC_ENABLE

Meaning = tuple[int, int, bool]
"""Of a selecting register's value: the probes that are counted, at which levels, whether an overflow interrupts."""

_MOST_MEANINGS = 256  # a kernel programs the same few again and again


def remember(meanings: dict[int, Meaning], value: int, meaning: Meaning) -> None:
    """What a selecting register with that value means, as long as there are not too many."""
    if len(meanings) >= _MOST_MEANINGS:
        meanings.clear()
    meanings[value] = meaning


class X86Counters(ShownCounters):
    """`in_all` counters of a bank, of which `counters` are general-purpose: each selects what it counts, where, and
    whether its overflow interrupts; a global control and a freeze say which of them count."""

    branches: BranchUnit | None  # the core's branch records, if it has any
    local_vector: ClassVar[type[Register]]  # the local APIC's entry, which a guest's own kernel writes there
    masks_its_vector: ClassVar[bool]  # ... when the interrupt is delivered

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int, in_all: int) -> None:
        super().__init__()
        self.model = model
        self.counters = counters
        self.user_rdpmc = False  # CR4.PCE: RDPMC works in user mode
        self.tell: Callable[[str], None] = lambda text: None  # of what a guest asks for and does not get
        self._bank = bank
        self._probes = [0] * in_all  # what a counter is connected to, once the global control lets it
        self._levels = [levels_of(user=True, kernel=True)] * in_all  # by which it is filtered
        self._interrupting = 0  # bank mask of the counters that interrupt on overflow
        self._active = 0  # bank mask of the counters that are connected
        self._meanings: dict[int, Meaning] = {}  # by the value of a selecting register
        self._frozen = False

    # the interrupt

    @abstractmethod
    def interrupt_asserted(self) -> bool: ...

    @abstractmethod
    def take_interrupt(self) -> None:
        """What hardware does as it delivers it."""

    # connecting

    @abstractmethod
    def _enabled(self) -> int:
        """Bank mask of the counters that the global control lets count."""

    def _update_active(self) -> None:
        """Start and stop the counters that the global control or a freeze changes."""
        active = 0 if self._frozen else self._enabled()
        changed = active ^ self._active
        self._active = active
        connect = self._bank.connect
        probes = self._probes
        while changed:
            bit = changed & -changed
            changed ^= bit
            number = bit.bit_length() - 1
            if probes[number]:
                connect(number, probes[number] if active & bit else 0)

    def _select(self, number: int, probes: int, levels: int, interrupts: bool) -> None:
        """Set what a counter of the bank counts while the global control lets it, where, and whether it interrupts."""
        bit = 1 << number
        if levels != self._levels[number]:
            self._levels[number] = levels
            self._bank.filter(number, levels)
        if probes != self._probes[number]:
            self._probes[number] = probes
            if self._active & bit:
                self._bank.connect(number, probes)
        interrupting = self._interrupting | bit if interrupts else self._interrupting & ~bit
        if interrupting != self._interrupting:
            self._note_overflows()
            self._interrupting = interrupting
            self._bank.arm(interrupting)

    def _note_overflows(self) -> None:
        """Before it changes which of them interrupt: take over those that there have been, if that matters."""

    def _set_frozen(self, frozen: bool) -> None:
        self._frozen = frozen
        self._update_active()

    def _tell_of_unknown(self, select: str, value: int, code: int) -> None:
        """What is selected and not counted, by `select`'s value. Codes that are in no list count 0 on hardware, too,
        and are no news."""
        what = self.model.cannot_know(code)
        if what is not None:
            self.tell(f"{select} is {value:#x}: {what} cannot be counted here, and reads as 0")

    # user mode

    def grant_user_access(self, system_registers: SystemRegisters) -> None:
        """RDPMC, while `user_rdpmc`; the MSRs themselves are the kernel's."""
        system_registers.claim_rdpmc(self.rdpmc)

    def rdpmc(self, ecx: int, *, in_user_mode: bool = True) -> int:
        """RDPMC: EDX:EAX. Raises UndefinedRegister where #GP(0) is due."""
        if in_user_mode and not self.user_rdpmc:
            raise UndefinedRegister(f"RDPMC with ECX={ecx:#x} while CR4.PCE is 0")
        return self._bank.read(ecx) if ecx < self.counters else self._read_by_rdpmc(ecx)

    @abstractmethod
    def _read_by_rdpmc(self, ecx: int) -> int:
        """What is not a general-purpose counter. Raises UndefinedRegister."""

    # a guest's own kernel

    @property
    def unavailable(self) -> int:
        """Bits of IA32_MISC_ENABLE: BTS and PEBS are."""
        return BTS_UNAVAILABLE | PEBS_UNAVAILABLE

    def with_branches(self, leaf: int, subleaf: int, said: Leaf) -> Leaf:
        """CPUID, which without branch records would be that."""
        return said if self.branches is None else self.branches.cpuid(leaf, subleaf, said)

    def pause(self) -> None:
        """Nothing of it listens to the core until `resume`: it is about to be saved, or restored."""
        if self.branches is not None:
            self.branches.pause()

    def resume(self) -> None:
        if self.branches is not None:
            self.branches.resume()

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """ValueError if writing that value faults, for more than the register's declaration."""

    @abstractmethod
    def registers_of(self, register: type[Register]) -> int:
        """How many there are, each with a number of its own."""

    def claim(self, system_registers: SystemRegisters) -> dict[int, str]:
        """All of its MSRs but the local APIC's, for a CPU whose kernel is executed, and RDPMC, where that has been
        allowed: the names by number."""
        self.user_rdpmc = True
        self.grant_user_access(system_registers)
        return claim_msrs(self, system_registers)
