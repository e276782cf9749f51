"""Debian's unmodified amd64 kernels boot on the board pc, run busybox, and turn it off."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import debian_kernel
import require
from debian import TRIXIE
from perfemu.initramfs import Entry, program
from tests.end_to_end.command import ENVIRONMENT, PERFEMU, perfemu
from tests.end_to_end.test_board_kernels import SCRIPT, said

TIMEOUT_S = 300
SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")


def boot(
    kernel: Path,
    folder: Path,
    cpus: int = 1,
    script: str = SCRIPT,
    typed: str = "",
    core: str = "ideal",
    more: tuple[Entry, ...] = (),
) -> list[str]:
    """The console's lines. Those of the kernel begin with its time."""
    initrd = folder / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(script, *more, architecture="amd64"))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "pc", "--core", core, "--untimed", "--memory", "512M", "--cpus", str(cpus)]
        + ["--initrd", initrd, "--append", "console=ttyS0", kernel],
        input=typed.encode(), capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


@SLOW
def test_a_kernel_boots_to_user_space(tmp_path: Path) -> None:
    lines = boot(debian_kernel.kernel("", "amd64"), tmp_path)
    running, cpus, answer = said(lines)
    assert re.fullmatch(r"\d+\.\d+\.\d+-\d+-amd64", running)
    assert (cpus, answer) == ("1", "52")
    assert re.search("reboot: Power down", lines[-1])
    assert not [line for line in lines if re.search("Oops|BUG|WARNING", line)]


