"""RegisteredDevices: /sys/bus/event_source/devices, as far as PMUs come and go at run time. As pmu_dev_alloc()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.pmus import RegisteredPmu
from perfcore.events.sysctl import mux_interval_file
from perfcore.events.sysfs import DEVICES


class FileTree(Protocol):
    def register_text(
        self, path: str, text: str | Callable[[], str | bytes], store: Callable[[bytes], None] | None = None
    ) -> None: ...
    def unregister(self, path: str) -> None: ...


class RegisteredDevices:
    """Their directories in a guest's tree."""

    def __init__(self, file_tree: FileTree) -> None:
        self._file_tree = file_tree

    def add(self, driver: RegisteredPmu) -> None:
        device = f"{DEVICES}/{driver.name}"
        self._file_tree.register_text(f"{device}/type", f"{driver.type}\n")
        self._file_tree.register_text(f"{device}/uevent", "")
        self._file_tree.register_text(*mux_interval_file(driver))
        for name, text in driver.sysfs_attributes().items():
            self._file_tree.register_text(f"{device}/{name}", f"{text}\n")

    def remove(self, driver: PmuDriver[PerfEvent]) -> None:
        self._file_tree.unregister(f"{DEVICES}/{driver.name}")
