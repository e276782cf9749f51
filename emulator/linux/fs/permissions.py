"""Permissions: what a user may do with a file, by owner, group and mode. generic_permission(), fs/namei.c"""

from __future__ import annotations

import stat as file_mode

from emulator.linux.errors import EACCES, EPERM, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.nodes import PROC_DEVICE, Node
from emulator.linux.process.credentials import (
    CAP_CHOWN,
    CAP_DAC_OVERRIDE,
    CAP_DAC_READ_SEARCH,
    CAP_FOWNER,
    CAP_FSETID,
    Credentials,
)

READ, WRITE, EXECUTE = 4, 2, 1  # R_OK, W_OK, X_OK; for a directory EXECUTE is to look a name up


def is_privileged(credentials: Credentials) -> bool:
    """Nothing needs to be asked. What has no execute bit at all is not executed even then, says `Node.permits`."""
    return credentials.has(CAP_DAC_OVERRIDE)


def allows(credentials: Credentials, of: Attributes, wanted: int) -> bool:
    if of.uid == credentials.uid:
        granted = of.mode >> 6
    elif credentials.is_in(of.gid):
        granted = of.mode >> 3
    else:
        granted = of.mode
    if not wanted & ~granted:
        return True
    is_directory = file_mode.S_ISDIR(of.mode)
    if credentials.has(CAP_DAC_OVERRIDE):
        return bool(not wanted & EXECUTE or is_directory or of.mode & 0o111)
    searches = not wanted & WRITE if is_directory else wanted == READ
    return searches and credentials.has(CAP_DAC_READ_SEARCH)


def check(credentials: Credentials, node: Node, wanted: int, path: str) -> None:
    """EACCES for who may not. The machine's /proc looks after itself."""
    if is_privileged(credentials) or not node.asks_for_owner:
        return
    of = node.attributes()
    if of.device != PROC_DEVICE and not allows(credentials, of, wanted):
        raise LinuxError(EACCES, f"{path} ({of.uid}:{of.gid}, {of.mode & 0o7777:o}): user {credentials.uid}")


def check_owner(credentials: Credentials, of: Attributes, path: str) -> None:
    """Only its owner changes a file's mode, and its times to what he likes."""
    if credentials.uid != of.uid and not credentials.has(CAP_FOWNER):
        raise LinuxError(EPERM, f"{path} belongs to user {of.uid}, not {credentials.uid}")


def check_sticky(credentials: Credentials, directory: Attributes, of: Attributes, path: str) -> None:
    """In /tmp and its like only a file's owner removes it."""
    if directory.mode & file_mode.S_ISVTX and credentials.uid not in (directory.uid, of.uid):
        check_owner(credentials, of, path)


def new_mode(credentials: Credentials, of: Attributes, permissions: int) -> int:
    """What chmod makes of the wanted permissions: set-group-ID is for members of the group."""
    if permissions & file_mode.S_ISGID and not credentials.is_in(of.gid) and not credentials.has(CAP_FSETID):
        return permissions & ~file_mode.S_ISGID
    return permissions


def check_new_owner(credentials: Credentials, of: Attributes, uid: int, gid: int, path: str) -> None:
    """chown(2): root gives away, an owner changes the group to another one of his own."""
    if credentials.has(CAP_CHOWN):
        return
    check_owner(credentials, of, path)
    if uid != of.uid or not (gid == of.gid or credentials.is_in(gid)):
        raise LinuxError(EPERM, f"{path}: user {credentials.uid} cannot give it to {uid}:{gid}")
