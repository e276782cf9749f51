"""What the guest's clock says is pinned, or what the command line says; never what the host's says unless asked."""

from __future__ import annotations

import time

import pytest

import require
from end_to_end.command import perfemu

SECONDS = ["date", "+%s"]


def seconds(*options: str) -> int:
    done = perfemu("run", *options, require.debian_tree("amd64", "busybox-static") / "bin/busybox", *SECONDS)
    assert (done.returncode, done.stderr) == (0, b"")
    return int(done.stdout)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 1_700_000_000),
        (["--date", "@86400"], 86_400),
        (["--date", "1970-01-03"], 2 * 86_400),
        (["--date", "1970-01-01T00:01+00:00"], 60),
        (["--date", "1970-01-02T01:00+01:00"], 86_400),
    ],
)
def test_the_clock_starts_where_it_is_told(options: list[str], expected: int) -> None:
    assert seconds(*options) == expected


def test_now_is_the_hosts() -> None:
    before = int(time.time())
    assert before <= seconds("--date", "now") <= time.time()


@pytest.mark.parametrize("date", ["yesterday", "@x", "@-1", "2026-13-01", "@99999999999999999999", ""])
def test_what_is_no_date_is_named(date: str) -> None:
    done = perfemu("run", "--date", date, "true")
    assert done.returncode == 129
    assert done.stdout == b""
    assert f"--date: '{date}' is no date" in done.stderr.decode() or "is not within 1970..2242" in done.stderr.decode()
