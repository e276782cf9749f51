"""perfemu truth: samples against the exact counts of the same run. What is expected of loop_1k is derived by hand."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import require
from emulator.core_file.units import UNITS
from end_to_end.command import complaint, perfemu
from guests import ISAS, guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu.all_units import ALONE, KINDS
from spe_records import traces_in

LOOP = {isa: guest("loop_1k", isa).path for isa in ISAS}
SORT = {isa: guest("sort", isa).path for isa in ISAS}
EXECUTED = 2004  # one MOV, a thousand rounds of two instructions, three to exit
SVG = "{http://www.w3.org/2000/svg}"


def recorded(directory: Path, *arguments: str | Path, stdin: bytes = b"") -> None:
    result = perfemu("record", *arguments, cwd=directory, stdin=stdin)
    assert result.returncode == 0, result.stderr


def truth(directory: Path, *arguments: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    """The document, which is a file of its own: the program writes on the command's standard output."""
    output = directory / "truth.json"
    result = perfemu("truth", "--json", "-o", output, *arguments, cwd=directory, stdin=stdin)
    assert result.returncode == 0, result.stderr
    return json.loads(output.read_text())  # type: ignore[no-any-return]


def event(directory: Path, *arguments: str | Path, stdin: bytes = b"") -> dict[str, Any]:
    ((event,),) = [file["events"] for file in truth(directory, *arguments, stdin=stdin)]
    return event  # type: ignore[no-any-return]


@pytest.mark.parametrize("isa", ISAS)
def test_a_period_that_the_loop_divides_sees_one_instruction(isa: str, tmp_path: Path) -> None:
    """Instruction 100, 200, ... 2000 is the loop's first, and an interrupt finds its second, which has 1,000 of 2,004.

    All else that was executed is in the wrong place; the first instruction, with as much, has no sample.
    """
    recorded(tmp_path, "-e", "instructions", "-c", "100", LOOP[isa])
    found = event(tmp_path)
    assert (found["samples"], found["events"], found["same_run"]) == (20, EXECUTED, True)
    assert found["skid"] == {"at_instruction": 0, "in_function": 20, "elsewhere": 0}
    assert found["instructions"]["error"] == pytest.approx(1 - 1000 / EXECUTED)
    assert found["instructions"]["unseen"] == 1
    assert found["instructions"]["p"] < 1e-4
    assert found["functions"]["error"] == 0  # all of it is _start's


@pytest.mark.parametrize("isa", ISAS)
def test_an_odd_period_sees_both(isa: str, tmp_path: Path) -> None:
    """Of instructions 101, 202, ... 1919 ten are odd, the loop's second: 10 of 19 instead of 1,000 of 2,004."""
    recorded(tmp_path, "-e", "instructions:pp", "-c", "101", LOOP[isa])
    found = event(tmp_path)
    assert found["skid"] is None  # they name the instruction
    assert found["instructions"]["impossible"] == 0
    assert found["instructions"]["error"] == pytest.approx(10 / 19 - 1000 / EXECUTED)
    assert found["instructions"]["unseen"] == 0


@pytest.mark.parametrize(("isa", "core"), [("aarch64", "neoverse-n1"), ("x86_64", "skylake")])
def test_functions_of_a_modelled_core(isa: str, core: str, tmp_path: Path) -> None:
    """Of cycles, by frequency, with callchains: the truth is record --exact's."""
    recorded(tmp_path, "--core", core, "-g", "-F", "1000000", "-e", "cycles,branch-misses", SORT[isa], "5000")
    ((cycles, misses),) = [file["events"] for file in truth(tmp_path)]
    assert cycles["same_run"]
    assert misses["same_run"]
    assert cycles["skid"]["at_instruction"] == 0
    assert misses["instructions"]["impossible"] > 0.5  # behind branches there seldom is another that is mispredicted
    recorded(tmp_path, "--core", core, "--exact", "-e", "cycles,branch-misses", SORT[isa], "5000")
    report = perfemu("diff", "--json", "--all", "perf.data", "perf.data", cwd=tmp_path)
    exact = {each["event"]: each for each in json.loads(report.stdout)["events"]}
    for found, name in ((cycles, "cycles"), (misses, "branch-misses")):
        assert found["events"] == exact[name]["total"]["old"]
        shares = {row["function"]: row["true"] for row in found["rows"]}
        for row in exact[name]["functions"]:
            assert shares[row["name"]] == pytest.approx(row["old"] / found["events"])


