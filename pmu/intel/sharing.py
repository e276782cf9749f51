"""SharedPerfmon: Intel's architectural perfmon, shared by a host and its guests.

A guest has the fixed counters besides, and its kernel's registers fault with #GP(0), a ValueError here, where it has
none.

Not offered to guests: MSR_PERF_METRICS. Version 4 is needed, since before it nothing sets overflow bits, and full-width
writes, since others cannot restore a count.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.intel.cpuid import Leaf, cpuid_of
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    FIXED_COUNTERS,
    FIXED_SHIFT,
    IA32_DEBUGCTL,
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_CAPABILITIES,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_INUSE,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_X2APIC_LVT_PMI,
    MSR_PERF_METRICS,
    RDPMC_METRICS,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMC_FXx_CTR,
    IA32_PMCx,
)
from pmu.register import Register
from pmu.sharing import Context, GuestPmu, Kept, values_of
from pmu.x86_sharing import GlobalRegisters, GuestX86Pmu, SharedX86Pmu

_FROZEN = IA32_PERF_GLOBAL_STATUS.CTR_FRZ.mask
_METRICS = IA32_PERF_GLOBAL_CTRL.EN_PERF_METRICS.mask  # the same bit as OVF_PERF_METRICS
_INTERRUPTS = IA32_PERFEVTSELx.INT.mask | IA32_PERFEVTSELx.EN.mask
_EVENT = IA32_PERFEVTSELx.EVENT.mask
_MASKED = IA32_X2APIC_LVT_PMI.MASK.mask
_FIXED = (IA32_FIXED_CTRx, IA32_PMC_FXx_CTR)
_GLOBAL = (IA32_PERF_GLOBAL_CTRL, IA32_PERF_GLOBAL_STATUS_RESET, IA32_PERF_GLOBAL_STATUS_SET)
_STREAMLINED = 4


class GuestPerfmon(GuestX86Pmu):
    """`read` and `write` are RDMSR and WRMSR at ring 0."""

    shared: SharedPerfmon

    def read(self, register: type[Register], index: int = 0) -> int:
        value = super().read(register, index)
        if register is IA32_PERF_GLOBAL_INUSE:
            return self._in_use()
        if register is IA32_PERF_CAPABILITIES:
            return value & ~IA32_PERF_CAPABILITIES.PERF_METRICS_AVAILABLE.mask
        return value

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        if register in _GLOBAL and (absent := value & register.declared & self.shared.hidden):
            raise ValueError(f"{register.name_of(index)}: bits {absent:#x} of {value:#x} are reserved in this guest")
        super().check(register, value, index)

    def registers(self) -> list[type[Register]]:
        return [register for register in super().registers() if register is not MSR_PERF_METRICS]

    def registers_of(self, register: type[Register]) -> int:
        return self.shared.device.registers_of(register) if register in _FIXED else super().registers_of(register)

    def _is_hosts(self, ecx: int) -> bool:
        return super()._is_hosts(ecx) or ecx == RDPMC_METRICS

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says of it where without a PMU it would be `plain`."""
        return cpuid_of(replace(self.shared.device.model, counters=self.counters), leaf, subleaf, plain)

    def take_interrupt(self) -> None:
        """What hardware does as it delivers the interrupt: mask the local APIC's entry, and freeze if told to."""
        self.local_vector |= _MASKED
        if self.freezes:
            self.set_frozen(True)

    def _in_use(self) -> int:
        device = self.shared.device
        selects = [device.read(IA32_PERFEVTSELx, n) for n in range(self.counters)]
        general = sum(1 << n for n, select in enumerate(selects) if select & _EVENT)
        in_all = IA32_PERF_GLOBAL_INUSE(device.read(IA32_PERF_GLOBAL_INUSE))
        fixed = device.read(IA32_FIXED_CTR_CTRL) & _FIXED_PMI
        interrupts = fixed or any(select & IA32_PERFEVTSELx.INT.mask for select in selects)
        return IA32_PERF_GLOBAL_INUSE.make(PMC=general, FIXED=in_all.FIXED, PMI=int(bool(interrupts)))


