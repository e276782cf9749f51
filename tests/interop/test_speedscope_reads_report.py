"""perfemu report --format speedscope, then speedscope's own page in Chromium: report's numbers, to the last event."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from pathlib import Path

import pytest

import npm
from browser import page_text
from exports import exact, exported, sampled, weights
from guests import ISAS
from perfcore.abi.constants import SampleType
from synthetic_perf_data import PID, SAMPLE_TYPE, Recording, event

VERSION = "1.25.0"
_WEIGHT = re.compile(r"([\d,]+) \(<?[\d.]+%\)")


def shown(profile: bytes, directory: Path) -> list[str]:
    """The page's table of functions, as its command line opens it."""
    page = npm.package("speedscope", VERSION) / "dist" / "release" / "index.html"
    script = directory / "profile.js"
    encoded = base64.b64encode(profile).decode()
    script.write_text(f'speedscope.loadFileFromBase64("profile.json", "{encoded}")', encoding="utf-8")
    return page_text(f"file://{page}#view=sandwich&localProfilePath={script}", directory)


def functions(page: list[str]) -> tuple[Counter[str], Counter[str]]:
    """Own weights, and those with what was called."""
    own, total = Counter[str](), Counter[str]()
    for first, second, name in zip(page, page[1:], page[2:], strict=False):
        if (whole := _WEIGHT.fullmatch(first)) and (part := _WEIGHT.fullmatch(second)):
            total[name] += int(whole[1].replace(",", ""))
            own[name] += int(part[1].replace(",", ""))
    return +own, +total


@pytest.mark.parametrize("isa", ISAS)
def test_functions_weigh_what_report_says(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the recursive one. The list of profiles has the total of each event."""
    data = sampled(tmp_path, isa)
    page = shown(exported(monkeypatch, data, "speedscope"), tmp_path)
    own, total = weights(data), weights(data, children=True)
    assert own["instructions:u"]["quicksort"] > 10 * 1009
    assert functions(page) == (own["instructions:u"], total["instructions:u"])
    for name, counter in own.items():
        number = next(index for index, text in enumerate(page) if text.startswith(f"{name} {isa}.elf 1000/1000"))
        assert f"{sum(counter.values()):,}" in page[number:]


def test_exact_recordings_keep_every_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = exact(tmp_path, "aarch64", "sort", "1000")
    profiles = json.loads(exported(monkeypatch, data, "speedscope"))["profiles"]
    sums = {profile["name"].split()[0]: profile["endValue"] for profile in profiles}
    assert sums == {event: sum(counter.values()) for event, counter in weights(data).items()}


def test_each_thread_has_a_profile_of_samples_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Recording(
        [event(sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN), event("task-clock:u", 2, type=1, config=1)]
    )
    made.start("/none", 0x1000)
    made.sample(0x400000, [0x400100], period=3)
    made.sample(0x400000, [0x400100], period=4)
    made.sample(0x500000, period=5)
    made.sample(0x400000, [0x400100], period=6)
    made.sample(0x400000, period=7, tid=PID + 1)
    made.sample(0x500000, period=1000, number=1)
    document = json.loads(exported(monkeypatch, made.write(tmp_path / "perf.data"), "speedscope"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert [(profile["name"], profile["unit"]) for profile in document["profiles"]] == [
        ("instructions:u prog 1000/1000", "none"),
        ("instructions:u :1001 1000/1001", "none"),
        ("task-clock:u prog 1000/1000", "nanoseconds"),
    ]
    first = document["profiles"][0]
    stacks = [[names[number] for number in stack] for stack in first["samples"]]
    assert stacks == [["[none]", "[none]"], ["[unknown]"], ["[none]", "[none]"]]
    assert (first["weights"], first["endValue"]) == ([7, 5, 6], 18)
