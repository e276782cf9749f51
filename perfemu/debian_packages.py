"""Debian packages of any architecture, unpacked into a directory: nothing is installed, the host's dpkg is not touched.

apt runs with a state and a cache directory of our own, an empty list of installed packages, and the Debian entries of
the host's own sources; for another release than the host's with its name in the place of the host's. What it would
install is downloaded and unpacked with dpkg-deb, without maintainer scripts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}  # by ISA
MERGED = ("bin", "sbin", "lib", "lib64")  # since trixie all packages' files are in /usr
LISTS_VALID_SECONDS = 24 * 3600
FETCH_TIMEOUT_SECONDS = 600
TOOLS = ("apt-get", "dpkg-deb")


class Unavailable(Exception):
    """The packages cannot be had here; says why."""


def unpacked(cache: Path, architecture: str, *packages: str, release: str = "") -> Path:
    """The directory below `cache` with `packages` and all that they depend on; fetches them the first time.

    They are those of the host's Debian release, or of the one that is named. Deleting `cache` is harmless.
    """
    home, root = _places(cache, architecture, packages, release)
    if root.is_dir():  # appears whole, by a rename
        return root
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} not found")
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / "lock"):
        if not root.is_dir():
            _unpack(_fetch(home, architecture, release, sorted(set(packages))), root, merged=bool(release))
    return root


def there(cache: Path, architecture: str, *packages: str, release: str = "") -> Path | None:
    """The same directory if it has been made before."""
    root = _places(cache, architecture, packages, release)[1]
    return root if root.is_dir() else None


def _places(cache: Path, architecture: str, packages: Sequence[str], release: str) -> tuple[Path, Path]:
    key = hashlib.sha256(" ".join(sorted(set(packages))).encode()).hexdigest()[:16]
    home = cache / (f"{architecture}-{release}" if release else architecture)
    return home, home / "trees" / key


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(archives: list[Path], root: Path, *, merged: bool) -> None:
    """`merged`: /bin, /lib and so on are links into /usr, as base-files has them, which hardly anything depends on."""
    unfinished = root.with_name(root.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for archive in archives:
        _run(["dpkg-deb", "-x", str(archive), str(unfinished)])
    for name in MERGED if merged else ():
        if (unfinished / "usr" / name).is_dir() and not (unfinished / name).exists():
            (unfinished / name).symlink_to(f"usr/{name}")
    unfinished.rename(root)


def _fetch(home: Path, architecture: str, release: str, packages: list[str]) -> list[Path]:
    """Download `packages` and what they depend on, but what is there; the archives."""
    apt = _apt_get(home, architecture, release)
    lists = home / "lists"
    updated = home / "updated"
    if not updated.exists() or time.time() - updated.stat().st_mtime > LISTS_VALID_SECONDS:
        lists.mkdir(exist_ok=True)
        _run([*apt, "update"])
        updated.touch()
    install = [*apt, "--yes", "--no-install-recommends", "install"]
    nothing_yet = home / "nothing"  # apt does not list what it has
    (nothing_yet / "partial").mkdir(parents=True, exist_ok=True)
    planned = _run([*install, "-o", f"Dir::Cache::archives={nothing_yet}", "--print-uris", *packages])
    sizes = re.findall(r"^'[^']*' (\S+\.deb) (\d+)", planned, re.MULTILINE)
    if not sizes:
        raise Unavailable(f"apt-get names no files: {planned.strip()}")
    archives = {home / "archives" / name: int(size) for name, size in sizes}
    if any(not path.exists() or path.stat().st_size != size for path, size in archives.items()):
        _run([*install, "--download-only", *packages])
    return list(archives)


def _apt_get(home: Path, architecture: str, release: str) -> list[str]:
    """apt-get with nothing of the host's but its Debian sources and keys."""
    (home / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    _write(home / "status", "")
    _write(home / "preferences", "")
    options = {
        "Dir::State": home,
        "Dir::State::lists": home / "lists",
        "Dir::State::status": home / "status",
        "Dir::State::extended_states": home / "extended_states",
        "Dir::Cache": home,
        "Dir::Cache::archives": home / "archives",
        "Dir::Cache::pkgcache": home / "pkgcache.bin",  # which images of containers turn off
        "Dir::Cache::srcpkgcache": home / "srcpkgcache.bin",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": _debian_sources(home, release),
        "Dir::Etc::preferences": home / "preferences",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "APT::Install-Suggests": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Debug::NoLocking": "true",
    }
    command = ["apt-get", "--quiet=2"]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    return command


def _debian_sources(home: Path, release: str) -> Path:
    """Write the host's entries for its own Debian release, without those that it has from elsewhere."""
    codename = _codename()
    directory = home / "sources.d"
    directory.mkdir(exist_ok=True)
    lines: list[str] = []
    stanzas: list[str] = []
    apt = Path("/etc/apt")
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".list":
            lines += [line for line in text.splitlines() if _line_suite(line).startswith(codename)]
        elif path.suffix == ".sources":
            stanzas += [stanza for stanza in re.split(r"\n\s*\n", text) if _stanza_suites(stanza, codename)]
    if not lines and not stanzas:
        raise Unavailable(f"no source for {codename} in /etc/apt")
    if release:
        lines = [of_release(line, codename, release) for line in lines]
        stanzas = [of_release(stanza, codename, release) for stanza in stanzas]
    _write(directory / "host.list", "\n".join(lines) + "\n")
    _write(directory / "host.sources", "\n\n".join(stanzas) + "\n")
    return directory


def _write(path: Path, text: str) -> None:
    """Unless it is there: apt's own cache counts for nothing beside a file that is newer."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def of_release(entry: str, codename: str, release: str) -> str:
    """A line or stanza of apt's sources with the suites of `release` in the place of those of `codename`."""

    def renamed(suites: re.Match[str]) -> str:
        return re.sub(rf"(?<!\S){codename}(?![^-/\s])", release, suites.group())

    return re.sub(r"^Suites:.*$|^deb\s+(\[[^]]*\]\s+)?\S+\s+\S+", renamed, entry, flags=re.MULTILINE)


def _codename() -> str:
    release = Path("/etc/os-release")
    fields = dict(line.split("=", 1) for line in release.read_text(encoding="utf-8").splitlines() if "=" in line)
    if fields.get("ID") != "debian" or "VERSION_CODENAME" not in fields:
        raise Unavailable("this is not a Debian release")
    return fields["VERSION_CODENAME"].strip('"')


def _line_suite(line: str) -> str:
    """The suite of `deb [options] URI suite components`; empty for other lines."""
    match = re.match(r"deb\s+(?:\[[^]]*\]\s+)?\S+\s+(\S+)", line)
    return match.group(1) if match else ""


def _stanza_suites(stanza: str, codename: str) -> bool:
    match = re.search(r"^Suites:\s*(.*)$", stanza, re.MULTILINE)
    return match is not None and any(suite.startswith(codename) for suite in match.group(1).split())


def _run(command: list[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=FETCH_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} did not finish in {FETCH_TIMEOUT_SECONDS} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"{command[0]}: {last}")
    return done.stdout