_FIXED_PMI = sum(IA32_FIXED_CTR_CTRL.fields[f"PMI{n}"].mask for n in range(FIXED_COUNTERS))


class SharedPerfmon(SharedX86Pmu):
    """Masks are IA32_PERF_GLOBAL_CTRL's."""

    global_registers = GlobalRegisters(
        control=IA32_PERF_GLOBAL_CTRL,
        status=IA32_PERF_GLOBAL_STATUS,
        clear=IA32_PERF_GLOBAL_STATUS_RESET,
        set=IA32_PERF_GLOBAL_STATUS_SET,
        frozen=_FROZEN,
        debug_control=IA32_DEBUGCTL,
        freezes=IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI.mask,
        local_vector=IA32_X2APIC_LVT_PMI,
    )
    device: Perfmon

    def __init__(self, device: Perfmon, guest_counters: int) -> None:
        name = device.model.name
        if device.model.version < _STREAMLINED:
            raise ValueError(f"{name}: version {device.model.version} cannot restore overflow bits; 4 and later can")
        if not device.can_write(IA32_A_PMCx):
            raise ValueError(f"{name}: without full-width writes (IA32_A_PMCx) no count can be restored")
        fixed = device.registers_of(IA32_FIXED_CTRx)
        general = (1 << guest_counters) - 1
        guest = general | (1 << fixed) - 1 << FIXED_SHIFT
        host = (1 << device.counters) - 1 & ~general
        metrics = _METRICS if device.can_write(MSR_PERF_METRICS) else 0
        super().__init__(device, guest_counters, _kept(guest_counters, fixed, guest, metrics), guest, host)
        self.hidden = host | metrics  # ... that it must not write

    def guest(self) -> GuestPerfmon:
        """A new one, whose counters are as after a reset: the general-purpose ones enabled."""
        return GuestPerfmon(self)

    def _guest_asks(self, guest: GuestPmu, context: Context) -> int:
        assert isinstance(guest, GuestPerfmon)
        return 0 if guest.local_vector & _MASKED else _overflowed(context) & _interrupting(context)

    def _host_asks(self) -> int:
        if self.device.read(IA32_X2APIC_LVT_PMI) & _MASKED:
            return 0
        selects = {
            Kept(IA32_PERFEVTSELx, n): self.device.read(IA32_PERFEVTSELx, n)
            for n in range(self.guest_counters, self.device.counters)
        }
        saved = self._host
        live = self.device.read(IA32_PERF_GLOBAL_STATUS) & self._host_mask & _interrupting(selects)
        return live | _overflowed(saved) & _interrupting(saved)


def _overflowed(context: Context) -> int:
    return values_of(context, IA32_PERF_GLOBAL_STATUS)[0]


def _interrupting(context: Context) -> int:
    """Mask of the counters that are enabled to interrupt."""
    selects = values_of(context, IA32_PERFEVTSELx)
    found = sum(1 << n for n, select in selects.items() if select & _INTERRUPTS == _INTERRUPTS)
    for control in values_of(context, IA32_FIXED_CTR_CTRL).values():
        for n in range(FIXED_COUNTERS):
            bits = control >> 4 * n
            found |= 1 << FIXED_SHIFT + n if bits & 0b1000 and bits & 0b0011 else 0
    return found


def _kept(counters: int, fixed: int, mask: int, metrics: int) -> list[Kept]:
    """Of a guest that has so many general-purpose and fixed counters, `mask` in all. It has no metrics: the host's
    stand still where they are."""
    return [
        *(Kept(IA32_PERFEVTSELx, counter) for counter in range(counters)),
        Kept(IA32_FIXED_CTR_CTRL),
        *(Kept(IA32_PMCx, counter, write=IA32_A_PMCx) for counter in range(counters)),
        *(Kept(IA32_FIXED_CTRx, counter) for counter in range(fixed)),
        Kept(
            IA32_PERF_GLOBAL_STATUS,
            mask=mask | metrics | _FROZEN,
            write=IA32_PERF_GLOBAL_STATUS_SET,
            clear=IA32_PERF_GLOBAL_STATUS_RESET,
        ),
        Kept(IA32_PERF_GLOBAL_CTRL, mask=mask | metrics, enables=True),
    ]
