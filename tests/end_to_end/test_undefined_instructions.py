"""Who dies of an instruction that the machine does not have is told which one, where, and what it needs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.assembled import kills_itself, program
from end_to_end.command import perfemu
from perfemu.undefined import aarch64, x86_64
from tests.instructions.aarch64 import walk

IN_A_FUNCTION = """
#include <signal.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void newer(void) { __asm__ volatile(INSTRUCTION); }
static void handler(int number) { _exit(number); }
int main(int count, char** arguments) {
    (void)arguments;
    if (count > 1) signal(SIGILL, handler);
    newer();
    return 0;
}
"""
NEWER = {"x86_64": "vpaddd %ymm0, %ymm1, %ymm2", "aarch64": ".inst 0xb8210041"}  # ldadd w1, w1, [x2]
SAYS = {
    "x86_64": "vpaddd ymm2, ymm1, ymm0 needs AVX2; zen5 offers x86-64-v2 with BMI",
    "aarch64": "ldadd w1, w1, [x2] needs LSE; cortex-a72 offers Armv8.0-A with cryptography and CRC32",
}
CORE = {"x86_64": "zen5", "aarch64": "cortex-a72"}
# Names of LLVM, where they are one extension of ours
EXTENSIONS = {
    "bf16": "BF16", "complxnum fullfp16": "FCMA", "cssc": "CSSC", "dotprod": "DotProd", "flagm": "FlagM",
    "fp16fml": "FHM", "frint3264": "FRINTTS", "fullfp16": "FP16", "i8mm": "I8MM", "jsconv": "JSCVT", "lor": "LOR",
    "mops": "MOPS", "mte": "MTE", "pauth": "PAuth", "rcpc": "LRCPC", "rcpc-immo": "LRCPC2", "rdm": "RDM", "tme": "TME",
}  # fmt: skip


@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
def test_a_guest_that_dies_of_it_is_told(isa: str, tmp_path: Path) -> None:
    source = tmp_path / "newer.c"
    source.write_text(IN_A_FUNCTION)
    guest = build(source, isa, tmp_path / "newer", f'-DINSTRUCTION="{NEWER[isa]}"')
    ended = perfemu("run", "--core", CORE[isa], guest)
    assert ended.returncode == 128 + signal.SIGILL
    line, short = ended.stderr.decode().splitlines()
    assert short.endswith(": Illegal instruction")
    assert line.startswith("perfemu: newer: illegal instruction at 0x")
    assert line.endswith(f" in {guest}): {SAYS[isa]}")
    assert "(newer+0x" in line
    handles_it = perfemu("run", guest, "x")
    assert (handles_it.returncode, handles_it.stderr) == (signal.SIGILL, b"")


@pytest.mark.parametrize(
    ("isa", "code", "says"),
    [
        ("x86_64", "0f0b", "ud2 is undefined on every machine"),
        ("x86_64", "62f1744858d0", "vaddps zmm2, zmm1, zmm0 needs AVX512F"),
        ("x86_64", "06", "bytes 06 00 00 00 00 00 00 00 is nothing that ideal offers: x86-64-v2"),
        ("aarch64", "00000000", "udf #0x0 is undefined on every machine"),
        ("aarch64", "4100a504", "needs SVE"),
        ("aarch64", "4128e21e", "fadd h1, h2, h2 needs FP16"),
    ],
)
def test_the_line_names_it(isa: str, code: str, says: str, tmp_path: Path) -> None:
    ended = perfemu("run", "--core", "ideal", program(tmp_path / "guest", isa, code.ljust(30, "0")))
    assert ended.returncode == 128 + signal.SIGILL
    line, short = ended.stderr.decode().splitlines()
    assert short.endswith(": Illegal instruction")
    assert says in line


@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
def test_a_signal_that_was_sent_is_no_instruction(isa: str, tmp_path: Path) -> None:
    ended = perfemu("run", "--core", "ideal", program(tmp_path / "guest", isa, kills_itself(isa, signal.SIGILL)))
    assert ended.returncode == 128 + signal.SIGILL
    assert "offers" not in ended.stderr.decode()


def test_rows_of_a64_say_what_llvm_says() -> None:
    for form in walk.read_forms():
        for word in form.words:
            extension = aarch64.extension_of(word)
            if form.extension in EXTENSIONS and extension not in ("SVE", "SME"):
                assert extension == EXTENSIONS[form.extension], f"{form.name} {word:#x}"
            if form.extension == walk.OFFERED and not form.name.startswith("fcvt"):
                assert not extension, f"{form.name} {word:#x}"


@pytest.mark.parametrize(
    ("code", "text", "extension"),
    [
        ("c5f458d0", "vaddps ymm2, ymm1, ymm0", "AVX"),
        ("c5f5fed0", "vpaddd ymm2, ymm1, ymm0", "AVX2"),
        ("c5f1fed0", "vpaddd xmm2, xmm1, xmm0", "AVX"),
        ("62f17548fcd0", "vpaddb zmm2, zmm1, zmm0", "AVX512BW"),
        ("62f2754850d0", "vpdpbusd zmm2, zmm1, zmm0", "AVX512_VNNI"),
        ("62f56c4858d9", "", "AVX512F"),  # VADDPH, which capstone does not know
        ("c4e271b8d0", "vfmadd231ps xmm2, xmm1, xmm0", "FMA"),
        ("c4e27913c8", "vcvtph2ps xmm1, xmm0", "F16C"),
        ("c4e1f890d1", "kmovq k2, k1", "AVX512BW"),
        ("0f38cbd1", "sha256rnds2 xmm2, xmm1, xmm0", "SHA"),
        ("66480f38f6d8", "adcx rbx, rax", "ADX"),
        ("480fc7f0", "rdrand rax", "RDRAND"),
        ("0f0b", "ud2", ""),
    ],
)
def test_rows_of_x86(code: str, text: str, extension: str) -> None:
    assert x86_64.extension_of(bytes.fromhex(code), text) == extension
