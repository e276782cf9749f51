"""The file that a path means, of which an instruction is probed."""

from __future__ import annotations

from emulator.linux.errors import EINVAL
from emulator.linux.fs.nodes import Regular
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_FDCWD, find
from perfcore.events.probes.uprobe_definition import NotRegular, ProbedFile


def find_probed_file(task: Task, path: str) -> ProbedFile:
    """As `task` sees it. Raises LinuxError."""
    node = find(task, AT_FDCWD, path).node
    if not isinstance(node, Regular):
        raise NotRegular(EINVAL, f"{path} is not a regular file")
    attributes = node.attributes()
    return ProbedFile(attributes.inode, attributes.size)