def test_ops_that_ibs_samples_are_unbiased_and_cycles_are_not(tmp_path: Path) -> None:
    """IBS draws where each of its periods of ops begins; of cycles it tags what retires next, not what has waited."""
    recorded(tmp_path, "--core", "zen5", "-e", "ibs_op/cnt_ctl=1/u", "-c", "256", SORT["x86_64"], "5000")
    ops = event(tmp_path)
    assert (ops["counted"], ops["same_run"]) == ("instructions:u", True)
    assert ops["samples"] > 1000
    assert ops["instructions"]["p"] > 0.001
    recorded(tmp_path, "--core", "zen5", "-e", "ibs_op//u", "-c", "256", SORT["x86_64"], "5000")
    cycles = event(tmp_path)
    assert cycles["counted"] == "cycles:u"
    assert cycles["instructions"]["p"] < 1e-4


def test_what_spe_samples_at_random_is_unbiased(tmp_path: Path) -> None:
    """At every 1024th instruction the loops of sort are passed over; with some of [0, 256) more they are not."""
    found = {}
    for jitter in (0, 1):
        terms = f"arm_spe_0/ts_enable=1,jitter={jitter}/u"
        recorded(tmp_path, "--core", "ideal", "--unit", "spe", "-e", terms, "-c", "1024", SORT["aarch64"], "20000")
        found[jitter] = event(tmp_path)
        assert (found[jitter]["counted"], found[jitter]["same_run"]) == ("instructions:u", True)
        assert found[jitter]["instructions"]["impossible"] == 0
    assert found[0]["samples"] == found[0]["events"] // 1024
    assert found[0]["instructions"]["p"] < 1e-4
    assert found[1]["instructions"]["p"] > 0.001


def test_another_run_is_said_to_be_one(tmp_path: Path) -> None:
    busybox = require.command("busybox", package="busybox-static")
    arguments = ("-e", "instructions", "-c", "1000", busybox, "sort")
    recorded(tmp_path, *arguments, stdin=b"b\na\n")
    assert event(tmp_path, stdin=b"b\na\n")["same_run"]
    assert not event(tmp_path, stdin=b"z\nx\ny\n" * 50)["same_run"]


def test_tables_are_behind_the_programs_own_output(tmp_path: Path) -> None:
    recorded(tmp_path, "-e", "instructions,page-faults", "-c", "100", SORT["x86_64"], "100")
    result = perfemu("truth", "--limit", "1", cwd=tmp_path)
    lines = result.stdout.decode().splitlines()
    assert lines[0].startswith("sort ")
    assert lines[1].startswith("# perf.data: perfemu record")
    assert any(line.split()[-2:] == ["partition", "x86_64.elf"] for line in lines)
    assert lines[-1] == "# not held: page-faults:u: the kernel counts it: no instruction makes it"


def test_a_plot_is_the_same_each_time(tmp_path: Path) -> None:
    recorded(tmp_path, "-e", "instructions", "-c", "100", SORT["x86_64"], "100")
    for name in ("first.svg", "second.svg"):
        assert perfemu("truth", "--plot", name, cwd=tmp_path).returncode == 0
    drawn = (tmp_path / "first.svg").read_bytes()
    assert drawn == (tmp_path / "second.svg").read_bytes()
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert {"partition", "quicksort", "true", "sampled"} <= {text.strip() for text in texts}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--exact", "-e", "instructions"), "--exact"),
        (("-D", "1"), "-D"),
        (("--rw", "/usr"), "may write elsewhere (--rw /usr): -f runs it again"),
    ],
)
def test_what_has_no_truth_is_refused(arguments: tuple[str, ...], what: str, tmp_path: Path) -> None:
    recorded(tmp_path, *arguments, LOOP["x86_64"])
    result = perfemu("truth", cwd=tmp_path)
    assert result.returncode == 129
    assert what in complaint(result)


