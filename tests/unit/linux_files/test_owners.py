"""Whose files are, and what that lets others do: users, groups, modes, and capabilities that stand above them."""

from __future__ import annotations

import os
import stat

import pytest

from emulator.linux.errors import EACCES, EPERM, LinuxError
from emulator.linux.fs.file import O_CREAT, O_RDWR, O_TRUNC, O_WRONLY
from emulator.linux.fs.permissions import EXECUTE, READ, WRITE
from emulator.linux.net.socket_addresses import AF_UNIX, UnixAddress
from emulator.linux.net.socket_messages import Credentials as SenderIds
from emulator.linux.net.sockets import SOCK_STREAM
from emulator.linux.net.stream_sockets import StreamSocket
from emulator.linux.process.credentials import ALL_CAPABILITIES, CAP_CHOWN, CAP_FOWNER, Capabilities, Credentials
from emulator.linux.syscalls.sockets import target_of

USER, GROUP, OTHER = 1000, 100, 1001


@pytest.fixture
def user(make_guest):
    """A guest that is nobody special: it owns what the host's user has where it may write."""
    guest = make_guest(user=(USER, GROUP))
    become(guest, Credentials(USER, GROUP))
    return guest


def become(guest, credentials):
    guest.task.credentials = credentials
    guest.tree.act_for(credentials)


def owner(guest, path):
    of = guest.stat(path, follow=False)
    return of.uid, of.gid


def refused(code, what):
    with pytest.raises(LinuxError) as caught:
        what()
    assert caught.value.code == code, str(caught.value)


def chmod(guest, path, mode):
    dentry = guest.tree.find(guest.start(), str(path))
    guest.tree.set_mode(dentry, dentry.node.attributes(), dentry.node.set_mode, mode)


def chown(guest, path, uid=None, gid=None):
    guest.tree.set_owner(guest.tree.find(guest.start(), str(path)), uid, gid)


def test_what_the_hosts_user_has_belongs_to_the_guests_where_it_may_write(user):
    (user.cwd / "f").write_bytes(b"")
    (user.elsewhere / "f").write_bytes(b"")
    assert owner(user, user.cwd / "f") == (USER, GROUP)
    assert owner(user, user.elsewhere / "f") == (0, 0)
    assert owner(user, "/proc") == (0, 0)


@pytest.mark.parametrize("where", ["cwd", "tmp"])
def test_what_is_made_belongs_to_who_makes_it(make_guest, where):
    guest = make_guest()
    above = getattr(guest, where)
    assert owner(guest, above) == (0, 0)
    chmod(guest, above, 0o777)
    become(guest, Credentials(USER, GROUP, (7,)))
    guest.write(above / "f", b"")
    guest.tree.make_directory(guest.start(), str(above / "d"), 0o755)
    guest.tree.make_symlink(guest.start(), str(above / "l"), "f")
    guest.tree.make_node(guest.start(), str(above / "p"), stat.S_IFIFO | 0o644)
    guest.tree.make_node(guest.start(), str(above / "n"), 0o644)
    assert {owner(guest, above / name) for name in "fdlpn"} == {(USER, GROUP)}
    become(guest, Credentials())
    guest.write(above / "r", b"")
    assert owner(guest, above / "r") == (0, 0)
    # and when the inode is used again, nothing is left of its owner
    guest.tree.remove(guest.start(), str(above / "f"))
    guest.write(above / "f", b"")
    assert owner(guest, above / "f") == (0, 0)
    if where == "cwd":
        assert all(os.lstat(above / name).st_uid == os.geteuid() for name in "fdlrn")  # the host hears nothing


