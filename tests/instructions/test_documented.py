"""docs/accuracy.md lists every row of the table of differences; REWRITE_DIFFERENCES=1 writes the list anew."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER.parent.parent / "docs" / "accuracy.md"
TITLES = {"aarch64": "AArch64, against qemu-aarch64 10", "x86_64": "x86-64, against the host's processor"}


def listed(isa: str) -> str:
    rows = tomllib.loads((FOLDER / isa / "differences.toml").read_text(encoding="utf-8"))["difference"]
    lines = [f"{TITLES[isa]}:", "", "| forms | why | |", "|---|---|---|"]
    for row in rows:
        forms = ", ".join(f"`{form}`" for form in row["forms"])
        status = ", ".join([row["status"], *row.get("vendors", ())])
        lines.append(f"| {forms} | {row['reason']} | {status} |")
    return "\n".join(lines)


@pytest.mark.parametrize("isa", sorted(TITLES))
def test_the_document_lists_the_differences(isa: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(rf"{re.escape(TITLES[isa])}:\n\n(\|.*\n)+")
    if os.environ.get("REWRITE_DIFFERENCES") == "1":
        text = pattern.sub(lambda _: listed(isa) + "\n", text)
        DOCUMENT.write_text(text, encoding="utf-8")
    found = pattern.search(text)
    assert found, f"{DOCUMENT.name} has no list of {TITLES[isa]}"
    assert found[0] == listed(isa) + "\n", "REWRITE_DIFFERENCES=1 writes it anew"
