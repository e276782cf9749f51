"""Programs that run here and under cachegrind: our own, and some with Debian's code. All are static."""

from __future__ import annotations

import shutil
from pathlib import Path

import require
from guests import guest
from tests.accuracy import valgrind_start
from tests.accuracy.valgrind_start import NO_AVX, Run

OURS = {
    "compression": ("4",),
    "embedded_mix": ("3",),
    "integer_mix": ("3",),
    "interpreter": ("1",),
    "matrix": ("32",),
    "recursion": (),
    "sha256": ("4",),
    "sort": ("3000",),
}
ZLIB = r"""
#include <stdio.h>
#include <zlib.h>
static unsigned char text[SIZE], packed[2 * SIZE];
int main(void) {
    unsigned long x = 88172645463325252ul, n = 0;
    while (n < sizeof text) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        for (unsigned i = 0; i < 2 + x % 6 && n < sizeof text; i++) text[n++] = "aeioulnrst"[x >> i * 3 & 7];
        if (n < sizeof text) text[n++] = ' ';
    }
    uLongf size = sizeof packed, back = sizeof text;
    int failed = compress2(packed, &size, text, n, 6) | uncompress(text, &back, packed, size);
    printf("%d %lu %lu\n", failed, size, back);
    return failed;
}
"""
LUA = r"""
#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <time.h>
#define TEXT(n) #n
#define STRING(n) TEXT(n)
time_t time(time_t *p) { return p ? *p = 1 : 1; }  /* of which Lua makes its hash seed */
int main(void) {
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    int failed = luaL_dostring(lua,
        "local t = {} for i = 1, " STRING(SIZE) " do t[i] = (i * 7919 % 1009) .. 'x' end table.sort(t)"
        "print(t[1], #table.concat(t))");
    lua_close(lua);
    return failed;
}
"""
SQLITE = r"""
#include <sqlite3.h>
#define TEXT(n) #n
#define STRING(n) TEXT(n)
#include <stdio.h>
static int row(void *p, int n, char **values, char **names) {
    (void)p, (void)names;
    for (int i = 0; i < n; i++) printf("%s\n", values[i]);
    return 0;
}
int main(void) {
    sqlite3 *db;
    return sqlite3_open(":memory:", &db) || sqlite3_exec(db,
        "create table t(a integer primary key, b text);"
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < " STRING(SIZE) ")"
        "  insert into t select i, hex(i * 7919) from n;"
        "select count(*), sum(a), max(b) from t where b like '%3%';", row, 0, 0) || sqlite3_close(db);
}
"""
SIZES = {"zlib": 1500, "lua": 40, "sqlite": 20}  # SIZE
LONG_SIZES = {"lua": 6000, "sqlite": 3000}
LIBRARIES = {
    "zlib": (ZLIB, "zlib1g-dev", "-lz"),
    "lua": (LUA, "liblua5.4-dev", "-llua5.4"),
    "sqlite": (SQLITE, "libsqlite3-dev", "-lsqlite3"),
}
BUSYBOX = {
    "awk": ("awk", "BEGIN { for (i = 0; i < 40; i++) a[i % 7] = a[i % 7] i; print a[3] }"),
    "sh": ("sh", "-c", "i=0; s=0; while [ $i -lt 20 ]; do s=$((s + i * i)); i=$((i + 1)); done; echo $s"),
    "sha256sum": ("sha256sum", "/etc/debian_version"),
    "dc": ("dc", "-e", "2 200 ^ p"),
}

PATH_CHARACTERS = 140  # so that the stack, at whose top the path lies, begins at the same address wherever tests run


def place(path: Path, tmp_path: Path, *arguments: str) -> Run:
    """`path` where valgrind_start wants it."""
    padding = "_" * (PATH_CHARACTERS - len(str(tmp_path)))
    directory = tmp_path / padding / "0"
    directory.mkdir(parents=True)
    return Run(Path(shutil.copy(path, directory)), arguments, NO_AVX)


def build(name: str, size: int, tmp_path: Path) -> Path:
    """A program with one of Debian's static libraries."""
    source, package, *options = LIBRARIES[name]
    usr = require.debian_tree("amd64", package) / "usr"
    options += [f"-I{usr}/include", f"-I{usr}/include/x86_64-linux-gnu", f"-L{usr}/lib/x86_64-linux-gnu"]
    return valgrind_start.build(tmp_path, f"{name}.c", source, "-w", f"-DSIZE={size}", *options, "-lm")


def of_ours(name: str, tmp_path: Path) -> Run:
    return place(guest(name, "x86_64").path, tmp_path, *OURS[name])


def with_library(name: str, tmp_path: Path) -> Run:
    return place(build(name, SIZES[name], tmp_path), tmp_path)


def long_with_library(name: str, tmp_path: Path) -> Run:
    return place(build(name, LONG_SIZES[name], tmp_path), tmp_path)


def of_busybox(name: str, tmp_path: Path) -> Run:
    return place(require.debian_tree("amd64", "busybox-static") / "bin/busybox", tmp_path, *BUSYBOX[name])
