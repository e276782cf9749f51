"""What the command takes of its host."""

from __future__ import annotations

import resource

from perfemu.host_limits import raise_descriptor_limit


def test_all_descriptors_that_the_user_may_have_are_allowed():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
