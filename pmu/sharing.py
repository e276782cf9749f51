"""SharedPmu: one PMU that a host and its guests share, as Linux's KVM has it, by the PMU's own registers.

While the host runs, all counters are its own. A guest has the first ones, and what there is one of (Arm's cycle
counter, Intel's fixed counters): on entry the host's values of those are saved and the guest's restored, on exit the
reverse. The host's other counters stay where they are. `set_pmu_events` says of each where it counts: in the host (that
is how all are at first), in guests (``exclude_host``), or in both.

A guest has registers of its own beyond the PMU's, where hardware or a hypervisor gives it some: see its vendor's class.
An overflow that asks for an interrupt belongs to whose counter it is. It stays with that one: a guest's is pending for
it, on the PMU or among its saved registers, and the host's is, also while a guest runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pmu.device import Pmu
from pmu.register import Register

_ALL = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Kept:
    """A register of a context, or the bits of one, and how software saves and restores it."""

    register: type[Register]
    index: int = 0
    mask: int = _ALL  # other bits are not the context's, and stay
    write: type[Register] | None = None  # by which it is written, if not by itself; with `clear`: ones set bits
    clear: type[Register] | None = None  # ... ones clear bits
    enables: bool = False  # zeros stop counters: they are written when it has been saved

    def save(self, pmu: Pmu) -> int:
        return pmu.read(self.register, self.index) & self.mask

    def restore(self, pmu: Pmu, value: int) -> None:
        into = self.write or self.register
        if self.clear is not None:
            pmu.write(self.clear, self.mask & ~value, self.index)
            pmu.write(into, value, self.index)
        elif self.mask == _ALL:
            pmu.write(into, value, self.index)
        else:
            pmu.write(into, pmu.read(self.register, self.index) & ~self.mask | value, self.index)


Context = Mapping[Kept, int]
"""Saved registers: their bits, in place."""


class GuestPmu(ABC):
    """A guest's PMU. It reaches registers while it runs; ValueError otherwise: that is a bug in the hypervisor."""

    shared: SharedPmu

    def __init__(self, shared: SharedPmu) -> None:
        self.shared = shared
        self.context = shared.reset_context()  # while it does not run

    @property
    def runs(self) -> bool:
        return self.shared.running is self

    @property
    def counters(self) -> int:
        """Event counters that are announced to it."""
        return self.shared.guest_counters

    def interrupt_asserted(self) -> bool:
        """Whether its overflow interrupt is pending, running or not. On entry it is delivered."""
        return self.shared.asks(self) != 0

    @abstractmethod
    def read(self, register: type[Register], index: int = 0) -> int:
        """As its kernel does."""

    @abstractmethod
    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        """As its kernel does."""

    def _check_running(self) -> None:
        if not self.runs:
            raise ValueError("this guest does not run: enter it before it accesses the PMU")


