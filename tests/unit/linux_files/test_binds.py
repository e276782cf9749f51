"""Binds and isolation: what is where, who may write, and that nothing leads out."""

from __future__ import annotations

import os
import stat

import pytest

from calls import read_of
from emulator.linux.errors import EACCES, EBUSY, ELOOP, ENOENT, EROFS, EXDEV, LinuxError
from emulator.linux.fs.binds import Bind

O_WRONLY, O_CREAT, O_PATH = 1, 0o100, 0o10000000


@pytest.fixture
def host(tmp_path):
    """Directories to bind, and one with a secret beside them."""
    for name in ("data/sub", "work", "root/usr/bin", "root/etc", "root/proc", "secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "file").write_bytes(b"data")
    (tmp_path / "root" / "etc" / "release").write_bytes(b"root's")
    (tmp_path / "root" / "bin").symlink_to("usr/bin")
    (tmp_path / "root" / "usr" / "bin" / "tool").write_bytes(b"tool")
    (tmp_path / "root" / "proc" / "cpuinfo").write_bytes(b"of the host")
    (tmp_path / "secret" / "key").write_bytes(b"secret")
    return tmp_path


def refused(call) -> int:
    with pytest.raises(LinuxError) as raised:
        call()
    return raised.value.code


def isolated(make_guest, *binds: Bind):
    guest = make_guest(binds=binds, isolated=True)
    guest.task.fs.cwd = "/"
    return guest


class AtRoot:
    """A guest's calls by absolute paths."""

    def __init__(self, guest) -> None:
        self.guest, self.tree, self.task = guest, guest.tree, guest.task

    def open(self, path: str, flags: int = 0):
        return self.tree.open(self.task, path, flags, 0o644)

    def read(self, path: str) -> bytes:
        return read_of(self.open(path), self.task, 1 << 16)

    def names(self, path: str) -> list[str]:
        return [entry.name.decode() for entry in self.tree.find(self.tree.paths.root, path).node.entries()]

    def start(self):
        return self.tree.paths.root


def test_a_bind_shows_the_hosts_files_at_another_path(make_guest, host):
    guest = AtRoot(make_guest(binds=[Bind(str(host / "data"), "/bound/here")]))
    assert guest.read("/bound/here/file") == b"data"
    assert guest.names("/bound") == ["here"]
    assert "bound" in guest.names("/")
    assert guest.read("/bound/here/../../" + str(host / "secret" / "key").lstrip("/")) == b"secret"


def test_a_bind_is_read_only_unless_it_says_otherwise(make_guest, host):
    data = str(host / "data")
    guest = AtRoot(make_guest(binds=[Bind(data, "/ro"), Bind(data, "/rw", True)]))
    assert refused(lambda: guest.open("/ro/file", O_WRONLY)) == EROFS
    assert refused(lambda: guest.open("/ro/new", O_WRONLY | O_CREAT)) == EROFS
    guest.open("/rw/new", O_WRONLY | O_CREAT).write(guest.task, b"x")
    assert (host / "data" / "new").read_bytes() == b"x"
    assert guest.read("/ro/new") == b"x"
    assert refused(lambda: guest.tree.rename(guest.start(), "/rw/file", guest.start(), "/ro/file")) in (EROFS, EXDEV)


def test_a_file_can_be_bound_over_another_and_stays(make_guest, host):
    work = str(host / "work")
    (host / "work" / "config").write_bytes(b"old")
    binds = [Bind(work, "/w", True), Bind(str(host / "data" / "file"), "/w/config")]
    guest = AtRoot(make_guest(binds=binds))
    assert guest.read("/w/config") == b"data"
    assert refused(lambda: guest.tree.remove(guest.start(), "/w/config")) == EBUSY
    assert refused(lambda: guest.tree.rename(guest.start(), "/w/config", guest.start(), "/w/other")) == EBUSY
    assert (host / "work" / "config").read_bytes() == b"old"


def test_the_deepest_bind_decides_also_where_the_working_directory_is_writable(make_guest, host):
    work = str(host / "work")
    guest = make_guest(binds=[Bind(str(host / "data"), work)])
    guest.tree.allow_writing(work)
    assert refused(lambda: AtRoot(guest).open(f"{work}/file", O_WRONLY)) == EROFS
    assert AtRoot(guest).read(f"{work}/file") == b"data"


def test_isolated_there_is_nothing_but_what_is_bound_and_the_machines_own(make_guest, host):
    guest = AtRoot(isolated(make_guest, Bind(str(host / "data"), "/a/b")))
    assert guest.names("/") == ["a", "dev", "proc", "sys", "tmp"]
    assert guest.names("/a") == ["b"]
    assert guest.names("/tmp") == []
    assert guest.read("/a/b/file") == b"data"
    for path in ("/etc/passwd", str(host / "secret" / "key"), "/a/b/../../etc/passwd", "/a/b/../../../../etc/passwd"):
        assert refused(lambda path=path: guest.read(path)) == ENOENT
    assert refused(lambda: guest.open("/new", O_WRONLY | O_CREAT)) == EROFS
    assert refused(lambda: guest.open("/a/new", O_WRONLY | O_CREAT)) == EROFS
    guest.open("/tmp/perfemu-isolated", O_WRONLY | O_CREAT).write(guest.task, b"x")
    assert guest.read("/tmp/perfemu-isolated") == b"x"
    assert not os.path.lexists("/tmp/perfemu-isolated")


def test_a_root_that_is_bound_hides_the_hosts(make_guest, host):
    binds = [Bind(str(host / "root"), "/"), Bind(str(host / "work"), "/bin/mine", True)]
    guest = AtRoot(make_guest(binds=binds))
    assert guest.read("/etc/release") == b"root's"
    assert guest.read("/bin/tool") == b"tool"
    assert guest.names("/usr/bin") == ["mine", "tool"]
    guest.open("/usr/bin/mine/new", O_WRONLY | O_CREAT)
    assert (host / "work" / "new").exists()
    assert refused(lambda: guest.read("/etc/passwd")) == ENOENT
    assert refused(lambda: guest.read("/proc/cpuinfo")) == ENOENT  # the machine's, which this test has not filled
    assert refused(lambda: guest.tree.remove_directory(guest.start(), "/proc")) in (EROFS, EBUSY)


def test_symbolic_links_of_the_host_lead_through_the_guests_tree(make_guest, host):
    (host / "data" / "absolute").symlink_to(host / "secret" / "key")
    (host / "data" / "up").symlink_to("../secret/key")
    (host / "data" / "here").symlink_to("/a/file")
    guest = AtRoot(isolated(make_guest, Bind(str(host / "data"), "/a")))
    assert refused(lambda: guest.read("/a/absolute")) == ENOENT
    assert refused(lambda: guest.read("/a/up")) == ENOENT
    assert guest.read("/a/here") == b"data"


def test_links_that_the_guest_makes_lead_nowhere_else(make_guest, host):
    guest = AtRoot(isolated(make_guest, Bind(str(host / "work"), "/w", True)))
    for name, target in (
        ("a", str(host / "secret" / "key")),
        ("b", "../secret/key"),
        ("c", "/proc/self/root/etc/passwd"),
    ):
        guest.tree.make_symlink(guest.start(), f"/w/{name}", target)
        assert refused(lambda name=name: guest.read(f"/w/{name}")) == ENOENT


def swap(guest, host) -> None:
    """An open directory moves away, and a symbolic link to a place outside takes its name on the host."""
    guest.tree.rename(guest.start(), "/w/d", guest.start(), "/w/moved")
    guest.tree.make_symlink(guest.start(), "/w/d", str(host / "secret"))


def test_a_directory_that_moves_while_open_does_not_lead_out(make_guest, host):
    (host / "work" / "d").mkdir()
    (host / "work" / "d" / "key").write_bytes(b"public")
    guest = AtRoot(isolated(make_guest, Bind(str(host / "work"), "/w", True)))
    directory = guest.tree.find(guest.start(), "/w/d")
    file = guest.tree.find(guest.start(), "/w/d/key")
    (host / "work" / "d" / "link").symlink_to("key")
    link = guest.tree.find(guest.start(), "/w/d/link", follow=False)
    opened = guest.open("/w/d/key")
    swap(guest, host)
    assert refused(lambda: guest.tree.open_at(guest.task, directory, "key", 0)) == ENOENT
    assert refused(lambda: list(directory.node.entries())) == ENOENT
    assert refused(lambda: file.node.open(write=False, truncate=False)) == ENOENT
    assert refused(lambda: file.node.attributes()) == ENOENT
    assert refused(lambda: file.node.permits(4)) == ENOENT
    assert refused(lambda: link.node.target()) == ENOENT
    assert refused(lambda: guest.read("/w/d/key")) == ENOENT
    assert read_of(opened, guest.task, 100) == b"public"


def test_the_same_through_a_bind_that_is_read_only(make_guest, host):
    (host / "work" / "d" / "e").mkdir(parents=True)
    binds = [Bind(str(host / "work"), "/w", True), Bind(str(host / "work" / "d"), "/ro")]
    guest = AtRoot(isolated(make_guest, *binds))
    swap(guest, host)
    assert refused(lambda: guest.read("/ro/key")) == ENOENT
    assert (host / "secret" / "key").read_bytes() == b"secret"


def test_what_is_bound_where_something_is_already_is_refused(make_guest, host):
    file = str(host / "data" / "file")
    with pytest.raises(LinuxError, match="is not a directory"):
        make_guest(binds=[Bind(file, "/f"), Bind(file, "/f/below")], isolated=True)
    with pytest.raises(LinuxError, match="neither a file nor a directory"):
        make_guest(binds=[Bind("/dev/null", "/null")], isolated=True)
    with pytest.raises(LinuxError, match="cannot be the root"):
        make_guest(binds=[Bind(file, "/")])


def test_a_loop_of_links_ends(make_guest, host):
    (host / "data" / "loop").symlink_to("loop")
    guest = AtRoot(isolated(make_guest, Bind(str(host / "data"), "/a")))
    assert refused(lambda: guest.read("/a/loop")) == ELOOP


def test_devices_of_the_host_are_not_there(make_guest, host):
    os.mkfifo(host / "data" / "fifo")
    guest = AtRoot(isolated(make_guest, Bind(str(host / "data"), "/a", True)))
    assert stat.S_ISFIFO(guest.tree.find(guest.start(), "/a/fifo").node.attributes().mode)
    assert refused(lambda: guest.open("/a/fifo")) not in (0, EACCES)
