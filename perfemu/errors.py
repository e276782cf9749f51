"""PerfemuError: what a command tells its user in one line, and the exit status that goes with it."""

from __future__ import annotations

USAGE_STATUS = 129  # as perf's (and git's) commands answer a wrong option
FAILURE_STATUS = 1


class PerfemuError(Exception):
    """One line for the user, without the leading ``perfemu:``."""

    def __init__(self, message: str, exit_status: int = FAILURE_STATUS) -> None:
        super().__init__(message)
        self.message = message
        self.exit_status = exit_status


class UsageError(PerfemuError):
    """The command line is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE_STATUS)


class EventSyntaxError(UsageError):
    """The event string is wrong. `message` starts as perf's does: ``event syntax error``."""

    def __init__(self, message: str) -> None:
        super().__init__(f"event syntax error: {message}")
