"""share_pmu: a PMU without a machine, shared by a host and its guests."""

from __future__ import annotations

from pmu.amd.core_counters import CoreCounters
from pmu.amd.sharing import SharedCoreCounters
from pmu.arm.privileged import PrivilegedPmuV3
from pmu.arm.sharing import SharedPmuV3
from pmu.intel.perfmon import Perfmon
from pmu.intel.sharing import SharedPerfmon
from pmu.live.live_pmu import LivePmu
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.sharing import SharedMonitors

AnyShared = SharedPmuV3 | SharedPerfmon | SharedCoreCounters | SharedMonitors


def share_pmu(pmu: LivePmu, guest_counters: int) -> AnyShared:
    """Guests get the first `guest_counters` event counters while they run, and what there is one of.

    ValueError: the PMU has not so many, or cannot restore what is to be saved of it.
    """
    device = pmu.device
    if isinstance(device, PrivilegedPmuV3):
        return SharedPmuV3(device, guest_counters)
    if isinstance(device, Perfmon):
        return SharedPerfmon(device, guest_counters)
    if isinstance(device, CoreCounters):
        return SharedCoreCounters(device, guest_counters)
    assert isinstance(device, PerformanceMonitors), "there are no other PMUs"
    return SharedMonitors(device, guest_counters)
