"""Where a guest may write, and that no way around it leads to a host file it may not."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from emulator.linux.errors import EACCES, EBUSY, EEXIST, ELOOP, ENOENT, ENXIO, EPERM, EROFS, EXDEV, LinuxError
from emulator.linux.fs.file import O_CREAT, O_EXCL, O_PATH, O_RDWR, O_TRUNC, O_WRONLY

O_TMPFILE_AARCH64 = 0o20000000 | 0o40000


@contextmanager
def fails(code: int):
    with pytest.raises(LinuxError) as caught:
        yield
    assert caught.value.code == code, str(caught.value)


def test_what_the_user_may_read_the_guest_may_read(guest):
    (guest.elsewhere / "a").write_bytes(b"content")
    assert guest.read(guest.elsewhere / "a") == b"content"


def test_a_file_below_the_current_directory_is_written_on_the_host(guest):
    guest.write("new", b"one")
    (guest.cwd / "sub").mkdir()
    guest.write(guest.cwd / "sub" / "two", b"two")
    assert (guest.cwd / "new").read_bytes() == b"one"
    assert (guest.cwd / "sub" / "two").read_bytes() == b"two"


@pytest.mark.parametrize("flags", [O_WRONLY, O_RDWR, O_TRUNC, O_RDWR | O_CREAT | O_TRUNC])
def test_a_write_elsewhere_is_erofs_and_named_once(guest, flags):
    victim = guest.elsewhere / "a"
    victim.write_bytes(b"content")
    for _ in range(2):
        with fails(EROFS):
            guest.open(victim, flags)
    assert victim.read_bytes() == b"content"
    assert guest.messages == [f"{victim}: the guest may not write here (EROFS); --rw PATH allows it"]


def test_creating_elsewhere_is_erofs(guest):
    with fails(EROFS):
        guest.open(guest.elsewhere / "new", O_WRONLY | O_CREAT)
    with fails(EROFS):
        guest.open(guest.elsewhere, O_RDWR | O_TMPFILE_AARCH64)
    start = guest.start()
    with fails(EROFS):
        guest.tree.make_directory(start, str(guest.elsewhere / "new"), 0o755)
    with fails(EROFS):
        guest.tree.make_symlink(start, str(guest.elsewhere / "new"), "x")
    with fails(EROFS):
        guest.tree.make_node(start, str(guest.elsewhere / "new"), 0o644)
    assert os.listdir(guest.elsewhere) == []


def test_changing_removing_and_renaming_elsewhere_is_erofs(guest):
    victim = guest.elsewhere / "a"
    victim.write_bytes(b"content")
    victim.chmod(0o640)
    before = os.lstat(victim)
    start = guest.start()
    dentry = guest.tree.find(start, str(victim))
    with fails(EROFS):
        guest.tree.change_node(dentry, lambda: dentry.node.set_mode(0o777))
    with fails(EROFS):
        guest.tree.change_node(dentry, lambda: dentry.node.set_times(0, 0))
    with fails(EROFS):
        guest.tree.remove(start, str(victim))
    with fails(EROFS):
        guest.tree.rename(start, str(victim), start, str(guest.elsewhere / "b"))
    with fails(EROFS):
        guest.tree.rename(start, str(victim), start, "mine")
    after = os.lstat(victim)
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)


def test_an_open_for_reading_gives_no_right_to_change_mode_or_times(guest):
    victim = guest.elsewhere / "a"
    victim.write_bytes(b"content")
    victim.chmod(0o600)
    file = guest.task.files.get(guest.open(victim))
    with fails(EROFS):
        file.set_mode(0o777)
    with fails(EROFS):
        file.set_times(0, 0)
    assert os.lstat(victim).st_mode & 0o777 == 0o600


def test_rw_allows_more(make_guest, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "one").write_bytes(b"1")
    guest = make_guest(writable_paths=[str(tmp_path / "more"), str(tmp_path / "one")])
    guest.write(tmp_path / "more" / "a", b"a")
    guest.write(tmp_path / "one", b"2")
    assert (tmp_path / "more" / "a").read_bytes() == b"a"
    assert (tmp_path / "one").read_bytes() == b"2"
    with fails(EROFS):
        guest.write(tmp_path / "elsewhere" / "a", b"a")


def test_rw_of_what_does_not_exist_is_an_error(make_guest, tmp_path):
    with fails(ENOENT):
        make_guest(writable_paths=[str(tmp_path / "missing")])


# ---- ways around it


@pytest.mark.parametrize("link", ["../elsewhere", "{elsewhere}", "up/elsewhere", "loop/../elsewhere"])
def test_a_symbolic_link_out_of_the_current_directory_does_not_carry_the_right_to_write(guest, link):
    (guest.elsewhere / "a").write_bytes(b"content")
    (guest.cwd / "up").symlink_to("..")
    (guest.cwd / "loop").mkdir()
    (guest.cwd / "out").symlink_to(link.format(elsewhere=guest.elsewhere).replace("loop/..", "loop/../.."))
    assert guest.read("out/a") == b"content"
    with fails(EROFS):
        guest.write("out/a", b"changed")
    with fails(EROFS):
        guest.write("out/new", b"changed")
    assert (guest.elsewhere / "a").read_bytes() == b"content"
    assert os.listdir(guest.elsewhere) == ["a"]


def test_dot_dot_does_not_carry_the_right_to_write(guest):
    with fails(EROFS):
        guest.write("../elsewhere/new", b"x")
    with fails(EROFS):
        guest.write(f"{guest.cwd}/../elsewhere/new", b"x")
    assert os.listdir(guest.elsewhere) == []


def test_a_dangling_symbolic_link_creates_where_it_points_by_the_rules_of_that_place(guest):
    (guest.cwd / "out").symlink_to(guest.elsewhere / "new")
    (guest.cwd / "in").symlink_to("inside")
    with fails(EROFS):
        guest.write("out", b"x")
    guest.write("in", b"x")
    assert os.listdir(guest.elsewhere) == []
    assert (guest.cwd / "inside").read_bytes() == b"x"


def test_exclusive_creation_does_not_follow_a_dangling_link(guest):
    (guest.cwd / "out").symlink_to(guest.elsewhere / "new")
    with fails(EEXIST):
        guest.open("out", O_WRONLY | O_CREAT | O_EXCL)


def test_a_hard_link_to_a_read_only_file_cannot_be_made(guest):
    (guest.elsewhere / "a").write_bytes(b"content")
    source = guest.tree.find(guest.start(), str(guest.elsewhere / "a"))
    with fails(EXDEV):
        guest.tree.link(source, guest.start(), "a")
    assert os.listdir(guest.cwd) == []


def test_a_rename_across_the_border_fails_both_ways(guest):
    (guest.elsewhere / "a").write_bytes(b"content")
    guest.write("mine", b"mine")
    start = guest.start()
    with fails(EROFS):
        guest.tree.rename(start, str(guest.elsewhere / "a"), start, "stolen")
    with fails(EROFS):
        guest.tree.rename(start, "mine", start, str(guest.elsewhere / "a"))
    assert (guest.elsewhere / "a").read_bytes() == b"content"


def test_a_rename_between_host_and_memory_is_another_file_system(guest):
    guest.write("mine", b"mine")
    guest.write(guest.tmp / "temporary", b"temporary")
    start = guest.start()
    with fails(EXDEV):
        guest.tree.rename(start, "mine", start, str(guest.tmp / "mine"))
    with fails(EXDEV):
        guest.tree.rename(start, str(guest.tmp / "temporary"), start, "temporary")


def test_the_current_directory_itself_stays(guest):
    start = guest.start()
    with fails(EROFS):
        guest.tree.remove_directory(start, str(guest.cwd))
    with fails(EROFS):
        guest.tree.rename(start, str(guest.cwd), start, str(guest.host / "moved"))


def test_a_writable_directory_inside_another_cannot_be_moved_away(make_guest, tmp_path):
    (tmp_path / "cwd" / "inner").mkdir(parents=True)
    guest = make_guest(writable_paths=[str(tmp_path / "cwd" / "inner")])
    with fails(EBUSY):
        guest.tree.rename(guest.start(), "inner", guest.start(), "moved")
    with fails(EBUSY):
        guest.tree.remove_directory(guest.start(), "inner")


def test_root_of_the_guest_is_above_all(guest):
    deep = "../" * 60
    assert guest.tree.find(guest.start(), deep).path == "/"
    assert guest.tree.find(guest.start(), f"{deep}{guest.elsewhere}").path == str(guest.elsewhere)


def test_symbolic_link_loops_end(guest):
    (guest.cwd / "a").symlink_to("b")
    (guest.cwd / "b").symlink_to("a")
    with fails(ELOOP):
        guest.read("a")
    with fails(ELOOP):
        guest.open("a", 0o100000)  # O_NOFOLLOW


@pytest.mark.parametrize("flags", [0, O_WRONLY, O_RDWR])
def test_fifos_and_sockets_of_the_host_are_never_opened(guest, flags):
    os.mkfifo(guest.cwd / "fifo")
    with fails(ENXIO):
        guest.open("fifo", flags)
    assert guest.stat("fifo").mode >> 12 == 1  # S_IFIFO: it can be looked at


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device node needs root")
def test_devices_of_the_host_are_never_opened(guest):
    try:
        os.mknod(guest.cwd / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device nodes in this container")
    with fails(ENXIO):
        guest.open("zero")


def test_the_hosts_proc_sys_and_dev_are_not_there(guest):
    for path in ("/proc/1/environ", "/proc/sysrq-trigger", "/sys/firmware", "/dev/sda", "/dev/mem", "/proc/self/root"):
        with fails(ENOENT):
            guest.open(path)
    (guest.cwd / "proc").symlink_to("/proc")
    with fails(ENOENT):
        guest.open("proc/1/environ")
    (guest.cwd / "escape").symlink_to("/proc/self/root/etc/passwd")
    with fails(ENOENT):
        guest.open("escape")


def test_another_mount_of_a_kernel_file_system_is_hidden(guest):
    status = os.lstat(guest.elsewhere)
    guest.tree.superblock.hidden_devices = frozenset({status.st_dev})
    with fails(ENOENT):
        guest.open(guest.elsewhere)


def test_o_path_reads_nothing(guest):
    (guest.elsewhere / "a").write_bytes(b"content")
    file = guest.task.files.get(guest.open(guest.elsewhere / "a", O_PATH))
    assert not file.readable
    assert file.path == str(guest.elsewhere / "a")


def test_a_program_must_be_a_regular_file_that_may_be_executed(guest):
    (guest.cwd / "text").write_bytes(b"")
    (guest.cwd / "text").chmod(0o644)
    (guest.cwd / "program").write_bytes(b"")
    (guest.cwd / "program").chmod(0o755)
    with fails(EACCES):
        guest.tree.executable(guest.task, "text", str(guest.cwd))
    with fails(EACCES):
        guest.tree.executable(guest.task, ".", str(guest.cwd))
    assert guest.tree.executable(guest.task, "program", str(guest.cwd)).path == str(guest.cwd / "program")


# ---- nodes that outlive the path by which they were found


@pytest.fixture
def replaced(guest):
    """A directory that is open while a symbolic link to `elsewhere` has taken its name; and the open descriptor."""
    (guest.elsewhere / "a").write_bytes(b"content")
    (guest.cwd / "d").mkdir()
    (guest.cwd / "d" / "a").write_bytes(b"mine")
    descriptor = guest.open("d")
    start = guest.start()
    guest.tree.rename(start, "d", start, "moved")
    guest.tree.make_symlink(start, "d", str(guest.elsewhere))
    return guest, guest.task.files.get(descriptor).dentry


def test_an_open_directory_does_not_lead_through_the_link_that_replaced_it(replaced):
    guest, stale = replaced
    tree, task = guest.tree, guest.task
    attempts = [
        lambda: tree.open_at(task, stale, "a", O_RDWR),
        lambda: tree.open_at(task, stale, "a", O_TRUNC),
        lambda: tree.open_at(task, stale, "new", O_RDWR | O_CREAT, 0o644),
        lambda: tree.open_at(task, stale, ".", O_RDWR | O_TMPFILE_AARCH64, 0o644),
        lambda: tree.make_directory(stale, "new", 0o755),
        lambda: tree.make_symlink(stale, "new", "x"),
        lambda: tree.remove(stale, "a"),
        lambda: tree.rename(stale, "a", guest.start(), "stolen"),
        lambda: tree.rename(guest.start(), "moved/a", stale, "new"),
        lambda: tree.link(tree.find(stale, "a"), guest.start(), "linked"),
        lambda: tree.find(stale, "a").node.set_mode(0o777),
        lambda: tree.find(stale, "a").node.set_times(0, 0),
    ]
    before = os.lstat(guest.elsewhere / "a")
    for attempt in attempts:
        with fails(ENOENT):
            attempt()
    after = os.lstat(guest.elsewhere / "a")
    assert os.listdir(guest.elsewhere) == ["a"]
    assert (guest.elsewhere / "a").read_bytes() == b"content"
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)


def test_an_open_file_does_not_lead_through_the_link_that_replaced_it(guest):
    victim = guest.elsewhere / "a"
    victim.write_bytes(b"content")
    victim.chmod(0o600)
    guest.write("f", b"mine")
    descriptor = guest.open("f", O_RDWR)
    stale = guest.task.files.get(descriptor).dentry
    guest.tree.remove(guest.start(), "f")
    guest.tree.make_symlink(guest.start(), "f", str(victim))
    with fails(ENOENT):
        stale.node.set_mode(0o777)
    with fails(ENOENT):
        stale.node.set_times(0, 0)
    with fails(ENOENT):
        guest.tree.link(stale, guest.start(), "linked")
    with fails(ENOENT):
        stale.node.open(write=True, truncate=True)
    guest.task.files.get(descriptor).set_mode(0o640)  # the open file itself may still be changed
    assert victim.read_bytes() == b"content"
    assert os.lstat(victim).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("bits", [0o4755, 0o2755])
def test_a_program_that_runs_by_the_users_rights_is_not_made(guest, bits):
    guest.write("program", b"")
    guest.write(guest.tmp / "program", b"")
    dentry = guest.tree.find(guest.start(), "program")
    file = guest.task.files.get(guest.open("program", O_RDWR))
    attempts = [
        lambda: dentry.node.set_mode(bits),
        lambda: file.set_mode(bits),
        lambda: guest.open("new", O_RDWR | O_CREAT, bits),
        lambda: guest.open(".", O_RDWR | O_TMPFILE_AARCH64, bits),
        lambda: guest.tree.make_node(guest.start(), "new", bits),
    ]
    for attempt in attempts:
        with fails(EPERM):
            attempt()
    assert os.listdir(guest.cwd) == ["program"]
    assert os.lstat(guest.cwd / "program").st_mode & 0o7000 == 0
    guest.tree.find(guest.start(), str(guest.tmp / "program")).node.set_mode(bits)  # in memory it is nobody's
    guest.tree.make_directory(guest.start(), "shared", 0o2775)  # a directory runs nothing
