"""Each C file here prints what calls of one kind answer: as natively, on both ISAs."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux
from guests import ISAS

SOURCES = sorted(Path(__file__).parent.glob("*.c"), key=lambda source: source.name)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda source: source.stem)
def expected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    source: Path = request.param
    lines = same_as_linux.native(source, tmp_path_factory.mktemp(f"{source.stem}-native"))
    assert len(lines) > 20
    return source, lines


@pytest.mark.parametrize("isa", ISAS)
def test_calls_answer_as_linux_does(isa: str, expected: tuple[Path, list[str]], tmp_path: Path) -> None:
    source, lines = expected
    printed, messages = same_as_linux.ours(source, tmp_path, isa)
    assert printed == lines
    assert messages == []


@pytest.mark.parametrize("isa", ISAS)
def test_a_tracer_may_run_on_another_cpu(isa: str, tmp_path: Path) -> None:
    source = Path(__file__).with_name("ptrace.c")
    printed, messages = same_as_linux.ours(source, tmp_path, isa, cpus=3)
    assert printed == same_as_linux.native(source, tmp_path)
    assert messages == []