def test_bad_files_and_names(tmp_path: Path) -> None:
    assert "cannot read perf.data" in complaint(perfemu("truth", cwd=tmp_path))
    recorded(tmp_path, LOOP["x86_64"])
    assert "--plot t.gif: the name says the format" in complaint(perfemu("truth", "--plot", "t.gif", cwd=tmp_path))
    (tmp_path / "cut").write_bytes((tmp_path / "perf.data").read_bytes()[:200])
    assert perfemu("truth", "cut", cwd=tmp_path).returncode != 0


def test_all_units_see_one_run(tmp_path: Path) -> None:
    """Each file is the one that the unit makes alone: nobody disturbs another."""
    program = (SORT["x86_64"], "300")
    common = ("--core", "skylake", "-e", "cycles", "-c", "1009")
    recorded(tmp_path, *common, "--all-units", *program)
    alone = {
        "": common,
        ".lbr": (*common, "-b"),
        ".bts": (*common[:2], "-e", "intel_bts//u"),
        ".exact": (*common[:4], "--exact"),
    }
    for suffix, arguments in alone.items():
        recorded(tmp_path, *arguments, "-o", f"alone{suffix}", *program)
        both = [tmp_path / f"perf.data{suffix}", tmp_path / f"alone{suffix}"]
        assert samples(both[0]) == samples(both[1]), suffix
        assert traces_in(both[0].read_bytes()) == traces_in(both[1].read_bytes())
    assert len(traces_in((tmp_path / "perf.data.bts").read_bytes())) > 0
    assert len(traces_in((tmp_path / "perf.data.pt").read_bytes())) > 0
    held = truth(tmp_path, "perf.data", "perf.data.lbr")
    assert [file["events"][0]["same_run"] for file in held] == [True, True]


def samples(path: Path) -> list[tuple[object, ...]]:
    with open_perf_data(str(path)) as file:
        taken = (record for record in file.records() if record.type == RecordType.SAMPLE)
        decoded = (file.decode_sample(record, file.event_number(record)) for record in taken)
        return [(each.time, each.ip, each.period, tuple(each.branches)) for each in decoded]


def test_no_unit_is_left_out() -> None:
    assert KINDS.keys() | ALONE.keys() == set(UNITS)


def test_lent_units_see_the_run_too(tmp_path: Path) -> None:
    arguments = ("--core", "ideal", "--unit", "brbe", "-e", "instructions", "-c", "97", "--all-units")
    recorded(tmp_path, *arguments, SORT["aarch64"], "300")
    found = samples(tmp_path / "perf.data.brbe")
    assert len(found) > 100
    assert all(branches for *_, branches in found)


def test_what_others_disturb_is_refused(tmp_path: Path) -> None:
    result = perfemu("record", "--core", "zen4", "--unit", "brs", "--all-units", LOOP["x86_64"], cwd=tmp_path)
    assert "record --all-units: brs: each interrupt of another event makes it begin anew" in complaint(result)


def test_all_units_of_a_core_without_any(tmp_path: Path) -> None:
    result = perfemu("record", "--core", "ideal", "--all-units", LOOP["x86_64"], cwd=tmp_path)
    assert "core ideal has none: --unit NAME lends it one" in complaint(result)
    assert not (tmp_path / "perf.data").exists()
    recorded(tmp_path, "--core", "ideal", "--unit", "bts", "--all-units", LOOP["x86_64"])
    assert (tmp_path / "perf.data.bts").exists()
