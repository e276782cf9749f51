"""The glossary's words are the code's: each identifier is defined in the file that the page names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| .* \| `(\w+)` in `([\w./]+)` \|$", re.MULTILINE)
MOST_LINES = 60  # a page
# Of a type, or a function of a class, or a field, in either language.
DEFINITION = r"\b(class|struct|using|def) (alignas\(64\) )?{name}\b|::{name}\(|\* {name}\(\) const|^    {name}: "


def test_identifiers_are_defined_where_the_glossary_says() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    places = ROW.findall(page)
    assert len(places) == page.count("\n| ") - 1  # but for the head
    missing = [
        f"{name} in {path}"
        for name, path in places
        if not re.search(DEFINITION.format(name=name), (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []
    assert len(page.splitlines()) <= MOST_LINES
