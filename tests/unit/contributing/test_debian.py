"""Packages of another Debian release than the host's, for the tests."""

import platform
import subprocess

import debian
import require
from end_to_end.command import perfemu


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


def test_a_program_of_trixie_finds_its_loader() -> None:
    tree = require.debian_tree("arm64", "hostname", release=debian.TRIXIE)
    linked = tree / "lib/ld-linux-aarch64.so.1"
    assert linked.is_file(), "packages of trixie have it in /usr/lib alone"
    shown = perfemu("run", "--sysroot", tree, "hostname", "--version")
    assert (shown.returncode, shown.stdout[:8]) == (0, b"hostname")
