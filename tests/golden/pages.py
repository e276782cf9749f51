"""Pages of docs/ whose end is made from tables."""

from __future__ import annotations

import os
from pathlib import Path


def check_page(page: Path, mark: str, made: str) -> None:
    """What stands below `mark` is `made`; with REWRITE_GOLDEN=1 it is written there."""
    text = page.read_text(encoding="utf-8")
    above, found, below = text.partition(mark)
    assert found, f"{page} has no line {mark}"
    if os.environ.get("REWRITE_GOLDEN") == "1":
        page.write_text(above + mark + made, encoding="utf-8")
        return
    assert below == made, "make golden writes it"
