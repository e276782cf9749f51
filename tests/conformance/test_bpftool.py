"""Debian's bpftool as a guest: it finds programs, maps, links and types, by numbers and by their names in bpffs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import require
from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU

PINNER = Path(__file__).with_name("perf_calls") / "bpf.h"
PINS = """
#include "bpf.h"
int main(int count, char **arguments) {
    struct bpf_insn counting[] = {
        STORE(BPF_W, 10, -4, 0), MOVX(2, 10), ALU(BPF_ADD, 2, -4), MAP(1, 0), CALL(BPF_FUNC_map_lookup_elem),
        JUMP(BPF_JEQ, 0, 0, 2), MOV(1, 1), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD), MOV(0, 0), EXIT,
    };
    counting[3].imm = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_TRACING, .prog_name = "counts_opens"};
    attr.insns = (uintptr_t)counting;
    attr.insn_cnt = LENGTH(counting);
    attr.license = (uintptr_t) "GPL";
    attr.expected_attach_type = BPF_TRACE_FENTRY;
    attr.attach_btf_id = atoi(arguments[1]);
    int program = bpf(BPF_PROG_LOAD, &attr);
    attr = (union bpf_attr){.raw_tracepoint.prog_fd = program};
    int objects[] = {program, bpf(BPF_RAW_TRACEPOINT_OPEN, &attr), counting[3].imm};
    const char *names[] = {"/sys/fs/bpf/program", "/sys/fs/bpf/link", "/sys/fs/bpf/map"};
    for (int i = 0; i < 3; i++) {
        attr = (union bpf_attr){.pathname = (uintptr_t)names[i]};
        attr.bpf_fd = objects[i];
        if (bpf(BPF_OBJ_PIN, &attr)) return 1;
    }
}
"""
SCRIPT = """
function=$(bpftool btf dump id 1 format raw | while read line; do case $line in
    *"FUNC 'do_sys_openat2'"*) line=${line%]*}; echo ${line#[} ;; esac; done)
echo $function
/w/pins $function || exit 1
bpftool --json prog show
bpftool --json link show
bpftool --json map dump pinned /sys/fs/bpf/map
for turn in 1 2 3; do : < /bin/sh; done
bpftool --json map dump pinned /sys/fs/bpf/map
bpftool --json map dump pinned /sys/fs/bpf/map
bpftool --json -f map show pinned /sys/fs/bpf/map
"""


def test_what_there_is_is_shown(tmp_path: Path) -> None:
    tree = require.debian_tree("amd64", "bpftool", "dash", release=TRIXIE)
    source = tmp_path / "pins.c"
    source.write_text(PINS, encoding="utf-8")
    build(source, "x86_64", tmp_path / "pins", "-w", f"-I{PINNER.parent}")
    (tmp_path / "script").write_text(SCRIPT, encoding="utf-8")
    binds = ["--bind", f"{tree}:/", "--bind", f"{tmp_path}:/w"]
    environment = ["--env", "PATH=/usr/sbin:/usr/bin:/bin"]
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", *binds, *environment, "--", "/bin/sh", "/w/script"],
        capture_output=True, text=True, env=ENVIRONMENT, check=True,
    )  # fmt: skip
    function, *answers = done.stdout.splitlines()
    programs, links, first, second, third, maps = (json.loads(answer) for answer in answers)
    assert [(each["type"], each["name"], each["map_ids"]) for each in programs] == [("tracing", "counts_opens", [1])]
    (link,) = links
    assert (link["type"], link["attach_type"], link["prog_id"]) == ("tracing", "trace_fentry", 1)
    assert (link["target_obj_id"], link["target_btf_id"]) == (1, int(function))
    assert maps["pinned"] == ["/sys/fs/bpf/map"]
    looking = opens(third) - opens(second)  # what bpftool opens each time; before the second time the shell opened 3
    assert opens(second) - opens(first) == looking + 3


def opens(elements: Any) -> int:
    (element,) = elements
    return int.from_bytes(bytes(int(byte, 16) for byte in element["value"]), "little")