@pytest.mark.parametrize("where", ["cwd", "tmp"])
def test_a_change_of_owner_is_remembered(make_guest, where):
    guest = make_guest()
    path = getattr(guest, where) / "f"
    guest.write(path, b"contents")
    chown(guest, path, USER, GROUP)
    assert owner(guest, path) == (USER, GROUP)
    chown(guest, path, gid=7)
    assert owner(guest, path) == (USER, 7)
    guest.tree.rename(guest.start(), str(path), guest.start(), str(path) + "2")
    assert owner(guest, str(path) + "2") == (USER, 7)
    file = guest.tree.open(guest.task, str(path) + "2", 0, 0, str(guest.cwd))
    assert (file.attributes().uid, file.attributes().gid) == (USER, 7)
    become(guest, Credentials(OTHER, 7))
    refused(EPERM, lambda: chown(guest, str(path) + "2", OTHER))
    become(guest, Credentials(USER, GROUP, (8,)))
    refused(EPERM, lambda: chown(guest, str(path) + "2", OTHER))
    refused(EPERM, lambda: chown(guest, str(path) + "2", gid=9))
    chown(guest, str(path) + "2", gid=8)  # one of his own groups
    assert owner(guest, str(path) + "2") == (USER, 8)


@pytest.mark.parametrize("where", ["cwd", "tmp"])
@pytest.mark.parametrize(
    ("mode", "who", "allowed"),
    [  # of a file of user 1000, group 100: what may be read, written
        (0o640, Credentials(USER, 5), "rw"),
        (0o640, Credentials(OTHER, GROUP), "r"),
        (0o640, Credentials(OTHER, 5, (GROUP,)), "r"),
        (0o640, Credentials(OTHER, 5), ""),
        (0o046, Credentials(USER, GROUP), ""),  # the owner's bits count for the owner, though others may more
        (0o046, Credentials(OTHER, GROUP), "r"),
        (0o046, Credentials(OTHER, 5), "rw"),
        (0o000, Credentials(0, 0), "rw"),
        (0o000, Credentials(0, 0, (), Capabilities()), ""),  # root by name alone
    ],
)
def test_owner_group_and_others_may_what_the_mode_says(make_guest, where, mode, who, allowed):
    guest = make_guest()
    path = getattr(guest, where) / "f"
    guest.write(path, b"x")
    chown(guest, path, USER, GROUP)
    chmod(guest, path, mode)
    dentry = guest.tree.find(guest.start(), str(path))
    become(guest, who)
    for letter, wanted, flags in (("r", READ, 0), ("w", WRITE, O_WRONLY), ("w", WRITE, O_WRONLY | O_TRUNC)):
        if letter in allowed:
            guest.tree.check(dentry, wanted)
            guest.open(path, flags)
        else:
            refused(EACCES, lambda wanted=wanted: guest.tree.check(dentry, wanted))
            refused(EACCES, lambda flags=flags: guest.open(path, flags))


@pytest.mark.parametrize("where", ["cwd", "tmp"])
def test_directories_are_searched_listed_and_changed_by_their_modes(make_guest, where):
    guest = make_guest()
    above = getattr(guest, where) / "d"
    guest.tree.make_directory(guest.start(), str(above), 0o755)
    guest.write(above / "f", b"x")
    assert guest.read(above / "f") == b"x"  # root has been there: the way is remembered
    chmod(guest, above / "f", 0o666)
    start = guest.start()
    other = Credentials(OTHER, OTHER)
    for mode, may_search, may_list, may_change in (
        (0o755, True, True, False),
        (0o711, True, False, False),
        (0o744, False, True, False),
        (0o700, False, False, False),
        (0o777, True, True, True),
    ):
        become(guest, Credentials())
        if guest.names(above)[:1] != ["d"]:
            guest.tree.make_directory(start, str(above / "d"), 0o755)
            guest.write(above / "x", b"")
        chmod(guest, above, mode)
        become(guest, other)
        outcomes = (
            (may_search, lambda: guest.read(above / "f")),
            (may_search, lambda: guest.stat(above / "f")),
            (may_search, lambda: guest.tree.check(guest.tree.find(start, str(above)), EXECUTE)),
            (may_list, lambda: guest.names(above)),
            (may_change, lambda: guest.open(above / "new", O_RDWR | O_CREAT)),
            (may_change, lambda: guest.tree.rename(start, str(above / "x"), start, str(above / "y"))),
            (may_change, lambda: guest.tree.remove(start, str(above / ("y" if may_change else "x")))),  # noqa: B023
            (may_change, lambda: guest.tree.make_directory(start, str(above / "e"), 0o755)),
            (may_change, lambda: guest.tree.remove_directory(start, str(above / "d"))),
        )
        for may, attempt in outcomes:
            if may:
                attempt()
            else:
                refused(EACCES, attempt)


