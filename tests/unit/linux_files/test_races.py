"""Somebody else changes the writable directory at any moment: a directory becomes a link that leads out, and back.

The other one is a process that exchanges two names as fast as the host can. Whatever the guest does below, nothing
outside may change or be read, and what nobody touches must be there in the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from calls import read_of
from emulator.linux.errors import LinuxError
from emulator.linux.fs.beneath import best_way, by_components, by_openat2
from emulator.linux.fs.binds import Bind
from emulator.linux.fs.file import O_CREAT, O_RDWR, O_TRUNC
from emulator.linux.fs.host_places import Anchor, Place
from emulator.linux.fs.nodes import Symlink

SECONDS = float(os.environ.get("RACE_SECONDS", "1.5"))
O_TMPFILE = 0o20000000 | 0o40000
SECRET = b"secret" * 1000  # 6000 bytes

SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
rename = libc.renameat2
def exchange(one, other):
    rename(-100, one, -100, other, 2)  # AT_FDCWD, RENAME_EXCHANGE
os.chdir(sys.argv[1])
print("ready", flush=True)
while os.getppid() == int(sys.argv[2]):
    for _ in range(100):
        exchange(b"a/b", b"a/link")  # a directory and a link to one outside
        exchange(b"a", b"link")
        exchange(b"a", b"link")
        exchange(b"a/b/f", b"a/b/g")  # a file and a link to one outside
"""


def fill(above, contents):
    (above / "a" / "b" / "s").mkdir(parents=True)
    for name in ("f", "h", "s/f"):
        (above / "a" / "b" / name).write_bytes(contents)
    (above / "a" / "b" / "f").chmod(0o600)


def everything(above):
    return {
        str(path.relative_to(above)): (status.st_mode, status.st_size, status.st_mtime_ns, status.st_nlink)
        for path in sorted(above.rglob("*"))
        for status in [path.lstat()]
    }


