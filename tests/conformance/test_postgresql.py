"""A database that refuses to run as root: PostgreSQL's initdb, start, psql and stop, as another user of the guest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import require

USER = 70_000
PASSWD = f"root:x:0:0::/:/bin/sh\nsomebody:x:{USER}:{USER}::/:/bin/sh\n"
# 49 * sum(k * k for k in 1..142) = 49 * 142 * 143 * 285 / 6 = 47262215: the squares of multiples of 7 up to 1000
SCRIPT = """
set -e
id -u
P=/usr/lib/postgresql/15/bin
$P/initdb -D data -U somebody -A peer --no-sync --locale=C > initdb.log
$P/pg_ctl -D data -w -l log -o "-c listen_addresses= -c unix_socket_directories=$PWD -c fsync=off" start > start.log
$P/psql -h $PWD -d postgres -At -c 'create table t as select i, i * i as square from generate_series(1, 1000) i' \
    -c 'select sum(square), current_user from t where i % 7 = 0'
$P/pg_ctl -D data -w -m fast stop > stop.log
stat -c '%u %a' data data/PG_VERSION
"""


@pytest.mark.skipif(os.environ.get("CORPUS") != "all", reason="`make corpus` runs it: a minute")
def test_postgresql_runs_as_a_user_of_the_guest(tmp_path: Path) -> None:
    tree = require.debian_tree("amd64", "postgresql-15", "postgresql-client-15", "dash", "coreutils")
    (tmp_path / "passwd").write_text(PASSWD)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "script").write_text(SCRIPT)
    options = ("--core", "ideal", "--sysroot", tree, "--user", str(USER), "--env", "TZ=UTC")
    bind = ("--bind", f"{tmp_path}/passwd:{tree}/etc/passwd", "--bind", f"{tmp_path}/passwd:/etc/passwd")
    done = subprocess.run(
        [sys.executable, "-m", "perfemu", "run", *options, *bind, "--", "/bin/dash", "script"],
        cwd=tmp_path / "here", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.stdout == f"{USER}\nSELECT 1000\n47262215|somebody\n{USER} 700\n{USER} 600\n", done.stderr
    assert done.returncode == 0
    assert os.stat(tmp_path / "here" / "data").st_uid == os.geteuid()  # the host hears nothing of owners
