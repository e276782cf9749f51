"""BranchSource: what branch records ask of a core. `emulator._native.Core` is the real one."""

from __future__ import annotations

from typing import Protocol

from emulator._native import RetirementListener


class BranchSource(Protocol):
    """Who tells of branches as they retire; see ``emulator/_native.pyi``."""

    def listen(self, listener: RetirementListener) -> None: ...
    def stop_listening(self, listener: RetirementListener) -> None: ...