@SLOW
def test_perf_finds_the_symbols_of_a_kernel_that_has_unpacked_itself(tmp_path: Path) -> None:
    """Its bzImage has none; those in its memory are where it runs, which KASLR has chosen. Samples of its decompressor
    have no name. It has ORC's tables, and no frame pointers: perf, too, sees chains of one address."""
    initrd, data = tmp_path / "initrd", tmp_path / "perf.data"
    initrd.write_bytes(debian_kernel.initramfs(SCRIPT, architecture="amd64"))
    done = subprocess.run(
        [PERFEMU, "record", "-q", "-g", "-o", data, "-e", "instructions:k", "-c", "1000003"]
        + ["--board", "pc", "--core", "ideal", "--memory", "512M", "--initrd", initrd]
        + ["--cmdline", "console=ttyS0 quiet", debian_kernel.kernel("", "amd64")],
        capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0
    assert said(done.stdout.decode().splitlines())[1:] == ["1", "52"]
    assert done.stderr.decode() == (
        "perfemu: -g: this kernel has ORC's tables, and no frame pointers: samples in it have no callers\n"
    )
    assert perfemu("report", "-i", data, "--jit-files", tmp_path).returncode == 0
    command = ("perf", "script", "-i", data, "--kallsyms", tmp_path / "kallsyms", "-F", "ip,sym")
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    kernel = {symbol for address, symbol in re.findall(r"([0-9a-f]+) (\S+)", shown) if int(address, 16) >> 63}
    assert {"mpihelp_submul_1", "mpihelp_addmul_1"} <= kernel  # it checks its own keys, by RSA
    assert "[unknown]" not in kernel
    assert {len(chain.splitlines()) for chain in re.split(r"\n{2,}", shown.strip())} == {1}


@SLOW
def test_a_vmlinux_without_symbols_has_those_in_its_memory(tmp_path: Path) -> None:
    """As the bzImage has it within: an ELF file that PVH boots, stripped. It says that it is Linux; what it carries for
    itself says its symbols, and that it has no frame pointers."""
    image, initrd, data = debian_kernel.vmlinux("", "amd64"), tmp_path / "initrd", tmp_path / "perf.data"
    initrd.write_bytes(debian_kernel.initramfs(SCRIPT, architecture="amd64"))
    done = perfemu(
        "record", "-q", "-g", "-o", data, "-e", "instructions", "-c", "1000003", "--guest-linux", "--board", "pc",
        "--core", "ideal", "--memory", "512M", "--initrd", initrd, "--cmdline", "console=ttyS0 quiet", image,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "perfemu: -g: this kernel has ORC's tables, and no frame pointers: samples in it have no callers\n"
    )
    shown = perfemu("script", "-i", data, "-F", "comm,ip,sym").stdout.decode()
    samples = [sample.splitlines() for sample in re.split(r"\n{2,}", shown.strip())]
    kernel = [chain for _, *chain in samples if int(chain[0].split()[0], 16) >> 63]
    assert {len(chain) for chain in kernel} == {1}
    symbols = {chain[0].split()[1] for chain in kernel}
    assert {"mpihelp_submul_1", "mpihelp_addmul_1"} <= symbols
    assert "[unknown]" not in symbols
    assert "cryptomgr_test" in {lines[0].strip() for lines in samples}


# A program of 32 bits: by INT 80H, and as the kernel's own code for programs calls it (AT_SYSINFO, the 32nd of the
# auxiliary vector): by SYSENTER on Intel's processors, by SYSCALL on AMD's. Its status is what write() has returned.
HELLO_32 = """
_start: mov     $4, %eax
        mov     $1, %ebx
        mov     $first, %ecx
        mov     $8, %edx
        int     $0x80
        lea     4(%esp), %esi
1:      lodsl
        test    %eax, %eax
        jnz     1b
2:      lodsl
        test    %eax, %eax
        jnz     2b
3:      lodsl
        cmp     $32, %eax
        lodsl
        jne     3b
        mov     %eax, %edi
        mov     $4, %eax
        mov     $second, %ecx
        mov     $21, %edx
        call    *%edi
        mov     %eax, %ebx
        mov     $1, %eax
        call    *%edi
        .globl  _start
        .data
first:  .ascii  "INT 80H\\n"
second: .ascii  "by the kernel's code\\n"
"""


@pytest.mark.parametrize("core", [pytest.param("skylake", marks=SLOW), "zen5"])
def test_programs_of_32_bits(core: str, tmp_path: Path) -> None:
    require.command("as", package="binutils")
    linked, hello = tmp_path / "hello.o", tmp_path / "hello"
    subprocess.run(["as", "--32", "-o", linked], input=HELLO_32, text=True, check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-o", hello, linked], check=True)
    more = (program("bin/hello", hello.read_bytes()),)
    lines = boot(debian_kernel.vmlinux("", "amd64"), tmp_path, script="hello; echo status $?\n", core=core, more=more)
    assert [line for line in lines if not line.startswith("[")] == ["INT 80H", "by the kernel's code", "status 21"]
    assert any(re.search("tsc: Detected .* MHz processor", line) for line in lines)
    assert not [line for line in lines if re.search("Oops|BUG|Firmware Bug", line)]


@SLOW
def test_trixies_kernel_twice_to_the_same_bytes(tmp_path: Path) -> None:
    kernel = debian_kernel.kernel(TRIXIE, "amd64")
    first = boot(kernel, tmp_path)
    running, cpus, answer = said(first)
    assert re.fullmatch(r"6\.12\..*-amd64", running)
    assert (cpus, answer) == ("1", "52")
    assert boot(kernel, tmp_path) == first


CLOCK_SOURCE = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource\n"


def test_several_cpus_have_one_time(tmp_path: Path) -> None:
    """As each CPU comes up, Linux compares its time stamp counter with the first's (check_tsc_sync_source), and would
    take another clock source if one went back."""
    lines = boot(debian_kernel.vmlinux("", "amd64"), tmp_path, cpus=2, script=CLOCK_SOURCE)
    assert [line for line in lines if not line.startswith("[")][-1] == "tsc"
    assert any("Switched to clocksource tsc" in line for line in lines)
    assert not [line for line in lines if re.search("warp|unstable|unsynchronized", line, re.IGNORECASE)]
