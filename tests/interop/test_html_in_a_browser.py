"""The page that `perfemu html` writes, in Debian's Chromium: opened, searched, zoomed, compared, by mouse and keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from c_programs import build
from devtools import Browser
from perfcore.abi.constants import SampleType
from perfemu import api
from perfemu.cli.main import main
from perfemu.html.page import page as page_of
from synthetic_elf import ADDRESS, TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import SAMPLE_TYPE, Recording, event

TEXT = ADDRESS + TEXT_OFFSET
HOSTILE = "</script><script>document.title='taken'</script>"
NAMES = ("main", "parse", "leaf", HOSTILE)
MAIN, PARSE, LEAF, ODD = (TEXT + 0x100 * number for number in range(len(NAMES)))
LEVEL = 18  # pixels


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


def recording(directory: Path, name: str, weights: dict[tuple[int, ...], int]) -> Path:
    """Samples of these paths, outermost first."""
    symbols = [ElfSymbol(each, 0x100 * number, 0x100) for number, each in enumerate(NAMES)]
    made = Recording([event(sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN)])
    made.start(synthetic_elf(directory / "prog", symbols), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
    for path, period in weights.items():
        made.sample(path[-1] + 4, [address + 8 for address in path[-2::-1]], period=period)
    return made.write(directory / name)


NEW = {(MAIN, PARSE, PARSE, LEAF): 600, (MAIN, LEAF): 300, (MAIN, ODD): 100}
OLD = {(MAIN, PARSE, PARSE, LEAF): 500, (MAIN, LEAF): 350, (MAIN,): 50}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("html")
    data = recording(directory, "new.data", NEW)
    assert main(["html", str(data), "-o", str(directory / "page.html")]) == 0
    return directory / "page.html"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("compared")
    new, old = recording(directory, "new.data", NEW), recording(directory, "old.data", OLD)
    assert main(["html", str(new), str(old), "-o", str(directory / "page.html")]) == 0
    return directory / "page.html"


def opened(browser: Browser, page: Path, fragment: str = "") -> Browser:
    browser.open(page, fragment)
    assert browser.errors == []
    assert browser.requests == [browser.run("location.href").partition("#")[0]]
    return browser


def table(browser: Browser) -> list[list[str]]:
    rows = "[...document.querySelectorAll('#functions tbody tr')]"
    return list(browser.run(f"{rows}.map(row => [...row.children].map(cell => cell.textContent))"))


def choose(browser: Browser, control: str, value: str) -> None:
    found = f"document.getElementById('{control}')"
    kind = "input" if control == "search" else "change"
    browser.run(f"{found}.value = '{value}'; {found}.dispatchEvent(new Event('{kind}'))")


def click_box(browser: Browser, share: float, level: int) -> None:
    """At this share of the picture's width, in this level from its bottom."""
    box: dict[str, float] = browser.run("document.getElementById('flame').getBoundingClientRect().toJSON()")
    browser.click(box["left"] + share * box["width"], box["bottom"] - (level + 0.5) * LEVEL)


def test_the_table_has_the_sums(browser: Browser, page: Path) -> None:
    """leaf: 600 + 300; parse, which calls itself, 600 with what it calls, once."""
    assert table(opened(browser, page)) == [
        ["leaf", "prog", "900", "90.00%", "900", "90.00%"],
        [HOSTILE, "prog", "100", "10.00%", "100", "10.00%"],
        ["main", "prog", "0", "0.00%", "1,000", "100.00%"],
        ["parse", "prog", "0", "0.00%", "600", "60.00%"],
    ]
    assert browser.run("document.title") == "new.data" or browser.run("document.title").endswith("/new.data")


def test_columns_sort(browser: Browser, page: Path) -> None:
    opened(browser, page)
    for _ in range(2):
        browser.run("document.querySelectorAll('#functions th button')[4].click()")
    assert [row[4] for row in table(browser)] == ["100", "600", "900", "1,000"]
    sorted_by = "[...document.querySelectorAll('#functions th')].map(cell => cell.ariaSort)"
    assert browser.run(sorted_by) == ["none"] * 4 + ["ascending", "none"]


@pytest.mark.parametrize(
    ("words", "share"),
    [("parse", "60.00%"), ("LEAF", "90.00%"), ("nothing", "0.00%"), ("(", "0.00%"), ("^ma", "100.00%")],
)
def test_search_says_how_much_matches(browser: Browser, page: Path, words: str, share: str) -> None:
    choose(opened(browser, page), "search", words)
    assert browser.text("#matched") == f"matched {share}"


