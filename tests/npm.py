"""Packages of npm by name and version, unpacked into a cache; nothing of them is run, and they bring no others.

The cache is ${XDG_CACHE_HOME:-~/.cache}/perfemu-tests/npm; deleting it is harmless.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import tempfile
from pathlib import Path

import debian
import require


def package(name: str, version: str) -> Path:
    """The directory of a package. The test skips where there is no npm, or no network."""
    home = debian.cache_directory().parent / "npm"
    place = home / f"{name.replace('/', '-')}-{version}"
    if place.is_dir():  # appears whole, by a rename
        return place
    npm = require.command("npm", package="npm")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as directory:
        command = [npm, "pack", f"{name}@{version}", "--silent", "--pack-destination", directory]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, timeout=300)
        if done.returncode:
            require.missing(f"npm package {name} {version} cannot be fetched: {done.stderr.strip()}")
        shutil.unpack_archive(next(Path(directory).glob("*.tgz")), directory, filter="data")
        try:
            (Path(directory) / "package").rename(place)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process was first
                raise
    return place
