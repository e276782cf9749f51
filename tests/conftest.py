"""Set-up for all tests. Helpers beside this file are imported by name: `import require`, `import debian`."""

import signal


def pytest_configure() -> None:
    """What nohup, or a shell that runs this in the background, has had ignored would be ignored in every program."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