class SharedPmu(ABC):
    """`device`, whose first `guest_counters` event counters guests have."""

    def __init__(self, device: Pmu, guest_counters: int, kept: Sequence[Kept], guest_mask: int, host_mask: int) -> None:
        """`kept`: a context's registers in the order in which they are restored. Masks as `set_pmu_events` has them."""
        if not 1 <= guest_counters <= device.counters:
            raise ValueError(
                f"{device.model.name}: {guest_counters} event counters for guests; there can be 1 to {device.counters}"
            )
        self._pmu = device
        self.guest_counters = guest_counters
        self.running: GuestPmu | None = None
        self.events_host = host_mask  # counters of the host alone that count while it runs, and while a guest does
        self.events_guest = 0
        self._kept = kept
        self._guest_mask = guest_mask
        self._host_mask = host_mask
        self._host: Context = {}  # while a guest runs
        self._host_enables = 0

    # what the host counts, and where

    def set_pmu_events(self, counters: int, *, exclude_host: bool = False, exclude_guest: bool = False) -> None:
        """The host has set up and enabled the counters of a mask, in the numbering of the PMU's own masks. From now on
        those count where they are not excluded; one that is not to count in the host is stopped here.

        ValueError: a guest has one of them, there is none, it is not enabled, or it is excluded everywhere.
        """
        self._check_host_runs()
        if others := counters & self._guest_mask:
            raise ValueError(f"counters {others:#x} are a guest's while it runs: the host keeps {self._host_mask:#x}")
        if absent := counters & ~self._host_mask:
            raise ValueError(f"there are no counters {absent:#x}: the host keeps {self._host_mask:#x}")
        if exclude_host and exclude_guest:
            raise ValueError("with exclude_host and exclude_guest a counter counts nowhere")
        enabled = self._enabled()
        if stopped := counters & ~(enabled | self.deferred):
            raise ValueError(f"counters {stopped:#x} are not enabled: set them up before it is said where they count")
        self._enable(enabled & ~counters if exclude_host else enabled | counters)
        self.events_host = self.events_host & ~counters if exclude_host else self.events_host | counters
        self.events_guest = self.events_guest & ~counters if exclude_guest else self.events_guest | counters

    def clr_pmu_events(self, counters: int) -> None:
        """They are as at first: the host's, and stopped in guests. What was stopped in the host remains so."""
        self._check_host_runs()
        self.events_host |= counters & self._host_mask
        self.events_guest &= ~counters

    @abstractmethod
    def guest(self) -> GuestPmu:
        """A new one, as after a reset."""

    @property
    def deferred(self) -> int:
        """Counters of the host's that wait for a guest."""
        return self.events_guest & ~self.events_host

    @abstractmethod
    def _enabled(self) -> int:
        """Mask of the counters of the host alone that its registers enable."""

    @abstractmethod
    def _enable(self, counters: int) -> None:
        """Enable these of them, and no others."""

    # entry and exit

    def enter(self, guest: GuestPmu) -> None:
        """The guest runs from now on. ValueError if another does, or it is not of this PMU."""
        self._check_host_runs()
        if guest.shared is not self:
            raise ValueError("this guest has another PMU")
        self._partition()
        self.save_host_pmu()
        self._host_enables = self._enabled()
        wanted = self._host_enables & self.events_guest | self.deferred if self._host_counts() else 0
        self._enable(wanted)
        self.restore_guest_pmu(guest)  # the last, so that the guest counts nothing of this
        self.running = guest

    def exit(self) -> None:
        """The host runs from now on. ValueError if it does already."""
        guest = self.running
        if guest is None:
            raise ValueError("no guest runs")
        self.save_guest_pmu(guest)
        self._enable(self._enabled() & self._host_enables)
        self.restore_host_pmu()
        self._enable(self._host_enables)
        self.running = None
        self._unite()

    def save_host_pmu(self) -> None:
        self._host = self._save()

    def restore_host_pmu(self) -> None:
        self._restore(self._host)

    def save_guest_pmu(self, guest: GuestPmu) -> None:
        guest.context = self._save()

    def restore_guest_pmu(self, guest: GuestPmu) -> None:
        self._restore(guest.context)

    def _save(self) -> Context:
        """Stops what it saves, enables first: the reverse of the order of restoring."""
        context = {}
        for kept in reversed(self._kept):
            context[kept] = kept.save(self._pmu)
            if kept.enables:
                kept.restore(self._pmu, 0)
        return context

    def _restore(self, context: Context) -> None:
        for kept in self._kept:
            kept.restore(self._pmu, context[kept])

    def reset_context(self) -> Context:
        """A guest's, before its first entry."""
        return dict.fromkeys(self._kept, 0)

    def _partition(self) -> None:  # noqa: B027
        """Before the host's context is saved: its other counters become independent of what is saved."""

    def _unite(self) -> None:  # noqa: B027
        """After the host's context has been restored: as before `_partition`."""

    @abstractmethod
    def _host_counts(self) -> bool:
        """Whether the host's counters count at all, by what has been saved."""

    # interrupts

    def host_interrupt(self) -> bool:
        """Whether an overflow of the host's asks for an interrupt. While a guest runs, that ends by an exit for it."""
        asserted = self._pmu.interrupt_asserted()  # in any case: an overflow that freezes counters does so then
        return asserted if self.running is None else bool(self._host_asks())

    def asks(self, guest: GuestPmu) -> int:
        """Mask of the guest's counters that ask for an interrupt."""
        live = {kept: kept.save(self._pmu) for kept in self._kept} if guest.runs else guest.context
        return self._guest_asks(guest, live)

    @abstractmethod
    def _guest_asks(self, guest: GuestPmu, context: Context) -> int:
        """`asks`, by registers that are as in a context."""

    @abstractmethod
    def _host_asks(self) -> int:
        """Mask of the host's counters that ask for an interrupt while a guest runs, saved ones, too."""

    def _check_host_runs(self) -> None:
        if self.running is not None:
            raise ValueError("a guest runs: exit first")


def values_of(context: Context, register: type[Register]) -> dict[int, int]:
    """Index -> all saved bits of that register."""
    found: dict[int, int] = {}
    for kept, value in context.items():
        if kept.register is register:
            found[kept.index] = found.get(kept.index, 0) | value
    return found