def test_clicks_zoom(browser: Browser, page: Path) -> None:
    """From the bottom: all, main, then of 1000: the odd one 100, leaf 300, parse 600, by name."""
    click_box(opened(browser, page, "search=leaf"), 0.9, 2)
    assert browser.text("#status").startswith("parse (prog): 600 instructions:u, 60.00% of all, 60.00% of main")
    assert browser.text("#matched") == "matched 100.00%"
    fragment = browser.run("location.hash")
    assert "zoom=" in fragment
    click_box(browser, 0.5, 0)  # what called it is still there
    assert browser.text("#status").startswith("all: 1,000 instructions:u")
    opened(browser, page, fragment[1:])  # and an address leads back
    assert browser.text("#status").startswith("parse (prog): 600")


def test_keys_walk_and_zoom(browser: Browser, page: Path) -> None:
    opened(browser, page).run("document.getElementById('flame').focus()")
    for key, expected in [
        ("ArrowUp", "main"),
        ("ArrowUp", HOSTILE),
        ("ArrowRight", "leaf"),
        ("ArrowRight", "parse"),
        ("Enter", "parse"),
        ("ArrowUp", "parse"),
        ("ArrowUp", "leaf"),
        ("Escape", "main"),
        ("Home", "all"),
    ]:
        browser.press(key)
        assert browser.text("#status").startswith(expected), key
    browser.press("/")
    assert browser.run("document.activeElement.id") == "search"


def test_deep_stacks_are_shown_from_their_base(browser: Browser, tmp_path: Path) -> None:
    """2000 levels are 36,000 pixels, of which a window is drawn."""
    data = recording(tmp_path, "deep.data", {(MAIN, *[PARSE] * 1998, LEAF): 5})
    assert main(["html", str(data), "-o", str(tmp_path / "page.html")]) == 0
    opened(browser, tmp_path / "page.html").run("document.getElementById('flame').focus()")
    assert browser.run("document.getElementById('flame').height") < 1000
    click_box(browser, 0.5, 3)
    assert browser.run("JSON.parse(new URLSearchParams(location.hash.slice(1)).get('zoom')).length") == 3
    for _ in range(60):
        browser.press("ArrowUp")
    window = "document.getElementById('flame-window')"
    assert browser.run(f"{window}.scrollHeight - {window}.scrollTop") == 64 * LEVEL  # all, three, and sixty more


def test_an_icicle_hangs_down(browser: Browser, page: Path) -> None:
    opened(browser, page, "shape=icicle").run("document.getElementById('flame').focus()")
    browser.press("ArrowDown")
    assert browser.text("#status").startswith("main")


def test_inverted_begins_with_what_runs(browser: Browser, page: Path) -> None:
    """Of leaf's 900, 300 were called by main and 600 by parse."""
    click_box(opened(browser, page, "inverted=true"), 0.9, 1)
    assert browser.text("#status").startswith("leaf (prog): 900 instructions:u, 90.00% of all")
    click_box(browser, 0.9, 2)
    assert browser.text("#status").startswith("parse (prog): 600")


def test_compared(browser: Browser, compared: Path) -> None:
    """Old: leaf 850, main 50 of itself, the odd one nothing; 900 together."""
    opened(browser, compared)
    assert browser.text("#status") == "all: 1,000 instructions:u, 100.00% of all, old 900, new 1,000, +100 +11.11%"
    assert [row[:1] + row[6:] for row in table(browser)] == [
        ["leaf", "850", "+50", "+5.88%", "+50"],
        [HOSTILE, "0", "+100", "new", "+100"],
        ["main", "50", "−50", "−100.00%", "+100"],
        ["parse", "0", "0", "", "+100"],
    ]
    colour = "[...document.getElementById('flame').getContext('2d').getImageData({}, {}, 1, 1).data]"
    height = browser.run("document.getElementById('flame').height")
    red, _, blue, _ = browser.run(colour.format(900, height - 2 * LEVEL - 4))  # parse has grown
    assert red > blue
    red, _, blue, _ = browser.run(colour.format(300, height - 2 * LEVEL - 4))  # leaf below main has shrunk
    assert red < blue


