"""Core files: what they may say, how they are based on each other, and what is said of a wrong one, in one line."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from emulator.core_file.core_file import CoreFile, load_core
from emulator.core_file.layers import DIRECTORY, CoreFileError, names
from synthetic_core import core_text, write_core

WRONG = tomllib.loads((Path(__file__).parent / "wrong.toml").read_text(encoding="utf-8"))


def table(core: CoreFile, *path: str) -> dict[str, object]:
    found: object = core.tables
    for name in path:
        assert isinstance(found, dict)
        found = found[name]
    assert isinstance(found, dict)
    return found


def complaint(core: str, *changes: str) -> str:
    """The one line about it."""
    with pytest.raises(CoreFileError) as raised:
        load_core(core, changes)
    (line,) = str(raised.value).splitlines()
    return line


@pytest.mark.parametrize("name", names())
def test_every_core_that_we_ship_is_in_order(name: str) -> None:
    core = load_core(name)
    assert core.name == name, "the file's name"
    assert core.sources
    assert set(core.pmu_models) == set(core.isas)


@pytest.mark.parametrize("name", names())
def test_the_pipeline_of_any_core_can_be_made_ideal(name: str) -> None:
    assert "ports" not in table(load_core(name, ["pipeline.model=ideal"]), "pipeline")


def test_sizes_become_bytes_and_defaults_are_filled_in(tmp_path: Path) -> None:
    core = load_core(write_core(tmp_path))
    assert table(core, "l1d")["size"] == 32768  # 32 x 1024
    assert table(core, "l1d")["line"] == 64
    assert table(core, "l1d")["write_policy"] == "write_back"
    assert table(core, "kernel")["fault_cycles"] == 0
    assert core.kernel.syscall == 600
    assert core.model is core.tables


def test_the_ideal_core_has_nothing_to_model_until_something_is_added() -> None:
    assert load_core("ideal").model is None
    branch = load_core("ideal", ["branch.return_stack=16"])
    assert branch.model is branch.tables


def test_what_set_says_comes_last_and_is_named_in_the_title(tmp_path: Path) -> None:
    core = load_core(write_core(tmp_path), ["l1d.size=64KiB", "l1d.write_allocate=false", "l1d.size=0x4000"])
    assert table(core, "l1d")["size"] == 0x4000
    assert table(core, "l1d")["write_allocate"] is False
    assert core.title == "small, l1d.size=64KiB, l1d.write_allocate=false, l1d.size=0x4000"
    assert core.validated == "not validated: small with changes"
    without = load_core(write_core(tmp_path), ["without=l2tlb,l2", "pipeline.store_data_ports=P0,P1"])
    assert "l2" not in without.tables
    assert table(without, "pipeline")["store_data_ports"] == ["P0", "P1"]


def test_a_file_changes_its_base(tmp_path: Path) -> None:
    write_core(tmp_path)
    own = tmp_path / "own.toml"
    own.write_text('base = "./small.toml"\nwithout = ["l2tlb"]\n[l1d]\nsize = "16KiB"\n')
    core = load_core(str(own))
    assert (core.name, core.frequency_hz) == ("own", 2_600_000_000)
    assert core.validated == "not validated: small with changes"
    assert (table(core, "l1d")["size"], table(core, "l1d")["ways"]) == (16384, 4)
    assert "l2tlb" not in core.tables


def test_bases_in_a_circle_are_named(tmp_path: Path) -> None:
    for name, base in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.toml").write_text(f'base = "./{base}.toml"\n')
    assert complaint(str(tmp_path / "a.toml")).endswith('c.toml: base = "./b.toml": cyclic: b -> c -> b')
    (tmp_path / "self.toml").write_text('base = "./self.toml"\n')
    assert complaint(str(tmp_path / "self.toml")).endswith("cyclic: self -> self")


HUGE = [
    ("frequency_hz = 2_600_000_000", f"frequency_hz = {'9' * 5000}", "is not TOML: "),
    ("[l1d]", f"x = {'[' * 5000}", "tables or lists within each other, too many"),
    ("[l1d]", f"[{'.'.join('x' * 2000)}]", "x.x.x.x.x.x: unknown key: no table is so deep"),
]


@pytest.mark.parametrize(("old", "new", "said"), [*WRONG["files"], *HUGE])
def test_what_is_wrong_in_a_file_is_one_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = write_core(tmp_path, (old, new))
    line = complaint(path)
    assert line.startswith(f"{path}: {said}"), line


def test_schedulers_have_ports_that_are_there_each_its_own(tmp_path: Path) -> None:
    text = "store_forward_cycles = 4\ndispatch_width = 4\nrob_entries = 64\n"
    out_of_order = (('model = "in_order"\nissue_width = 2', f'model = "out_of_order"\n{text}'),)

    def said(schedulers: str, *more: tuple[str, str]) -> str:
        return complaint(
            write_core(tmp_path, *out_of_order, *more, ("[l1i]", f"[pipeline.schedulers]\n{schedulers}\n[l1i]"))
        )

    assert 'a.ports = ["P7"]: "P7" is unknown; there is P0, P1, LS' in said('a = { entries = 8, ports = ["P7"] }')
    twice = 'a = { entries = 8, ports = ["P0", "LS"] }\nb = { entries = 8, ports = ["LS"] }'
    assert 'pipeline.schedulers.b.ports = ["LS"]: LS is a\'s already: a port has one scheduler' in said(twice)
    one = ("store_buffer = 4", "store_buffer = 4\nscheduler_entries = 60")
    assert "scheduler_entries = 60: contradicts" in said('a = { entries = 8, ports = ["P0"] }', one)
    many = ", ".join(f'"P{number}"' for number in range(31))
    ports = complaint(write_core(tmp_path, ('ports = ["P0", "P1", "LS"]', f'ports = ["LS", "X", {many}]')))
    assert "33 ports: want at most 32" in ports


@pytest.mark.parametrize(("change", "said"), WRONG["changes"])
def test_what_is_wrong_with_a_change_is_one_line(change: str, said: str, tmp_path: Path) -> None:
    assert said in complaint(write_core(tmp_path), change)


def test_no_such_core_or_file(tmp_path: Path) -> None:
    assert complaint("idel").startswith("--core idel: no such core; there is ")
    missing = str(tmp_path / "none.toml")
    assert complaint(missing) == f"{missing}: No such file or directory; want a core file (TOML)"
    assert complaint(f"{tmp_path}/") == f"{tmp_path}: Is a directory; want a core file (TOML)"
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    assert complaint(str(binary)) == f"{binary}: is not UTF-8; want a core file (TOML)"


def said_of(core: str) -> list[str]:
    """What is said, if anything is."""
    try:
        load_core(core)
    except CoreFileError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_taken_and_nothing_else(seed: int, tmp_path: Path) -> None:
    """Lines and tokens of a good file deleted, doubled, exchanged, and values of every type put in."""
    draw = random.Random(seed)
    texts = [core_text(), *((DIRECTORY / f"{name}.toml").read_text(encoding="utf-8") for name in names())]
    values = [
        "0",
        "-1",
        "1.5",
        "nan",
        "true",
        '""',
        '"x"',
        "[]",
        "[[]]",
        "[1]",
        '["P0", 3]',
        "{}",
        "{ a = 1 }",
        "2026-11-20",
        "9" * 30,
    ]
    refused = 0
    for number in range(150):
        lines = draw.choice(texts).splitlines()
        for _ in range(draw.randint(1, 3)):
            line = draw.randrange(len(lines))
            match draw.randrange(4):
                case 0:
                    del lines[line]
                case 1:
                    lines.insert(line, draw.choice(lines))
                case 2:
                    lines[line] = lines[line].partition("=")[0] + "= " + draw.choice(values)
                case 3:
                    lines[line] = "".join(draw.sample(lines[line], len(lines[line])))
        path = tmp_path / f"{number}.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        lines = said_of(str(path))
        assert all(line.startswith(str(path)) for line in lines)
        assert len(lines) <= 1
        refused += len(lines)
    assert refused > 75  # of 150: most damage is seen
