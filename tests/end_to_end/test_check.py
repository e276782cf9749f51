"""perfemu check: what grows beyond its tolerance fails, and is named by function; what cannot be compared is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import ISAS

SOURCE = Path(__file__).with_name("versions.c")
BENCHMARKS = """
[defaults]
core = "ideal"

[benchmark.parse]
command = "./prog input"
events = ["instructions", "branches", "page-faults"]

[benchmark.exact]
command = ["./prog"]
tolerance = { instructions = "0", branches = "100%" }
events = ["instructions", "branches"]
"""


@pytest.fixture(scope="module", params=ISAS)
def versions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    return build(SOURCE, request.param, folder / "old"), build(SOURCE, request.param, folder / "new", "-DNEW")


@pytest.fixture
def project(versions: tuple[Path, Path], tmp_path: Path) -> Path:
    """With a baseline of the old version, and the old version in place."""
    (tmp_path / "perfemu.toml").write_text(BENCHMARKS, encoding="utf-8")
    shutil.copy(versions[0], tmp_path / "prog")
    assert perfemu("check", "--update", cwd=tmp_path).returncode == 0
    return tmp_path


def test_what_has_not_changed_passes(project: Path) -> None:
    done = perfemu("check", "-j", "2", cwd=project)
    assert done.returncode == 0, done
    assert done.stdout.endswith(b"2 benchmarks: 2 passed\n")


def test_what_has_grown_fails_and_says_where(project: Path, versions: tuple[Path, Path]) -> None:
    shutil.copy(versions[1], project / "prog")
    done = perfemu("check", "--github", "--junit", "j.xml", "--markdown", "m.md", cwd=project)
    assert done.returncode == 1
    text = done.stdout.decode()
    rows = [line.split() for line in text.splitlines()]
    (parse, exact) = [row for row in rows if len(row) > 6 and row[1] == "instructions"]
    assert parse[4] == exact[4]  # the same difference, to the instruction
    grown = int(parse[4].replace(",", ""))
    functions = [row for row in rows if row[1:2] in (["hash"], ["further"], ["compute"])]
    assert sum(int(row[0].replace(",", "")) for row in functions[:3]) == grown  # all of it: the program is static
    assert "FAILED (more than 0.1%)" in text
    assert "2 benchmarks: 2 FAILED" in text
    assert text.count("::error file=perfemu.toml,title=perfemu check%3A ") == 2
    suite = ElementTree.parse(project / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "2", "0")
    assert [case.get("name") for case in suite] == ["parse", "exact"]
    assert f"| {parse[2]} | {parse[3]} | {parse[4]} |" in (project / "m.md").read_text()


def test_what_has_shrunk_is_told_and_is_no_failure(project: Path, versions: tuple[Path, Path]) -> None:
    shutil.copy(versions[1], project / "prog")
    assert perfemu("check", "--update", cwd=project).returncode == 0
    shutil.copy(versions[0], project / "prog")
    done = perfemu("check", cwd=project)
    assert done.returncode == 0
    assert done.stdout.endswith(b"2 benchmarks: 2 improved\n")


def test_one_alone_leaves_the_other_baselines_as_they_are(project: Path, versions: tuple[Path, Path]) -> None:
    shutil.copy(versions[1], project / "prog")
    before = json.loads((project / "perfemu-baseline.json").read_text())["entries"]
    assert perfemu("check", "--update", "--only", "parse", cwd=project).returncode == 0
    after = json.loads((project / "perfemu-baseline.json").read_text())["entries"]
    assert after["exact"] == before["exact"]
    assert after["parse"] != before["parse"]


def test_a_baseline_is_the_same_wherever_it_is_made(project: Path, tmp_path: Path) -> None:
    kept = (project / "perfemu-baseline.json").read_bytes()
    assert perfemu("check", "--update", "-j", "2", cwd=project).returncode == 0
    assert (project / "perfemu-baseline.json").read_bytes() == kept


def test_a_baseline_of_another_core_is_named_and_not_compared(project: Path) -> None:
    (project / "perfemu.toml").write_text(
        BENCHMARKS.replace('"ideal"', '"ideal"\ncore_changes = ["frequency_hz=2000000000"]')
    )
    done = perfemu("check", cwd=project)
    assert done.returncode == 1
    assert b"the baseline is of core ideal, this is ideal, frequency_hz=2000000000" in done.stdout
    assert b"2 benchmarks: 2 not compared" in done.stdout


def test_a_program_that_fails_is_broken(project: Path) -> None:
    (project / "perfemu.toml").write_text("[benchmark.bad]\ncommand = \"/bin/sh -c 'echo oh dear >&2; exit 3'\"\n")
    done = perfemu("check", cwd=project)
    assert done.returncode == 1
    assert b"bad: exit status 3 instead of 0; the last that it wrote: oh dear" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "perfemu.toml: no [benchmark.NAME]"),
        ("benchmark", "perfemu.toml: "),
        ("[other]\n", "perfemu.toml: other: there are [defaults] and [benchmark.NAME]"),
        ("[benchmark.x]\n", "[benchmark.x]: command: wants a program and its arguments"),
        ('[benchmark.x]\ncommand = "/bin/true"\nrounds = 3\n', "[benchmark.x]: rounds: there is no such key"),
        ('[benchmark.x]\ncommand = "/bin/true"\ntolerance = "some"\n', "'some' is neither a percentage nor a count"),
        ('[benchmark.x]\ncommand = "/bin/true"\nmemory = "1"\n', "memory='1': 1 is not within 16M..64G"),
    ],
)
def test_a_wrong_file_is_named_with_the_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "perfemu.toml").write_text(text)
    done = perfemu("check", cwd=tmp_path)
    assert done.returncode != 0
    assert message in complaint(done)


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("{", "perfemu-baseline.json: "),
        ("[]", "perfemu-baseline.json is no baseline that perfemu wrote"),
        ('{"format": 9}', "format 9"),
    ],
)
def test_a_wrong_baseline_is_named(baseline: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "perfemu.toml").write_text('[benchmark.x]\ncommand = "/bin/true"\n')
    (tmp_path / "perfemu-baseline.json").write_text(baseline)
    assert message in complaint(perfemu("check", cwd=tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert complaint(perfemu("check", cwd=tmp_path)) == "cannot read perfemu.toml: No such file or directory"
    assert "--only y: perfemu.toml has x" in complaint(_only(tmp_path))


def _only(tmp_path: Path):  # type: ignore[no-untyped-def]
    (tmp_path / "perfemu.toml").write_text('[benchmark.x]\ncommand = "/bin/true"\n')
    return perfemu("check", "--only", "y", cwd=tmp_path)


def test_a_region_is_counted_alone(project: Path, versions: tuple[Path, Path]) -> None:
    """Of `main` and what it calls; start-up is not in the baseline, and a region that is not reached fails."""
    region = BENCHMARKS.replace('core = "ideal"', 'core = "ideal"\nfrom_symbol = "further"')
    (project / "perfemu.toml").write_text(region, encoding="utf-8")
    done = perfemu("check", "--update", cwd=project)
    assert done.returncode == 1
    assert b"further" in done.stdout  # the old version does not have it
    (project / "perfemu.toml").write_text(region.replace("further", "main"), encoding="utf-8")
    assert perfemu("check", "--update", cwd=project).returncode == 0
    entries = json.loads((project / "perfemu-baseline.json").read_text())
    assert "main" in json.dumps(entries)
    assert "_start" not in json.dumps(entries)
    (project / "perfemu.toml").write_text(BENCHMARKS, encoding="utf-8")
    assert b"the baseline counts from main, this counts the whole program" in perfemu("check", cwd=project).stdout
    (project / "perfemu.toml").write_text(region.replace("further", "main"), encoding="utf-8")
    shutil.copy(versions[1], project / "prog")
    assert perfemu("check", cwd=project).returncode == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("from_symbol = 5", "from_symbol: 5 is not the name of a function"),
        ('to_symbol = "main"', "--to-symbol main: a region begins with --from-symbol"),
    ],
)
def test_a_region_that_is_none(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "perfemu.toml").write_text(f'[benchmark.a]\ncommand = "true"\n{line}\n', encoding="utf-8")
    assert says in complaint(perfemu("check", cwd=tmp_path))
