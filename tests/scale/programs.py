"""Programs whose whole runs are traced and sampled: Debian's, and `kinds.c`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import require
from c_programs import build
from conformance.corpus import write_files

SOURCE = Path(__file__).with_name("kinds.c")
KINDS = "kinds"  # the program of SOURCE, in the working directory


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    packages: tuple[tuple[str, str], ...]  # commands, and Debian's packages that have them
    argv: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        return self.argv[0] == f"./{KINDS}"


def _shell(name: str, package: str, text: str, *more: tuple[str, str]) -> Command:
    return Command(name, ((name, package), *more), ("/bin/sh", "-c", text))


def _kind(name: str, *arguments: str) -> Command:
    return Command(name, (("gcc", "gcc"),), (f"./{KINDS}", name, *arguments))


COMMANDS = (
    _shell("gzip", "gzip", "gzip -9 -c long.txt | gzip -dc | cksum"),
    _shell("bzip2", "bzip2", "bzip2 -c text.txt | bzip2 -dc | cksum"),
    _shell("xz", "xz-utils", "xz -T 4 --block-size=40KiB -1 -c long.txt | xz -T 4 -dc | cksum"),
    _shell("sort", "coreutils", "seq 1 7 300000 | sort -n -r --parallel=4 -S 8M | cksum"),
    _shell(
        "sqlite3",
        "sqlite3",
        "sqlite3 :memory: 'with recursive n(x) as (select 1 union all select x + 1 from n where x < 8000) select"
        " count(*), sum(x * x % 97), group_concat(x % 7) from n where x in (select x * 3 from n) order by -x;'",
    ),
    _shell(
        "lua5.4",
        "lua5.4",
        "lua5.4 -e 'local t = {} for i = 1, 8000 do t[i] = tostring(i * 7919 % 8009) end table.sort(t)"
        " print(#table.concat(t), select(2, pcall(error, 1)))"
        " local c = coroutine.wrap(function() for i = 1, 20000 do coroutine.yield(i) end end)"
        " for i = 1, 20000 do c() end'",
    ),
    _shell(
        "openssl",
        "openssl",
        "openssl dgst -sha256 long.txt; openssl dgst -sha3-256 long.txt; openssl prime -generate -bits 128 | wc -l",
    ),
    _shell(
        "python3.11",
        "python3",
        "python3.11 -I -c 'import json, re, threading, time; a = []\n"
        'def f(n): a.append(len(re.sub("[aeiou]+", "-", json.dumps([str(i) * 3 for i in range(n)]))))\n'
        "t = [threading.Thread(target=f, args=(3000,)) for _ in range(4)]; [x.start() for x in t]\n"
        "[x.join() for x in t]; print(a)'",
    ),
    _shell(
        "perl",
        "perl",
        "perl -e 'for (1..4) { if (!fork) { my %h; $h{$_ % 997} .= chr(65 + $_ % 26) for 1..9000;"
        " my $n = () = join(q(), values %h) =~ /A.*?C/g; exit $n & 7 } } 1 while wait > 0; print 1'",
    ),
    _shell(
        "busybox",
        "busybox",
        "busybox awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print n[w], w }' text.txt"
        " | busybox sort -rn | busybox md5sum; busybox tar cz one text.txt | busybox tar tz;"
        " for i in 1 2 3 4 5 6; do busybox sha512sum text.txt & done; wait",
    ),
    _kind("threads", "40000"),
    _kind("signals", "10000"),
    _kind("fork", "200"),
    _kind("dlopen", "200"),
    _kind("setjmp", "20000"),
    _kind("generated", "200"),
    _kind("recursion", "10000"),
    _kind("indirect", "1500000"),
)


AARCH64_PACKAGES = (
    "dash", "coreutils", "gzip", "bzip2", "xz-utils", "sqlite3", "lua5.4", "openssl", "perl", "busybox",
)  # fmt: skip
FOR_AARCH64 = tuple(  # Debian's Python is not in those packages; the others need x86-64's code, or libraries
    command for command in COMMANDS if command.name not in ("python3.11", "generated", "dlopen")
)


def prepare_aarch64(command: Command, directory: Path) -> Path:
    """The same for an AArch64 machine, whose root is returned."""
    tree = require.debian_arm64(*AARCH64_PACKAGES)
    write_files(directory)
    (directory / "long.txt").write_bytes((directory / "text.txt").read_bytes() * 8)
    if command.is_ours:
        build(SOURCE, "aarch64", directory / KINDS, "-ldl")
    return tree


def prepare(command: Command, directory: Path) -> None:
    """The working directory, and what must be installed."""
    for name, package in command.packages:
        require.command(name, package=package)
    write_files(directory)
    (directory / "long.txt").write_bytes((directory / "text.txt").read_bytes() * 8)
    if command.is_ours:
        subprocess.run(["gcc", "-O1", "-o", directory / KINDS, SOURCE, "-lpthread", "-ldl"], check=True)
