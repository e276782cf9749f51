"""Packages of another Debian release than the host's, for the tests."""

import platform
import subprocess

import debian
import require


def test_sources_of_the_host_name_another_release() -> None:
    stanza = "Types: deb\nURIs: http://mirror/bookworm\nSuites: bookworm bookworm-security bookworms\nComponents: main"
    assert debian.of_release(stanza, "bookworm", "trixie") == (
        "Types: deb\nURIs: http://mirror/bookworm\nSuites: trixie trixie-security bookworms\nComponents: main"
    )
    line = "deb [signed-by=/key] http://mirror/debian bookworm-updates main"
    assert debian.of_release(line, "bookworm", "trixie") == line.replace("bookworm", "trixie")


def test_qemu_of_trixie_runs_beside_that_of_the_host() -> None:
    tree = require.debian_tree(debian.ARCHITECTURES[platform.machine()], "qemu-user", release=debian.TRIXIE)
    shown = subprocess.run([tree / "usr/bin/qemu-aarch64", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("qemu-aarch64 version 10.")
