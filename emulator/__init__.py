"""The machine: cores, memory, and enough Linux to run real programs.

The native core links the library that the unicorn wheel ships. It lies in that package's folder, where no loader looks,
so it is loaded here by path, first.
"""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path


def _load_library(package: str, file_name: str) -> None:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"the Python package {package} is not installed: pip install {package}")
    path = Path(spec.origin).parent / "lib" / file_name
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path}: the {package} package should have brought this library: {error}") from error


_load_library("unicorn", "libunicorn.so.2")