def test_a_socket_is_reached_by_who_may_write_it(make_guest):
    guest = make_guest()
    names, superblock = guest.tree.sockets, guest.tree.superblock
    server, client = (StreamSocket(names, superblock, AF_UNIX, SOCK_STREAM, 0, SenderIds()) for _ in range(2))
    address = UnixAddress(os.fsencode(guest.tmp / "s"))
    guest.tree.bind_socket(guest.start(), str(guest.tmp / "s"), 0o700, server)
    server.retain()
    become(guest, Credentials(OTHER, OTHER))
    refused(EACCES, lambda: target_of(guest.task, client, address))
    become(guest, Credentials())
    assert target_of(guest.task, client, address) is server


def test_in_a_sticky_directory_only_owners_remove(make_guest):
    guest = make_guest()
    chmod(guest, guest.tmp, 0o1777)
    become(guest, Credentials(USER, GROUP))
    guest.write(guest.tmp / "f", b"")
    start = guest.start()
    become(guest, Credentials(OTHER, OTHER))
    refused(EPERM, lambda: guest.tree.remove(start, str(guest.tmp / "f")))
    refused(EPERM, lambda: guest.tree.rename(start, str(guest.tmp / "f"), start, str(guest.tmp / "g")))
    refused(EPERM, lambda: chmod(guest, guest.tmp / "f", 0o777))
    become(guest, Credentials(USER, GROUP))
    guest.tree.remove(start, str(guest.tmp / "f"))


def test_a_set_group_id_directory_gives_its_group(make_guest):
    guest = make_guest()
    guest.tree.make_directory(guest.start(), str(guest.tmp / "d"), 0o777)
    chown(guest, guest.tmp / "d", 0, 7)
    chmod(guest, guest.tmp / "d", 0o2777)
    become(guest, Credentials(USER, GROUP))
    guest.write(guest.tmp / "d" / "f", b"")
    guest.tree.make_directory(guest.start(), str(guest.tmp / "d" / "e"), 0o755)
    assert owner(guest, guest.tmp / "d" / "f") == (USER, 7)
    assert owner(guest, guest.tmp / "d" / "e") == (USER, 7)
    assert guest.stat(guest.tmp / "d" / "e").mode & stat.S_ISGID


def test_capabilities_follow_the_user():
    root = Credentials()
    assert root.has(CAP_CHOWN)
    assert not root.as_user(USER).has(CAP_CHOWN)
    kept = Credentials(keeps_capabilities=True).as_user(USER)
    assert kept.capabilities == Capabilities(0, ALL_CAPABILITIES)  # permitted, to be made effective by capset
    assert not kept.after_exec().capabilities.permitted
    assert not kept.after_exec().keeps_capabilities
    assert Credentials(USER, GROUP).as_user(0).capabilities.permitted == 0


def test_ambient_capabilities_survive_an_execve():
    bit = 1 << CAP_FOWNER
    own = Capabilities(0, ALL_CAPABILITIES, bit, bit)
    task = Credentials(USER, GROUP).with_capabilities(own)
    assert task.after_exec().capabilities == Capabilities(bit, bit, bit, bit)
    lost = task.with_capabilities(Capabilities(0, ALL_CAPABILITIES, 0, bit))  # no longer inheritable
    assert lost.capabilities.ambient == 0
    assert lost.after_exec().capabilities == Capabilities()
