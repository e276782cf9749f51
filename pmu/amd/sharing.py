"""SharedCoreCounters: AMD's core counters, PerfMonV2, shared by a host and its guests.

An interrupt that has not been delivered is no register's: it is kept with a context. Bits of the global registers that
a guest has not ignore writes. GuestOnly and HostOnly, by which hardware tells hosts and guests apart, are not needed
for that, and select nothing, since no guest has SVM.
"""

from __future__ import annotations

from pmu.amd.core_counters import CoreCounters, Leaf, answer
from pmu.amd.registers import (
    LVT_PMC,
    DebugCtl,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
    PerfCntrGlobalStatusClr,
    PerfCntrGlobalStatusSet,
)
from pmu.sharing import Context, GuestPmu, Kept
from pmu.x86_sharing import GlobalRegisters, GuestX86Pmu, SharedX86Pmu

_FROZEN = PerfCntrGlobalStatus.PMCF.mask
_MASKED = LVT_PMC.M.mask


class GuestCoreCounters(GuestX86Pmu):
    """`read` and `write` are RDMSR and WRMSR at privilege 0."""

    shared: SharedCoreCounters

    def __init__(self, shared: SharedCoreCounters) -> None:
        super().__init__(shared)
        self.pending = 0  # mask of the overflows whose interrupt has not been delivered, while it does not run

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says of it where without a PMU it would be `plain`."""
        return answer(self.shared.device.model, self.counters, leaf, plain)

    def take_interrupt(self) -> None:
        """It is delivered; of all overflows that there were."""
        self.shared.take_pending(self)


class SharedCoreCounters(SharedX86Pmu):
    """Masks are PerfCntrGlobalCtl's."""

    global_registers = GlobalRegisters(
        control=PerfCntrGlobalCtl,
        status=PerfCntrGlobalStatus,
        clear=PerfCntrGlobalStatusClr,
        set=PerfCntrGlobalStatusSet,
        frozen=_FROZEN,
        debug_control=DebugCtl,
        freezes=DebugCtl.FPCI.mask,
        local_vector=LVT_PMC,
    )
    device: CoreCounters

    def __init__(self, device: CoreCounters, guest_counters: int) -> None:
        guest, every = (1 << guest_counters) - 1, (1 << device.counters) - 1
        super().__init__(device, guest_counters, _kept(guest_counters), guest, every & ~guest)
        self._every = every
        self._host_pending = 0  # of the counters that a guest has, while one runs
        device.when_guests_overflow = self._freeze_guest

    def guest(self) -> GuestCoreCounters:
        """A new one, whose counters are as after a reset: enabled."""
        return GuestCoreCounters(self)

    def save_host_pmu(self) -> None:
        super().save_host_pmu()
        self._host_pending = self.device.take_pending(self.visible)
        self.device.local = self._host_mask

    def restore_host_pmu(self) -> None:
        super().restore_host_pmu()
        self.device.pend(self._host_pending)
        self.device.local = self._every

    def save_guest_pmu(self, guest: GuestPmu) -> None:
        assert isinstance(guest, GuestCoreCounters)
        pending = self.device.take_pending(self.visible)  # first: an overflow may freeze the guest
        super().save_guest_pmu(guest)
        guest.pending = pending

    def restore_guest_pmu(self, guest: GuestPmu) -> None:
        assert isinstance(guest, GuestCoreCounters)
        super().restore_guest_pmu(guest)
        self.device.pend(guest.pending)

    # interrupts

    def _freeze_guest(self) -> None:
        guest = self.running
        if isinstance(guest, GuestCoreCounters) and guest.freezes:
            guest.set_frozen(True)

    def take_pending(self, guest: GuestCoreCounters) -> int:
        """Which of its counters had an interrupt to deliver: they have none any more."""
        if guest.runs:
            return self.device.take_pending(self.visible)
        pending, guest.pending = guest.pending, 0
        return pending

    def asks(self, guest: GuestPmu) -> int:
        """While the guest's entry is masked, its interrupt is lost."""
        assert isinstance(guest, GuestCoreCounters)
        pending = self.device.pending & self.visible if guest.runs else guest.pending
        if guest.local_vector & _MASKED:
            self.take_pending(guest)
            return 0
        return pending

    def _guest_asks(self, guest: GuestPmu, context: Context) -> int:
        return self.asks(guest)

    def _host_asks(self) -> int:
        if self.device.read(LVT_PMC) & _MASKED:
            self._host_pending = 0
            self.device.take_pending(self._host_mask)
        return self.device.pending & self._host_mask | self._host_pending


def _kept(counters: int) -> list[Kept]:
    """Of a guest that has so many."""
    mask = (1 << counters) - 1
    return [
        *(Kept(PERF_CTLx, counter) for counter in range(counters)),
        *(Kept(PERF_CTRx, counter) for counter in range(counters)),
        Kept(
            PerfCntrGlobalStatus,
            mask=mask | _FROZEN,
            write=PerfCntrGlobalStatusSet,
            clear=PerfCntrGlobalStatusClr,
        ),
        Kept(PerfCntrGlobalCtl, mask=mask, enables=True),
    ]
