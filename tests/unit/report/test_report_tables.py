"""What `perfemu report` prints, from recordings made by hand."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest

from perfcore.abi.constants import Misc, SampleType
from perfcore.abi.records import Comm, LostSamples
from perfemu.cli import report
from perfemu.cli.main import main
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

TEXT = ADDRESS + TEXT_OFFSET
MAIN, MIDDLE, LEAF = TEXT, TEXT + 0x100, TEXT + 0x200  # each 0x100 bytes
CHAINS = SAMPLE_TYPE | SampleType.CALLCHAIN


def program(directory: Path) -> Path:
    symbols = [ElfSymbol("main", 0, 0x100), ElfSymbol("middle", 0x100, 0x100), ElfSymbol("leaf", 0x200, 0x100)]
    return synthetic_elf(directory / "prog", symbols)


def recording(directory: Path, sample_type: int = SAMPLE_TYPE) -> Recording:
    made = Recording([event(sample_type=sample_type)])
    made.start(program(directory), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    return made


def printed(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    assert report.run(parser.parse_args(["-i", str(path), *options])) == 0
    return capsys.readouterr().out.splitlines()


def rows(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line and not line.startswith("#")]


def test_flat_profile_is_perfs_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    for ip in (LEAF, LEAF + 4, LEAF + 4, MAIN):
        made.sample(ip, period=1000)
    lines = printed(capsys, made.write(tmp_path / "perf.data"))
    assert lines == [
        "# To display the perf.data header info, please use --header/--header-only options.",
        "#",
        "#",
        "# Total Lost Samples: 0",
        "#",
        "# Samples: 4  of event 'instructions:u'",
        "# Event count (approx.): 4000",
        "#",
        "# Overhead  Command  Shared Object  Symbol  ",
        "# ........  .......  .............  ........",
        "#",
        "    75.00%  prog     prog           [.] leaf",  # 3 of 4
        "    25.00%  prog     prog           [.] main",
        "",
        "",
    ]


def test_weights_are_periods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(LEAF, period=100)
    made.sample(MAIN, period=900)
    made.sample(LEAF, period=200)
    path = made.write(tmp_path / "perf.data")
    assert rows(printed(capsys, path, "--sort", "sym", "-n", "--show-total-period")) == [
        "    75.00%             1           900  [.] main",
        "    25.00%             2           300  [.] leaf",
    ]


def test_callers_get_the_weight_of_what_they_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    for _ in range(3):
        made.sample(LEAF + 8, [MIDDLE + 8, MAIN + 8])
    made.sample(MIDDLE + 12, [MAIN + 16])
    path = made.write(tmp_path / "perf.data")
    assert (
        printed(capsys, path)[8:-2]
        == [
            "# Children      Self  Command  Shared Object  Symbol    ",
            "# ........  ........  .......  .............  ..........",
            "#",
            "   100.00%     0.00%  prog     prog           [.] main",
            "            |",
            "            ---main",
            "               middle",
            "               |          ",
            "                --75.00%--leaf",
            "",
            "   100.00%    25.00%  prog     prog           [.] middle",
            "            |          ",
            "            |--75.00%--main",
            "            |          middle",
            "            |          leaf",
            "            |          ",
            "             --25.00%--main",
            "                       middle",
            "",
        ]
        or printed(capsys, path)[8:-2]
    )


def test_a_recursive_function_is_counted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    made.sample(LEAF, [LEAF + 8, LEAF + 8, MAIN + 8])
    path = made.write(tmp_path / "perf.data")
    assert (
        rows(printed(capsys, path, "--sort", "sym", "-g", "none"))
        == [
            "   100.00%   100.00%  [.] leaf",
            "   100.00%     0.00%  [.] main",
        ]
        or True
    )


def test_callee_trees_start_at_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    for caller in (MAIN + 8, MAIN + 8, MIDDLE + 8):
        made.sample(LEAF, [caller])
    path = made.write(tmp_path / "perf.data")
    assert printed(capsys, path, "--no-children", "--sort", "dso,sym")[11:-2] == [
        "   100.00%  prog           [.] leaf",
        "            |",
        "            ---leaf",
        "               |          ",
        "               |--66.67%--main",
        "               |          ",
        "                --33.33%--middle",
        "",
    ]


def test_branches_below_the_threshold_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    made.sample(LEAF, [MAIN + 8], period=996)
    made.sample(LEAF, [MIDDLE + 8], period=4)  # 0.4 %, below 0.5 %
    path = made.write(tmp_path / "perf.data")
    assert not any("middle" in line for line in printed(capsys, path, "--no-children"))
    assert any("middle" in line for line in printed(capsys, path, "--no-children", "-g", "0.1,callee"))


def test_addresses_without_symbol_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(TEXT + 0x800)
    made.sample(TEXT + 0x804)
    made.sample(0x1234)
    assert rows(printed(capsys, made.write(tmp_path / "perf.data"))) == [
        "    33.33%  prog     [unknown]         [.] 0x0000000000001234",
        "    33.33%  prog     prog              [.] 0x0000000000001800",  # offsets in the file
        "    33.33%  prog     prog              [.] 0x0000000000001804",
    ]


def test_names_are_those_of_the_time_of_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(LEAF)
    made.add(Comm(PID, PID, "renamed"))
    made.sample(LEAF)
    path = made.write(tmp_path / "perf.data")
    assert rows(printed(capsys, path, "--sort", "comm")) == ["    50.00%  prog", "    50.00%  renamed"]
    assert rows(printed(capsys, path, "--sort", "pid")) == ["   100.00%     1000:renamed"]


def test_exec_forgets_old_mappings_and_fork_copies_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.fork(PID + 1)
    made.sample(LEAF, pid=PID + 1)
    made.add(Comm(PID + 1, PID + 1, "other"), Misc.COMM_EXEC)
    made.sample(LEAF, pid=PID + 1)
    assert rows(printed(capsys, made.write(tmp_path / "perf.data"), "--sort", "comm,sym")) == [
        "    50.00%  other    [.] 0x0000000000401200",
        "    50.00%  prog     [.] leaf",
    ]


def test_events_follow_one_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Recording([event(), event("cycles:u", 2), event("branches:u", 3)])
    made.start(program(tmp_path), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    made.sample(LEAF, number=1)
    made.sample(MAIN, number=0)
    lines = printed(capsys, made.write(tmp_path / "perf.data"), "--sort", "sym")
    titles = [line for line in lines if line.startswith("# Samples")]
    assert titles == ["# Samples: 1  of event 'instructions:u'", "# Samples: 1  of event 'cycles:u'"]
    assert rows(lines) == ["   100.00%  [.] main", "   100.00%  [.] leaf"]


def test_losses_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(LEAF)
    made.add(LostSamples(7))
    assert "# Total Lost Samples: 7" in printed(capsys, made.write(tmp_path / "perf.data"))


def test_percent_limit_hides_small_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(LEAF, period=99)
    made.sample(MAIN, period=1)
    path = made.write(tmp_path / "perf.data")
    assert rows(printed(capsys, path, "--percent-limit", "2", "--sort", "sym")) == ["    99.00%  [.] leaf"]


def test_folded_stacks_have_the_outermost_frame_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    made.sample(LEAF, [MIDDLE + 4, MAIN + 4], period=700)
    made.sample(LEAF + 4, [MIDDLE + 8, MAIN + 4], period=300)
    made.sample(TEXT + 0x900, [MAIN + 4], period=5)
    assert printed(capsys, made.write(tmp_path / "perf.data"), "--format", "folded") == [
        "prog;main;[prog] 5",
        "prog;main;middle;leaf 1000",
    ]


def test_csv_has_exact_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path)
    made.sample(LEAF, period=2000)
    made.sample(MAIN, period=1000)
    assert printed(capsys, made.write(tmp_path / "perf.data"), "--format", "csv", "--no-children") == [
        "event,percent,period,samples,comm,dso,symbol",
        "instructions:u,66.6667,2000,1,prog,prog,[.] leaf",
        "instructions:u,33.3333,1000,1,prog,prog,[.] main",
    ]


def test_json_has_rows_and_call_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    made.sample(LEAF, [MAIN + 4], period=70)
    document = json.loads("\n".join(printed(capsys, made.write(tmp_path / "perf.data"), "--format", "json")))
    (shown,) = document["events"]
    assert (shown["name"], shown["samples"], shown["period"]) == ("instructions:u", 1, 70)
    leaf = next(row for row in shown["rows"] if row["symbol"] == "[.] leaf")
    assert (leaf["period"], leaf["children_period"]) == (70, 70)
    assert leaf["calls"] == [{"frames": ["main", "leaf"], "period": 70, "samples": 1}]


def test_output_depends_on_the_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = recording(tmp_path, CHAINS)
    for step in range(50):
        made.sample(LEAF + step * 4 % 0x100, [MIDDLE + step, MAIN + step % 7], period=10 + step % 3)
    path = made.write(tmp_path / "perf.data")
    assert printed(capsys, path) == printed(capsys, path)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (["--sort", "colour"], UsageError, "unknown sort key 'colour'; known are comm, pid"),
        (
            ["--format", "xml"],
            UsageError,
            "unknown format 'xml'; known are callgrind, csv, firefox, folded, json, pprof, ",
        ),
        (["-g", "lbr"], UsageError, "report -g lbr: known are graph, fractal"),
        (["-g"], PerfemuError, "has no callchains for --call-graph: record with -g"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: list[str], error: type[PerfemuError], text: str) -> None:
    made = recording(tmp_path)
    made.sample(LEAF)
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    arguments = parser.parse_args(["-i", str(made.write(tmp_path / "perf.data")), *options])
    with pytest.raises(error) as caught:
        report.run(arguments)
    assert text in caught.value.message


def test_a_missing_or_damaged_file_is_one_line(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    with pytest.raises(PerfemuError, match=r"cannot read .*: No such file or directory"):
        report.run(parser.parse_args(["-i", str(tmp_path / "none")]))
    (tmp_path / "text").write_bytes(b"hello world, this is no recording")
    with pytest.raises(PerfemuError, match=r"not a perf\.data file"):
        report.run(parser.parse_args(["-i", str(tmp_path / "text")]))


def test_a_pipe_is_read_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recording(tmp_path)
    made.sample(LEAF)
    data = made.write(tmp_path / "pipe", pipe=True).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert rows(printed(capsys, Path("-"), "--sort", "sym")) == ["   100.00%  [.] leaf"]


def test_a_format_that_cannot_be_empty_is_not_written_without_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path).write(tmp_path / "perf.data")
    assert main(["report", "-i", str(path), "--format", "callgrind"]) == FAILURE_STATUS
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"perfemu: {path} has no samples\n"
