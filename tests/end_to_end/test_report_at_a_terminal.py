"""What is printed on a terminal: colours, its width, and the user's pager; in a pipe none of them."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from end_to_end.command import PERFEMU, TIMEOUT_S
from guests import guest
from several_tasks import recording

RED = "\x1b[31m"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("tasks"))


def at_a_terminal(data: Path, *options: str, **variables: str) -> tuple[int, str]:
    """Exit status, and what appears of a report."""
    return command_at_a_terminal("report", "-i", str(data), "-g", "none", *options, **variables)


def command_at_a_terminal(*arguments: str, **variables: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **variables}
    controller, terminal = pty.openpty()
    command = [PERFEMU, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=environment) as run:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # EIO is the end
            while more := os.read(controller, 65536):
                shown += more
        status = run.wait(TIMEOUT_S)
    os.close(controller)
    return status, shown.decode().replace("\r\n", "\n")


def in_a_pipe(data: Path, *options: str, **variables: str) -> str:
    command = [PERFEMU, "report", "-i", str(data), "-g", "none", *options]
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **variables}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=environment, timeout=TIMEOUT_S
    )
    return done.stdout.decode()


def test_percentages_have_perfs_colours(data: Path) -> None:
    status, shown = at_a_terminal(data, PAGER="cat")
    assert status == 0
    assert f"{RED} 100.00%\x1b[m" not in in_a_pipe(data)
    assert shown == in_a_pipe(data, "--stdio-color", "always")
    assert RED in shown


@pytest.mark.parametrize(("options", "variables"), [((), {"TERM": "dumb"}), (("--stdio-color", "never"), {})])
def test_a_terminal_without_colours(options: tuple[str, ...], variables: dict[str, str], data: Path) -> None:
    assert at_a_terminal(data, *options, **({"PAGER": ""} | variables)) == (0, in_a_pipe(data))


@pytest.mark.parametrize(
    "variables", [{"PAGER": "sed s/^/paged:/"}, {"PERF_PAGER": "sed s/^/paged:/", "PAGER": "sed s/^/not/"}]
)
def test_the_users_pager_shows_it(variables: dict[str, str], data: Path) -> None:
    status, shown = at_a_terminal(data, "--stats", **variables)
    lines = in_a_pipe(data, "--stats", **variables).splitlines()
    assert (status, shown.splitlines()) == (0, [f"paged:{line}" for line in lines])


def test_less_leaves_what_fits(data: Path) -> None:
    """By perf's own options, unless the user has others."""
    for variables, said in (({}, "FRSX"), ({"LESS": "R"}, "R")):
        assert at_a_terminal(data, "--stats", PAGER="cat >&2; echo $LESS", **variables)[1].splitlines()[-1] == said


def test_a_pager_may_stop_early(data: Path) -> None:
    status, shown = at_a_terminal(data, "-D", PAGER="head -n 1")
    assert status == 0
    assert len(shown.splitlines()) == 1


def test_an_error_is_no_page(data: Path) -> None:
    status, shown = at_a_terminal(data, "-c", "nobody", PAGER="sed s/^/paged:/")
    assert status != 0
    assert shown == "perfemu: no sample is of the command nobody; there are child, prog, worker\n"


def test_a_pager_that_is_not_there_is_named(data: Path) -> None:
    status, shown = at_a_terminal(data, PAGER="no-such-pager")
    assert status != 0
    assert shown.splitlines()[-1] == (
        "perfemu: the pager 'no-such-pager' cannot be run: PERF_PAGER or PAGER names it, cat is none"
    )


def test_a_binary_format_is_not_for_a_terminal(data: Path) -> None:
    status, shown = at_a_terminal(data, "--format", "pprof")
    assert status != 0
    assert shown == "perfemu: --format pprof is binary, not for a terminal: write it to a file, > profile\n"


def _annotated(tmp_path: Path) -> str:
    data = str(tmp_path / "exact.data")
    command = [PERFEMU, "record", "-q", "--core", "ideal", "--exact", "-e", "instructions", "-o", data]
    subprocess.run([*command, guest("loop_1k", "aarch64").path], check=True, timeout=TIMEOUT_S)
    return data


def test_annotate_is_no_wider_than_the_terminal(tmp_path: Path) -> None:
    arguments = ("annotate", "-i", _annotated(tmp_path), "_start")
    status, shown = command_at_a_terminal(*arguments, PAGER="cat", COLUMNS="50")
    lines = [re.sub("\x1b\\[[0-9]*m", "", line) for line in shown.splitlines()]
    assert (status, max(map(len, lines))) == (0, 50)
    assert f"       1,000{RED}   49.90\x1b[m :   4000b4: subs" in shown
    piped = subprocess.run([PERFEMU, *arguments], check=True, capture_output=True, env={"COLUMNS": "50"}, text=True)
    assert max(map(len, piped.stdout.splitlines())) > 100
    assert "\x1b" not in piped.stdout


@pytest.mark.parametrize("command", ["annotate", "script"])
def test_other_commands_have_the_pager_too(command: str, tmp_path: Path) -> None:
    status, shown = command_at_a_terminal(command, "-i", _annotated(tmp_path), PAGER="sed s/^/paged:/")
    assert status == 0
    assert all(line.startswith("paged:") for line in shown.splitlines())
    assert "_start" in shown
