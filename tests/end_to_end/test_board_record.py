"""perfemu record --board: samples of what a machine's CPUs do, taken from outside, with the image's own symbols."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from end_to_end.command import perfemu

# ADR, MSR, MOV; the loop; ADR, MSR, MSR, ERET. At EL0 MOV, the loop, SVC. Behind the SVC two MOVs; the HVC is the
# firmware's to count.
EL1_LOOPS, EL0_LOOPS = 3000, 6000
EL1, EL0 = 3 + 2 * EL1_LOOPS + 4 + 2, 1 + 2 * EL0_LOOPS + 1
PERIOD = 1000
SOURCE = f"""
        .globl  _start
        .type   _start, %function
_start: adr     x0, vectors
        msr     vbar_el1, x0
        mov     x5, #{EL1_LOOPS}
1:      subs    x5, x5, #1
        b.ne    1b
        adr     x0, user
        msr     elr_el1, x0
        msr     spsr_el1, xzr
        eret
        .size   _start, . - _start
        .type   user, %function
user:   mov     x1, #{EL0_LOOPS}
1:      subs    x1, x1, #1
        b.ne    1b
        svc     #0
        .size   user, . - user
        .balign 0x800
vectors: .org   vectors + 0x400
        movz    x0, #0x8400, lsl #16
        movk    x0, #8
        hvc     #0
        .org    vectors + 0x800
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image")
    source, path = folder / "image.S", folder / "image.elf"
    source.write_text(SOURCE)
    compiler = ("aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-Wl,-Ttext=0x40080000", "-Wl,--build-id=none")
    subprocess.run((*compiler, "-o", path, source), check=True)
    return path


def recorded(image: Path, folder: Path, *options: str) -> Path:
    path = folder / "perf.data"
    done = perfemu("record", "-q", "-o", path, "--board", "virt", *options, image)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return path


def samples(path: Path) -> list[str]:
    """Symbol of each sample."""
    done = perfemu("script", "-i", path, "-F", "ip,sym")
    assert done.returncode == 0
    return [line.split()[1] for line in done.stdout.decode().splitlines() if line]


def test_each_period_has_its_sample_and_each_level_its_symbols(image: Path, tmp_path: Path) -> None:
    found = samples(recorded(image, tmp_path, "-e", "instructions", "-c", str(PERIOD)))
    at_el1 = EL1 // PERIOD  # all of it but two instructions comes before EL0
    assert found == ["_start"] * at_el1 + ["user"] * ((EL1 + EL0) // PERIOD - at_el1)


@pytest.mark.parametrize(("modifier", "symbol", "count"), [("u", "user", EL0), ("k", "_start", EL1)])
def test_one_level(modifier: str, symbol: str, count: int, image: Path, tmp_path: Path) -> None:
    found = samples(recorded(image, tmp_path, "-e", f"instructions:{modifier}", "-c", str(PERIOD)))
    assert found == [symbol] * (count // PERIOD)


def test_perf_reads_it(image: Path, tmp_path: Path) -> None:
    path = recorded(image, tmp_path, "-e", "instructions", "-c", str(PERIOD))
    assert perfemu("report", "-i", path, "--jit-files", tmp_path).returncode == 0
    command = ("perf", "report", "-i", path, "--stdio", "--kallsyms", tmp_path / "kallsyms", "--sort", "dso,sym")
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    rows = re.findall(r"^ +([\d.]+)% +(\S+) +\[([.k])\] (\w+)", shown, re.MULTILINE)
    total = (EL1 + EL0) // PERIOD
    at_el1 = EL1 // PERIOD
    assert rows == [
        (f"{100 * (total - at_el1) / total:.2f}", image.name, ".", "user"),
        (f"{100 * at_el1 / total:.2f}", "[kernel.kallsyms]", "k", "_start"),
    ]


def test_time_is_sampled_at_both_levels(image: Path, tmp_path: Path) -> None:
    """On `ideal` an instruction takes a cycle, so that the clock's samples are the levels' shares of all."""
    found = samples(recorded(image, tmp_path, "--core", "ideal", "-e", "cpu-clock", "-F", "100000"))
    assert set(found) <= {"_start", "user"}
    assert found == sorted(found)


@pytest.mark.parametrize("cpus", ["1", "2"])
def test_watching_changes_nothing(cpus: str, image: Path, tmp_path: Path) -> None:
    """The same instructions at the same times, whoever interrupts the run besides: samples of a period say both."""
    fields = ("-F", "event,time,cpu,ip,period")

    def of_instructions(*others: str) -> list[bytes]:
        path = recorded(image, tmp_path, "--cpus", cpus, "-e", f"instructions/period={PERIOD}/", *others)
        lines = perfemu("script", "-i", path, *fields).stdout.splitlines()
        return [line for line in lines if b"instructions" in line]

    alone = of_instructions()
    assert len(alone) == (EL1 + EL0) // PERIOD
    assert of_instructions("-e", "cpu-clock", "-e", "cycles", "-F", "90000") == alone


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--exact",), "record --exact: is of programs"),
        (("-s",), "record -s: is of programs"),
        (("--from-symbol", "main"), "regions are of the program's threads"),
        (("-C", "3"), "there is no CPU 3"),
        (("--kallsyms", "/dev/null"), "--kallsyms /dev/null: no line of it is a symbol"),
        (("--kallsyms", "/nowhere"), "--kallsyms /nowhere: No such file or directory"),
    ],
)
def test_what_a_board_has_not(options: tuple[str, ...], says: str, image: Path, tmp_path: Path) -> None:
    done = perfemu("record", "-o", tmp_path / "perf.data", "--board", "virt", *options, image)
    assert done.returncode != 0
    assert says in done.stderr.decode()


def test_symbols_of_a_file(image: Path, tmp_path: Path) -> None:
    symbols = tmp_path / "System.map"
    symbols.write_text("0000000040080000 T _text\n0000000040080000 T all_of_it\n")
    found = samples(recorded(image, tmp_path, "-e", "instructions:k", "-c", str(PERIOD), "--kallsyms", str(symbols)))
    assert found == ["all_of_it"] * (EL1 // PERIOD)


def test_kallsyms_is_of_boards(image: Path, tmp_path: Path) -> None:
    done = perfemu("record", "-o", tmp_path / "perf.data", "--kallsyms", image, image)
    assert done.returncode != 0
    assert "--kallsyms: is of a board's kernel" in done.stderr.decode()
