"""--control: the guest says when it is counted, by FIFOs of its own; nobody outside does."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import DIRECTORY, ISAS
from perfcore.perfdata.reader import open_perf_data
from perfemu.control import Control, read_control

FIFOS = "fifo:/dev/orders,/dev/answers"
ASK = "order() { echo $1 > /dev/orders; read answer < /dev/answers; }; "
WORK = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); done; "


def stat(*arguments: str | Path) -> list[list[str]]:
    done = perfemu("stat", "-x,", "-e", "instructions:u,branches:u", *arguments)
    return [line.split(",") for line in done.stderr.decode().splitlines() if "," in line]


@pytest.fixture(scope="module")
def shell() -> tuple[str, ...]:
    return require.command("busybox", package="busybox-static"), "sh", "-c"


@pytest.mark.parametrize("isa", ISAS)
def test_it_counts_between_the_orders(isa: str, tmp_path: Path) -> None:
    """1,000 rounds of two instructions more; whatever there is besides them is the same."""
    program = build(Path(__file__).with_name("markers.c"), isa, tmp_path / "program", f"-I{DIRECTORY / 'include'}")
    short, long = (
        int(stat("-D", "-1", "--control", "fifo:/dev/orders", program, f"control-{what}")[0][0])
        for what in ("short", "long")
    )
    assert long - short == 2000
    assert 201 < short < 300  # the loop, and the C library's way to two system calls


def test_answers_and_single_events(shell: tuple[str, ...]) -> None:
    """Of what is no order there is no answer, for which this shell waits in vain."""
    script = ASK + "order ping; echo $answer; order enable; order 'disable branches'; " + WORK + "order 'what is this'"
    options = ("-D", "-1", "-x,", "-e", "instructions:u,branches:u", "--control", FIFOS)
    done = perfemu("stat", *options, *shell, script)
    assert done.stdout == b"ack\n"
    assert "waits, and nothing is left that could wake it" in done.stderr.decode()
    lines = [line.split(",") for line in done.stderr.decode().splitlines() if ",," in line]
    counts = {row[2]: int(row[0]) for row in lines}
    assert counts["instructions:u"] > 10_000
    assert counts["instructions:u"] > 50 * counts["branches:u"]  # of which every tenth or so is one


def test_without_an_order_nothing_counts(shell: tuple[str, ...]) -> None:
    assert [row[0] for row in stat("-D", "-1", "--control", FIFOS, *shell, WORK)] == ["<not counted>"] * 2


def test_stop_ends_the_run(shell: tuple[str, ...], tmp_path: Path) -> None:
    script = WORK + ASK + "order disable; " + WORK + "order stop; " + WORK + "echo not reached"
    options = ("-e", "instructions:u", "-c", "100", "--control", FIFOS)
    done = perfemu("record", *options, *shell, script, cwd=tmp_path)
    assert done.returncode == 124
    assert done.stdout == b""
    assert "stopped: the guest has asked for it (--control)" in done.stderr.decode()
    with open_perf_data(str(tmp_path / "perf.data")) as file:
        assert [event.name for event in file.events] == ["instructions:u", "dummy:u"]


def test_a_guest_that_gives_many_orders(shell: tuple[str, ...]) -> None:
    """Each is obeyed, and not each is told of: 2 * 80 of them."""
    script = "i=0; while [ $i -lt 80 ]; do echo disable; echo enable; i=$((i+1)); done > /dev/orders"
    done = perfemu("stat", "-e", "instructions", "--control", "fifo:/dev/orders", *shell, script)
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("Events ")]
    assert len(told) == 100
    assert told[-1] == "Events enabled, and so on"


def test_the_guest_sees_fifos(shell: tuple[str, ...]) -> None:
    done = perfemu("stat", "--control", FIFOS, *shell, "test -p /dev/orders && test -p /dev/answers && echo both")
    assert done.stdout == b"both\n"


def test_what_is_no_control(shell: tuple[str, ...]) -> None:
    assert read_control("fifo:/dev/a") == Control("/dev/a")
    for wrong in (
        "fifo:/tmp/a",
        "fifo:/dev/a,/dev/a",
        "fifo:/dev/a,/dev/b,/dev/c",
        "/dev/a",
        "fifo:",
        "fifo:/dev/../x",
    ):
        with pytest.raises(ValueError, match="is not fifo:/dev/NAME"):
            read_control(wrong)
    said = complaint(perfemu("stat", "--control", "fd:3,4", "true"))
    assert "a descriptor's writer is the host's" in said
    assert "fifo:/dev/NAME" in said
