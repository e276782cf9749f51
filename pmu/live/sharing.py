"""share_pmu: a PMU without a machine, shared by a host and its guests."""

from __future__ import annotations

from pmu.arm.privileged import PrivilegedPmuV3
from pmu.arm.sharing import SharedPmuV3
from pmu.intel.perfmon import Perfmon
from pmu.intel.sharing import SharedPerfmon
from pmu.live.live_pmu import LivePmu
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.sharing import SharedMonitors


def share_pmu(pmu: LivePmu, guest_counters: int) -> SharedPmuV3 | SharedPerfmon | SharedMonitors:
    """Guests get the first `guest_counters` event counters while they run, and what there is one of.

    ValueError: the PMU has not so many, or is one that cannot be shared here.
    """
    device = pmu.device
    if isinstance(device, PrivilegedPmuV3):
        return SharedPmuV3(device, guest_counters)
    if isinstance(device, Perfmon):
        return SharedPerfmon(device, guest_counters)
    if isinstance(device, PerformanceMonitors):
        return SharedMonitors(device, guest_counters)
    raise ValueError(f"{pmu.model_name}: no sharing with guests is modelled for AMD's counters")
