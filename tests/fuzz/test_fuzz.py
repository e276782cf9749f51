"""Programs that make random system calls: whatever they ask for, the emulator goes on, and the host is as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.campaign import ISAS, Campaign
from fuzz.host_watch import HostWatch, Touched
from fuzz.program import RandomProgram, rows_of
from fuzz.run import CALLS

SEEDS = 20


@pytest.mark.parametrize("isa", ISAS)
def test_random_system_calls(isa: str, tmp_path: Path) -> None:
    campaign = Campaign((isa,), 0, tmp_path)
    for _ in range(SEEDS):
        assert not list(campaign.next())
    assert campaign.programs == SEEDS
    assert campaign.tasks > SEEDS  # some have children, or threads
    assert campaign.calls > SEEDS * 50
    # Most kinds of calls have succeeded: the arguments are not just noise.
    assert len(campaign.never_succeeded(isa)) < len(rows_of(isa)) * 0.6


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_follows_from_its_seed(isa: str) -> None:
    programs = [RandomProgram(isa, seed, CALLS, "/inside", "/inside/program").elf() for seed in (7, 7, 8)]
    assert programs[0] == programs[1] != programs[2]


def test_what_touches_the_host_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch itself, without its hook, which could not be taken away again."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "out").symlink_to("..")
    watch = HostWatch(str(tmp_path / "inside"))
    inside, outside = (os.open(path, os.O_PATH) for path in (tmp_path / "inside", tmp_path))
    for event, arguments in (
        ("open", (f"{tmp_path}/inside/new", None, 0o102)),
        ("open", (f"{tmp_path}/outside", None, 0)),
        ("os.mkdir", (f"{tmp_path}/inside/d", 0o777, -1)),
        ("os.lstat", (f"{tmp_path}/outside",)),
        ("os.mkdir", ("d", 0o777, inside)),
        ("os.chmod", (".", 0o777, inside)),
    ):
        watch.hear(event, arguments)
    assert watch.touched == []
    for event, arguments in (
        ("open", (f"{tmp_path}/outside", None, 0o101)),
        ("open", (f"{tmp_path}/inside/out/new", None, 0o102)),
        ("os.rename", (f"{tmp_path}/inside/a", f"{tmp_path}/b", -1, -1)),
        ("os.chmod", (f"{tmp_path}", 0o777, -1)),
        ("os.chmod", (".", 0o777, outside)),
        ("os.rename", ("a", "b", inside, outside)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("subprocess.Popen", ("ls", ["ls"], None, None)),
    ):
        with pytest.raises(Touched):
            watch.hear(event, arguments)
    assert len(watch.touched) == 8
    os.close(inside)
    os.close(outside)
