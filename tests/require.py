"""What a test needs from the host: skips with the Debian package's name, or fails where REQUIRE_ALL=1.

import require

def test_perf_reads_our_file():
    perf = require.command("perf", package="linux-perf")
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

import debian


def missing(what: str) -> NoReturn:
    """The test cannot run without `what`: skip, or fail where everything is required."""
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(f"REQUIRE_ALL=1, but {what}", pytrace=False)
    pytest.skip(what)


def package(name: str) -> None:
    """The Debian package `name` is installed."""
    if shutil.which("dpkg-query") is None:
        missing(f"package {name} is needed (no dpkg-query here)")
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", name], capture_output=True, text=True, check=False
    )
    if not query.stdout.startswith("ii"):
        missing(f"package {name} is not installed")


def command(name: str, package: str) -> str:
    """The path of command `name`, which Debian's `package` brings."""
    path = shutil.which(name)
    if path is None:
        missing(f"package {package} is not installed (command {name} not found)")
    return path


def debian_tree(architecture: str, *packages: str, release: str = "") -> Path:
    """A directory with `packages` of a Debian architecture and all that they depend on, unpacked; not installed.

    Of the host's release, or of another.
    """
    try:
        return debian.unpacked(architecture, *packages, release=release)
    except debian.Unavailable as error:
        of = f" of {release}" if release else ""
        missing(f"packages {', '.join(packages)} for {architecture}{of} cannot be fetched: {error}")


def of_tree(tree: Path, program: str, *libraries: str) -> tuple[str | Path, ...]:
    """The command that runs `program` of a tree of Debian's amd64 with the tree's own loader and libraries.

    `libraries` are directories with more of them, within the tree.
    """
    directories = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", *libraries)
    path = ":".join(str(tree / directory) for directory in directories)
    loader = (next(tree.glob("**/ld-linux-x86-64.so.2")), "--library-path", path, tree / program)
    return loader if os.uname().machine == "x86_64" else (command("qemu-x86_64", package="qemu-user"), *loader)


def debian_arm64(*packages: str) -> Path:
    return debian_tree("arm64", *packages)
