"""The glossary's words are the code's: each identifier stands in the file that the page names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| .* \| `(\w+)` in `([\w./]+)` \|$", re.MULTILINE)
MOST_LINES = 60  # a page


def test_identifiers_stand_where_the_glossary_says() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    places = ROW.findall(page)
    assert len(places) == page.count("\n| ") - 1  # but for the head
    missing = [
        f"{name} in {path}"
        for name, path in places
        if not re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert missing == []
    assert len(page.splitlines()) <= MOST_LINES