@pytest.fixture
def racing(tmp_path):
    """Directories inside and outside, and the other one at work."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    fill(inside, b"mine")
    fill(outside, SECRET)
    (outside / "a" / "b" / "only-outside").write_bytes(SECRET)
    (inside / "kept").write_bytes(b"kept")
    (inside / "link").symlink_to(outside / "a")
    (inside / "a" / "link").symlink_to(outside / "a" / "b")
    (inside / "a" / "b" / "g").symlink_to(outside / "a" / "b" / "f")
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, inside, str(os.getpid())], stdout=subprocess.PIPE)
    swapper.stdout.readline()
    yield inside, outside
    swapper.kill()
    swapper.wait()
    swapper.stdout.close()


def operations(guest, above, seen):
    """All that a guest can do with names, each of them below a directory that may not be one any more."""
    tree, task, start = guest.tree, guest.task, guest.tree.paths.root

    def opened(name, flags):
        return tree.open_at(task, start, f"{above}/{name}", flags, 0o644)

    def read(name):
        seen.append(read_of(opened(name, 0), task, 1 << 16)[:6])

    def write(name, flags):
        opened(name, flags).write(task, b"over")

    def stat(name):
        attributes = tree.attributes(start, f"{above}/{name}", follow=False)
        if attributes.mode & 0o170000 == 0o100000:
            seen.append(b"secret" if attributes.size == len(SECRET) else b"mine")

    def entries():
        names = [entry.name for entry in tree.find(start, above).node.entries()]
        seen.append(b"secret" if b"only-outside" in names else b"mine")

    def change(name, what):
        node = tree.find(start, f"{above}/{name}", follow=False).node
        what(node)

    return [
        lambda: read("f"),
        lambda: read("s/f"),
        lambda: stat("f"),
        entries,
        lambda: write("f", O_RDWR | O_TRUNC),
        lambda: write("h", O_RDWR),
        lambda: write("new", O_RDWR | O_CREAT),
        lambda: opened("f", O_RDWR).truncate(1),
        lambda: opened("s", O_RDWR | O_TMPFILE).write(task, b"x"),
        lambda: change("f", lambda node: node.set_mode(0o666)),
        lambda: change("s", lambda node: node.set_mode(0o777)),
        lambda: change("f", lambda node: node.set_times(10**9, 10**9)),
        lambda: change("f", lambda node: node.permits(7)),
        lambda: change("g", lambda node: node.target() if isinstance(node, Symlink) else None),
        lambda: tree.rename(start, f"{above}/new", start, f"{above}/newer"),
        lambda: tree.rename(start, f"{above}/s", start, f"{above}/t"),
        lambda: tree.rename(start, f"{above}/t", start, f"{above}/s"),
        lambda: tree.rename(start, f"{above}/h", start, f"{above}/s/h"),
        lambda: tree.rename(start, f"{above}/s/h", start, f"{above}/h"),
        lambda: tree.link(tree.find(start, f"{above}/f", follow=False), start, f"{above}/linked"),
        lambda: tree.remove(start, f"{above}/linked"),
        lambda: tree.remove(start, f"{above}/newer"),
        lambda: tree.make_symlink(start, f"{above}/l", "f"),
        lambda: tree.remove(start, f"{above}/l"),
        lambda: tree.make_directory(start, f"{above}/d", 0o777),
        lambda: tree.remove_directory(start, f"{above}/d"),
        lambda: tree.make_node(start, f"{above}/node", 0o100644),
        lambda: tree.remove(start, f"{above}/node"),
        lambda: tree.make_node(start, f"{above}/fifo", 0o010644),
        lambda: tree.remove(start, f"{above}/fifo"),
        lambda: tree.executable(task, f"{above}/f"),
    ]


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("way", [by_openat2, by_components])
def test_whoever_swaps_a_directory_for_a_link_leads_nobody_out(make_guest, racing, way, isolated):
    if way is by_openat2 and best_way() is not by_openat2:
        pytest.skip("this kernel has no openat2")
    inside, outside = racing
    before = everything(outside)
    if isolated:
        guest = make_guest(binds=[Bind(str(inside), "/w", True)], isolated=True, open_beneath=way)
        above = "/w/a/b"
    else:
        guest = make_guest(writable_paths=[str(inside)], open_beneath=way)
        above = f"{inside}/a/b"
    seen: list[bytes] = []
    done = refused = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for operation in operations(guest, above, seen):
            try:
                operation()
                done += 1
            except LinuxError:
                refused += 1
    assert done > 100, "the guest did something"
    assert refused > 100, "the other one was in its way"
    assert everything(outside) == before
    assert (inside / "kept").read_bytes() == b"kept"
    if isolated:  # otherwise it may read all that its user may
        assert b"secret" not in seen


@pytest.mark.parametrize("way", [by_openat2, by_components])
def test_a_place_below_an_anchor_is_reached_through_directories_alone(tmp_path, way):
    (tmp_path / "in" / "a" / "b").mkdir(parents=True)
    (tmp_path / "in" / "a" / "b" / "f").write_bytes(b"12345")
    (tmp_path / "in" / "l").symlink_to("a")
    (tmp_path / "in" / "out").symlink_to("..")
    anchor = Anchor(str(tmp_path / "in"), way)
    assert Place(anchor, "a/b/f").status().st_size == 5
    for below in ("l/b/f", "out/in/a/b/f", "a/b/f/x", "missing/x"):
        with pytest.raises(FileNotFoundError):
            Place(anchor, below).status()
    with pytest.raises(FileNotFoundError):
        Place(anchor, "l").open(os.O_RDONLY)
    os.rename(tmp_path / "in", tmp_path / "moved")  # the anchor is held, wherever it is called
    assert Place(anchor, "a/b/f").status().st_size == 5
    os.rename(tmp_path / "moved" / "a" / "b", tmp_path / "moved" / "a" / "c")
    with pytest.raises(FileNotFoundError):
        Place(anchor, "a/b/f").status()


@pytest.mark.parametrize("way", [by_openat2, by_components])
def test_what_is_remembered_of_directories_is_of_those_that_are_there(tmp_path, way):
    for number in range(40):  # more than are held open
        (tmp_path / f"{number}" / "d").mkdir(parents=True)
        (tmp_path / f"{number}" / "d" / "f").write_bytes(bytes(number))
    anchor = Anchor(str(tmp_path), way)
    descriptors = len(os.listdir("/proc/self/fd"))
    for number in [*range(40), *range(40)]:
        assert Place(anchor, f"{number}/d/f").status().st_size == number
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 16
    for number in range(0, 40, 2):  # another directory at the same path
        os.rename(tmp_path / f"{number}", tmp_path / f"old{number}")
        (tmp_path / f"{number}" / "d").mkdir(parents=True)
        (tmp_path / f"{number}" / "d" / "f").write_bytes(b"new" * 100)
    for number in range(40):
        assert Place(anchor, f"{number}/d/f").status().st_size == (number if number % 2 else 300)
    Place(anchor, "3/d/f").rename(Place(anchor, "5/d/g"))
    assert (tmp_path / "5" / "d" / "g").stat().st_size == 3
    del anchor
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_a_walk_looks_once_at_each_name_below_an_anchor(make_guest, tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"12345")
    (tmp_path / "a" / "b" / "l").symlink_to("f")
    guest = make_guest(binds=[Bind(str(tmp_path), "/w", True)], isolated=True)
    tree, task = guest.tree, guest.task
    start = tree.find(tree.paths.root, "/w")
    tree.open_at(task, start, "a/b/f", 0)  # now the directories are open
    asked = []
    stat = os.stat

    def counted(path, **where):
        asked.append(path)
        return stat(path, **where)

    monkeypatch.setattr(os, "stat", counted)
    for operation in (
        lambda: tree.open_at(task, start, "a/b/f", 0),
        lambda: tree.attributes(start, "a/b/f"),
        lambda: tree.find(start, "a/b/f").node.permits(os.R_OK),
        lambda: tree.find(start, "a/b/l", follow=False).node.target(),
        lambda: tree.open_at(task, start, "a/b/l", 0),
    ):
        operation()
        assert [name for name in asked if name not in ("l", "f")] == ["a", "b"], asked
        assert len(asked) == (4 if "l" in asked and "f" in asked else 3)  # a, b, and what is there
        asked.clear()
    monkeypatch.undo()
    (tmp_path / "a" / "b").rename(tmp_path / "a" / "c")  # a call later nothing is taken for granted
    (tmp_path / "a" / "b").mkdir()
    with pytest.raises(LinuxError, match="ENOENT"):
        tree.open_at(task, start, "a/b/f", 0)


def test_what_is_only_read_is_looked_at_once_it_is_open(make_guest, tmp_path_factory):
    above = tmp_path_factory.mktemp("read") / "above"
    (above / "a").mkdir(parents=True)
    (above / "fifos").mkdir()
    (above / "a" / "f").write_bytes(b"a file")
    os.mkfifo(above / "fifos" / "f")
    guest = make_guest()
    node = guest.tree.find(guest.tree.paths.root, f"{above}/a/f").node
    (above / "a").rename(above / "b")
    (above / "a").symlink_to("fifos")  # between the look and the open
    with pytest.raises(LinuxError, match="ENXIO"):
        node.open(write=False, truncate=False)
    (above / "a").unlink()
    (above / "a").mkdir()
    (above / "a" / "f").symlink_to("../b/f")
    with pytest.raises(LinuxError, match="ENOENT"):
        node.open(write=False, truncate=False)
