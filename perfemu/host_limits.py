"""Host limits: what the host allows this process by default is too little for a machine in it."""

from __future__ import annotations

import resource
from contextlib import suppress


def raise_descriptor_limit() -> None:
    """Allow as many host descriptors as the user may have: each host file that a guest maps keeps one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # then the guest is told EMFILE earlier
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
