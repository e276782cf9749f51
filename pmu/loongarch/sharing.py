"""SharedMonitors: LoongArch's performance monitors, shared by a host and its guests.

A guest has the first monitors, as many as its CPUCFG6 announces, with MISC, which says who reads them. ECFG is the
guest's own (LoongArch's GCSR), and so is ESTAT, which shows the overflows of its monitors: bit 63 of a counter is all
that there is of one, so that it is saved and restored with the count.

A monitor is enabled by the privilege levels at which it counts (PLV0 to PLV3). GMOD, by which hardware tells guests
from the host, is not modelled: the levels of a monitor of the host's are cleared instead where it is not to count.
"""

from __future__ import annotations

from emulator.sysregs import UndefinedRegister
from pmu.loongarch.performance_monitors import PerformanceMonitors, PrivilegeLevel
from pmu.loongarch.registers import CPUCFG6, ECFG, ESTAT, MISC, MOST_ANNOUNCED, OVERFLOW, PERFCNTRn, PERFCTRLn
from pmu.register import Register
from pmu.sharing import Context, GuestPmu, Kept, SharedPmu, values_of

_LEVELS = PERFCTRLn.make(PLV0=1, PLV1=1, PLV2=1, PLV3=1)
_IE = PERFCTRLn.IE.mask


class GuestMonitors(GuestPmu):
    """`read` and `write` are level 0's; `read_at` and `write_at` as PerformanceMonitors's."""

    shared: SharedMonitors

    def __init__(self, shared: SharedMonitors) -> None:
        super().__init__(shared)
        self.ecfg = 0

    def read(self, register: type[Register], index: int = 0) -> int:
        return self.read_at(PrivilegeLevel.PLV0, register, index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        self.write_at(PrivilegeLevel.PLV0, register, value, index)

    def read_at(self, level: PrivilegeLevel, register: type[Register], index: int = 0) -> int:
        self._check(register, index)
        value = self.shared.device.read_at(level, register, index)  # or what it raises
        if register is ECFG:
            return self.ecfg
        if register is ESTAT:
            return ESTAT.make(PCOV=int(bool(self.shared.overflowed(self))))
        if register is CPUCFG6:
            return value & ~CPUCFG6.PMNUM.mask | CPUCFG6.make(PMNUM=min(self.counters, MOST_ANNOUNCED) - 1)
        return value

    def write_at(self, level: PrivilegeLevel, register: type[Register], value: int, index: int = 0) -> None:
        self._check(register, index)
        if register is ECFG and level is PrivilegeLevel.PLV0:
            self.ecfg = ECFG.write(self.ecfg, value)
        else:
            self.shared.device.write_at(level, register, value, index)

    def _check(self, register: type[Register], index: int) -> None:
        self._check_running()
        if register.bank is not None and not 0 <= index < self.counters:
            raise UndefinedRegister(f"{register.name_of(index)}: this guest has {self.counters} monitors")


class SharedMonitors(SharedPmu):
    """Masks have a bit a monitor."""

    def __init__(self, device: PerformanceMonitors, guest_counters: int) -> None:
        guest = (1 << guest_counters) - 1
        kept = [
            Kept(MISC),
            *(Kept(PERFCNTRn, monitor) for monitor in range(guest_counters)),
            *(Kept(PERFCTRLn, monitor, enables=True) for monitor in range(guest_counters)),
        ]
        super().__init__(device, guest_counters, kept, guest, (1 << device.counters) - 1 & ~guest)
        self.device = device
        self._levels = [0] * device.counters  # at which a monitor counts that is stopped here

    def guest(self) -> GuestMonitors:
        """A new one, whose monitors are as after a reset."""
        return GuestMonitors(self)

    def _monitors(self) -> range:
        """The host's own."""
        return range(self.guest_counters, self.device.counters)

    def _host_counts(self) -> bool:
        return True  # nothing stops all

    def _enabled(self) -> int:
        return sum(1 << n for n in self._monitors() if self.device.read(PERFCTRLn, n) & _LEVELS)

    def _enable(self, counters: int) -> None:
        for monitor in self._monitors():
            control = self.device.read(PERFCTRLn, monitor)
            if levels := control & _LEVELS:
                self._levels[monitor] = levels
            levels = self._levels[monitor] if counters >> monitor & 1 else 0
            self.device.write(PERFCTRLn, control & ~_LEVELS | levels, monitor)

    def overflowed(self, guest: GuestMonitors) -> int:
        """Mask of the guest's monitors that have IE and bit 63 set, whatever its ECFG says."""
        if not guest.runs:
            return _asking(guest.context)
        return _asking({kept: kept.save(self.device) for kept in self._kept})

    def _guest_asks(self, guest: GuestPmu, context: Context) -> int:
        assert isinstance(guest, GuestMonitors)
        return _asking(context) if ECFG(guest.ecfg).PCOV else 0

    def _host_asks(self) -> int:
        if not ECFG(self.device.read(ECFG)).PCOV:
            return 0
        live = {Kept(register, n): self.device.read(register, n)
                for register in (PERFCTRLn, PERFCNTRn) for n in self._monitors()}  # fmt: skip
        return _asking(live) | _asking(self._host)


def _asking(context: Context) -> int:
    counts = values_of(context, PERFCNTRn)
    controls = values_of(context, PERFCTRLn)
    return sum(1 << n for n, control in controls.items() if control & _IE and counts[n] & OVERFLOW)