def test_an_event_without_counts_is_empty(browser: Browser, tmp_path: Path) -> None:
    """It is compared, for OLD had some."""
    directory = tmp_path
    symbols = [ElfSymbol("main", 0, 0x100)]
    files = []
    for name, missed in (("new", 0), ("old", 30)):
        made = Recording([event(), event("branch-misses:u", 2)])
        made.start(synthetic_elf(directory / "prog", symbols), 0x1000, address=TEXT, pgoff=TEXT_OFFSET)
        made.sample(MAIN)
        if missed:
            made.sample(MAIN, period=missed, number=1)
        files.append(made.write(directory / f"{name}.data"))
    assert main(["html", *map(str, files), "-o", str(directory / "page.html")]) == 0
    opened(browser, directory / "page.html", "event=1")
    assert browser.text("#status").startswith("all: 0 branch-misses:u")
    assert table(browser) == [["main", "prog", "0", "0.00%", "30", "−30", "−100.00%", "0.00"]]
    choose(browser, "width", "old")
    assert browser.text("#status").startswith("all: 30 branch-misses:u, 100.00% of all")


def test_width_of_old(browser: Browser, compared: Path) -> None:
    choose(opened(browser, compared), "width", "old")
    click_box(browser, 0.2, 2)  # no box of the odd one before it: 350 of 900 are leaf
    assert browser.text("#status").startswith("leaf (prog): 350 instructions:u, 38.89% of all")
    choose(browser, "width", "new")  # still zoomed
    assert browser.text("#status").startswith("leaf (prog): 300 instructions:u, 30.00% of all")
    choose(browser, "groups", "task")  # its place is another one then
    assert browser.text("#status").startswith("all: 1,000 instructions:u")


def test_dark_and_light(browser: Browser, page: Path) -> None:
    backgrounds: list[Any] = []
    for scheme in ("dark", "light"):
        browser.prefer(scheme)
        opened(browser, page)
        backgrounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds == ["rgb(22, 24, 28)", "rgb(255, 255, 255)"]


WORK = """
int main(void)
{
    volatile int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += i; /* hot */
    return 0;
}
"""


def test_exact_counts_and_source(browser: Browser, tmp_path: Path) -> None:
    """Files above functions, commands above files; the line that is hottest is shown with what it retired."""
    (tmp_path / "work.c").write_text(WORK)
    program = build(tmp_path / "work.c", "x86_64", tmp_path / "work", "-g", "-O0")
    data = tmp_path / "perf.data"
    api.record(api.Guest([program], core="ideal"), ["instructions", "cycles"], output=data, exact=True, capture=True)
    assert main(["html", str(data), "-o", str(tmp_path / "page.html")]) == 0
    opened(browser, tmp_path / "page.html", "search=^main$").run("document.getElementById('flame').focus()")
    for expected in ("work: ", "work: "):  # the command, the file
        browser.press("ArrowUp")
        assert browser.text("#status").startswith(expected)
    (row,) = [row for row in table(browser) if row[0] == "main"]
    assert row[-1] == "1.00"  # instructions per cycle on the ideal core
    browser.run("document.querySelector('#functions td button').click()")
    line = browser.text("#source tr.target")
    assert "sum += i; /* hot */" in line


def test_as_many_functions_as_there_may_be(browser: Browser, tmp_path: Path) -> None:
    """150,000 below one: more than a call may have arguments. None is as wide as half a pixel, so one box is drawn."""
    count = 150_000
    shown = {
        "name": "instructions:u", "exact": False, "chains": True, "compared": True,
        "samples": [0, count], "total": [count, count],
        "tasks": [[0, count]], "nodes": [1] * count, "new": [1] * count, "old": [1] * count,
    }  # fmt: skip
    made = {
        "name": "many", "old": "old", "facts": [], "tasks": [[0, 1, 1]], "was": [], "metrics": [], "sources": [],
        "functions": [[1, 0]] + [[number + 2, 0] for number in range(count)],
        "homes": [[]] * (count + 1),
        "nodes": {"function": list(range(count + 1)), "depth": [0] + [1] * count},
        "events": [shown],
        "strings": ["prog", "main", *(f"f{number}" for number in range(count))],
    }  # fmt: skip
    (tmp_path / "page.html").write_bytes(page_of(made))
    for fragment in ("", "inverted=true", "groups=task"):
        opened(browser, tmp_path / "page.html", fragment)
        assert browser.text("#status").startswith("all: 150,000")
    assert len(table(browser)) == 200
    assert browser.text("#more") == "Show 149801 more"
