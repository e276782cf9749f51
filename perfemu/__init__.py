"""The perf tool: command line and Python API.

    import perfemu

    result = perfemu.stat(["./prog", "argument"], ["instructions", "branches"])
    assert result["instructions"] == 2004
    result = perfemu.stat(perfemu.Guest(["./prog", "argument"], core="zen5", cpus=2))

The names of `perfemu.api` are here too, and the machine is imported only when one of them is used: the command line is
started often. `__init__.pyi` tells type checkers the same.
"""

import sys

_API = "perfemu.api"


def __getattr__(name: str) -> object:
    if not name.startswith("_"):
        __import__(_API)  # and not importlib's: a file of that name may lie where `python -m perfemu` was started
        api = sys.modules[_API]
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'perfemu' has no attribute '{name}'")
