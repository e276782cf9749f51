"""The guest's environment, and which file a program's name means."""

import os
from pathlib import Path

import pytest

from perfemu.environment import DEFAULT_ENVIRONMENT, guest_environment, search_path
from perfemu.errors import PerfemuError, UsageError
from perfemu.guest import Guest
from perfemu.locate import locate
from perfemu.namespace import Namespace
from perfemu.session import Session
from unit.linux_process.elf_builder import EM_AARCH64, elf

HOST = {"HOME": "/home/me", "SECRET": "1"}


def test_the_hosts_environment_stays_outside() -> None:
    assert guest_environment([], HOST) == DEFAULT_ENVIRONMENT


def test_variables_are_added_by_value_and_from_the_host() -> None:
    variables = dict(guest_environment(["A=b=c", "SECRET", "TERM="], HOST))
    assert variables == {**dict(DEFAULT_ENVIRONMENT), "A": "b=c", "SECRET": "1", "TERM": ""}


def test_inherited_environment_replaces_the_default() -> None:
    assert dict(guest_environment(["A=1"], HOST, inherit=True)) == {**HOST, "A": "1"}


@pytest.mark.parametrize(("setting", "message"), [("MISSING", "--env MISSING: not set"), ("=x", "wants NAME=VALUE")])
def test_wrong_settings_are_named(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        guest_environment([setting], HOST)


def test_search_path_is_the_guests() -> None:
    assert search_path([("PATH", "/a::/b")]) == ["/a", ".", "/b"]


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    return path


def test_a_name_is_looked_for_in_order_and_below_the_sysroot_first(tmp_path: Path) -> None:
    plain = executable(tmp_path / "bin" / "tool")
    search = [str(tmp_path / "empty"), str(tmp_path / "bin")]
    assert locate("tool", search).host_path == str(plain)
    inside = executable(tmp_path / "root" / str(tmp_path / "bin" / "tool").lstrip("/"))
    found = locate("tool", search, Namespace(str(tmp_path / "root")))
    assert (found.guest_path, found.host_path) == (str(plain), str(inside))


def test_a_sysroots_absolute_links_stay_inside(tmp_path: Path) -> None:
    real = executable(tmp_path / "usr" / "bin" / "real")
    (tmp_path / "bin").symlink_to("/usr/bin")
    (tmp_path / "usr" / "bin" / "alias").symlink_to("/etc/alternatives/alias")
    (tmp_path / "etc" / "alternatives").mkdir(parents=True)
    (tmp_path / "etc" / "alternatives" / "alias").symlink_to("../../bin/real")
    space = Namespace(str(tmp_path))
    assert space.below_sysroot("/bin/alias") == str(real)
    (tmp_path / "loop").symlink_to("/loop")
    assert space.below_sysroot("/loop") is None
    assert space.below_sysroot("/missing") is None


def test_a_scripts_interpreter_below_the_sysroot_tells_the_isa(tmp_path: Path) -> None:
    interpreter = tmp_path / "root" / "bin" / "sh"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_bytes(elf(machine=EM_AARCH64))
    script = executable(tmp_path / "script")
    script.write_text("#!/bin/sh\n")
    assert Session(Guest((str(script),), sysroot=tmp_path / "root")).isa == "aarch64"
    assert Namespace(str(tmp_path / "root")).on_host("/bin/sh") == str(interpreter)
    assert Namespace(str(tmp_path)).on_host("/bin/sh") == Namespace().on_host("/bin/sh") == "/bin/sh"


def test_what_cannot_run_has_the_shells_status(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("data")
    cases = [("nothing", 127, "not found in"), (f"{tmp_path}/no", 127, "no such file"), ("", 127, "empty")]
    cases += [
        (str(tmp_path), 126, "is a directory"),
        (str(plain), 126, "permission denied"),
        ("/dev/null", 126, "not a"),
    ]
    for name, status, message in cases:
        with pytest.raises(PerfemuError, match=message) as raised:
            locate(name, [str(tmp_path)])
        assert raised.value.exit_status == status, name


def test_a_file_that_cannot_run_does_not_hide_a_later_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "tool").write_text("data")
    later = executable(tmp_path / "b" / "tool")
    assert locate("tool", [str(tmp_path / "a"), str(tmp_path / "b")]).host_path == str(later)
    assert os.access(later, os.X_OK)
