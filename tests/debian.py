"""Debian packages of any architecture for tests, unpacked into ${XDG_CACHE_HOME:-~/.cache}/perfemu-tests/debian."""

from __future__ import annotations

import os
from pathlib import Path

from perfemu import debian_packages
from perfemu.debian_packages import ARCHITECTURES, Unavailable, of_release

__all__ = ["ARCHITECTURES", "TRIXIE", "Unavailable", "cache_directory", "of_release", "unpacked"]

TRIXIE = "trixie"  # a release, for `unpacked`


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "perfemu-tests" / "debian"


def unpacked(architecture: str, *packages: str, release: str = "") -> Path:
    """The directory into which `packages` and their dependencies are unpacked; fetches them the first time."""
    return debian_packages.unpacked(cache_directory(), architecture, *packages, release=release)
