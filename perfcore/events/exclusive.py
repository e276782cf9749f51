"""ExclusivePmus: units that cannot serve two masters (PERF_PMU_CAP_EXCLUSIVE), and who has them."""

from __future__ import annotations

from emulator.linux.errors import EBUSY, LinuxError
from perfcore.events.context import PerfEventContext
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver


class ExclusivePmus:
    """Each has events of tasks or of CPUs, not both, and of each task or CPU one."""

    def __init__(self) -> None:
        self._of_tasks: dict[PmuDriver[PerfEvent], int] = {}  # events; below 0: of CPUs

    def take(self, event: PerfEvent) -> None:
        """exclusive_event_init(): EBUSY."""
        driver, mine = event.driver, 1 if event.of_task else -1
        if driver.aux is None or not driver.aux.exclusive:
            return
        events = self._of_tasks.get(driver, 0)
        if events * mine < 0:
            raise LinuxError(EBUSY, f"{driver.name} has events of {'CPUs' if event.of_task else 'tasks'} already")
        self._of_tasks[driver] = events + mine

        def give_back(event: PerfEvent) -> None:
            self._of_tasks[driver] -= mine

        event.when_destroyed.append(give_back)


def check_alone(event: PerfEvent, context: PerfEventContext) -> None:
    """exclusive_event_installable(): EBUSY."""
    unit = event.driver.aux
    if unit is None or not unit.exclusive:
        return
    for other in context.events:
        if other.driver is event.driver and (other.cpu == event.cpu or -1 in (other.cpu, event.cpu)):
            raise LinuxError(EBUSY, f"{event.driver.name} has an event of this task or CPU already")
